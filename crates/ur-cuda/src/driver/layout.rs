//! The structures that the driver reads and writes, laid out as its ABI defines them. Enumerations are plain
//! numbers here; their values are named where they are used.
use super::{RawArray, RawStream};
use std::{ffi::c_void, ptr};

/// `CUmemLocation`: type 1 is a device by ordinal.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// 1: a device, 2: the host, 3: a NUMA node of the host.
    pub kind: i32,
    /// The ordinal of the device, or the number of the NUMA node.
    pub id: i32,
}
/// `CUmemAllocationProp`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocationProp {
    /// 1: pinned.
    pub kind: i32,
    /// 0: none, 1: POSIX file descriptor.
    pub handle_types: i32,
    /// Where the memory is.
    pub location: Location,
    /// Windows only; null.
    pub win32: *const c_void,
    /// 1: compressible memory.
    pub compression: u8,
    /// 1: usable for GPUDirect RDMA.
    pub rdma: u8,
    /// Usage flags.
    pub usage: u16,
    /// Zero.
    pub reserved: [u8; 4],
}
/// `CUmemAccessDesc`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AccessDesc {
    /// The device or host that is given access.
    pub location: Location,
    /// 0: no access, 1: read, 3: read and write.
    pub flags: i32,
}
/// `CUmemPoolProps`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolProps {
    /// 1: pinned.
    pub kind: i32,
    /// 0: none, 1: POSIX file descriptor.
    pub handle_types: i32,
    /// Where the memory is.
    pub location: Location,
    /// Windows only; null.
    pub win32: *const c_void,
    /// Maximum size in bytes; 0: the driver's default.
    pub max_size: usize,
    /// Zero.
    pub reserved: [u8; 56],
}
/// `CUDA_MEMCPY2D`. Memory types: 1 host, 2 device, 3 array, 4 unified.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the names are the driver's")]
pub struct Copy2d {
    pub src_x: usize,
    pub src_y: usize,
    pub src_type: i32,
    pub src_host: usize,
    pub src_device: u64,
    pub src_array: Option<RawArray>,
    pub src_pitch: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_type: i32,
    pub dst_host: usize,
    pub dst_device: u64,
    pub dst_array: Option<RawArray>,
    pub dst_pitch: usize,
    pub width: usize,
    pub height: usize,
}
/// `CUDA_MEMCPY3D`. Memory types as for [`Copy2d`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the names are the driver's")]
pub struct Copy3d {
    pub src_x: usize,
    pub src_y: usize,
    pub src_z: usize,
    pub src_lod: usize,
    pub src_type: i32,
    pub src_host: usize,
    pub src_device: u64,
    pub src_array: Option<RawArray>,
    pub reserved0: usize,
    pub src_pitch: usize,
    pub src_height: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_z: usize,
    pub dst_lod: usize,
    pub dst_type: i32,
    pub dst_host: usize,
    pub dst_device: u64,
    pub dst_array: Option<RawArray>,
    pub reserved1: usize,
    pub dst_pitch: usize,
    pub dst_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}
/// `CUDA_ARRAY3D_DESCRIPTOR`; sizes in elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ArrayDesc {
    /// Elements of a row.
    pub width: usize,
    /// Rows; 0: a one-dimensional array.
    pub height: usize,
    /// Slices or layers; 0: a one- or two-dimensional array.
    pub depth: usize,
    /// `CUarray_format`
    pub format: i32,
    /// Channels of an element: 1, 2 or 4.
    pub channels: u32,
    /// Bits: 1: layered, 2: usable by surfaces.
    pub flags: u32,
}
/// `CUDA_RESOURCE_DESC` for an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ArrayResource {
    /// 0: an array.
    pub kind: i32,
    /// The array.
    pub array: Option<RawArray>,
    /// The rest of the union.
    pub rest: [u64; 15],
    /// Zero.
    pub flags: u32,
}
impl ArrayResource {
    /// The description of `array`.
    pub const fn of(array: RawArray) -> Self {
        Self { kind: 0, array: Some(array), rest: [0; 15], flags: 0 }
    }
}
/// `CUlaunchAttribute`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttribute {
    /// 2: cooperative launch, 4: cluster dimensions.
    pub id: u32,
    /// Padding.
    pub pad: u32,
    /// The attribute's value, in as many words as it takes; the rest is zero.
    pub value: [u32; 16],
}
/// `CUlaunchConfig`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// Work-groups in each dimension.
    pub grid: [u32; 3],
    /// Work-items of a group in each dimension.
    pub block: [u32; 3],
    /// Bytes of dynamic local memory.
    pub shared: u32,
    /// The stream.
    pub stream: Option<RawStream>,
    /// The attributes.
    pub attributes: *const LaunchAttribute,
    /// Number of attributes.
    pub count: u32,
}
impl Default for AllocationProp {
    fn default() -> Self {
        let (location, win32) = (Location::default(), ptr::null());
        let (compression, rdma, usage, reserved) = (0, 0, 0, [0; 4]);
        Self { kind: 1, handle_types: 0, location, win32, compression, rdma, usage, reserved }
    }
}
impl Default for PoolProps {
    fn default() -> Self {
        let (location, win32) = (Location::default(), ptr::null());
        Self { kind: 1, handle_types: 0, location, win32, max_size: 0, reserved: [0; 56] }
    }
}
const _: () = {
    assert!(size_of::<AllocationProp>() == 32 && size_of::<PoolProps>() == 88);
    assert!(size_of::<Copy2d>() == 128 && size_of::<Copy3d>() == 200);
    assert!(size_of::<ArrayResource>() == 144);
    assert!(size_of::<LaunchAttribute>() == 72 && size_of::<LaunchConfig>() == 56);
};
