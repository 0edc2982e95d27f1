//! Virtual mem. Read by `cargo xtask generate`; never compiled.

/// Chooses which virtual-memory granularity to ask for.
#[query(Context)]
enum VirtualMemGranularityInfo {
    Minimum(usize) = 0x30100,
    Recommended(usize) = 0x30101,
}

/// Says what access a virtual address range permits.
#[flags]
enum VirtualMemAccessFlag {
    None = 1 << 0,
    ReadWrite = 1 << 1,
    ReadOnly = 1 << 2,
}

/// Lists what can be asked of a virtual range.
#[query(Context)]
enum VirtualMemInfo {
    AccessMode(VirtualMemAccessFlags) = 0,
}

/// Holds options for creating physical memory.
#[flags]
enum PhysicalMemFlag {
    EnableIpc = 1 << 1,
}

/// Options for making physical memory.
#[stype = "UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES"]
struct PhysicalMemProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    flags: PhysicalMemFlags,
}

/// Lists what can be asked of physical memory.
#[query(PhysicalMem)]
enum PhysicalMemInfo {
    Context(Context) = 0,
    Device(Device) = 1,
    Size(usize) = 2,
    Properties(PhysicalMemProperties) = 3,
    ReferenceCount(u32) = 4,
}

#[table(PhysicalMem, "PhysicalMem")]
extern "C" {
    /// Reserves physical device memory for mapping into virtual ranges.
    #[error(InvalidSize, "the size is not a whole number of minimum virtual-memory granules")]
    fn urPhysicalMemCreate(
        context: Context,
        device: Device,
        size: usize,
        #[optional] properties: *const PhysicalMemProperties,
        #[out] physical_mem: *mut PhysicalMem,
    );

    /// Adds one reference to physical memory so that it stays alive.
    fn urPhysicalMemRetain(physical_mem: PhysicalMem);

    /// Drops one reference to physical memory, freeing it at zero.
    fn urPhysicalMemRelease(#[released] physical_mem: PhysicalMem);

    /// Answers one property query about a physical memory object.
    fn urPhysicalMemGetInfo(
        physical_mem: PhysicalMem,
        prop_name: PhysicalMemInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );
}

#[table(VirtualMem, "VirtualMem")]
extern "C" {
    /// Tells the step size that virtual memory ranges must follow.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidDevice, InvalidContext, OutOfResources, OutOfHostMemory)]
    fn urVirtualMemGranularityGetInfo(
        context: Context,
        #[optional] device: Device,
        allocation_size: usize,
        prop_name: VirtualMemGranularityInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Sets aside a range of virtual addresses in a context.
    fn urVirtualMemReserve(
        context: Context,
        #[optional] start: *const c_void,
        size: usize,
        #[out] start_ret: *mut *mut c_void,
    );

    /// Gives back a reserved range of virtual addresses.
    fn urVirtualMemFree(context: Context, start: *const c_void, size: usize);

    /// Backs a reserved virtual range with physical memory.
    fn urVirtualMemMap(
        context: Context,
        start: *const c_void,
        size: usize,
        physical_mem: PhysicalMem,
        offset: usize,
        flags: VirtualMemAccessFlags,
    );

    /// Removes the physical memory behind a virtual range.
    fn urVirtualMemUnmap(context: Context, start: *const c_void, size: usize);

    /// Changes how a mapped virtual range may be accessed.
    fn urVirtualMemSetAccess(
        context: Context,
        start: *const c_void,
        size: usize,
        flags: VirtualMemAccessFlags,
    );

    /// Answers one query about a mapped range of virtual memory.
    fn urVirtualMemGetInfo(
        context: Context,
        start: *const c_void,
        size: usize,
        prop_name: VirtualMemInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );
}
