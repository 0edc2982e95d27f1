//! Platform. Read by `cargo xtask generate`; never compiled.

/// Lists what can be asked of a platform.
#[query(Platform)]
enum PlatformInfo {
    Name([c_char]) = 1,
    VendorName([c_char]) = 2,
    Version([c_char]) = 3,
    Extensions([c_char]) = 4,
    Profile([c_char]) = 5,
    Backend(Backend) = 6,
    Adapter(Adapter) = 7,
}

/// Numbers the releases of the interface.
#[repr(u32)]
enum ApiVersion {
    #[c = "UR_API_VERSION_0_6"]
    _06 = 0 << 16 | 6,
    #[c = "UR_API_VERSION_0_7"]
    _07 = 0 << 16 | 7,
    #[c = "UR_API_VERSION_0_8"]
    _08 = 0 << 16 | 8,
    #[c = "UR_API_VERSION_0_9"]
    _09 = 0 << 16 | 9,
    #[c = "UR_API_VERSION_0_10"]
    _010 = 0 << 16 | 10,
    #[c = "UR_API_VERSION_0_11"]
    _011 = 0 << 16 | 11,
    #[c = "UR_API_VERSION_0_12"]
    _012 = 0 << 16 | 12,
    Current = 0 << 16 | 12,
}

/// How to wrap a native platform.
#[stype = "UR_STRUCTURE_TYPE_PLATFORM_NATIVE_PROPERTIES"]
struct PlatformNativeProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    isNativeHandleOwned: bool,
}

#[table(Platform, "Platform")]
extern "C" {
    /// Lists the platforms that the given adapter offers.
    #[error(InvalidSize, num_entries == 0 && platforms != null)]
    #[error(InvalidValue, num_platforms == null && platforms == null)]
    fn urPlatformGet(
        adapter: Adapter,
        num_entries: u32,
        #[out] #[optional] #[list(num_entries)] platforms: *mut Platform,
        #[out] #[optional] num_platforms: *mut u32,
    );

    /// Answers one property query about a platform.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidPlatform, OutOfResources, OutOfHostMemory)]
    fn urPlatformGetInfo(
        platform: Platform,
        prop_name: PlatformInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Gives the backend's own handle for a platform.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urPlatformGetNativeHandle(platform: Platform, #[out] native_platform: *mut NativeHandle);

    /// Wraps a backend's own platform in a runtime platform.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urPlatformCreateWithNativeHandle(
        native_platform: NativeHandle,
        adapter: Adapter,
        #[optional] properties: *const PlatformNativeProperties,
        #[out] platform: *mut Platform,
    );

    /// Tells which version of the API a platform supports.
    fn urPlatformGetApiVersion(platform: Platform, #[out] version: *mut ApiVersion);

    /// Translates a general compiler option into the platform's own spelling.
    #[error(InvalidValue, "the frontend option is not a recognised one")]
    fn urPlatformGetBackendOption(
        platform: Platform,
        frontend_option: *const c_char,
        #[out] platform_option: *mut *const c_char,
    );
}
