//! Names of a process's objects: memory and physical memory.
use std::sync::atomic::{AtomicU64, Ordering::*};
use ur_adapter::object::Backend;

/// How many objects were named so far, and one.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The bits of a name that are its number; above are the backend's.
const NUMBER: u32 = 48;
/// A name for an object of this process, memory or physical memory, of a backend.
pub fn next_object(backend: Backend) -> u64 {
    (backend as u64) << NUMBER | NEXT.fetch_add(1, Relaxed) // a number, nothing more
}
/// A number that is greater than those of all objects named before, and of none named afterwards. To tell
/// whether an object was there at some moment, for threads between which something else makes an order.
pub fn objects_so_far() -> u64 {
    NEXT.load(Relaxed) // a number, nothing more
}
/// The number in an object's name.
pub fn number_of(object: u64) -> u64 {
    object & ((1 << NUMBER) - 1)
}
