//! Classifies host memory as known to the driver or not, and copies memory on the host.
#![expect(unsafe_code, reason = "copies through addresses that C gave")]
use super::{super::driver::Dialect, context::Entered, memory::pointer};

/// Rows in memory: the address of the first, and the pitch in bytes.
pub type Rows = (u64, usize);

/// Copies `height` rows of `width` bytes, on the calling thread.
pub fn copy_rows(to: Rows, from: Rows, (width, height): (usize, usize)) {
    for row in 0..height {
        let at = |(base, pitch): Rows| pointer(base + (row * pitch) as u64).cast::<u8>();
        let (to, from) = (at(to), at(from).cast_const());
        // SAFETY: the application guarantees that its memory is valid until the command is complete, and this
        // is a part of the command; the other side is also its memory, or a staging piece that only this
        // command uses.
        unsafe { std::ptr::copy(from, to, width) };
    }
}
/// The kind of memory at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Device memory, or managed memory.
    Device,
    /// Host memory that the driver knows.
    Pinned,
    /// Host memory that is not registered with the driver.
    Pageable,
}
/// The kind of memory at `at`.
pub fn place_of<D: Dialect>(_on: &Entered<D>, at: u64) -> Place {
    let mut word = 0_u64;
    let to = (&raw mut word).cast();
    // SAFETY: attribute 2, the memory type, has 32 bits.
    let outcome = unsafe { D::driver().pointer_attribute(to, 2, at) };
    match (outcome.status(), word) {
        (Some(1), _) | (_, 0) => Place::Pageable,
        (_, 1) => Place::Pinned,
        _ => Place::Device,
    }
}
