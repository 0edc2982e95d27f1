//! Bytes of C's that the driver cannot reach by itself: whether they are such, and copying them as
//! the host does.
#![expect(unsafe_code, reason = "copies through addresses that C gave")]
use super::{super::driver::Dialect, context::Entered, memory::pointer};

/// Where rows begin, and from one to the next, in bytes.
pub type Rows = (u64, usize);

/// Copies `height` rows of `width` bytes, here and now.
pub fn copy_rows(to: Rows, from: Rows, (width, height): (usize, usize)) {
    for row in 0..height {
        let at = |(base, pitch): Rows| pointer(base + (row * pitch) as u64).cast::<u8>();
        let (to, from) = (at(to), at(from).cast_const());
        // SAFETY: C promises that its side is there until the command is done, and this is a part of
        // the command; the other side is C's too, or a piece that the command has for itself.
        unsafe { std::ptr::copy(from, to, width) };
    }
}
/// What the memory at an address is to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A device's, or managed.
    Device,
    /// The host's, and the driver knows it.
    Pinned,
    /// The host's, and nobody told the driver.
    Pageable,
}
/// What the driver says of an address.
pub fn place_of<D: Dialect>(_on: &Entered<D>, at: u64) -> Place {
    let mut word = 0_u64;
    let to = (&raw mut word).cast();
    // SAFETY: attribute 2, the sort of memory, is a number of 32 bits.
    let outcome = unsafe { D::driver().pointer_attribute(to, 2, at) };
    match (outcome.status(), word) {
        (Some(1), _) | (_, 0) => Place::Pageable,
        (_, 1) => Place::Pinned,
        _ => Place::Device,
    }
}
