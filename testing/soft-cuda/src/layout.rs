//! The structures of the driver's ABI, with plain integers for handles and enumerations.

/// A location; type 1 is a device, by ordinal.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    pub kind: i32,
    pub id: i32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocationProp {
    pub kind: i32,
    pub handle_types: i32,
    pub location: Location,
    pub win32: usize,
    pub compression: u8,
    pub rdma: u8,
    pub usage: u16,
    pub reserved: [u8; 4],
}
/// Access flags: 0 none, 1 read, 3 read and write.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AccessDesc {
    pub location: Location,
    pub flags: i32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PoolProps {
    pub kind: i32,
    pub handle_types: i32,
    pub location: Location,
    pub win32: usize,
    pub max_size: usize,
    pub reserved: [u8; 56],
}
/// One side of a 3D copy.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Side3d {
    pub x: usize,
    pub y: usize,
    pub z: usize,
    pub lod: usize,
    pub kind: i32,
    pub host: u64,
    pub device: u64,
    pub array: u64,
    pub reserved: usize,
    pub pitch: usize,
    pub height: usize,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy3d {
    pub from: Side3d,
    pub to: Side3d,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}
/// One side of a 2D copy.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Side2d {
    pub x: usize,
    pub y: usize,
    pub kind: i32,
    pub host: u64,
    pub device: u64,
    pub array: u64,
    pub pitch: usize,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy2d {
    pub from: Side2d,
    pub to: Side2d,
    pub width: usize,
    pub height: usize,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ArrayDesc {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub format: i32,
    pub channels: u32,
    pub flags: u32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ResourceDesc {
    pub kind: i32,
    pub array: u64,
    pub rest: [u64; 15],
    pub flags: u32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchAttribute {
    pub id: u32,
    pub pad: u32,
    pub value: [u32; 16],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: u64,
    pub attributes: *const LaunchAttribute,
    pub count: u32,
}
const _: () = {
    assert!(size_of::<AllocationProp>() == 32 && size_of::<PoolProps>() == 88);
    assert!(size_of::<Copy2d>() == 128 && size_of::<Copy3d>() == 200);
    assert!(size_of::<ResourceDesc>() == 144 && size_of::<LaunchConfig>() == 56);
};
