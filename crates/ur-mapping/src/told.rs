//! Queries about limits and about the machine in a process where a filter may forbid these calls: rustix assumes that
//! they cannot fail, and panics.
#![expect(unsafe_code, reason = "calls the C library")]
use rustix::process::Resource;
use std::mem::MaybeUninit;

/// The soft limit on a resource; `None` if there is none or a filter forbids the query.
pub fn soft_limit(resource: Resource) -> Option<u64> {
    asked(resource).ok().filter(|limit| *limit != libc::RLIM_INFINITY)
}
/// How many descriptors this process may have open; the usual number if a filter forbids the query.
pub fn descriptor_limit() -> u64 {
    const USUAL: u64 = 1024;
    asked(Resource::Nofile).unwrap_or(USUAL)
}
/// The soft limit; an error if the kernel does not tell.
fn asked(resource: Resource) -> Result<u64, ()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the limit; rustix's resource numbers are the kernel's.
    match unsafe { libc::getrlimit(resource as _, &raw mut limit) } {
        0 => Ok(limit.rlim_cur),
        _ => Err(()),
    }
}
/// How many bytes of memory the machine has; `None` if a filter forbids the query.
pub fn machine_memory() -> Option<u64> {
    let mut told = MaybeUninit::<libc::sysinfo>::zeroed();
    // SAFETY: a place for the result.
    if unsafe { libc::sysinfo(told.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: zeroed memory is valid, and so is what the call wrote.
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
