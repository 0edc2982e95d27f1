//! What a device says of itself, once: what the core decides by, and what identifies the device.
use crate::Capabilities;

/// What kind of device it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// A processor of the host's.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Any other accelerator.
    Accelerator,
}
/// What is known of a device as long as the process lives.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    /// What users call the model.
    pub name: String,
    /// Who makes it.
    pub vendor: String,
    /// The vendor's number on the PCI bus; 0 where it has none.
    pub vendor_id: u32,
    /// The same in every process that sees the device: tickets of its memory carry it.
    pub uuid: [u8; 16],
    /// Of its driver, as that tells it.
    pub driver_version: String,
    /// What kind it is.
    pub kind: DeviceKind,
    /// What it has that not every device has.
    pub capabilities: Capabilities,
    /// Parts of it that run groups at the same time.
    pub compute_units: u32,
    /// Bytes of its memory.
    pub memory: u64,
    /// Bytes of the largest allocation.
    pub largest_allocation: u64,
    /// Whether its memory is the host's, so that nothing is gained by a copy.
    pub is_integrated: bool,
    /// What every allocation's address is a multiple of.
    pub natural_alignment: usize,
    /// The largest alignment on offer.
    pub largest_alignment: usize,
    /// How a launch may be made up.
    pub launches: LaunchLimits,
}
/// What a launch may be at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchLimits {
    /// Items of a group.
    pub items: usize,
    /// Items of a group in each dimension.
    pub group: [usize; 3],
    /// Groups in each dimension.
    pub grid: [usize; 3],
    /// Items that go in step; at least 1.
    pub sub_group: usize,
    /// Bytes of local memory that a group may have.
    pub local_memory: usize,
}

/// How a device is divided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Partition {
    /// Into parts of so many compute units each.
    Equally(u32),
    /// Into parts with these numbers of compute units.
    ByCounts(Vec<u32>),
    /// As the device itself is built: one part for each of its own memories.
    ByMemory,
}
/// How a device reaches another one's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Not at all: what is copied between the two goes by way of the host.
    None,
    /// It reads and writes it.
    Memory,
    /// The same, and atomic operations on it are atomic for both.
    Atomics,
}
/// Two clocks, read at the same moment as far as that can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clocks {
    /// Nanoseconds of the device's clock.
    pub device: u64,
    /// Nanoseconds of the host's monotonic clock.
    pub host: u64,
}
