//! Command buffer (experimental). Read by `cargo xtask generate`; never compiled.

/// Marks which parts of a recorded launch can change.
#[flags]
enum DeviceCommandBufferUpdateCapabilityFlag {
    KernelArguments = 1 << 0,
    LocalWorkSize = 1 << 1,
    GlobalWorkSize = 1 << 2,
    GlobalWorkOffset = 1 << 3,
    KernelHandle = 1 << 4,
    Events = 1 << 5,
}

/// Lists what can be asked of a command buffer.
#[query(ExpCommandBuffer)]
enum ExpCommandBufferInfo {
    ReferenceCount(u32) = 0,
    Descriptor(ExpCommandBufferDesc) = 1,
}

/// Lists what can be asked of a recorded command.
#[query(ExpCommandBufferCommand)]
enum ExpCommandBufferCommandInfo {
    ReferenceCount(u32) = 0,
}

/// Options for making a command buffer.
#[stype = "UR_STRUCTURE_TYPE_EXP_COMMAND_BUFFER_DESC"]
struct ExpCommandBufferDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    isUpdatable: Bool,
    isInOrder: Bool,
    enableProfiling: Bool,
}

type ExpCommandBufferSyncPoint = u32;

/// Refers to a recorded list of commands.
#[handle]
struct ExpCommandBuffer;

/// Refers to one command inside a command buffer.
#[handle]
struct ExpCommandBufferCommand;

/// A new memory-object argument for a recorded launch.
#[stype = "UR_STRUCTURE_TYPE_EXP_COMMAND_BUFFER_UPDATE_MEMOBJ_ARG_DESC"]
struct ExpCommandBufferUpdateMemobjArgDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    argIndex: u32,
    #[optional] pProperties: *const KernelArgMemObjProperties,
    #[optional] hNewMemObjArg: Mem,
}

/// A new pointer argument for a recorded launch.
#[stype = "UR_STRUCTURE_TYPE_EXP_COMMAND_BUFFER_UPDATE_POINTER_ARG_DESC"]
struct ExpCommandBufferUpdatePointerArgDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    argIndex: u32,
    #[optional] pProperties: *const KernelArgPointerProperties,
    #[optional] pNewPointerArg: *const c_void,
}

/// A new by-value argument for a recorded launch.
#[stype = "UR_STRUCTURE_TYPE_EXP_COMMAND_BUFFER_UPDATE_VALUE_ARG_DESC"]
struct ExpCommandBufferUpdateValueArgDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    argIndex: u32,
    argSize: usize,
    #[optional] pProperties: *const KernelArgValueProperties,
    #[optional] pNewValueArg: *const c_void,
}

/// All the changes wanted to a recorded launch.
#[stype = "UR_STRUCTURE_TYPE_EXP_COMMAND_BUFFER_UPDATE_KERNEL_LAUNCH_DESC"]
struct ExpCommandBufferUpdateKernelLaunchDesc {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    hCommand: ExpCommandBufferCommand,
    #[optional] hNewKernel: Kernel,
    numNewMemObjArgs: u32,
    numNewPointerArgs: u32,
    numNewValueArgs: u32,
    newWorkDim: u32,
    #[optional] #[list(numNewMemObjArgs)] pNewMemObjArgList: *const ExpCommandBufferUpdateMemobjArgDesc,
    #[optional] #[list(numNewPointerArgs)] pNewPointerArgList: *const ExpCommandBufferUpdatePointerArgDesc,
    #[optional] #[list(numNewValueArgs)] pNewValueArgList: *const ExpCommandBufferUpdateValueArgDesc,
    #[optional] #[list(newWorkDim)] pNewGlobalWorkOffset: *mut usize,
    #[optional] #[list(newWorkDim)] pNewGlobalWorkSize: *mut usize,
    #[optional] #[list(newWorkDim)] pNewLocalWorkSize: *mut usize,
}

#[callback]
type ExpCommandBufferNativeCommandFunction = fn(user_data: *mut c_void);

#[table(CommandBufferExp, "CommandBufferExp")]
extern "C" {
    /// Makes an empty command buffer for a context and device.
    #[error(UnsupportedFeature, "an updatable buffer is asked of a device reporting no update capabilities")]
    #[errors(InvalidContext, InvalidDevice, OutOfHostMemory, OutOfResources)]
    fn urCommandBufferCreateExp(
        context: Context,
        device: Device,
        command_buffer_desc: *const ExpCommandBufferDesc,
        #[out] command_buffer: *mut ExpCommandBuffer,
    );

    /// Adds one reference to a command buffer so that it stays alive.
    #[errors(InvalidCommandBufferExp, OutOfResources, OutOfHostMemory)]
    fn urCommandBufferRetainExp(command_buffer: ExpCommandBuffer);

    /// Drops one reference to a command buffer, freeing it at zero.
    #[errors(InvalidCommandBufferExp, OutOfResources, OutOfHostMemory)]
    fn urCommandBufferReleaseExp(#[released] command_buffer: ExpCommandBuffer);

    /// Closes a command buffer to further recording so that it can run.
    #[errors(InvalidCommandBufferExp, InvalidOperation, OutOfHostMemory, OutOfResources)]
    fn urCommandBufferFinalizeExp(command_buffer: ExpCommandBuffer);

    /// Records a kernel launch at the end of a command buffer.
    #[error(InvalidValue, kernel_alternatives == null && num_kernel_alternatives > 0)]
    #[error(InvalidValue, kernel_alternatives != null && num_kernel_alternatives == 0)]
    #[error(InvalidValue, "the main kernel is also listed among its alternatives")]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InvalidWorkDimension, work_dim < 1 || work_dim > 3)]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidKernel, InvalidWorkDimension, InvalidWorkGroupSize, InvalidCommandBufferSyncPointExp, InvalidEvent, OutOfHostMemory, OutOfResources, InvalidOperation)]
    fn urCommandBufferAppendKernelLaunchExp(
        command_buffer: ExpCommandBuffer,
        kernel: Kernel,
        work_dim: u32,
        #[optional] #[list(work_dim)] global_work_offset: *const usize,
        #[list(work_dim)] global_work_size: *const usize,
        #[optional] #[list(work_dim)] local_work_size: *const usize,
        num_kernel_alternatives: u32,
        #[optional] #[list(num_kernel_alternatives)] kernel_alternatives: *mut Kernel,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records a kernel launch together with its arguments in a command buffer.
    #[error(InvalidNullPointer, args == null && num_args > 0)]
    #[error(InvalidEnumeration, null != args && UR_EXP_KERNEL_ARG_TYPE_SAMPLER < args.r#type)]
    #[error(InvalidValue, kernel_alternatives == null && num_kernel_alternatives > 0)]
    #[error(InvalidValue, kernel_alternatives != null && num_kernel_alternatives == 0)]
    #[error(InvalidValue, "the main kernel is also listed among its alternatives")]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InvalidWorkDimension, work_dim < 1 || work_dim > 3)]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidKernel, InvalidWorkDimension, InvalidWorkGroupSize, InvalidCommandBufferSyncPointExp, InvalidEvent, OutOfHostMemory, OutOfResources, InvalidOperation, InvalidKernelArgumentIndex)]
    fn urCommandBufferAppendKernelLaunchWithArgsExp(
        command_buffer: ExpCommandBuffer,
        kernel: Kernel,
        work_dim: u32,
        #[optional] #[list(work_dim)] global_work_offset: *const usize,
        #[list(work_dim)] global_work_size: *const usize,
        #[optional] #[list(work_dim)] local_work_size: *const usize,
        num_args: u32,
        #[optional] #[list(num_args)] args: *const ExpKernelArgProperties,
        num_kernel_alternatives: u32,
        #[optional] #[list(num_kernel_alternatives)] kernel_alternatives: *mut Kernel,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records a copy between USM pointers in a command buffer.
    #[error(InvalidSize, size == 0)]
    #[error(InvalidSize, "the byte count exceeds the source's or the destination's allocation")]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidMemObject, InvalidCommandBufferSyncPointExp, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(UsmCopy)]
    fn urCommandBufferAppendUSMMemcpyExp(
        command_buffer: ExpCommandBuffer,
        dst: *mut c_void,
        src: *const c_void,
        size: usize,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records filling USM memory with a pattern in a command buffer.
    #[error(InvalidSize, pattern_size == 0 || size == 0)]
    #[error(InvalidSize, pattern_size > size)]
    #[error(InvalidSize, size % pattern_size != 0)]
    #[error(InvalidSize, "the byte count exceeds the allocation behind the pointer")]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidMemObject, InvalidCommandBufferSyncPointExp, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(UsmFill)]
    fn urCommandBufferAppendUSMFillExp(
        command_buffer: ExpCommandBuffer,
        memory: *mut c_void,
        pattern: *const c_void,
        pattern_size: usize,
        size: usize,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records a copy between two buffers in a command buffer.
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidCommandBufferSyncPointExp, InvalidMemObject, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(BufferCopy)]
    fn urCommandBufferAppendMemBufferCopyExp(
        command_buffer: ExpCommandBuffer,
        src_mem: Mem,
        dst_mem: Mem,
        src_offset: usize,
        dst_offset: usize,
        size: usize,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records a write from host memory to a buffer in a command buffer.
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidCommandBufferSyncPointExp, InvalidMemObject, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(BufferWrite)]
    fn urCommandBufferAppendMemBufferWriteExp(
        command_buffer: ExpCommandBuffer,
        buffer: Mem,
        offset: usize,
        size: usize,
        src: *const c_void,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records a read from a buffer to host memory in a command buffer.
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidCommandBufferSyncPointExp, InvalidMemObject, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(BufferRead)]
    fn urCommandBufferAppendMemBufferReadExp(
        command_buffer: ExpCommandBuffer,
        buffer: Mem,
        offset: usize,
        size: usize,
        dst: *mut c_void,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records a rectangular copy between two buffers in a command buffer.
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidCommandBufferSyncPointExp, InvalidMemObject, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(BufferCopyRect)]
    fn urCommandBufferAppendMemBufferCopyRectExp(
        command_buffer: ExpCommandBuffer,
        src_mem: Mem,
        dst_mem: Mem,
        src_origin: RectOffset,
        dst_origin: RectOffset,
        region: RectRegion,
        src_row_pitch: usize,
        src_slice_pitch: usize,
        dst_row_pitch: usize,
        dst_slice_pitch: usize,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records a rectangular buffer write from host memory in a command buffer.
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidCommandBufferSyncPointExp, InvalidMemObject, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(BufferWriteRect)]
    fn urCommandBufferAppendMemBufferWriteRectExp(
        command_buffer: ExpCommandBuffer,
        buffer: Mem,
        buffer_offset: RectOffset,
        host_offset: RectOffset,
        region: RectRegion,
        buffer_row_pitch: usize,
        buffer_slice_pitch: usize,
        host_row_pitch: usize,
        host_slice_pitch: usize,
        src: *mut c_void,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records a rectangular buffer read to host memory in a command buffer.
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidCommandBufferSyncPointExp, InvalidMemObject, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(BufferReadRect)]
    fn urCommandBufferAppendMemBufferReadRectExp(
        command_buffer: ExpCommandBuffer,
        buffer: Mem,
        buffer_offset: RectOffset,
        host_offset: RectOffset,
        region: RectRegion,
        buffer_row_pitch: usize,
        buffer_slice_pitch: usize,
        host_row_pitch: usize,
        host_slice_pitch: usize,
        dst: *mut c_void,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records filling a buffer with a pattern in a command buffer.
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidSize, "the offset plus size runs past the buffer's end")]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidCommandBufferSyncPointExp, InvalidMemObject, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(BufferFill)]
    fn urCommandBufferAppendMemBufferFillExp(
        command_buffer: ExpCommandBuffer,
        buffer: Mem,
        pattern: *const c_void,
        pattern_size: usize,
        offset: usize,
        size: usize,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records a prefetch of USM memory in a command buffer.
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidSize, size == 0)]
    #[error(InvalidSize, "the byte count exceeds the memory block's allocation")]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidCommandBufferSyncPointExp, InvalidMemObject, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(UsmPrefetch)]
    fn urCommandBufferAppendUSMPrefetchExp(
        command_buffer: ExpCommandBuffer,
        memory: *const c_void,
        size: usize,
        flags: UsmMigrationFlags,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records a usage hint for a USM region in a command buffer.
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[error(InvalidSize, size == 0)]
    #[error(InvalidSize, "the byte count exceeds the memory block's allocation")]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(UnsupportedFeature, "events are passed but the buffer's device lacks command-buffer event support")]
    #[errors(InvalidCommandBufferExp, InvalidCommandBufferSyncPointExp, InvalidMemObject, InvalidEvent, OutOfHostMemory, OutOfResources)]
    #[command(UsmAdvise)]
    fn urCommandBufferAppendUSMAdviseExp(
        command_buffer: ExpCommandBuffer,
        memory: *const c_void,
        size: usize,
        advice: UsmAdviceFlags,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
        #[out] #[optional] event: *mut Event,
        #[out] #[optional] command: *mut ExpCommandBufferCommand,
    );

    /// Records backend commands that a caller's function adds to a command buffer.
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list == null && num_sync_points_in_wait_list > 0)]
    #[error(InvalidCommandBufferSyncPointWaitListExp, sync_point_wait_list != null && num_sync_points_in_wait_list == 0)]
    #[errors(InvalidCommandBufferExp, InvalidCommandBufferSyncPointExp, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    fn urCommandBufferAppendNativeCommandExp(
        command_buffer: ExpCommandBuffer,
        native_command: ExpCommandBufferNativeCommandFunction,
        #[optional] data: *mut c_void,
        #[optional] child_command_buffer: ExpCommandBuffer,
        num_sync_points_in_wait_list: u32,
        #[optional] #[list(num_sync_points_in_wait_list)] sync_point_wait_list: *const ExpCommandBufferSyncPoint,
        #[out] #[optional] sync_point: *mut ExpCommandBufferSyncPoint,
    );

    /// Changes kernel launches already recorded in a finalized command buffer.
    #[error(InvalidNullHandle, null == update_kernel_launch.hCommand)]
    #[error(InvalidSize, num_kernel_updates == 0)]
    #[error(UnsupportedFeature, "new kernel arguments are given but the device cannot update arguments")]
    #[error(UnsupportedFeature, "a new local size is given but the device cannot update it")]
    #[error(UnsupportedFeature, "a global but no local size is given; device cannot update local sizes")]
    #[error(UnsupportedFeature, "a new global size is given but the device cannot update it")]
    #[error(UnsupportedFeature, "a new global offset is given but the device cannot update offsets")]
    #[error(UnsupportedFeature, "a new kernel is given but the device cannot swap kernels")]
    #[error(InvalidOperation, "the command buffer was not created as updatable")]
    #[error(InvalidOperation, "the command buffer is still open for recording, not finalized")]
    #[error(InvalidCommandBufferCommandHandleExp, "an update names a command that does not launch a kernel")]
    #[error(InvalidCommandBufferCommandHandleExp, "an update names a command belonging to another command buffer")]
    #[error(InvalidWorkDimension, "a new dimension count lies outside one to three")]
    #[error(InvalidValue, "a new kernel was not among those named when the command was appended")]
    #[error(InvalidValue, "the dimension count changes without both a new global size and offset")]
    #[errors(InvalidCommandBufferExp, InvalidMemObject, InvalidKernelArgumentIndex, InvalidKernelArgumentSize, InvalidWorkGroupSize, OutOfHostMemory, OutOfResources)]
    fn urCommandBufferUpdateKernelLaunchExp(
        command_buffer: ExpCommandBuffer,
        num_kernel_updates: u32,
        #[list(num_kernel_updates)] update_kernel_launch: *const ExpCommandBufferUpdateKernelLaunchDesc,
    );

    /// Swaps in a fresh signal event for a recorded command.
    #[error(UnsupportedFeature, "the command's device cannot update events in a command buffer")]
    #[error(InvalidOperation, "the command's buffer was not created as updatable")]
    #[error(InvalidOperation, "the command's buffer has not yet been finalized")]
    #[error(InvalidOperation, "the command was appended without asking for an event")]
    #[errors(InvalidCommandBufferCommandHandleExp, InvalidValue, OutOfHostMemory, OutOfResources)]
    fn urCommandBufferUpdateSignalEventExp(command: ExpCommandBufferCommand, #[out] signal_event: *mut Event);

    /// Replaces the events that a recorded command waits on.
    #[error(UnsupportedFeature, "the command's device cannot update events in a command buffer")]
    #[error(InvalidOperation, "the command's buffer was not created as updatable")]
    #[error(InvalidOperation, "the command's buffer has not yet been finalized")]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InvalidEventWaitList, "the wait list's length differs from the one at the command's creation")]
    #[errors(InvalidCommandBufferCommandHandleExp, OutOfHostMemory, OutOfResources)]
    fn urCommandBufferUpdateWaitEventsExp(
        command: ExpCommandBufferCommand,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
    );

    /// Answers one property query about a command buffer.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidCommandBufferExp, OutOfResources, OutOfHostMemory)]
    fn urCommandBufferGetInfoExp(
        command_buffer: ExpCommandBuffer,
        prop_name: ExpCommandBufferInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Gives the backend's own handle for a command buffer.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urCommandBufferGetNativeHandleExp(
        command_buffer: ExpCommandBuffer,
        #[out] native_command_buffer: *mut NativeHandle,
    );
}
