//! Images and samplers.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::own::Own;
use crate::{cl::*, driver::*};
use std::ptr::null_mut;
use ur_adapter::error::Result;

/// An image as OpenCL is asked for it: kind, sides, layers, channel order and type.
#[derive(Clone, Copy, Debug)]
pub struct Wished {
    /// `CL_MEM_OBJECT_…`
    pub kind: cl_uint,
    /// Width, height, depth; 0 for those that it does not have.
    pub sides: [usize; 3],
    /// Layers of an array.
    pub layers: usize,
    /// Channel order and channel type.
    pub format: [cl_uint; 2],
}
/// An image without pixels yet.
///
/// # Errors
/// The driver's own.
pub fn create(context: RawContext, flags: u64, wished: &Wished) -> Result<Own<RawMem>> {
    let desc = cl_image_desc {
        kind: wished.kind,
        width: wished.sides[0],
        height: wished.sides[1],
        depth: wished.sides[2],
        array_size: wished.layers,
        row_pitch: 0,
        slice_pitch: 0,
        mip_levels: 0,
        samples: 0,
        mem: null_mut(),
    };
    let format = &raw const wished.format;
    // SAFETY: a live context; both structures live during the call.
    unsafe { driver().create_image(context, flags, format, &raw const desc, null_mut()) }
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
