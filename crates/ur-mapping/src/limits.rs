//! Which limit it was that the kernel refused a mapping or a thread for: it says "no memory" for two of them, and the C
//! library "try again" for a thread whose stack finds no place.

use crate::signals::Deaf;
use crate::told::soft_limit;
use rustix::process::Resource;
use std::{
    io::{self, ErrorKind, Read},
    thread::{Builder, JoinHandle},
};

/// Whether this process is at `vm.max_map_count`, the limit on mappings, rather than out of memory. To be asked only
/// after the kernel refused, since it reads the list of all mappings.
pub fn mappings_exhausted() -> bool {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok());
    match (limit, mappings()) {
        // A map in the middle of another takes up to two more than there are.
        (Some(limit), Some(mappings)) => mappings + 3 >= limit,
        _ => false,
    }
}
/// Starts a thread of this name, as `std` does, where there are addresses for it, and deaf to the program's signals: those are for the
/// program's own threads. Signals of its own faults it takes. To be used for every thread of an adapter: with a
/// stack that an ended thread left behind a thread also starts where nothing can be allocated any more, and the C library then
/// ends the program when the thread first touches a thread-local value of a library that was loaded with `dlopen`.
///
/// # Errors
/// The system's; out of memory where the limit on addresses leaves too little.
pub fn start_thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    if addresses_exhausted() {
        return Err(ErrorKind::OutOfMemory.into());
    }
    let _deaf = Deaf::begin(); // inherited: not for an instant does the thread take a signal of the program's
    Builder::new().name(name.into()).spawn(body)
}
/// Whether the limit on addresses (`ulimit -v`) leaves too little for a thread.
pub fn addresses_exhausted() -> bool {
    // The stack that Rust's threads have, the page that guards it, and what a thread allocates in its first moments.
    const STACK: u64 = 3 << 20;
    let Some(limit) = soft_limit(Resource::As) else { return false };
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let used = pages.map(|pages| pages * rustix::param::page_size() as u64);
    used.is_some_and(|used| used + STACK >= limit)
}
/// How many mappings there are. Counted without memory for the list of them: there may be no mapping left for it.
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
