//! Event (experimental). Read by `cargo xtask generate`; never compiled.

/// Holds options for creating an event.
#[flags]
enum ExpEventFlag {
    EnableProfiling = 1 << 0,
    IpcExp = 1 << 1,
}

/// Options for making an event.
#[stype = "UR_STRUCTURE_TYPE_EXP_EVENT_DESC"]
struct ExpEventDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    flags: ExpEventFlags,
}

#[table(EventExp, "EventExp")]
extern "C" {
    /// Makes a reusable event that belongs to no command yet.
    #[error(UnsupportedFeature, "profiling is requested but the platform cannot profile single events")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urEventCreateExp(
        context: Context,
        device: Device,
        event_desc: *const ExpEventDesc,
        #[out] event: *mut Event,
    );
}
