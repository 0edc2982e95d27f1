//! What the pools behind one handle of C's hold together, and the most that they may.
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::*},
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_sys::ur_usm_pool_info_t;

/// How much of something there is, and the most there ever was; in bytes.
#[derive(Debug, Default)]
pub struct Gauge {
    /// How much there is.
    pub current: AtomicUsize,
    /// The most there ever was.
    pub high: AtomicUsize,
}
impl Gauge {
    // Numbers, which nothing else is read by: none of the orderings matters.
    /// There are so many more.
    pub fn add(&self, bytes: usize) {
        let now = self.current.fetch_add(bytes, Relaxed) + bytes;
        self.high.fetch_max(now, Relaxed);
    }
    fn subtract(&self, bytes: usize) {
        self.current.fetch_sub(bytes, Relaxed);
    }
    /// From now on, the most is what there is.
    pub fn reset(&self) {
        self.high.store(self.current.load(Relaxed), Relaxed);
    }
}

/// What all pools behind one handle have together, and the most that they may have.
#[derive(Debug)]
pub struct Totals {
    /// What they have of the driver.
    pub reserved: Gauge,
    /// What of it is handed out.
    pub used: Gauge,
    /// The most that they may have of the driver.
    pub maximum: AtomicUsize,
}
impl Totals {
    /// Nothing yet, and no limit.
    pub fn new() -> Arc<Self> {
        let (reserved, used) = (Gauge::default(), Gauge::default());
        Arc::new(Self { reserved, used, maximum: AtomicUsize::new(usize::MAX) })
    }
    /// A block of so many bytes was cut.
    pub fn take(&self, bytes: usize) {
        self.used.add(bytes);
    }
    /// Such a block came back.
    pub fn put(&self, bytes: usize) {
        self.used.subtract(bytes);
    }
    /// Sets so many bytes more aside.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` where that would exceed the maximum.
    pub fn claim(&self, bytes: usize) -> Result<()> {
        let maximum = self.maximum.load(Relaxed);
        let claimed = |now: usize| now.checked_add(bytes).filter(|&all| all <= maximum);
        match self.reserved.current.fetch_update(Relaxed, Relaxed, claimed) {
            Ok(before) => {
                self.reserved.high.fetch_max(before + bytes, Relaxed);
                Ok(())
            }
            Err(reserved) => Err(Error::new(
                ErrorCode::OutOfResources,
                format!(
                    "the pool holds {reserved} of at most {maximum} bytes, and {bytes} more are \
                     needed: free blocks of it, or raise its maximum"
                ),
            )),
        }
    }
    /// What a property of a pool is, if it is counted here.
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
    /// Changes such a property, or the maximum; 0 is none.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a high mark that is not set to 0, `UNSUPPORTED_ENUMERATION` for what is only
    /// read.
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
                return Err(Error::new(
                    ErrorCode::UnsupportedEnumeration,
                    format!("{name:?} of a pool can be asked and not set"),
                ));
            }
        };
        match number {
            0 => {
                high.reset();
                Ok(())
            }
            _ => Err(Error::new(
                ErrorCode::InvalidValue,
                format!("a high mark can only be reset, with 0, and {number} was given"),
            )),
        }
    }
    /// Those went back.
    pub fn unclaim(&self, bytes: usize) {
        self.reserved.subtract(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_exceed_the_maximum_is_refused_and_not_counted() {
        let totals = Totals::new();
        totals.maximum.store(100, Relaxed);
        totals.claim(60).unwrap();
        let error = totals.claim(41).unwrap_err();
        assert_eq!(error.code(), ErrorCode::OutOfResources);
        assert!(error.to_string().contains("60 of at most 100"), "{error}");
        totals.claim(40).unwrap();
        totals.unclaim(100);
        assert_eq!(totals.reserved.current.load(Relaxed), 0);
        assert_eq!(totals.reserved.high.load(Relaxed), 100);
        assert!(totals.claim(usize::MAX).is_err(), "it does not wrap around");
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
