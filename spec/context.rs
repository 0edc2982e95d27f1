//! Context. Read by `cargo xtask generate`; never compiled.

/// Holds context options, none of them defined yet.
#[flags]
enum ContextFlag {
    Tbd = 1 << 0,
}

/// Options for making a context.
#[stype = "UR_STRUCTURE_TYPE_CONTEXT_PROPERTIES"]
struct ContextProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    flags: ContextFlags,
}

/// Lists what can be asked of a context.
#[query(Context)]
enum ContextInfo {
    NumDevices(u32) = 0,
    Devices([Device]) = 1,
    ReferenceCount(u32) = 2,
    UsmMemcpy2dSupport(Bool) = 3,
    UsmFill2dSupport(Bool) = 4,
}

/// How to wrap a native context.
#[stype = "UR_STRUCTURE_TYPE_CONTEXT_NATIVE_PROPERTIES"]
struct ContextNativeProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    isNativeHandleOwned: bool,
}

#[callback]
type ContextExtendedDeleter = fn(user_data: *mut c_void);

#[table(Context, "Context")]
extern "C" {
    /// Makes a context that spans the given devices.
    #[error(InvalidSize, device_count == 0)]
    #[errors(OutOfHostMemory, OutOfDeviceMemory)]
    fn urContextCreate(
        device_count: u32,
        #[list(device_count)] devices: *const Device,
        #[optional] properties: *const ContextProperties,
        #[out] context: *mut Context,
    );

    /// Adds one reference to a context so that it stays alive.
    fn urContextRetain(context: Context);

    /// Drops one reference to a context, freeing it at zero.
    fn urContextRelease(#[released] context: Context);

    /// Answers one property query about a context.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidContext, OutOfResources, OutOfHostMemory)]
    fn urContextGetInfo(
        context: Context,
        prop_name: ContextInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Gives the backend's own handle for a context.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urContextGetNativeHandle(context: Context, #[out] native_context: *mut NativeHandle);

    /// Wraps a backend's own context in a runtime context.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urContextCreateWithNativeHandle(
        native_context: NativeHandle,
        adapter: Adapter,
        num_devices: u32,
        #[optional] #[list(num_devices)] devices: *const Device,
        #[optional] properties: *const ContextNativeProperties,
        #[out] context: *mut Context,
    );

    /// Registers a function to run when the context is destroyed.
    #[error(UnsupportedFeature, "the adapter has no way of doing this")]
    fn urContextSetExtendedDeleter(
        context: Context,
        deleter: ContextExtendedDeleter,
        #[inout] #[optional] user_data: *mut c_void,
    );
}
