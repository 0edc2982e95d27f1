//! The facts of a device, which are queried once: those on which the core's decisions depend, and those that identify
//! the device.
use crate::Capabilities;

/// The kind of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// A processor of the host.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Any other accelerator.
    Accelerator,
}
/// The facts of a device that do not change during the life of the process.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    /// The model's name for users.
    pub name: String,
    /// The vendor's name.
    pub vendor: String,
    /// The vendor's PCI id; 0 if it has none.
    pub vendor_id: u32,
    /// The device's UUID, which is the same in every process that sees the device: tickets of its memory carry it.
    pub uuid: [u8; 16],
    /// The driver's version, as the driver reports it.
    pub driver_version: String,
    /// The kind of device.
    pub kind: DeviceKind,
    /// The optional features that it has.
    pub capabilities: Capabilities,
    /// How many compute units it has, which run groups at the same time.
    pub compute_units: u32,
    /// The size of its memory in bytes.
    pub memory: u64,
    /// The size in bytes of the largest allocation.
    pub largest_allocation: u64,
    /// Whether its memory is host memory, so that copies between the two have no benefit.
    pub is_integrated: bool,
    /// The alignment in bytes of every allocation.
    pub natural_alignment: usize,
    /// The largest supported alignment in bytes.
    pub largest_alignment: usize,
    /// The limits of a launch.
    pub launches: LaunchLimits,
}
/// The limits of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchLimits {
    /// The largest number of items of a group.
    pub items: usize,
    /// The largest number of items of a group in each dimension.
    pub group: [usize; 3],
    /// The largest number of groups in each dimension.
    pub grid: [usize; 3],
    /// The sub-group size in items; at least 1.
    pub sub_group: usize,
    /// The largest size in bytes of a group's local memory.
    pub local_memory: usize,
}

/// How a device is partitioned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Partition {
    /// Into parts with this many compute units each.
    Equally(u32),
    /// Into parts with these numbers of compute units.
    ByCounts(Vec<u32>),
    /// By its memories: one part for each.
    ByMemory,
}
/// How a device can access another device's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Not at all: copies between the two go through the host.
    None,
    /// It can read and write it.
    Memory,
    /// It can read and write it, and atomic operations on it are atomic for both devices.
    Atomics,
}
/// Two clocks, read as nearly at the same time as possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clocks {
    /// The device's clock in nanoseconds.
    pub device: u64,
    /// The host's monotonic clock in nanoseconds.
    pub host: u64,
}
