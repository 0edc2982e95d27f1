//! Async alloc (experimental). Read by `cargo xtask generate`; never compiled.

/// Holds queued-allocation options, none of them defined yet.
#[flags]
enum ExpAsyncUsmAllocFlag {
    Tbd = 1 << 0,
}

/// Options for a USM allocation made through a queue.
#[stype = "UR_STRUCTURE_TYPE_EXP_ASYNC_USM_ALLOC_PROPERTIES"]
struct ExpAsyncUsmAllocProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    flags: ExpAsyncUsmAllocFlags,
}

/// Existing USM memory from which a pool is created.
#[stype = "UR_STRUCTURE_TYPE_USM_POOL_BUFFER_DESC"]
struct UsmPoolBufferDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    pMem: *mut c_void,
    size: usize,
    memType: UsmType,
    #[optional] device: Device,
}

#[table(UsmExp, "USMExp")]
extern "C" {
    /// Makes a USM pool that belongs to one device.
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidValue, OutOfHostMemory)]
    fn urUSMPoolCreateExp(
        context: Context,
        device: Device,
        pool_desc: *mut UsmPoolDesc,
        #[out] pool: *mut UsmPool,
    );

    /// Destroys a USM pool that belongs to one device.
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidValue)]
    fn urUSMPoolDestroyExp(context: Context, device: Device, pool: UsmPool);

    /// Gives the USM pool that a device starts out with.
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidValue)]
    fn urUSMPoolGetDefaultDevicePoolExp(context: Context, device: Device, #[out] pool: *mut UsmPool);

    /// Answers one usage or limit query about a USM pool.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(OutOfResources, OutOfHostMemory)]
    fn urUSMPoolGetInfoExp(
        pool: UsmPool,
        prop_name: UsmPoolInfo,
        #[out] #[optional] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Changes one adjustable property of a USM pool.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidDevice, OutOfResources, OutOfHostMemory)]
    fn urUSMPoolSetInfoExp(pool: UsmPool, prop_name: UsmPoolInfo, prop_value: *mut c_void, prop_size: usize);

    /// Chooses the USM pool that a device uses from now on.
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidValue)]
    fn urUSMPoolSetDevicePoolExp(context: Context, device: Device, pool: UsmPool);

    /// Gives the USM pool that a device uses at present.
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidValue)]
    fn urUSMPoolGetDevicePoolExp(context: Context, device: Device, #[out] pool: *mut UsmPool);

    /// Tries to shrink a pool's unused memory to a given size.
    #[error(UnsupportedFeature, "some device in the context reports no USM pool support")]
    #[errors(InvalidValue)]
    fn urUSMPoolTrimToExp(context: Context, device: Device, pool: UsmPool, min_bytes_to_keep: usize);

    /// Allocates 2D USM memory and reports its row pitch.
    #[error(InvalidValue, usm_desc && usm_desc.align != 0 && ((usm_desc.align & (usm_desc.align-1)) != 0))]
    #[error(InvalidValue, "the alignment exceeds the device's largest data type")]
    #[error(InvalidUsmSize, width_in_bytes == 0)]
    #[error(InvalidUsmSize, "the size exceeds the device's largest allowed allocation")]
    #[error(InvalidOperation, "the device supports neither single-device nor cross-device shared USM")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urUSMPitchedAllocExp(
        context: Context,
        device: Device,
        #[optional] usm_desc: *const UsmDesc,
        #[optional] pool: UsmPool,
        width_in_bytes: usize,
        height: usize,
        element_size_bytes: usize,
        #[out] mem: *mut *mut c_void,
        #[out] result_pitch: *mut usize,
    );

    /// Copies bytes between USM allocations and returns when done.
    #[error(InvalidSize, size == 0)]
    #[error(InvalidSize, "the byte count exceeds the source's or the destination's allocation")]
    fn urUSMContextMemcpyExp(context: Context, dst: *mut c_void, src: *const c_void, size: usize);

    /// Undoes the registration of a host memory range.
    #[error(InvalidValue, "the host address range cannot be used")]
    fn urUSMHostAllocUnregisterExp(context: Context, #[released] host_mem: *mut c_void);

    /// Registers an existing host range so that the adapter knows it.
    #[error(InvalidValue, size == 0)]
    fn urUSMHostAllocRegisterExp(
        context: Context,
        host_mem: *mut c_void,
        size: usize,
        #[optional] properties: *const ExpUsmHostAllocRegisterProperties,
    );

    /// Lets ordinary host memory be treated as USM memory.
    #[errors(InvalidContext, InvalidSize)]
    fn urUSMImportExp(context: Context, mem: *mut c_void, size: usize);

    /// Ends the USM treatment of imported host memory.
    #[errors(InvalidContext)]
    fn urUSMReleaseExp(context: Context, mem: *mut c_void);
}
