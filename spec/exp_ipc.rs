//! Sharing between processes: memory, physical memory, events. Read by `cargo xtask generate`; never compiled.

#[table(IpcExp, "IPCExp")]
extern "C" {
    /// Gets handle data for sharing USM memory with other processes. The data belongs to the adapter, which keeps it
    /// until it is put, or the memory is freed; other processes open copies of it.
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCGetMemHandleExp(
        context: Context,
        mem: *mut c_void,
        #[out] ipc_mem_handle_data: *mut *mut c_void,
        #[out] ipc_mem_handle_data_size_ret: *mut usize,
    );

    /// Returns the data obtained for sharing USM memory: the pointer that the get returned, once. From then on the handle
    /// cannot be opened; what is open stays open. Optional: freeing the memory releases what its handles held.
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCPutMemHandleExp(context: Context, ipc_mem_handle_data: *mut c_void);

    /// Opens USM memory that another process has shared. Each open is counted and ended by a close of its own; the
    /// address stays valid until then, also after the handle was put or the memory freed by its owner.
    #[error(InvalidValue, "the data size given differs from a memory IPC handle's")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCOpenMemHandleExp(
        context: Context,
        device: Device,
        ipc_mem_handle_data: *mut c_void,
        ipc_mem_handle_data_size: usize,
        #[out] mem: *mut *mut c_void,
    );

    /// Ends one open of memory from another process's handle. Commands that use it must be done; the owner's memory
    /// and other opens are not touched.
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCCloseMemHandleExp(context: Context, mem: *mut c_void);

    /// Gets handle data for sharing physical memory with other processes. The data belongs to the adapter, which keeps
    /// it until it is put, or the object is released for the last time; other processes open copies of it.
    #[error(InvalidArgument, "the physical memory was not created as shareable between processes")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCGetPhysMemHandleExp(
        context: Context,
        phys_mem: PhysicalMem,
        #[out] ipc_phys_mem_handle_data: *mut *mut c_void,
        #[out] ipc_phys_mem_handle_data_size_ret: *mut usize,
    );

    /// Returns the data obtained for sharing physical memory: the pointer that the get returned, once. From then on the
    /// handle cannot be opened; what is open stays open. Optional: the object's last release does the same.
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCPutPhysMemHandleExp(context: Context, ipc_phys_mem_handle_data: *const c_void);

    /// Opens physical memory that another process has shared: a new object, ended by a close, which may be mapped and
    /// shared again, and stays valid after the handle was put or the owner's object released.
    #[error(InvalidValue, "the data size given differs from a physical-memory IPC handle's")]
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCOpenPhysMemHandleExp(
        context: Context,
        device: Device,
        ipc_phys_mem_handle_data: *const c_void,
        ipc_phys_mem_handle_data_size: usize,
        #[out] phys_mem: *mut PhysicalMem,
    );

    /// Closes physical memory that was opened from another process's handle, which must not be mapped any more.
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCClosePhysMemHandleExp(context: Context, phys_mem: PhysicalMem);

    /// Gets handle data for sharing an event with other processes. The data belongs to the adapter, which keeps it
    /// until it is put, or the event is released for the last time; it stays valid however often the event is signalled.
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

    /// Returns the data obtained for sharing an event: the pointer that the get returned, once. From then on the handle
    /// cannot be opened; the event, and what is open, stay as they are. Optional: the event's last release does the same.
    #[errors(InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urIPCPutEventHandleExp(context: Context, ipc_event_handle_data: *mut c_void);

    /// Opens an event that another process has shared: a new handle with one reference on the same state, ended by its
    /// last release. Signals of either process are seen by both.
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
