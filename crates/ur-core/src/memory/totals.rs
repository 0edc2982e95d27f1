//! The total size of the pools behind one UR handle, and its limit.
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::*},
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_sys::ur_usm_pool_info_t;

/// A number of bytes, and the highest value that it has had.
#[derive(Debug, Default)]
pub struct Gauge {
    /// The current value.
    pub current: AtomicUsize,
    /// The highest value.
    pub high: AtomicUsize,
}
impl Gauge {
    // Nothing else is synchronised through these counters, so relaxed orderings suffice.
    /// Increases the value.
    pub fn add(&self, bytes: usize) {
        let now = self.current.fetch_add(bytes, Relaxed) + bytes;
        self.high.fetch_max(now, Relaxed);
    }
    fn subtract(&self, bytes: usize) {
        self.current.fetch_sub(bytes, Relaxed);
    }
    /// Resets the highest value to the current one.
    pub fn reset(&self) {
        self.high.store(self.current.load(Relaxed), Relaxed);
    }
}

/// The sizes of all pools behind one handle, and their limit.
#[derive(Debug)]
pub struct Totals {
    /// Bytes allocated from the driver.
    pub reserved: Gauge,
    /// Bytes of these that are in use.
    pub used: Gauge,
    /// The limit for `reserved`.
    pub maximum: AtomicUsize,
}
impl Totals {
    /// Counters at 0, and no limit.
    pub fn new() -> Arc<Self> {
        let (reserved, used) = (Gauge::default(), Gauge::default());
        Arc::new(Self { reserved, used, maximum: AtomicUsize::new(usize::MAX) })
    }
    /// Counts a block that is now in use.
    pub fn take(&self, bytes: usize) {
        self.used.add(bytes);
    }
    /// Counts a block that is no longer in use.
    pub fn put(&self, bytes: usize) {
        self.used.subtract(bytes);
    }
    /// Counts bytes that are about to be allocated from the driver.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if that would exceed the limit.
    pub fn claim(&self, bytes: usize) -> Result<Claim<'_>> {
        let maximum = self.maximum.load(Relaxed);
        let claimed = |now: usize| now.checked_add(bytes).filter(|&all| all <= maximum);
        match self.reserved.current.fetch_update(Relaxed, Relaxed, claimed) {
            Ok(_) => Ok(Claim { totals: self, bytes }),
            Err(reserved) => Error::refuse(
                ErrorCode::OutOfResources,
                format!(
                    "the pool holds {reserved} of at most {maximum} bytes, and {bytes} more are \
                     needed: free blocks of it, or raise its maximum"
                ),
            ),
        }
    }
    /// The value of a pool's property, if it is counted here.
    pub fn size(&self, name: ur_usm_pool_info_t) -> Option<usize> {
        use ur_usm_pool_info_t as I;
        let counted = match name {
            I::RESERVED_CURRENT_EXP => &self.reserved.current,
            I::RESERVED_HIGH_EXP => &self.reserved.high,
            I::USED_CURRENT_EXP => &self.used.current,
            I::USED_HIGH_EXP => &self.used.high,
            _ => return None,
        };
        Some(counted.load(Relaxed))
    }
    /// Sets such a property, or the limit; 0 means no limit.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a high mark that is not set to 0; `UNSUPPORTED_ENUMERATION` for a property that cannot be
    /// set.
    pub fn set(&self, name: ur_usm_pool_info_t, number: usize) -> Result<()> {
        use ur_usm_pool_info_t as I;
        let high = match name {
            I::MAXIMUM_SIZE_EXP => {
                self.maximum.store(if number == 0 { usize::MAX } else { number }, Relaxed);
                return Ok(());
            }
            I::RESERVED_HIGH_EXP => &self.reserved,
            I::USED_HIGH_EXP => &self.used,
            _ => {
                return Error::refuse(
                    ErrorCode::UnsupportedEnumeration,
                    format!("{name:?} of a pool can be queried, but not set"),
                );
            }
        };
        match number {
            0 => {
                high.reset();
                Ok(())
            }
            _ => Error::refuse(
                ErrorCode::InvalidValue,
                format!("a high mark can only be reset, with 0, and {number} was given"),
            ),
        }
    }
    /// Counts bytes that were returned to the driver.
    pub fn unclaim(&self, bytes: usize) {
        self.reserved.subtract(bytes);
    }
}
/// Bytes that are about to be allocated; no longer counted on drop.
#[derive(Debug)]
pub struct Claim<'a> {
    totals: &'a Totals,
    bytes: usize,
}
impl Claim<'_> {
    /// Counts them as allocated: `bytes`, which may be more than were asked for.
    pub fn made(mut self, bytes: usize) {
        self.totals.reserved.add(bytes.saturating_sub(self.bytes));
        self.bytes = 0; // nothing to take back
    }
}
impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.totals.unclaim(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_exceed_the_maximum_is_refused_and_not_counted() {
        let totals = Totals::new();
        totals.maximum.store(100, Relaxed);
        totals.claim(60).unwrap().made(60);
        let error = totals.claim(41).unwrap_err();
        assert_eq!(error.code(), ErrorCode::OutOfResources);
        assert!(error.to_string().contains("60 of at most 100"), "{error}");
        totals.claim(30).unwrap().made(40);
        totals.unclaim(100);
        assert_eq!(totals.reserved.current.load(Relaxed), 0);
        assert_eq!(totals.reserved.high.load(Relaxed), 100);
        assert!(totals.claim(usize::MAX).is_err(), "it does not wrap around");
    }
    #[test]
    fn what_the_driver_refuses_leaves_no_mark() {
        let totals = Totals::new();
        drop(totals.claim(1 << 50).unwrap());
        totals.claim(60).unwrap().made(60);
        assert_eq!(totals.reserved.current.load(Relaxed), 60);
        assert_eq!(totals.reserved.high.load(Relaxed), 60);
    }
    #[test]
    fn a_high_mark_stays_until_it_is_reset() {
        let totals = Totals::new();
        totals.take(5);
        totals.take(7);
        totals.put(5);
        assert_eq!((totals.used.current.load(Relaxed), totals.used.high.load(Relaxed)), (7, 12));
        totals.used.reset();
        assert_eq!(totals.used.high.load(Relaxed), 7);
    }
}
