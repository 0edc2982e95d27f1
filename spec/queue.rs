//! Queue. Read by `cargo xtask generate`; never compiled.

/// Lists what can be asked of a queue.
#[query(Queue)]
enum QueueInfo {
    Context(Context) = 0,
    Device(Device) = 1,
    DeviceDefault(Queue) = 2,
    Flags(QueueFlags) = 3,
    ReferenceCount(u32) = 4,
    Size(u32) = 5,
    #[optional]
    Empty(Bool) = 6,
}

/// Holds options for creating a queue.
#[flags]
enum QueueFlag {
    OutOfOrderExecModeEnable = 1 << 0,
    ProfilingEnable = 1 << 1,
    OnDevice = 1 << 2,
    OnDeviceDefault = 1 << 3,
    DiscardEvents = 1 << 4,
    PriorityLow = 1 << 5,
    PriorityHigh = 1 << 6,
    SubmissionBatched = 1 << 7,
    SubmissionImmediate = 1 << 8,
    UseDefaultStream = 1 << 9,
    SyncWithDefaultStream = 1 << 10,
    LowPowerEventsSupportExp = 1 << 11,
}

/// Options for making a queue.
#[stype = "UR_STRUCTURE_TYPE_QUEUE_PROPERTIES"]
struct QueueProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    flags: QueueFlags,
}

/// Which compute engine a queue should use.
#[stype = "UR_STRUCTURE_TYPE_QUEUE_INDEX_PROPERTIES"]
struct QueueIndexProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    computeIndex: u32,
}

/// Adapter-specific details for a queue's native handle.
#[stype = "UR_STRUCTURE_TYPE_QUEUE_NATIVE_DESC"]
struct QueueNativeDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    #[optional] pNativeData: *mut c_void,
}

/// How to wrap a native queue.
#[stype = "UR_STRUCTURE_TYPE_QUEUE_NATIVE_PROPERTIES"]
struct QueueNativeProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    isNativeHandleOwned: bool,
}

#[table(Queue, "Queue")]
extern "C" {
    /// Answers one property query about a queue.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidQueue, OutOfHostMemory, OutOfResources)]
    fn urQueueGetInfo(
        queue: Queue,
        prop_name: QueueInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Makes a command queue for a device of a context.
    #[error(InvalidQueueProperties, properties != null && properties.flags & UR_QUEUE_FLAG_PRIORITY_HIGH && properties.flags & UR_QUEUE_FLAG_PRIORITY_LOW)]
    #[error(InvalidQueueProperties, properties != null && properties.flags & UR_QUEUE_FLAG_SUBMISSION_BATCHED && properties.flags & UR_QUEUE_FLAG_SUBMISSION_IMMEDIATE)]
    #[errors(InvalidContext, InvalidDevice, OutOfHostMemory, OutOfResources)]
    fn urQueueCreate(
        context: Context,
        device: Device,
        #[optional] properties: *const QueueProperties,
        #[out] queue: *mut Queue,
    );

    /// Adds one reference to a queue so that it stays alive.
    #[errors(InvalidQueue, OutOfHostMemory, OutOfResources)]
    fn urQueueRetain(queue: Queue);

    /// Drops one reference to a queue, freeing it at zero.
    #[errors(InvalidQueue, OutOfHostMemory, OutOfResources)]
    fn urQueueRelease(#[released] queue: Queue);

    /// Gives the backend's own handle for a queue.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urQueueGetNativeHandle(
        queue: Queue,
        #[optional] desc: *mut QueueNativeDesc,
        #[out] native_queue: *mut NativeHandle,
    );

    /// Wraps a backend's own queue in a runtime queue.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urQueueCreateWithNativeHandle(
        native_queue: NativeHandle,
        context: Context,
        #[optional] device: Device,
        #[optional] properties: *const QueueNativeProperties,
        #[out] queue: *mut Queue,
    );

    /// Blocks until all commands of the queue have completed.
    #[blocks]
    #[errors(InvalidQueue, OutOfHostMemory)]
    fn urQueueFinish(queue: Queue);

    /// Pushes pending commands to the device without waiting for them.
    #[errors(InvalidQueue, OutOfHostMemory)]
    fn urQueueFlush(queue: Queue);
}
