//! Finds out which resource a process has run out of, after a driver's call failed without telling.
use crate::ErrorKind;
use rustix::{
    event::{EventfdFlags, eventfd},
    io::Errno,
    process::Resource,
};

/// With fewer bytes of address space left below the limit, the driver's next mapping may not fit.
const FEW: u64 = 256 << 20;

/// Checks the resources that most calls need: descriptors and mappings ([`ErrorKind::OutOfResources`]), and address
/// space ([`ErrorKind::OutOfHostMemory`]). `None` if none of them is exhausted.
pub fn what_ran_out() -> Option<ErrorKind> {
    let limit = ur_mapping::soft_limit(Resource::As);
    match eventfd(0, EventfdFlags::CLOEXEC) {
        Err(Errno::MFILE | Errno::NFILE) => Some(ErrorKind::OutOfResources),
        _ if ur_mapping::mappings_exhausted() => Some(ErrorKind::OutOfResources),
        _ if limit.is_some_and(|limit| addresses_used() + FEW > limit) => {
            Some(ErrorKind::OutOfHostMemory)
        }
        _ => None,
    }
}
/// The address space in use by this process, in bytes; 0 if the system does not report it.
fn addresses_used() -> u64 {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = told.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    pages.map_or(0, |pages| pages.saturating_mul(rustix::param::page_size() as u64))
}
