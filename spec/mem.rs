//! Mem. Read by `cargo xtask generate`; never compiled.

/// Says how a memory object is accessed and where stored.
#[flags]
enum MemFlag {
    ReadWrite = 1 << 0,
    WriteOnly = 1 << 1,
    ReadOnly = 1 << 2,
    UseHostPointer = 1 << 3,
    AllocHostPointer = 1 << 4,
    AllocCopyHostPointer = 1 << 5,
}

/// Tells buffers from each shape of image.
#[repr(u32)]
enum MemType {
    Image2d = 0,
    Image3d = 1,
    Image2dArray = 2,
    Image1d = 3,
    Image1dArray = 4,
    ImageCubemapExp = 0x2000,
    ImageGatherExp = 0x2001,
}

/// Lists what can be asked of a memory object.
#[query(Mem)]
enum MemInfo {
    Size(usize) = 0,
    Context(Context) = 1,
    ReferenceCount(u32) = 2,
}

/// Says which channels a pixel has, in what order.
#[repr(u32)]
enum ImageChannelOrder {
    A = 0,
    R = 1,
    Rg = 2,
    Ra = 3,
    Rgb = 4,
    Rgba = 5,
    Bgra = 6,
    Argb = 7,
    Abgr = 8,
    Intensity = 9,
    Luminance = 10,
    Rx = 11,
    Rgx = 12,
    Rgbx = 13,
    Srgba = 14,
}

/// Says how each channel of a pixel is stored.
#[repr(u32)]
enum ImageChannelType {
    SnormInt8 = 0,
    SnormInt16 = 1,
    UnormInt8 = 2,
    UnormInt16 = 3,
    #[c = "UR_IMAGE_CHANNEL_TYPE_UNORM_SHORT_565"]
    UnormShort565 = 4,
    #[c = "UR_IMAGE_CHANNEL_TYPE_UNORM_SHORT_555"]
    UnormShort555 = 5,
    #[c = "UR_IMAGE_CHANNEL_TYPE_INT_101010"]
    Int101010 = 6,
    SignedInt8 = 7,
    SignedInt16 = 8,
    SignedInt32 = 9,
    UnsignedInt8 = 10,
    UnsignedInt16 = 11,
    UnsignedInt32 = 12,
    HalfFloat = 13,
    Float = 14,
}

/// Lists what can be asked of an image.
#[query(Mem)]
enum ImageInfo {
    Format(ImageFormat) = 0,
    ElementSize(usize) = 1,
    RowPitch(usize) = 2,
    SlicePitch(usize) = 3,
    Width(usize) = 4,
    Height(usize) = 5,
    Depth(usize) = 6,
    ArraySize(usize) = 7,
    NumMipLevels(u32) = 8,
    NumSamples(u32) = 9,
}

/// How an image lays out and stores its channels.
struct ImageFormat {
    channelOrder: ImageChannelOrder,
    channelType: ImageChannelType,
}

/// An image's shape, size and pitches.
#[stype = "UR_STRUCTURE_TYPE_IMAGE_DESC"]
struct ImageDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    r#type: MemType,
    width: usize,
    height: usize,
    depth: usize,
    arraySize: usize,
    rowPitch: usize,
    slicePitch: usize,
    numMipLevel: u32,
    numSamples: u32,
}

/// Options for making a buffer, with optional host data.
#[stype = "UR_STRUCTURE_TYPE_BUFFER_PROPERTIES"]
struct BufferProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    #[optional] pHost: *mut c_void,
}

/// Which memory channel a buffer should sit on.
#[stype = "UR_STRUCTURE_TYPE_BUFFER_CHANNEL_PROPERTIES"]
struct BufferChannelProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    channel: u32,
}

/// Which global memory partition a buffer should occupy.
#[stype = "UR_STRUCTURE_TYPE_BUFFER_ALLOC_LOCATION_PROPERTIES"]
struct BufferAllocLocationProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    location: u32,
}

/// Where a sub-buffer starts and how long it is.
#[stype = "UR_STRUCTURE_TYPE_BUFFER_REGION"]
struct BufferRegion {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    origin: usize,
    size: usize,
}

/// Says how a buffer is carved from another.
#[repr(u32)]
enum BufferCreateType {
    Region = 0,
}

/// How to wrap a native memory object.
#[stype = "UR_STRUCTURE_TYPE_MEM_NATIVE_PROPERTIES"]
struct MemNativeProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    isNativeHandleOwned: bool,
}

#[table(Mem, "Mem")]
extern "C" {
    /// Makes an image of a given format and shape in a context.
    #[error(InvalidImageFormatDescriptor, image_desc && UR_STRUCTURE_TYPE_IMAGE_DESC != image_desc.stype)]
    #[error(InvalidImageFormatDescriptor, image_desc && UR_MEM_TYPE_IMAGE1D_ARRAY < image_desc.r#type)]
    #[error(InvalidImageFormatDescriptor, image_desc && image_desc.numMipLevel != 0)]
    #[error(InvalidImageFormatDescriptor, image_desc && image_desc.numSamples != 0)]
    #[error(InvalidImageFormatDescriptor, image_desc && image_desc.rowPitch != 0 && host == null)]
    #[error(InvalidImageFormatDescriptor, image_desc && image_desc.slicePitch != 0 && host == null)]
    #[error(UnsupportedFeature, "the device reports no image support")]
    #[error(InvalidHostPtr, host == null && (flags & (UR_MEM_FLAG_USE_HOST_POINTER | UR_MEM_FLAG_ALLOC_COPY_HOST_POINTER)) != 0)]
    #[error(InvalidHostPtr, host != null && (flags & (UR_MEM_FLAG_USE_HOST_POINTER | UR_MEM_FLAG_ALLOC_COPY_HOST_POINTER)) == 0)]
    #[errors(InvalidContext, InvalidValue, InvalidImageSize, InvalidOperation, UnsupportedImageFormat, OutOfHostMemory, OutOfResources)]
    fn urMemImageCreate(
        context: Context,
        flags: MemFlags,
        image_format: *const ImageFormat,
        image_desc: *const ImageDesc,
        #[optional] host: *mut c_void,
        #[out] mem: *mut Mem,
    );

    /// Makes a memory buffer of a given size in a context.
    #[error(InvalidBufferSize, size == 0)]
    #[error(InvalidHostPtr, properties == null && (flags & (UR_MEM_FLAG_USE_HOST_POINTER | UR_MEM_FLAG_ALLOC_COPY_HOST_POINTER)) != 0)]
    #[error(InvalidHostPtr, properties != null && properties.pHost == null && (flags & (UR_MEM_FLAG_USE_HOST_POINTER | UR_MEM_FLAG_ALLOC_COPY_HOST_POINTER)) != 0)]
    #[error(InvalidHostPtr, properties != null && properties.pHost != null && (flags & (UR_MEM_FLAG_USE_HOST_POINTER | UR_MEM_FLAG_ALLOC_COPY_HOST_POINTER)) == 0)]
    #[errors(InvalidContext, InvalidValue, OutOfHostMemory, OutOfResources)]
    fn urMemBufferCreate(
        context: Context,
        flags: MemFlags,
        size: usize,
        #[optional] properties: *const BufferProperties,
        #[out] buffer: *mut Mem,
    );

    /// Adds one reference to a memory object so that it stays alive.
    #[errors(InvalidMemObject, OutOfHostMemory, OutOfResources)]
    fn urMemRetain(mem: Mem);

    /// Drops one reference to a memory object, freeing it at zero.
    #[errors(InvalidMemObject, OutOfHostMemory)]
    fn urMemRelease(#[released] mem: Mem);

    /// Makes a sub-buffer that covers part of a buffer.
    #[error(InvalidBufferSize, region && region.size == 0)]
    #[error(InvalidBufferSize, "the region ends past the end of the buffer's allocation")]
    #[errors(InvalidMemObject, ObjectAllocationFailure, InvalidValue, InvalidHostPtr, OutOfHostMemory, OutOfResources)]
    fn urMemBufferPartition(
        buffer: Mem,
        flags: MemFlags,
        buffer_create_type: BufferCreateType,
        region: *const BufferRegion,
        #[out] mem: *mut Mem,
    );

    /// Gives the backend's own handle for a memory object.
    #[error(InvalidNullHandle, "no device is given although the implementation needs one")]
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urMemGetNativeHandle(mem: Mem, #[optional] device: Device, #[out] native_mem: *mut NativeHandle);

    /// Wraps a backend's own buffer in a runtime buffer.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urMemBufferCreateWithNativeHandle(
        native_mem: NativeHandle,
        context: Context,
        #[optional] properties: *const MemNativeProperties,
        #[out] mem: *mut Mem,
    );

    /// Wraps a backend's own image in a runtime image.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urMemImageCreateWithNativeHandle(
        native_mem: NativeHandle,
        context: Context,
        image_format: *const ImageFormat,
        image_desc: *const ImageDesc,
        #[optional] properties: *const MemNativeProperties,
        #[out] mem: *mut Mem,
    );

    /// Answers one property query about a memory object.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidMemObject, OutOfResources, OutOfHostMemory)]
    fn urMemGetInfo(
        memory: Mem,
        prop_name: MemInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Answers one property query about an image.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[error(UnsupportedFeature, "the device reports no image support")]
    #[errors(InvalidMemObject, OutOfResources, OutOfHostMemory)]
    fn urMemImageGetInfo(
        memory: Mem,
        prop_name: ImageInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );
}
