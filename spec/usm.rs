//! Usm. Read by `cargo xtask generate`; never compiled.

/// Holds options for USM allocated on the host.
#[flags]
enum UsmHostMemFlag {
    InitialPlacement = 1 << 0,
}

/// Holds options for USM that devices reach.
#[flags]
enum UsmDeviceMemFlag {
    WriteCombined = 1 << 0,
    InitialPlacement = 1 << 1,
    DeviceReadOnly = 1 << 2,
}

/// Holds options for creating a USM pool.
#[flags]
enum UsmPoolFlag {
    ZeroInitializeBlock = 1 << 0,
    UseNativeMemoryPoolExp = 1 << 1,
    ReadOnlyExp = 1 << 2,
}

/// Tells host, device and shared USM apart.
#[repr(u32)]
enum UsmType {
    Unknown = 0,
    Host = 1,
    Device = 2,
    Shared = 3,
}

/// Lists what can be asked of a USM allocation.
#[query(Context)]
enum UsmAllocInfo {
    Type(UsmType) = 0,
    BasePtr(*mut c_void) = 1,
    Size(usize) = 2,
    Device(Device) = 3,
    #[optional]
    Pool(UsmPool) = 4,
}

/// Hints how a USM range is going to be used.
#[flags]
enum UsmAdviceFlag {
    Default = 1 << 0,
    SetReadMostly = 1 << 1,
    ClearReadMostly = 1 << 2,
    SetPreferredLocation = 1 << 3,
    ClearPreferredLocation = 1 << 4,
    SetNonAtomicMostly = 1 << 5,
    ClearNonAtomicMostly = 1 << 6,
    BiasCached = 1 << 7,
    BiasUncached = 1 << 8,
    SetAccessedByDevice = 1 << 9,
    ClearAccessedByDevice = 1 << 10,
    SetAccessedByHost = 1 << 11,
    ClearAccessedByHost = 1 << 12,
    SetPreferredLocationHost = 1 << 13,
    ClearPreferredLocationHost = 1 << 14,
    SetNonCoherentMemory = 1 << 15,
    ClearNonCoherentMemory = 1 << 16,
}

/// Refers to a pool that serves USM allocations.
#[handle]
struct UsmPool;

/// Advice and alignment for a USM allocation.
#[stype = "UR_STRUCTURE_TYPE_USM_DESC"]
struct UsmDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    hints: UsmAdviceFlags,
    align: u32,
}

/// Further options for a host USM allocation.
#[stype = "UR_STRUCTURE_TYPE_USM_HOST_DESC"]
struct UsmHostDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    flags: UsmHostMemFlags,
}

/// Further options for a device USM allocation.
#[stype = "UR_STRUCTURE_TYPE_USM_DEVICE_DESC"]
struct UsmDeviceDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    flags: UsmDeviceMemFlags,
}

/// Which global memory partition a USM allocation should occupy.
#[stype = "UR_STRUCTURE_TYPE_USM_ALLOC_LOCATION_DESC"]
struct UsmAllocLocationDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    location: u32,
}

/// Options for making a USM pool.
#[stype = "UR_STRUCTURE_TYPE_USM_POOL_DESC"]
struct UsmPoolDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    flags: UsmPoolFlags,
}

/// Size bounds that steer how a USM pool allocates.
#[stype = "UR_STRUCTURE_TYPE_USM_POOL_LIMITS_DESC"]
struct UsmPoolLimitsDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    maxPoolableSize: usize,
    minDriverAllocSize: usize,
}

/// Lists what can be asked of a USM pool.
#[query(UsmPool)]
enum UsmPoolInfo {
    ReferenceCount(u32) = 0,
    Context(Context) = 1,
    ReleaseThresholdExp(usize) = 0x2050,
    MaximumSizeExp(usize) = 0x2051,
    ReservedCurrentExp(usize) = 0x2052,
    ReservedHighExp(usize) = 0x2053,
    UsedCurrentExp(usize) = 0x2054,
    UsedHighExp(usize) = 0x2055,
}

#[table(Usm, "USM")]
extern "C" {
    /// Allocates USM memory on the host that devices can reach.
    #[error(InvalidOperation, "the device reports no support for host USM allocations")]
    #[error(InvalidValue, usm_desc && usm_desc.align != 0 && ((usm_desc.align & (usm_desc.align-1)) != 0))]
    #[error(InvalidValue, "the alignment exceeds the largest data type of any context device")]
    #[error(InvalidUsmSize, size == 0)]
    #[error(InvalidUsmSize, "the size exceeds some context device's largest allowed allocation")]
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urUSMHostAlloc(
        context: Context,
        #[optional] usm_desc: *const UsmDesc,
        #[optional] pool: UsmPool,
        size: usize,
        #[out] mem: *mut *mut c_void,
    );

    /// Allocates USM memory that lives on one device.
    #[error(InvalidOperation, "the device reports no support for host USM allocations")]
    #[error(InvalidValue, usm_desc && usm_desc.align != 0 && ((usm_desc.align & (usm_desc.align-1)) != 0))]
    #[error(InvalidValue, "the alignment exceeds the device's largest data type")]
    #[error(InvalidUsmSize, size == 0)]
    #[error(InvalidUsmSize, "the size exceeds the device's largest allowed allocation")]
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urUSMDeviceAlloc(
        context: Context,
        device: Device,
        #[optional] usm_desc: *const UsmDesc,
        #[optional] pool: UsmPool,
        size: usize,
        #[out] mem: *mut *mut c_void,
    );

    /// Allocates USM memory that host and device both use.
    #[error(InvalidValue, usm_desc && usm_desc.align != 0 && ((usm_desc.align & (usm_desc.align-1)) != 0))]
    #[error(InvalidValue, "the alignment exceeds the device's largest data type")]
    #[error(InvalidUsmSize, size == 0)]
    #[error(InvalidUsmSize, "the size exceeds the device's largest allowed allocation")]
    #[error(InvalidOperation, "the device supports neither single-device nor cross-device shared USM")]
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urUSMSharedAlloc(
        context: Context,
        device: Device,
        #[optional] usm_desc: *const UsmDesc,
        #[optional] pool: UsmPool,
        size: usize,
        #[out] mem: *mut *mut c_void,
    );

    /// Frees a USM allocation of a context.
    #[errors(InvalidMemObject, OutOfHostMemory)]
    fn urUSMFree(context: Context, mem: *mut c_void);

    /// Answers one query about the allocation behind a USM pointer.
    #[errors(InvalidContext, InvalidValue, InvalidMemObject, OutOfHostMemory)]
    fn urUSMGetMemAllocInfo(
        context: Context,
        mem: *const c_void,
        prop_name: UsmAllocInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Makes a pool from which USM memory can be allocated.
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidValue, OutOfHostMemory)]
    fn urUSMPoolCreate(context: Context, pool_desc: *mut UsmPoolDesc, #[out] pool: *mut UsmPool);

    /// Adds one reference to a USM pool so that it stays alive.
    #[errors(UnsupportedFeature)]
    fn urUSMPoolRetain(pool: UsmPool);

    /// Drops one reference to a USM pool, freeing it at zero.
    #[errors(UnsupportedFeature)]
    fn urUSMPoolRelease(#[released] pool: UsmPool);

    /// Answers one property query about a USM pool.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(OutOfHostMemory, OutOfResources, UnsupportedFeature)]
    fn urUSMPoolGetInfo(
        pool: UsmPool,
        prop_name: UsmPoolInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );
}
