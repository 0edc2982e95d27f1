//! Event. Read by `cargo xtask generate`; never compiled.

/// Says which kind of command an event stands for.
#[repr(u32)]
enum Command {
    KernelLaunch = 0,
    EventsWait = 1,
    EventsWaitWithBarrier = 2,
    MemBufferRead = 3,
    MemBufferWrite = 4,
    MemBufferReadRect = 5,
    MemBufferWriteRect = 6,
    MemBufferCopy = 7,
    MemBufferCopyRect = 8,
    MemBufferFill = 9,
    MemImageRead = 10,
    MemImageWrite = 11,
    MemImageCopy = 12,
    MemBufferMap = 14,
    MemUnmap = 16,
    UsmFill = 17,
    UsmMemcpy = 18,
    UsmPrefetch = 19,
    UsmAdvise = 20,
    #[c = "UR_COMMAND_USM_FILL_2D"]
    UsmFill2d = 21,
    #[c = "UR_COMMAND_USM_MEMCPY_2D"]
    UsmMemcpy2d = 22,
    DeviceGlobalVariableWrite = 23,
    DeviceGlobalVariableRead = 24,
    ReadHostPipe = 25,
    WriteHostPipe = 26,
    EnqueueCommandBufferExp = 0x1000,
    ExternalSemaphoreWaitExp = 0x2000,
    ExternalSemaphoreSignalExp = 0x2001,
    TimestampRecordingExp = 0x2002,
    EnqueueNativeExp = 0x2004,
    EnqueueUsmDeviceAllocExp = 0x2050,
    EnqueueUsmSharedAllocExp = 0x2051,
    EnqueueUsmHostAllocExp = 0x2052,
    EnqueueUsmFreeExp = 0x2053,
    EnqueueGraphExp = 0x2100,
    HostTaskExp = 0x2200,
}

/// How far an event has come.
#[repr(u32)]
enum EventStatus {
    Complete = 0,
    Running = 1,
    Submitted = 2,
    Queued = 3,
    Error = 4,
}

/// Lists what can be asked of an event.
#[query(Event)]
enum EventInfo {
    CommandQueue(Queue) = 0,
    Context(Context) = 1,
    CommandType(Command) = 2,
    CommandExecutionStatus(EventStatus) = 3,
    ReferenceCount(u32) = 4,
}

/// Lists the moments an event can report times for.
#[query(Event)]
enum ProfilingInfo {
    #[optional]
    CommandQueued(u64) = 0,
    #[optional]
    CommandSubmit(u64) = 1,
    #[optional]
    CommandStart(u64) = 2,
    #[optional]
    CommandEnd(u64) = 3,
    #[optional]
    CommandComplete(u64) = 4,
}

/// How to wrap a native event.
#[stype = "UR_STRUCTURE_TYPE_EVENT_NATIVE_PROPERTIES"]
struct EventNativeProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    isNativeHandleOwned: bool,
}

/// Names the stages whose arrival can trigger a callback.
#[repr(u32)]
enum ExecutionInfo {
    Complete = 0,
    Running = 1,
    Submitted = 2,
    Queued = 3,
}

#[callback]
type EventCallback = fn(event: Event, exec_status: ExecutionInfo, user_data: *mut c_void);

#[table(Event, "Event")]
extern "C" {
    /// Answers one property query about an event.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidEvent, OutOfResources, OutOfHostMemory)]
    fn urEventGetInfo(
        event: Event,
        prop_name: EventInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Reads one recorded time of the command behind an event.
    #[error(
        ProfilingInfoNotAvailable,
        "the event's queue was created without profiling turned on",
        first
    )]
    #[error(InvalidValue, prop_value != null && prop_size == 0)]
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[errors(InvalidEvent, OutOfResources, OutOfHostMemory)]
    fn urEventGetProfilingInfo(
        event: Event,
        prop_name: ProfilingInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Blocks until every event of the list has completed.
    #[blocks]
    #[error(InvalidValue, num_events == 0)]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[errors(InvalidEvent, InvalidContext, OutOfHostMemory, OutOfResources)]
    fn urEventWait(num_events: u32, #[list(num_events)] event_wait_list: *const Event);

    /// Adds one reference to an event so that it stays alive.
    #[errors(InvalidEvent, OutOfResources, OutOfHostMemory)]
    fn urEventRetain(event: Event);

    /// Drops one reference to an event, freeing it at zero.
    #[errors(InvalidEvent, OutOfResources, OutOfHostMemory)]
    fn urEventRelease(#[released] event: Event);

    /// Gives the backend's own handle for an event.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urEventGetNativeHandle(event: Event, #[out] native_event: *mut NativeHandle);

    /// Wraps a backend's own event in a runtime event; 0 stands for one that is complete already.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urEventCreateWithNativeHandle(
        native_event: NativeHandle,
        context: Context,
        #[optional] properties: *const EventNativeProperties,
        #[out] event: *mut Event,
    );

    /// Registers a function to call when an event reaches a given state.
    #[error(UnsupportedEnumeration, exec_status == UR_EXECUTION_INFO_QUEUED)]
    fn urEventSetCallback(
        event: Event,
        exec_status: ExecutionInfo,
        notify: EventCallback,
        #[inout] #[optional] user_data: *mut c_void,
    );
}
