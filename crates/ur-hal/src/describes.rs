//! What a device is: facts about it, from which the core answers queries, and its parts. They are separate traits, so that a
//! backend can implement them before its other methods exist.
use crate::{
    AffinityDomains, Allocates, BlockAccess, DeviceFacts, DeviceKind, Error, HardwareVersion,
    ImageLimits, Luid, OpensDevices, Partition, PartitionKind, Result, ThrottleReasons, Types,
    UsmSupport, VectorWidths,
};

/// Defines queries that answer `None` by default: the driver does not tell, or the device has no such thing.
macro_rules! queries {
    ($($(#[$doc:meta])* $query:ident: $told:ty;)*) => { $(
        $(#[$doc])*
        fn $query(device: &Self::Device) -> Result<Option<$told>> {
            let _ = device;
            Ok(None)
        }
    )* };
}
/// Facts about devices. The core answers queries with them.
///
/// [`facts`](Self::facts) are what the driver has at hand. What needs a call of its own, may fail by itself or changes is a
/// method of its own, which is called when somebody asks for it.
///
/// No method blocks. All return the driver's error, with the kind that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait DescribesDevices: OpensDevices + Allocates {
    /// The kind of a device.
    fn kind(device: &Self::Device) -> DeviceKind;
    /// Its facts. Called until it succeeds, and not again.
    fn facts(device: &Self::Device) -> Result<DeviceFacts>;

    queries! {
        /// The UUID of a part, if it is another than that of the [whole device](OpensDevices::uuid).
        uuid_of_part: [u8; 16];
        /// The version of the hardware.
        hardware_version: HardwareVersion;
        /// The vendor's number of the model: the PCI device id.
        model_number: u32;
        /// Its PCI address: domain, bus, device and function, such as `0000:3b:00.0`.
        pci_address: String;
        /// Its identity in Windows.
        luid: Luid;
        /// How many execution units it has, where they are smaller than compute units.
        execution_units: u32;
        /// How many units execute work-items at the same time, if these are others than the
        /// [compute units](DeviceFacts::compute_units).
        parallel_units: u32;
        /// The size in bytes of its memory that users are told, if it is another than
        /// [`Allocates::memory_size`].
        told_memory: u64;
        /// The largest allocation in bytes that users are told, if it is another than
        /// [`Allocates::largest_allocation`].
        told_allocation: u64;
        /// How many bytes of its memory are free now, over all processes.
        free_memory: u64;
        /// The clock frequency of its memory in MHz.
        memory_clock: u32;
        /// The width of its memory's bus in bits.
        bus_width: u32;
        /// The bandwidth of its memory in bytes per second.
        bandwidth: u64;
        /// The size in bytes of its largest cache.
        cache_size: u64;
        /// The size in bytes of the largest constant buffer.
        constant_memory: u64;
        /// The limits of images. Called until it succeeds, and not again.
        image_limits: ImageLimits;
        /// How USM can be accessed. Called until it succeeds, and not again.
        usm_support: UsmSupport;
        /// How it can access blocks of two-dimensional arrays.
        block_access: BlockAccess;
        /// Why it runs slower now than it could.
        throttle_reasons: ThrottleReasons;
        /// Whether it has virtual memory.
        has_virtual_memory: bool;
        /// Whether memory can be exported: [`ExportsMemory`](crate::ExportsMemory).
        exports_memory: bool;
        /// The composite device of which it is a component.
        composite: Self::Device;
    }
    /// The widths of vectors that it prefers, and of those with which it computes.
    fn vector_widths(device: &Self::Device) -> Result<[VectorWidths; 2]> {
        let _ = device;
        Ok([[1; 7]; 2]) // work-items compute on scalars
    }
    /// The components of a composite device.
    fn components(device: &Self::Device) -> Result<Vec<Self::Device>> {
        let _ = device;
        Ok(vec![])
    }
}
/// Devices that can be partitioned. By default none can.
///
/// No method blocks. All return the driver's error, with the kind that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait PartitionsDevices: Types {
    queries! {
        /// The affinity domains by which it can be partitioned.
        affinity_domains: AffinityDomains;
        /// The most parts that it can be partitioned into.
        most_parts: u32;
    }
    /// The ways in which it can be partitioned.
    fn partition_kinds(device: &Self::Device) -> Result<Vec<PartitionKind>> {
        let _ = device;
        Ok(vec![])
    }
    /// How this part came about; `None` if it is a part of nothing.
    fn partition_of(device: &Self::Device) -> Option<Partition> {
        let _ = device;
        None
    }
    /// Partitions a device; never into none. Fails with
    /// [`ErrorKind::PartitionFailed`](crate::ErrorKind::PartitionFailed) if it has no such parts, with
    /// [`ErrorKind::InvalidPartitionCount`](crate::ErrorKind::InvalidPartitionCount) if it has too few units, and with
    /// [`ErrorKind::InvalidValue`](crate::ErrorKind::InvalidValue) if no device of the driver has such parts.
    fn parts(device: &Self::Device, how: &Partition) -> Result<Vec<Self::Device>> {
        let _ = (device, how);
        let why = "this device cannot be partitioned";
        Err(Error::new(crate::ErrorKind::PartitionFailed, why))
    }
    /// The parts of a device for which the driver itself has native handles.
    fn parts_with_handles(device: &Self::Device) -> Vec<Self::Device> {
        let _ = device;
        vec![]
    }
}
