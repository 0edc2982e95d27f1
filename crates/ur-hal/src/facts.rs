//! The facts of a device: plain values, which [`DescribesDevices`](crate::DescribesDevices) returns.
use crate::Capabilities;
use std::ops::BitOr;

/// The kind of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// A processor of the host.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// A field-programmable gate array.
    Fpga,
    /// A memory-copy accelerator, and any other accelerator.
    Mca,
    /// A vision or neural processor.
    Vpu,
}
/// The facts of a device that do not change, and that the driver has at hand. The core asks for them once and keeps them.
/// By [`Default`] a device has nothing; `None` says that the driver does not tell.
#[derive(Clone, Default, Debug)]
pub struct DeviceFacts {
    /// The model's name for users.
    pub name: String,
    /// The vendor's name.
    pub vendor: String,
    /// The vendor's PCI id; 0 if it has none.
    pub vendor_id: u32,
    /// The driver's version, as the driver reports it.
    pub driver_version: String,
    /// The version of the runtime beneath this driver; empty if there is none.
    pub runtime_version: String,
    /// Its extensions, by their OpenCL names, separated by spaces.
    pub extensions: String,
    /// The intermediate language that its compiler takes, such as `SPIR-V_1.4`.
    pub il_version: Option<String>,
    /// The optional features that it has, as far as no call is needed to find out.
    pub capabilities: Capabilities,
    /// How many units execute groups at the same time: cores, multiprocessors, subslices.
    pub compute_units: u32,
    /// How the execution units of a GPU are arranged.
    pub unit_layout: Option<UnitLayout>,
    /// The sub-group sizes that kernels can have; `None`: only [`LaunchLimits::sub_group`].
    pub sub_group_sizes: Option<Vec<u32>>,
    /// How many registers a group has.
    pub registers: Option<u32>,
    /// The largest size in bytes of a kernel's arguments.
    pub argument_bytes: Option<usize>,
    /// How many arguments of a kernel can be constant memory.
    pub constant_arguments: Option<u32>,
    /// How many images a kernel can both read and write.
    pub read_write_images: Option<u32>,
    /// The size in bytes of the buffer for what kernels print.
    pub printf_bytes: Option<usize>,
    /// The maximal clock frequency in MHz.
    pub clock_mhz: Option<u32>,
    /// The resolution in nanoseconds of the times of commands.
    pub timer_resolution: Option<usize>,
    /// What it can do with numbers of 16 bits.
    pub half: FloatFeatures,
    /// What it can do with numbers of 32 bits.
    pub single: FloatFeatures,
    /// What it can do with numbers of 64 bits.
    pub double: FloatFeatures,
    /// Whether its memory is host memory, so that copies between the two have no benefit.
    pub is_integrated: bool,
    /// Whether its memory is not cached.
    pub is_uncached: bool,
    /// Whether local memory is a part of its memory, and not a memory of each compute unit.
    pub has_local_in_memory: bool,
    /// The size in bytes of a cache line.
    pub cache_line: Option<u32>,
    /// The alignment in bytes of buffers within buffers.
    pub buffer_alignment: Option<u32>,
    /// Whether queues are reported to be in order or out of order and profiled, and nothing else. Whatever else can be
    /// asked of a queue has no effect then.
    pub has_plain_queues: bool,
}
/// How the execution units of a GPU are arranged.
#[derive(Clone, Copy, Debug)]
pub struct UnitLayout {
    /// How many slices it has.
    pub slices: u32,
    /// How many subslices a slice has.
    pub subslices: u32,
    /// How many execution units a subslice has.
    pub units: u32,
    /// How many threads an execution unit has.
    pub threads: u32,
    /// How many lanes an execution unit computes at once.
    pub lanes: u32,
}
/// The version of the hardware: its architecture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HardwareVersion {
    /// As the driver's tools write it, such as `9.0` or `12.60.7`.
    pub text: String,
    /// As one number, if the driver has such.
    pub number: Option<u32>,
}
/// The identity of a device in Windows: its locally unique identifier, and which node of linked devices it is.
#[derive(Clone, Copy, Debug)]
pub struct Luid {
    /// The identifier.
    pub id: [u8; 8],
    /// One bit: that of the node.
    pub node_mask: u32,
}
/// The limits of images: sides in pixels. `None` says that the driver does not tell.
#[derive(Clone, Copy, Debug)]
pub struct ImageLimits {
    /// Whether there are images at all.
    pub are_supported: bool,
    /// Width and height of a two-dimensional image.
    pub two: [Option<usize>; 2],
    /// Width, height and depth of a three-dimensional image.
    pub three: [Option<usize>; 3],
    /// How many images an array has.
    pub layers: Option<usize>,
    /// The width of an image in a buffer.
    pub buffer: Option<usize>,
    /// How many images a kernel can read, and how many it can write.
    pub arguments: [Option<u32>; 2],
    /// How many samplers a kernel can have.
    pub samplers: Option<u32>,
}
impl ImageLimits {
    /// Those of a device without images.
    pub const NONE: Self = Self {
        are_supported: false,
        two: [Some(0); 2],
        three: [Some(0); 3],
        layers: Some(0),
        buffer: Some(0),
        arguments: [None; 2],
        samplers: None,
    };
}
/// How the kinds of USM can be accessed by the device and by the host.
#[derive(Clone, Copy, Default, Debug)]
pub struct UsmSupport {
    /// Host memory.
    pub host: UsmAccess,
    /// Memory of the device.
    pub device: UsmAccess,
    /// Shared memory of this device.
    pub shared: UsmAccess,
    /// Shared memory of other devices.
    pub cross_shared: UsmAccess,
    /// Memory of the system: what the application allocates by itself.
    pub system: UsmAccess,
}
/// For char, short, int, long, float, double and half: how many elements a vector has.
pub type VectorWidths = [u32; 7];

/// Defines sets of named bits.
macro_rules! sets {
    ($($(#[$doc:meta])* $set:ident { $($(#[$of:meta])* $one:ident = $bit:literal,)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct $set(u32);
        impl $set {
            $($(#[$of])* pub const $one: Self = Self(1 << $bit);)*
            /// All of them.
            pub const ALL: Self = Self($(1 << $bit)|*);
            /// The set of these bits; others are ignored.
            pub const fn from_bits(bits: u32) -> Self {
                Self(bits & Self::ALL.0)
            }
            /// Its bits.
            pub const fn bits(self) -> u32 {
                self.0
            }
            /// Whether it is a superset of `other`.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
            /// The union of the sets that are paired with `true`.
            pub fn of(pairs: impl IntoIterator<Item = (bool, Self)>) -> Self {
                let set = pairs.into_iter().filter(|(has, _)| *has);
                set.fold(Self::default(), |all, (_, one)| all | one)
            }
        }
        impl BitOr for $set {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    )* };
}
sets! {
    /// Floating-point capabilities.
    FloatFeatures {
        /// Division and square root are correctly rounded.
        CORRECTLY_ROUNDED_DIVIDE_SQRT = 0,
        /// Rounding to the nearest even number.
        ROUND_TO_NEAREST = 1,
        /// Rounding to zero.
        ROUND_TO_ZERO = 2,
        /// Rounding to infinity.
        ROUND_TO_INF = 3,
        /// Infinity and NaN.
        INF_NAN = 4,
        /// Denormal numbers.
        DENORM = 5,
        /// Fused multiply-add of IEEE 754-2008.
        FMA = 6,
        /// It is done in software.
        SOFT_FLOAT = 7,
    }
    /// How memory can be accessed by host and device.
    UsmAccess {
        /// It can be accessed.
        ACCESS = 0,
        /// Atomic operations are possible.
        ATOMIC = 1,
        /// Both may access it at the same time.
        CONCURRENT = 2,
        /// Both may use atomic operations at the same time.
        ATOMIC_CONCURRENT = 3,
    }
    /// What processors or parts of a device may share, by which a device is partitioned.
    AffinityDomains {
        /// A NUMA node.
        NUMA = 0,
        /// A fourth-level cache.
        L4_CACHE = 1,
        /// A third-level cache.
        L3_CACHE = 2,
        /// A second-level cache.
        L2_CACHE = 3,
        /// A first-level cache.
        L1_CACHE = 4,
        /// The first of these by which the device can be partitioned.
        NEXT_PARTITIONABLE = 5,
    }
    /// Why a device runs slower than it could.
    ThrottleReasons {
        /// A limit on power.
        POWER_CAP = 0,
        /// A limit on current.
        CURRENT_LIMIT = 1,
        /// A limit on temperature.
        THERMAL_LIMIT = 2,
        /// An alert of the power supply.
        PSU_ALERT = 3,
        /// A range of frequencies that software has set.
        SW_RANGE = 4,
        /// A range of frequencies that the hardware has set.
        HW_RANGE = 5,
        /// Anything else.
        OTHER = 6,
    }
    /// Accesses to blocks of two-dimensional arrays.
    BlockAccess {
        /// Loads.
        LOAD = 0,
        /// Stores.
        STORE = 1,
    }
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
    /// Into parts with this many compute units each; never 0.
    Equally(u32),
    /// Into parts with these numbers of compute units; a 0 makes no part.
    ByCounts(Vec<u32>),
    /// Into parts that share hardware of one of these kinds; never empty.
    ByDomain(AffinityDomains),
    /// Into the slices of a GPU.
    BySlice,
}
/// The ways in which a device can be partitioned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartitionKind {
    /// [`Partition::Equally`].
    Equally,
    /// [`Partition::ByCounts`].
    ByCounts,
    /// [`Partition::ByDomain`].
    ByDomain,
    /// [`Partition::BySlice`].
    BySlice,
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
