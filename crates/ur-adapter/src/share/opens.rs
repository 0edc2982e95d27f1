//! What an adapter has opened, keyed by the address that each open returned and by which it is closed.
use super::refused;
use crate::{error::Result, memory::UsmPtr};
use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard},
};
use ur_lock::locked;
use ur_mapping::PerProcess;

/// The opens of an adapter, keyed by address.
pub struct Opens<T>(PerProcess<Mutex<HashMap<usize, Vec<T>>>>);
impl<T> Opens<T> {
    /// Makes an empty table.
    pub const fn new() -> Self {
        Self(PerProcess::new())
    }
    fn all(&self) -> MutexGuard<'_, HashMap<usize, Vec<T>>> {
        locked(self.0.get())
    }
    /// Adds an open that returned `at`.
    pub fn add(&self, at: UsmPtr, open: T) {
        self.all().entry(at.addr()).or_default().push(open);
    }
    /// Ends one of the opens that returned `at`.
    ///
    /// # Errors
    /// `INVALID_VALUE` if there is none.
    pub fn take(&self, at: UsmPtr) -> Result<T> {
        let mut all = self.all();
        let open = all.get_mut(&at.addr()).and_then(Vec::pop);
        if all.get(&at.addr()).is_some_and(Vec::is_empty) {
            all.remove(&at.addr());
        }
        open.map_or_else(
            || {
                refused(format!(
                    "{at:?} is no address that an open gave, or it was closed as often as opened"
                ))
            },
            Ok,
        )
    }
    /// Whether an open returned `at`.
    pub fn gave(&self, at: UsmPtr) -> bool {
        self.all().contains_key(&at.addr())
    }
}
impl<T> Default for Opens<T> {
    fn default() -> Self {
        Self::new()
    }
}
impl<T> fmt::Debug for Opens<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opens").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn an_address_is_closed_as_often_as_it_was_opened() {
        static OPENS: Opens<u32> = Opens::new();
        let at = UsmPtr::from_addr(0x1000).unwrap();
        assert_eq!(OPENS.take(at).unwrap_err().code(), ErrorCode::InvalidValue);
        OPENS.add(at, 1);
        OPENS.add(at, 2);
        assert!(OPENS.gave(at));
        assert_eq!((OPENS.take(at).unwrap(), OPENS.take(at).unwrap()), (2, 1));
        assert!(!OPENS.gave(at));
        assert_eq!(OPENS.take(at).unwrap_err().code(), ErrorCode::InvalidValue);
        let other = at.offset(8).unwrap();
        OPENS.add(at, 3);
        assert!(OPENS.take(other).is_err(), "only the very address");
    }
}
