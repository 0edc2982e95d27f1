//! Bindless images (experimental). Read by `cargo xtask generate`; never compiled.

type ExpImageNativeHandle = uintptr_t;

type ExpImageMemNativeHandle = uintptr_t;

/// Refers to memory imported from another API.
#[handle]
struct ExpExternalMem;

/// Refers to a semaphore imported from another API.
#[handle]
struct ExpExternalSemaphore;

/// Says which way an image copy goes.
#[flags]
enum ExpImageCopyFlag {
    HostToDevice = 1 << 0,
    DeviceToHost = 1 << 1,
    DeviceToDevice = 1 << 2,
    HostToHost = 1 << 3,
}

/// Says whether each side of a copy is memory or image.
#[repr(u32)]
enum ExpImageCopyInputTypes {
    MemToImage = 0,
    ImageToMem = 1,
    MemToMem = 2,
    ImageToImage = 3,
}

/// Says whether cubemap filtering crosses face edges.
#[repr(u32)]
enum ExpSamplerCubemapFilterMode {
    Disjointed = 0,
    Seamless = 1,
}

/// Says what kind of handle imported memory comes from.
#[repr(u32)]
enum ExpExternalMemType {
    OpaqueFd = 0,
    Win32Nt = 1,
    Win32NtDx12Resource = 2,
    DmaBuf = 3,
    Win32NtDx11Resource = 4,
}

/// Says what kind of handle an imported semaphore comes from.
#[repr(u32)]
enum ExpExternalSemaphoreType {
    OpaqueFd = 0,
    Win32Nt = 1,
    Win32NtDx12Fence = 2,
    TimelineFd = 3,
    TimelineWin32Nt = 4,
    Win32NtDx11Fence = 5,
}

/// Tells image memory behind pointers from opaque handles.
#[repr(u32)]
enum ExpImageMemType {
    UsmPointer = 0,
    OpaqueHandle = 1,
}

/// A POSIX file descriptor for an imported resource.
#[stype = "UR_STRUCTURE_TYPE_EXP_FILE_DESCRIPTOR"]
struct ExpFileDescriptor {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    fd: i32,
}

/// A Windows handle for an imported resource.
#[stype = "UR_STRUCTURE_TYPE_EXP_WIN32_HANDLE"]
struct ExpWin32Handle {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    handle: *mut c_void,
}

/// The Windows object name of an imported resource.
#[stype = "UR_STRUCTURE_TYPE_EXP_WIN32_NAME"]
struct ExpWin32Name {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    name: *const c_void,
}

/// How a sampler picks and blends mipmap levels.
#[stype = "UR_STRUCTURE_TYPE_EXP_SAMPLER_MIP_PROPERTIES"]
struct ExpSamplerMipProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    minMipmapLevelClamp: f32,
    maxMipmapLevelClamp: f32,
    maxAnisotropy: f32,
    mipFilterMode: SamplerFilterMode,
}

/// One out-of-range rule for each sampler dimension.
#[stype = "UR_STRUCTURE_TYPE_EXP_SAMPLER_ADDR_MODES"]
struct ExpSamplerAddrModes {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    addrModes: [SamplerAddressingMode; 3],
}

/// How a sampler filters cubemaps.
#[stype = "UR_STRUCTURE_TYPE_EXP_SAMPLER_CUBEMAP_PROPERTIES"]
struct ExpSamplerCubemapProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    cubemapFilterMode: ExpSamplerCubemapFilterMode,
}

/// Carries the handle when memory is imported.
#[stype = "UR_STRUCTURE_TYPE_EXP_EXTERNAL_MEM_DESC"]
struct ExpExternalMemDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
}

/// Carries the handle when a semaphore is imported.
#[stype = "UR_STRUCTURE_TYPE_EXP_EXTERNAL_SEMAPHORE_DESC"]
struct ExpExternalSemaphoreDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
}

/// Where an image copy starts, ends up, and its extent.
#[stype = "UR_STRUCTURE_TYPE_EXP_IMAGE_COPY_REGION"]
struct ExpImageCopyRegion {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    srcOffset: RectOffset,
    dstOffset: RectOffset,
    copyExtent: RectRegion,
}

#[table(BindlessImagesExp, "BindlessImagesExp")]
extern "C" {
    /// Ends the use of an unsampled image handle.
    #[errors(InvalidContext, InvalidValue)]
    fn urBindlessImagesUnsampledImageHandleDestroyExp(
        context: Context,
        device: Device,
        #[released] image: ExpImageNativeHandle,
    );

    /// Ends the use of a sampled image handle.
    #[errors(InvalidContext, InvalidValue)]
    fn urBindlessImagesSampledImageHandleDestroyExp(
        context: Context,
        device: Device,
        #[released] image: ExpImageNativeHandle,
    );

    /// Reserves device memory for a bindless image of a given layout.
    #[error(InvalidImageFormatDescriptor, image_desc && UR_MEM_TYPE_IMAGE_CUBEMAP_EXP < image_desc.r#type)]
    #[errors(InvalidContext, InvalidValue, InvalidImageSize, InvalidOperation)]
    fn urBindlessImagesImageAllocateExp(
        context: Context,
        device: Device,
        image_format: *const ImageFormat,
        image_desc: *const ImageDesc,
        #[out] image_mem: *mut ExpImageMemNativeHandle,
    );

    /// Gives back the device memory behind a bindless image.
    #[errors(InvalidContext, InvalidValue)]
    fn urBindlessImagesImageFreeExp(
        context: Context,
        device: Device,
        #[released] image_mem: ExpImageMemNativeHandle,
    );

    /// Makes a handle for accessing image memory without a sampler.
    #[error(InvalidImageFormatDescriptor, image_desc && UR_MEM_TYPE_IMAGE_CUBEMAP_EXP < image_desc.r#type)]
    #[errors(InvalidContext, InvalidValue, InvalidImageSize, InvalidOperation)]
    fn urBindlessImagesUnsampledImageCreateExp(
        context: Context,
        device: Device,
        image_mem: ExpImageMemNativeHandle,
        image_format: *const ImageFormat,
        image_desc: *const ImageDesc,
        #[out] image: *mut ExpImageNativeHandle,
    );

    /// Makes a handle for reading image memory through a sampler.
    #[error(InvalidEnumeration, UR_SAMPLER_ADDRESSING_MODE_MIRRORED_REPEAT < sampler_desc.addressingMode)]
    #[error(InvalidEnumeration, UR_SAMPLER_FILTER_MODE_LINEAR < sampler_desc.filterMode)]
    #[error(InvalidImageFormatDescriptor, image_desc && UR_MEM_TYPE_IMAGE_CUBEMAP_EXP < image_desc.r#type)]
    #[errors(InvalidContext, InvalidValue, InvalidImageSize, InvalidSampler, InvalidOperation)]
    fn urBindlessImagesSampledImageCreateExp(
        context: Context,
        device: Device,
        image_mem: ExpImageMemNativeHandle,
        image_format: *const ImageFormat,
        image_desc: *const ImageDesc,
        sampler_desc: *const SamplerDesc,
        #[out] image: *mut ExpImageNativeHandle,
    );

    /// Queues a copy into, out of or between bindless images.
    #[error(InvalidImageFormatDescriptor, src_image_desc && UR_MEM_TYPE_IMAGE_CUBEMAP_EXP < src_image_desc.r#type)]
    #[error(InvalidImageFormatDescriptor, dst_image_desc && UR_MEM_TYPE_IMAGE_CUBEMAP_EXP < dst_image_desc.r#type)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[errors(InvalidQueue, InvalidValue, InvalidImageSize, InvalidOperation)]
    fn urBindlessImagesImageCopyExp(
        queue: Queue,
        src: *const c_void,
        dst: *mut c_void,
        src_image_desc: *const ImageDesc,
        dst_image_desc: *const ImageDesc,
        src_image_format: *const ImageFormat,
        dst_image_format: *const ImageFormat,
        copy_region: *mut ExpImageCopyRegion,
        image_copy_flags: ExpImageCopyFlags,
        image_copy_input_types: ExpImageCopyInputTypes,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Answers one property query about bindless image memory.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidDevice, OutOfResources, OutOfHostMemory)]
    fn urBindlessImagesImageGetInfoExp(
        context: Context,
        image_mem: ExpImageMemNativeHandle,
        prop_name: ImageInfo,
        #[out] #[optional] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Tells whether a device can hold such an image in this kind of memory.
    #[errors(InvalidDevice, InvalidContext)]
    fn urBindlessImagesGetImageMemoryHandleTypeSupportExp(
        context: Context,
        device: Device,
        image_desc: *const ImageDesc,
        image_format: *const ImageFormat,
        image_mem_handle_type: ExpImageMemType,
        #[out] supported_ret: *mut Bool,
    );

    /// Tells whether such an image can get an unsampled handle.
    #[errors(InvalidDevice, InvalidContext)]
    fn urBindlessImagesGetImageUnsampledHandleSupportExp(
        context: Context,
        device: Device,
        image_desc: *const ImageDesc,
        image_format: *const ImageFormat,
        image_mem_handle_type: ExpImageMemType,
        #[out] supported_ret: *mut Bool,
    );

    /// Tells whether such an image can get a sampled handle.
    #[errors(InvalidDevice, InvalidContext)]
    fn urBindlessImagesGetImageSampledHandleSupportExp(
        context: Context,
        device: Device,
        image_desc: *const ImageDesc,
        image_format: *const ImageFormat,
        image_mem_handle_type: ExpImageMemType,
        #[out] supported_ret: *mut Bool,
    );

    /// Picks the image memory of a single level from a mipmap.
    #[errors(InvalidContext, InvalidValue)]
    fn urBindlessImagesMipmapGetLevelExp(
        context: Context,
        device: Device,
        image_mem: ExpImageMemNativeHandle,
        mipmap_level: u32,
        #[out] image_mem_ret: *mut ExpImageMemNativeHandle,
    );

    /// Gives back all the memory of a mipmap image.
    #[errors(InvalidContext, InvalidValue)]
    fn urBindlessImagesMipmapFreeExp(
        context: Context,
        device: Device,
        #[released] mem: ExpImageMemNativeHandle,
    );

    /// Brings memory owned by another API into this context.
    #[errors(InvalidContext, InvalidValue, InvalidMemObject)]
    fn urBindlessImagesImportExternalMemoryExp(
        context: Context,
        device: Device,
        size: usize,
        mem_handle_type: ExpExternalMemType,
        external_mem_desc: *mut ExpExternalMemDesc,
        #[out] external_mem: *mut ExpExternalMem,
    );

    /// Makes imported external memory usable as image memory.
    #[error(InvalidImageFormatDescriptor, image_desc && UR_MEM_TYPE_IMAGE_CUBEMAP_EXP < image_desc.r#type)]
    #[errors(InvalidContext, InvalidValue, InvalidImageSize, InvalidOperation, OutOfResources)]
    fn urBindlessImagesMapExternalArrayExp(
        context: Context,
        device: Device,
        image_format: *const ImageFormat,
        image_desc: *const ImageDesc,
        external_mem: ExpExternalMem,
        #[out] image_mem: *mut ExpImageMemNativeHandle,
    );

    /// Makes imported external memory usable as a plain linear region.
    #[errors(InvalidContext, InvalidValue, InvalidImageSize, InvalidOperation, OutOfResources)]
    fn urBindlessImagesMapExternalLinearMemoryExp(
        context: Context,
        device: Device,
        offset: u64,
        size: u64,
        external_mem: ExpExternalMem,
        #[out] ret_mem: *mut *mut c_void,
    );

    /// Lets go of memory that was imported from another API.
    #[errors(InvalidContext, InvalidValue)]
    fn urBindlessImagesReleaseExternalMemoryExp(
        context: Context,
        device: Device,
        #[released] external_mem: ExpExternalMem,
    );

    /// Frees a linear region that was mapped from external memory.
    #[errors(InvalidContext)]
    fn urBindlessImagesFreeMappedLinearMemoryExp(
        context: Context,
        device: Device,
        #[released] mem: *mut c_void,
    );

    /// Tells whether a device can import external memory of this handle type.
    #[errors(InvalidDevice, InvalidContext)]
    fn urBindlessImagesSupportsImportingHandleTypeExp(
        device: Device,
        mem_handle_type: ExpExternalMemType,
        #[out] supported_ret: *mut Bool,
    );

    /// Brings a semaphore owned by another API into this context.
    #[errors(InvalidContext, InvalidValue)]
    fn urBindlessImagesImportExternalSemaphoreExp(
        context: Context,
        device: Device,
        sem_handle_type: ExpExternalSemaphoreType,
        external_semaphore_desc: *mut ExpExternalSemaphoreDesc,
        #[out] external_semaphore: *mut ExpExternalSemaphore,
    );

    /// Lets go of a semaphore that was imported from another API.
    #[errors(InvalidContext, InvalidValue)]
    fn urBindlessImagesReleaseExternalSemaphoreExp(
        context: Context,
        device: Device,
        #[released] external_semaphore: ExpExternalSemaphore,
    );

    /// Makes the queue hold until an imported external semaphore is signalled.
    #[errors(InvalidQueue, InvalidValue)]
    fn urBindlessImagesWaitExternalSemaphoreExp(
        queue: Queue,
        semaphore: ExpExternalSemaphore,
        has_wait_value: bool,
        wait_value: u64,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a signal to an imported external semaphore.
    #[errors(InvalidQueue, InvalidValue)]
    fn urBindlessImagesSignalExternalSemaphoreExp(
        queue: Queue,
        semaphore: ExpExternalSemaphore,
        has_signal_value: bool,
        signal_value: u64,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );
}
