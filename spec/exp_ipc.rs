//! Sharing between processes: memory, physical memory, events. Read by `cargo xtask generate`; never compiled.

#[table(IpcExp, "IPCExp")]
extern "C" {
    #[id = 289]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCGetMemHandleExp(
        context: Context,
        mem: *mut c_void,
        #[out] ipc_mem_handle_data: *mut *mut c_void,
        #[out] ipc_mem_handle_data_size_ret: *mut usize,
    );

    #[id = 290]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCPutMemHandleExp(context: Context, ipc_mem_handle_data: *mut c_void);

    #[id = 291]
    #[error(InvalidValue, "the data size given differs from a memory IPC handle's")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCOpenMemHandleExp(
        context: Context,
        device: Device,
        ipc_mem_handle_data: *mut c_void,
        ipc_mem_handle_data_size: usize,
        #[out] mem: *mut *mut c_void,
    );

    #[id = 292]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCCloseMemHandleExp(context: Context, mem: *mut c_void);

    #[id = 316]
    #[error(InvalidArgument, "the physical memory was not created as shareable between processes")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCGetPhysMemHandleExp(
        context: Context,
        phys_mem: PhysicalMem,
        #[out] ipc_phys_mem_handle_data: *mut *mut c_void,
        #[out] ipc_phys_mem_handle_data_size_ret: *mut usize,
    );

    #[id = 317]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCPutPhysMemHandleExp(context: Context, ipc_phys_mem_handle_data: *const c_void);

    #[id = 318]
    #[error(InvalidValue, "the data size given differs from a physical-memory IPC handle's")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCOpenPhysMemHandleExp(
        context: Context,
        device: Device,
        ipc_phys_mem_handle_data: *const c_void,
        ipc_phys_mem_handle_data_size: usize,
        #[out] phys_mem: *mut PhysicalMem,
    );

    #[id = 319]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCClosePhysMemHandleExp(context: Context, phys_mem: PhysicalMem);

    #[id = 323]
    #[error(InvalidEvent, "the event was not created as shareable between processes")]
    #[error(InvalidEvent, "the event itself came from opening another process's handle")]
    #[error(UnsupportedFeature, "the event records profiling data or timestamps")]
    #[error(UnsupportedFeature, "the event's device reports no support for sharing events between processes")]
    #[errors(OutOfHostMemory, OutOfResources)]
    fn urIPCGetEventHandleExp(
        event: Event,
        #[out] ipc_event_handle_data: *mut *mut c_void,
        #[out] ipc_event_handle_data_size_ret: *mut usize,
    );

    #[id = 324]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCPutEventHandleExp(context: Context, ipc_event_handle_data: *mut c_void);

    #[id = 325]
    #[error(InvalidValue, "the data size given differs from an event IPC handle's")]
    #[error(UnsupportedFeature, "some device in the context reports no support for sharing events between processes")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCOpenEventHandleExp(
        context: Context,
        ipc_event_handle_data: *const c_void,
        ipc_event_handle_data_size: usize,
        #[out] event: *mut Event,
    );
}
