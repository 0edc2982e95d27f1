//! Numbers of a process's shareable objects: memory, physical memory and events.
use ur_adapter::object::Backend;

/// The low bits of an object number are its sequence number; the bits above identify the backend.
const NUMBER: u32 = 48;
/// A new object number, unique in this process.
pub fn next_object(backend: Backend) -> u64 {
    (backend as u64) << NUMBER | ur_hal::new_object()
}
/// The sequence number in an object number.
pub fn number_of(object: u64) -> u64 {
    object & ((1 << NUMBER) - 1)
}
