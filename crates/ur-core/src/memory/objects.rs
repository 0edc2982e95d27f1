//! Numbers of a process's shareable objects: memory, physical memory and events.
use std::sync::atomic::{AtomicU64, Ordering::*};
use ur_adapter::object::Backend;

/// The next number.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The low bits of an object number are its sequence number; the bits above identify the backend.
const NUMBER: u32 = 48;
/// A new object number, unique in this process.
pub fn next_object(backend: Backend) -> u64 {
    (backend as u64) << NUMBER | NEXT.fetch_add(1, Relaxed) // only uniqueness matters, so any ordering will do
}
/// A sequence number greater than those of all objects made before, and not greater than those of objects made
/// afterwards. Tells whether an object existed at some time; the threads concerned must be synchronised by other means.
pub fn objects_so_far() -> u64 {
    NEXT.load(Relaxed) // a counter; synchronisation is the caller's
}
/// The sequence number in an object number.
pub fn number_of(object: u64) -> u64 {
    object & ((1 << NUMBER) - 1)
}
