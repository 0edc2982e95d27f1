//! Enqueue (experimental). Read by `cargo xtask generate`; never compiled.

/// Says which kind of argument a kernel receives.
#[repr(u32)]
enum ExpKernelArgType {
    Value = 0,
    Pointer = 1,
    MemObj = 2,
    Local = 3,
    Sampler = 4,
}

/// A memory-object argument paired with its access flags.
struct ExpKernelArgMemObjTuple {
    hMem: Mem,
    flags: MemFlags,
}

/// A kernel argument's content, in one of several forms.
union ExpKernelArgValue {
    value: *const c_void,
    pointer: *const c_void,
    memObjTuple: ExpKernelArgMemObjTuple,
    sampler: Sampler,
}

/// One kernel argument's position, kind, size and content.
#[stype = "UR_STRUCTURE_TYPE_EXP_KERNEL_ARG_PROPERTIES"]
struct ExpKernelArgProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    r#type: ExpKernelArgType,
    index: u32,
    size: usize,
    value: ExpKernelArgValue,
}

/// Holds host-task options, none of them defined yet.
#[flags]
enum ExpHostTaskFlag {
    Tbd = 1 << 0,
}

/// Options for running a host function from a queue.
#[stype = "UR_STRUCTURE_TYPE_EXP_HOST_TASK_PROPERTIES"]
struct ExpHostTaskProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    flags: ExpHostTaskFlags,
}

#[callback]
type ExpHostTaskFunction = fn(host_task: *mut c_void);

/// Holds extra options for barriers put in a queue.
#[flags]
enum ExpEnqueueExtFlag {
    LowPowerEventsSupport = 1 << 11,
}

/// Extra options for enqueueing a barrier.
#[stype = "UR_STRUCTURE_TYPE_EXP_ENQUEUE_EXT_PROPERTIES"]
struct ExpEnqueueExtProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    flags: ExpEnqueueExtFlags,
}

/// Holds native-command options, none of them defined yet.
#[flags]
enum ExpEnqueueNativeCommandFlag {
    Tbd = 1 << 0,
}

/// Options for putting native work in a queue.
#[stype = "UR_STRUCTURE_TYPE_EXP_ENQUEUE_NATIVE_COMMAND_PROPERTIES"]
struct ExpEnqueueNativeCommandProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    flags: ExpEnqueueNativeCommandFlags,
}

#[callback]
type ExpEnqueueNativeCommandFunction = fn(queue: Queue, user_data: *mut c_void);

#[table(EnqueueExp, "EnqueueExp")]
extern "C" {
    /// Queues a kernel launch and passes its arguments in the same call.
    #[error(InvalidNullPointer, args == null && num_args > 0)]
    #[error(InvalidEnumeration, null != args && UR_EXP_KERNEL_ARG_TYPE_SAMPLER < args.r#type)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidWorkDimension, work_dim < 1 || work_dim > 3)]
    #[error(InvalidWorkDimension, global_work_size[0] == 0 || (work_dim >= 2 && global_work_size[1] == 0) || (work_dim >= 3 && global_work_size[2] == 0))]
    #[error(InvalidWorkGroupSize, local_work_size && (local_work_size[0] == 0 || (work_dim >= 2 && local_work_size[1] == 0) || (work_dim >= 3 && local_work_size[2] == 0)))]
    #[error(InvalidOperation, "the device does not support one of the launch properties")]
    #[errors(InvalidQueue, InvalidKernel, InvalidEvent, InvalidValue, InvalidKernelArgs, OutOfHostMemory, OutOfResources)]
    fn urEnqueueKernelLaunchWithArgsExp(
        queue: Queue,
        kernel: Kernel,
        work_dim: u32,
        #[optional] #[list(work_dim)] global_work_offset: *const usize,
        #[list(work_dim)] global_work_size: *const usize,
        #[optional] #[list(work_dim)] local_work_size: *const usize,
        num_args: u32,
        #[optional] #[list(num_args)] args: *const ExpKernelArgProperties,
        #[optional] launch_prop_list: *const KernelLaunchExtProperties,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues an allocation of device USM memory.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[errors(OutOfResources)]
    fn urEnqueueUSMDeviceAllocExp(
        queue: Queue,
        #[optional] pool: UsmPool,
        size: usize,
        #[optional] properties: *const ExpAsyncUsmAllocProperties,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] mem: *mut *mut c_void,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues an allocation of shared USM memory.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[errors(OutOfResources)]
    fn urEnqueueUSMSharedAllocExp(
        queue: Queue,
        #[optional] pool: UsmPool,
        size: usize,
        #[optional] properties: *const ExpAsyncUsmAllocProperties,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] mem: *mut *mut c_void,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues an allocation of host USM memory.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[errors(OutOfResources, OutOfHostMemory)]
    fn urEnqueueUSMHostAllocExp(
        queue: Queue,
        #[optional] pool: UsmPool,
        size: usize,
        #[optional] properties: *const ExpAsyncUsmAllocProperties,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] mem: *mut *mut c_void,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues the freeing of a USM allocation.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[errors(OutOfResources, OutOfHostMemory)]
    fn urEnqueueUSMFreeExp(
        queue: Queue,
        #[optional] pool: UsmPool,
        mem: *mut c_void,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a command that notes the device time when it runs.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[command(Timestamp)]
    fn urEnqueueTimestampRecordingExp(
        queue: Queue,
        blocking: bool,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[inout] event: *mut Event,
    );

    /// Queues a finalized command buffer for execution.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[errors(InvalidCommandBufferExp, InvalidQueue, InvalidEvent, OutOfHostMemory, OutOfResources)]
    fn urEnqueueCommandBufferExp(
        queue: Queue,
        command_buffer: ExpCommandBuffer,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a host function to run in order with device work.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "the driver lacks Level Zero's call for appending host functions")]
    #[command(HostTask)]
    fn urEnqueueHostTaskExp(
        queue: Queue,
        host_task: ExpHostTaskFunction,
        #[optional] data: *mut c_void,
        #[optional] properties: *const ExpHostTaskProperties,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues backend work through a function that the caller supplies.
    #[errors(InvalidEventWaitList)]
    fn urEnqueueNativeCommandExp(
        queue: Queue,
        native_enqueue: ExpEnqueueNativeCommandFunction,
        #[optional] data: *mut c_void,
        num_mems_in_mem_list: u32,
        #[optional] #[list(num_mems_in_mem_list)] mem_list: *const Mem,
        #[optional] properties: *const ExpEnqueueNativeCommandProperties,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues an instantiated graph for execution.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    fn urEnqueueGraphExp(
        queue: Queue,
        graph: ExpExecutableGraph,
        #[optional] num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );
}
