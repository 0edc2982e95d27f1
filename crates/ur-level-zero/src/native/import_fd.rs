//! Descriptors passed to the driver with an import. Intel's driver takes ownership and closes them, depending
//! on its version at the import or when the memory is freed; other drivers leave them to the caller. This is
//! determined by a trial with memory that no other thread or process has, so that its descriptor can be
//! recognised.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{device::DriverDevice, driver::RawDriver},
    ipc::duplicate,
};
use rustix::fs::fstat;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd};
use ur_hal::{Error, ErrorKind, Result};
use ur_lock::PerKey;

/// Which drivers take ownership of the descriptors of one kind of import.
#[derive(Debug)]
pub(super) struct Keepers {
    known: PerKey<RawDriver, bool>,
    /// Imports memory of its own by a duplicate of its descriptor, frees it, and returns whether the driver
    /// closed that.
    try_out: fn(&DriverDevice) -> Result<bool>,
}
impl Keepers {
    pub(super) const fn new(try_out: fn(&DriverDevice) -> Result<bool>) -> Self {
        Self { known: PerKey::new(), try_out }
    }
    /// Calls `import` with the number of a duplicate of `fd`.
    ///
    /// # Errors
    /// The errors of `import`; `OUT_OF_RESOURCES` if the process has no free descriptors.
    pub(super) fn give<T>(
        &self,
        device: &DriverDevice,
        fd: BorrowedFd<'_>,
        import: impl FnOnce(i32) -> Result<T>,
    ) -> Result<T> {
        let given = duplicate(fd.as_raw_fd())?.ok_or_else(|| {
            Error::new(ErrorKind::InvalidValue, "what is to be imported is not open")
        })?;
        let imported = import(given.as_raw_fd())?;
        if self.keeps(device) {
            let _number = given.into_raw_fd();
        }
        Ok(imported)
    }
    /// Whether the driver owns descriptors after a successful import. If the trial fails the answer is yes,
    /// which at worst leaks a descriptor; the opposite could close a descriptor that now belongs to other
    /// code.
    fn keeps(&self, device: &DriverDevice) -> bool {
        let raw = device.platform().raw();
        self.known.of(raw, || (self.try_out)(device).unwrap_or(true))
    }
}

/// Calls `import` with a duplicate of `ours`, a descriptor of memory that nothing else uses, and frees what
/// it imported. Returns whether the driver closed the duplicate; otherwise it is closed here.
///
/// # Errors
/// The errors of `import`; `OUT_OF_RESOURCES` if the process has no free descriptors.
pub(super) fn was_kept<T>(ours: &OwnedFd, import: impl FnOnce(i32) -> Result<T>) -> Result<bool> {
    let Some(given) = duplicate(ours.as_raw_fd())? else { return Ok(true) };
    let imported = import(given.as_raw_fd())?;
    let number = given.into_raw_fd();
    drop(imported);
    Ok(!close_if_left(number, ours))
}
/// Closes the descriptor `number` if it still refers to the same memory as `ours`. The driver must not use it
/// any more. Returns whether it did.
pub(super) fn close_if_left(number: i32, ours: &OwnedFd) -> bool {
    // SAFETY: used only for `fstat`, which reports whether it is open.
    let theirs = unsafe { BorrowedFd::borrow_raw(number) };
    let (Ok(theirs), Ok(ours)) = (fstat(theirs), fstat(ours)) else { return false };
    let is_left = (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino);
    if is_left {
        // SAFETY: it was passed to the driver for this memory, which has been freed, so it has no other
        // owner.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
    is_left
}
