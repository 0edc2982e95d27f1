//! Which limit made the kernel refuse a mapping or a thread: the kernel returns "no memory" for two different limits,
//! and the C library returns "try again" for a thread whose stack cannot be mapped.

use crate::signals::Deaf;
use crate::told::soft_limit;
use rustix::process::Resource;
use std::{
    io::{self, ErrorKind, Read},
    thread::{Builder, JoinHandle, Scope, ScopedJoinHandle},
};

/// Whether this process is at `vm.max_map_count`, the limit on mappings, rather than out of memory. To be called only
/// after the kernel has refused, because it reads the list of all mappings.
pub fn mappings_exhausted() -> bool {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok());
    match (limit, mappings()) {
        // A mapping in the middle of another one adds up to two more.
        (Some(limit), Some(mappings)) => mappings + 3 >= limit,
        _ => false,
    }
}
/// Starts a named thread, as `std` does, if there are enough addresses for it. The thread blocks the program's signals,
/// which are meant for the program's own threads, but not those of its own faults. Every thread of an adapter must be
/// started with this: on the stack that an ended thread left behind, a thread can start even when nothing more can be
/// allocated, and the C library then ends the program when the thread first touches a thread-local value of a library
/// loaded with `dlopen`.
///
/// # Errors
/// The system's error; out of memory if the limit on addresses leaves too little.
pub fn start_thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    started(name, |thread| thread.spawn(body))
}
/// Like [`start_thread`], for a thread that ends before `scope` does.
///
/// # Errors
/// As for [`start_thread`].
pub fn start_scoped_thread<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    started(name, |thread| thread.spawn_scoped(scope, body))
}
fn started<H>(name: &str, start: impl FnOnce(Builder) -> io::Result<H>) -> io::Result<H> {
    if addresses_exhausted() {
        return Err(ErrorKind::OutOfMemory.into());
    }
    let _deaf = Deaf::begin(); // inherited by the thread, so that it never takes a signal of the program
    start(Builder::new().name(name.into()))
}
/// Whether the limit on addresses (`ulimit -v`) leaves too little for a thread.
pub fn addresses_exhausted() -> bool {
    // The stack of a Rust thread, its guard page, and what a thread allocates when it starts.
    const STACK: u64 = 3 << 20;
    let Some(limit) = soft_limit(Resource::As) else { return false };
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let used = pages.map(|pages| pages * rustix::param::page_size() as u64);
    used.is_some_and(|used| used + STACK >= limit)
}
/// The number of mappings. It is counted without allocating, because no mapping may be left for that.
fn mappings() -> Option<usize> {
    let mut list = std::fs::File::open("/proc/self/maps").ok()?;
    let (mut part, mut count) = ([0; 4096], 0);
    loop {
        match list.read(&mut part) {
            Ok(0) => return Some(count),
            Ok(read) => count += part[..read].iter().filter(|&&byte| byte == b'\n').count(),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_with_few_mappings_is_not_at_its_limit() {
        assert!(!super::mappings_exhausted());
        assert!(super::mappings().is_some_and(|mappings| mappings > 4));
        assert!(!super::addresses_exhausted());
    }
}
