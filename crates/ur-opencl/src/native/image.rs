//! Images and samplers.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::own::Own;
use crate::{cl::*, driver::*};
use std::ptr::null_mut;
use ur_hal::Result;

/// An image without pixels yet: its channel order and type, and what it is like.
///
/// # Errors
/// The driver's own.
pub fn create(
    context: RawContext,
    (format, desc): ([cl_uint; 2], cl_image_desc),
) -> Result<Own<RawMem>> {
    let (format, desc) = (&raw const format, &raw const desc);
    // SAFETY: a live context; both structures live during the call.
    unsafe { driver().create_image(context, CL_MEM_READ_WRITE, format, desc, null_mut()) }
        .map(Own::given)
}
/// A sampler: whether coordinates are normalized, and OpenCL's names of what it does beyond the edge and between pixels.
///
/// # Errors
/// The driver's own.
pub fn sampler(
    context: RawContext,
    (normalized, addressing, filter): (bool, cl_uint, cl_uint),
) -> Result<Own<RawSampler>> {
    // SAFETY: a live context.
    unsafe { driver().create_sampler(context, u32::from(normalized), addressing, filter) }
        .map(Own::given)
}
