//! What the kernel tells of limits and of the machine, to a process that a filter may keep from asking: rustix takes
//! these calls for ones that cannot fail, and panics.
#![expect(unsafe_code, reason = "calls the C library")]
use rustix::process::Resource;
use std::mem::MaybeUninit;

/// The soft limit on a resource; `None` where there is none, or a filter keeps it from this process.
pub fn soft_limit(resource: Resource) -> Option<u64> {
    asked(resource).ok().filter(|limit| *limit != libc::RLIM_INFINITY)
}
/// How many descriptors this process may have: what is usual where a filter keeps it from this process.
pub fn descriptor_limit() -> u64 {
    const USUAL: u64 = 1024;
    asked(Resource::Nofile).unwrap_or(USUAL)
}
/// The soft limit; an error where the kernel does not tell.
fn asked(resource: Resource) -> Result<u64, ()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the limit; the numbers of the resources are rustix'.
    match unsafe { libc::getrlimit(resource as _, &raw mut limit) } {
        0 => Ok(limit.rlim_cur),
        _ => Err(()),
    }
}
/// Bytes of memory that the machine has; `None` where a filter keeps it from this process.
pub fn machine_memory() -> Option<u64> {
    let mut told = MaybeUninit::<libc::sysinfo>::zeroed();
    // SAFETY: a place for what is told.
    if unsafe { libc::sysinfo(told.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: zeros are valid, and what is told is too.
    let told = unsafe { told.assume_init() };
    Some(told.totalram.saturating_mul(u64::from(told.mem_unit.max(1))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::{process::getrlimit, system::sysinfo};

    #[test]
    fn what_is_told_is_what_rustix_is_told() {
        for resource in [Resource::Nofile, Resource::As, Resource::Fsize, Resource::Nproc] {
            assert_eq!(soft_limit(resource), getrlimit(resource).current, "{resource:?}");
        }
        assert_eq!(descriptor_limit(), getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX));
        let told = sysinfo();
        assert_eq!(machine_memory(), Some(told.totalram * u64::from(told.mem_unit.max(1))));
    }
}
