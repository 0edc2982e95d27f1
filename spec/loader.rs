//! The loader itself: configuration, start and end. These entries are in no table. Read by `cargo xtask generate`; never compiled.

/// Chooses which kinds of device adapters get started.
#[flags]
enum DeviceInitFlag {
    Gpu = 1 << 0,
    Cpu = 1 << 1,
    Fpga = 1 << 2,
    Mca = 1 << 3,
    Vpu = 1 << 4,
}

/// Lists what can be asked of a loader configuration.
#[query(LoaderConfig)]
enum LoaderConfigInfo {
    AvailableLayers([c_char]) = 0,
    ReferenceCount(u32) = 1,
}

/// Where in the source a call was made.
struct CodeLocation {
    functionName: *const c_char,
    sourceFile: *const c_char,
    lineNumber: u32,
    columnNumber: u32,
}

#[callback]
type CodeLocationCallback = fn(user_data: *mut c_void) -> CodeLocation;

#[loader]
extern "C" {
    /// Makes a configuration object to hand to the loader.
    fn urLoaderConfigCreate(#[out] loader_config: *mut LoaderConfig);

    /// Adds one reference to a loader configuration so that it stays alive.
    fn urLoaderConfigRetain(loader_config: LoaderConfig);

    /// Drops one reference to a loader configuration, freeing it at zero.
    fn urLoaderConfigRelease(#[released] loader_config: LoaderConfig);

    /// Answers one property query about a loader configuration.
    #[error(UnsupportedEnumeration, "the loader does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidDevice, OutOfResources, OutOfHostMemory)]
    fn urLoaderConfigGetInfo(
        loader_config: LoaderConfig,
        prop_name: LoaderConfigInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Turns on a named layer in the loader configuration.
    #[error(LayerNotPresent, "the loader finds no layer of that name")]
    fn urLoaderConfigEnableLayer(loader_config: LoaderConfig, layer_name: *const c_char);

    /// Registers a function that tells the tracing layer the source location.
    fn urLoaderConfigSetCodeLocationCallback(
        loader_config: LoaderConfig,
        codeloc: CodeLocationCallback,
        #[inout] #[optional] user_data: *mut c_void,
    );

    /// Chooses whether the loader offers just the mock adapter.
    fn urLoaderConfigSetMockingEnabled(loader_config: LoaderConfig, enable: Bool);

    /// Starts the loader and must come before other calls.
    #[errors(OutOfHostMemory)]
    fn urLoaderInit(device_flags: DeviceInitFlags, #[optional] loader_config: LoaderConfig);

    /// Shuts the loader down and frees its resources.
    #[errors(OutOfHostMemory)]
    fn urLoaderTearDown();

    /// Lists a platform's devices that pass the environment's selector filter.
    #[errors(InvalidValue)]
    fn urDeviceGetSelected(
        platform: Platform,
        device_type: DeviceType,
        num_entries: u32,
        #[out] #[optional] #[list(num_entries)] devices: *mut Device,
        #[out] #[optional] num_devices: *mut u32,
    );
}
