//! Sampler. Read by `cargo xtask generate`; never compiled.

/// Chooses nearest or linear filtering for image reads.
#[repr(u32)]
enum SamplerFilterMode {
    Nearest = 0,
    Linear = 1,
}

/// Says how reads outside an image are treated.
#[repr(u32)]
enum SamplerAddressingMode {
    None = 0,
    ClampToEdge = 1,
    Clamp = 2,
    Repeat = 3,
    MirroredRepeat = 4,
}

/// Lists what can be asked of a sampler.
#[query(Sampler)]
enum SamplerInfo {
    ReferenceCount(u32) = 0,
    Context(Context) = 1,
    NormalizedCoords(Bool) = 2,
    AddressingMode(SamplerAddressingMode) = 3,
    FilterMode(SamplerFilterMode) = 4,
}

/// Settings for making a sampler.
#[stype = "UR_STRUCTURE_TYPE_SAMPLER_DESC"]
struct SamplerDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    normalizedCoords: bool,
    addressingMode: SamplerAddressingMode,
    filterMode: SamplerFilterMode,
}

/// How to wrap a native sampler.
#[stype = "UR_STRUCTURE_TYPE_SAMPLER_NATIVE_PROPERTIES"]
struct SamplerNativeProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    isNativeHandleOwned: bool,
}

#[table(Sampler, "Sampler")]
extern "C" {
    /// Makes a sampler with the given addressing and filter settings.
    #[error(InvalidEnumeration, UR_SAMPLER_ADDRESSING_MODE_MIRRORED_REPEAT < desc.addressingMode)]
    #[error(InvalidEnumeration, UR_SAMPLER_FILTER_MODE_LINEAR < desc.filterMode)]
    #[error(UnsupportedFeature, "the device reports no image support")]
    #[errors(InvalidContext, InvalidValue, InvalidOperation, OutOfHostMemory, OutOfResources)]
    fn urSamplerCreate(context: Context, desc: *const SamplerDesc, #[out] sampler: *mut Sampler);

    /// Adds one reference to a sampler so that it stays alive.
    #[error(UnsupportedFeature, "the device reports no image support")]
    #[errors(InvalidSampler, OutOfHostMemory, OutOfResources)]
    fn urSamplerRetain(sampler: Sampler);

    /// Drops one reference to a sampler, freeing it at zero.
    #[error(UnsupportedFeature, "the device reports no image support")]
    #[errors(InvalidSampler, OutOfHostMemory, OutOfResources)]
    fn urSamplerRelease(#[released] sampler: Sampler);

    /// Answers one property query about a sampler.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[error(UnsupportedFeature, "the device reports no image support")]
    #[errors(InvalidSampler, OutOfHostMemory, OutOfResources)]
    fn urSamplerGetInfo(
        sampler: Sampler,
        prop_name: SamplerInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Gives the backend's own handle for a sampler.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urSamplerGetNativeHandle(sampler: Sampler, #[out] native_sampler: *mut NativeHandle);

    /// Wraps a backend's own sampler in a runtime sampler.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urSamplerCreateWithNativeHandle(
        native_sampler: NativeHandle,
        context: Context,
        #[optional] properties: *const SamplerNativeProperties,
        #[out] sampler: *mut Sampler,
    );
}
