//! What a process has run out of when a driver's call failed for want of something, and the driver does not tell of what.
use rustix::{
    event::{EventfdFlags, eventfd},
    io::Errno,
    process::Resource,
};
use ur_adapter::error::ErrorCode;

/// So little left of the addresses that a limit allows that the driver's next mapping may not fit.
const FEW: u64 = 256 << 20;

/// Asks the system for what most calls need: descriptors and mappings (`OUT_OF_RESOURCES`), addresses
/// (`OUT_OF_HOST_MEMORY`). `None` if there are some of each.
pub fn what_ran_out() -> Option<ErrorCode> {
    let limit = ur_mapping::soft_limit(Resource::As);
    match eventfd(0, EventfdFlags::CLOEXEC) {
        Err(Errno::MFILE | Errno::NFILE) => Some(ErrorCode::OutOfResources),
        _ if ur_mapping::mappings_exhausted() => Some(ErrorCode::OutOfResources),
        _ if limit.is_some_and(|limit| addresses_used() + FEW > limit) => {
            Some(ErrorCode::OutOfHostMemory)
        }
        _ => None,
    }
}
/// How many bytes of addresses this process has in use; 0 where the system does not tell.
fn addresses_used() -> u64 {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = told.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    pages.map_or(0, |pages| pages.saturating_mul(rustix::param::page_size() as u64))
}
