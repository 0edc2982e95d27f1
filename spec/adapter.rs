//! Adapter. Read by `cargo xtask generate`; never compiled.

/// Lists what can be asked of an adapter.
#[query(Adapter)]
enum AdapterInfo {
    Backend(Backend) = 0,
    ReferenceCount(u32) = 1,
    Version(u32) = 2,
}

/// Grades log messages by how serious they are.
#[repr(u32)]
enum LoggerLevel {
    Debug = 0,
    Info = 1,
    Warn = 2,
    Error = 3,
    Quiet = 4,
}

#[callback]
type LoggerCallback = fn(level: LoggerLevel, logger_msg: *const c_char, user_data: *mut c_void);

#[table(Adapter, "Adapter")]
extern "C" {
    /// Lists the adapters that the loader has found.
    #[error(InvalidSize, num_entries == 0 && adapters != null)]
    fn urAdapterGet(
        num_entries: u32,
        #[out] #[optional] #[list(num_entries)] adapters: *mut Adapter,
        #[out] #[optional] num_adapters: *mut u32,
    );

    /// Drops one reference to an adapter, which may tear it down.
    fn urAdapterRelease(#[released] adapter: Adapter);

    /// Adds one reference to an adapter so that it stays alive.
    fn urAdapterRetain(adapter: Adapter);

    /// Fetches the message and code of this thread's latest adapter-specific error.
    fn urAdapterGetLastError(adapter: Adapter, #[out] message: *mut *const c_char, #[out] error: *mut i32);

    /// Answers one property query about an adapter.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(OutOfResources, OutOfHostMemory)]
    fn urAdapterGetInfo(
        adapter: Adapter,
        prop_name: AdapterInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Sends an adapter's log messages to a function of the caller.
    fn urAdapterSetLoggerCallback(
        adapter: Adapter,
        logger_callback: LoggerCallback,
        #[inout] #[optional] user_data: *mut c_void,
        level: LoggerLevel,
    );

    /// Chooses how severe a message must be to reach the log callback.
    fn urAdapterSetLoggerCallbackLevel(adapter: Adapter, level: LoggerLevel);
}
