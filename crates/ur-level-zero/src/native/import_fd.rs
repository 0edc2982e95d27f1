//! Descriptors that the driver gets with an import. Intel's driver keeps them and closes them itself, when the memory is
//! imported or when it goes, by its version; other drivers leave them to the caller. Which it is is found out with
//! memory that no other thread or process has: a descriptor of that cannot be another's.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{device::DriverDevice, driver::RawDriver},
    ipc::duplicate,
};
use rustix::fs::fstat;
use std::{
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd},
    sync::{Mutex, PoisonError},
};
use ur_adapter::error::{Error, ErrorCode, Result};

/// Which drivers keep the descriptors of one kind of import.
#[derive(Debug)]
pub(super) struct Keepers {
    known: Mutex<Vec<(RawDriver, bool)>>,
    /// Imports memory of its own by a duplicate of the descriptor, frees it, and says whether that was kept.
    try_out: fn(&DriverDevice) -> Result<bool>,
}
impl Keepers {
    pub(super) const fn new(try_out: fn(&DriverDevice) -> Result<bool>) -> Self {
        Self { known: Mutex::new(Vec::new()), try_out }
    }
    /// Calls `import` with a duplicate of `fd`.
    ///
    /// # Errors
    /// `import`'s; `OUT_OF_RESOURCES` without descriptors.
    pub(super) fn give<T>(
        &self,
        device: &DriverDevice,
        fd: BorrowedFd<'_>,
        import: impl FnOnce(i32) -> Result<T>,
    ) -> Result<T> {
        let given = duplicate(fd.as_raw_fd())?.ok_or_else(|| {
            Error::new(ErrorCode::InvalidValue, "what is to be imported is not open")
        })?;
        let imported = import(given.as_raw_fd())?;
        if self.keeps(device) {
            let _number = given.into_raw_fd();
        }
        Ok(imported)
    }
    /// Whether descriptors that were given with a successful import are the driver's. Where that cannot be found out
    /// they are left open: a descriptor too many is better than another's closed.
    fn keeps(&self, device: &DriverDevice) -> bool {
        let raw = device.platform().raw();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, keeps)) = known().iter().find(|(driver, _)| *driver == raw) {
            return *keeps;
        }
        let keeps = (self.try_out)(device).unwrap_or(true);
        known().push((raw, keeps));
        keeps
    }
}

/// Gives `import` a duplicate of `ours`, a descriptor of memory that nobody else has; what it imported is freed then.
/// Whether the driver closed the duplicate; else it is closed here.
///
/// # Errors
/// `import`'s; `OUT_OF_RESOURCES` without descriptors.
pub(super) fn was_kept<T>(ours: &OwnedFd, import: impl FnOnce(i32) -> Result<T>) -> Result<bool> {
    let Some(given) = duplicate(ours.as_raw_fd())? else { return Ok(true) };
    let imported = import(given.as_raw_fd())?;
    let number = given.into_raw_fd();
    drop(imported);
    Ok(!close_if_left(number, ours))
}
/// Closes the descriptor `number` if it still is of the memory that `ours` is of, which the driver has let go of.
/// Whether it was.
pub(super) fn close_if_left(number: i32, ours: &OwnedFd) -> bool {
    // SAFETY: whether it is open is what the call finds out; it is not kept.
    let theirs = unsafe { BorrowedFd::borrow_raw(number) };
    let (Ok(theirs), Ok(ours)) = (fstat(theirs), fstat(ours)) else { return false };
    let is_left = (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino);
    if is_left {
        // SAFETY: it was the driver's, for this memory, which is no more, and no other owner has its number.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
    is_left
}
