//! Which limit it was that the kernel refused a mapping or a thread for: it says "no memory" for two of them, and the C
//! library "try again" for a thread whose stack finds no place.

use rustix::process::{Resource, getrlimit};
use std::io::{ErrorKind, Read};

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
/// Whether the limit on addresses (`ulimit -v`) leaves no place for a thread's stack. To be asked only after a thread
/// could not be started.
pub fn addresses_exhausted() -> bool {
    // What Rust's threads have, and a page to guard it; the list of mappings may have grown by as much since.
    const STACK: u64 = 2 << 20;
    let Some(limit) = getrlimit(Resource::As).current else { return false };
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
