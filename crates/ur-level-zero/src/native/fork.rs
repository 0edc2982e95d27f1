//! Forked children: the driver does not work in a process that was forked after it was initialised, and its objects
//! belong to the parent.
use super::super::driver::Outcome;
use std::sync::OnceLock;
use ur_hal::{Error, ErrorKind, Result};

/// The process's fork count when the driver was initialised.
static FORK: OnceLock<u64> = OnceLock::new();

/// Notes that this process has initialised the driver.
pub fn note_start() {
    FORK.get_or_init(ur_mapping::fork_count);
}
/// # Errors
/// `UNINITIALIZED` in a child process that was forked after the driver was initialised.
pub fn check() -> Result<()> {
    match FORK.get().is_none_or(|fork| *fork == ur_mapping::fork_count()) {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Uninitialized,
            "Level Zero was started before this process was forked and does not work in the child: \
             fork first, or start another program",
        )),
    }
}
/// Calls `work`, which releases something. Does nothing in a forked child, where the objects belong to the
/// parent. An error is logged, because callers are destructors.
pub(super) fn release(work: impl FnOnce() -> Outcome) {
    if check().is_ok() {
        work().let_go();
    }
}
