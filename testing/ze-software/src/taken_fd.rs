//! File descriptors whose ownership an import moved to the driver (`ZE_SOFTWARE_IMPORT_FD=owned`). The driver
//! closes them, and ends the process if the caller closes one too, before or after that.
#![expect(unsafe_code, reason = "descriptors are the caller's numbers")]
use crate::inject::Answer;
use crate::knob;
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create},
    io::{Errno, dup2},
};
use std::{
    collections::VecDeque,
    mem::ManuallyDrop,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
    sync::{LazyLock, Mutex, OnceLock},
};
use ur_lock::locked;
use ze_sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;

/// How many closed descriptor numbers are watched. Each one keeps a descriptor open, which programs may
/// notice.
const WATCHED: usize = 4;

/// Whether imports move the ownership of descriptors to the driver.
pub fn is_on() -> bool {
    static ON: LazyLock<bool> = LazyLock::new(|| knob::is("IMPORT_FD", "owned"));
    *ON
}
fn number_of(file: BorrowedFd<'_>) -> Result<u64, Errno> {
    Ok(fstat(file)?.st_ino)
}
/// A file that takes the place of a closed descriptor for a while, as another thread's file might.
fn other_file() -> Option<&'static OwnedFd> {
    static OTHER: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let make = || {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("ze-software-watch", flags).ok()?;
        // The size is sealed, like that of other shared memory.
        ftruncate(&file, 4096).ok()?;
        fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL).ok()?;
        Some(file)
    };
    OTHER.get_or_init(make).as_ref()
}
/// The closed numbers that now refer to that file.
static CLOSED: Mutex<VecDeque<i32>> = Mutex::new(VecDeque::new());

/// Ends the process unless descriptor `number` refers to the file with inode number `file`.
fn check(number: i32, file: u64, fault: &str) {
    // SAFETY: the driver owns the descriptor; if the caller closed it, `fstat` only fails or finds another
    // file.
    let is_it = number_of(unsafe { BorrowedFd::borrow_raw(number) }) == Ok(file);
    if !is_it {
        eprintln!(
            "ze-software: descriptor {number} was given to the driver with an import: {fault}"
        );
        std::process::abort();
    }
}
/// Ends the process if the caller closed a descriptor that the driver had closed already.
///
/// # Errors
/// `ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY` if there are no descriptors left.
pub fn check_closed() -> Answer {
    let other = other_file().ok_or(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    let other = number_of(other.as_fd()).map_err(|_| ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    for number in locked(&CLOSED).iter() {
        check(*number, other, "the caller closed it once more, and whose it was by then");
    }
    Ok(())
}

/// A descriptor that the driver owns.
pub struct TakenFd {
    pub number: i32,
    /// The inode number of its file.
    pub file: u64,
}
impl Drop for TakenFd {
    fn drop(&mut self) {
        check(self.number, self.file, "the caller closed it");
        let Some(other) = other_file() else { return };
        // SAFETY: the driver owns the descriptor; `ManuallyDrop` keeps it open under this number.
        let mut number = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(self.number) });
        if dup2(other, &mut number).is_err() {
            return;
        }
        let mut closed = locked(&CLOSED);
        closed.push_back(self.number);
        let oldest = if closed.len() > WATCHED { closed.pop_front() } else { None };
        drop(closed);
        // SAFETY: the driver's own descriptor, which is removed from the list and so closed only once.
        drop(oldest.map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
    }
}
