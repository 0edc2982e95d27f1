//! Enqueue. Read by `cargo xtask generate`; never compiled.

/// Holds options for how a kernel is launched.
#[flags]
enum KernelLaunchFlag {
    Cooperative = 1 << 0,
    OpportunisticQueueSerialize = 1 << 1,
}

/// Extra flags for one kernel launch.
#[stype = "UR_STRUCTURE_TYPE_KERNEL_LAUNCH_EXT_PROPERTIES"]
struct KernelLaunchExtProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    flags: KernelLaunchFlags,
}

/// How many work-groups form a cluster, per dimension.
#[stype = "UR_STRUCTURE_TYPE_KERNEL_LAUNCH_CLUSTER_PROPERTY"]
struct KernelLaunchClusterProperty {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    clusterDim: [u32; 3],
}

/// How much work-group memory a launch sets aside.
#[stype = "UR_STRUCTURE_TYPE_KERNEL_LAUNCH_WORKGROUP_PROPERTY"]
struct KernelLaunchWorkgroupProperty {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    workgroup_mem_size: usize,
}

/// Says why a buffer is mapped into host memory.
#[flags]
enum MapFlag {
    Read = 1 << 0,
    Write = 1 << 1,
    WriteInvalidateRegion = 1 << 2,
}

/// Says which way prefetched USM should move.
#[flags]
enum UsmMigrationFlag {
    HostToDevice = 1 << 0,
    DeviceToHost = 1 << 1,
}

#[table(Enqueue, "Enqueue")]
extern "C" {
    /// Queues a command that completes once the listed events have.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[errors(InvalidQueue, InvalidEvent, InvalidValue, OutOfHostMemory, OutOfResources)]
    #[command(Wait)]
    fn urEnqueueEventsWait(
        queue: Queue,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a wait that also holds back every later command.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[errors(InvalidQueue, InvalidEvent, InvalidValue, OutOfHostMemory, OutOfResources)]
    #[command(Barrier)]
    fn urEnqueueEventsWaitWithBarrier(
        queue: Queue,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a read from a buffer into host memory.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, "the offset plus size runs past the buffer's end")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(BufferRead)]
    fn urEnqueueMemBufferRead(
        queue: Queue,
        #[bounds(offset, size)] buffer: Mem,
        blocking_read: bool,
        offset: usize,
        size: usize,
        dst: *mut c_void,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a write from host memory into a buffer.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, "the offset plus size runs past the buffer's end")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(BufferWrite)]
    fn urEnqueueMemBufferWrite(
        queue: Queue,
        #[bounds(offset, size)] buffer: Mem,
        blocking_write: bool,
        offset: usize,
        size: usize,
        src: *const c_void,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a read of a rectangular buffer region into host memory.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, region.width == 0 || region.height == 0 || region.depth == 0)]
    #[error(InvalidSize, buffer_row_pitch != 0 && buffer_row_pitch < region.width)]
    #[error(InvalidSize, host_row_pitch != 0 && host_row_pitch < region.width)]
    #[error(InvalidSize, buffer_slice_pitch != 0 && (buffer_row_pitch != 0 && buffer_slice_pitch < region.height * buffer_row_pitch || buffer_row_pitch == 0 && buffer_slice_pitch < region.height * region.width))]
    #[error(InvalidSize, buffer_slice_pitch != 0 && (buffer_row_pitch != 0 && buffer_slice_pitch % buffer_row_pitch != 0 || buffer_row_pitch == 0 && buffer_slice_pitch % region.width != 0))]
    #[error(InvalidSize, host_slice_pitch != 0 && (host_row_pitch != 0 && host_slice_pitch < region.height * host_row_pitch || host_row_pitch == 0 && host_slice_pitch < region.height * region.width))]
    #[error(InvalidSize, host_slice_pitch != 0 && (host_row_pitch != 0 && host_slice_pitch % host_row_pitch != 0 || host_row_pitch == 0 && host_slice_pitch % region.width != 0))]
    #[error(InvalidSize, "origin, region and pitches together reach outside the buffer")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(BufferReadRect)]
    fn urEnqueueMemBufferReadRect(
        queue: Queue,
        #[bounds(buffer_origin, region)] buffer: Mem,
        blocking_read: bool,
        buffer_origin: RectOffset,
        host_origin: RectOffset,
        region: RectRegion,
        buffer_row_pitch: usize,
        buffer_slice_pitch: usize,
        host_row_pitch: usize,
        host_slice_pitch: usize,
        dst: *mut c_void,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a write from host memory into a rectangular buffer region.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, region.width == 0 || region.height == 0 || region.depth == 0)]
    #[error(InvalidSize, buffer_row_pitch != 0 && buffer_row_pitch < region.width)]
    #[error(InvalidSize, host_row_pitch != 0 && host_row_pitch < region.width)]
    #[error(InvalidSize, buffer_slice_pitch != 0 && (buffer_row_pitch != 0 && buffer_slice_pitch < region.height * buffer_row_pitch || buffer_row_pitch == 0 && buffer_slice_pitch < region.height * region.width))]
    #[error(InvalidSize, buffer_slice_pitch != 0 && (buffer_row_pitch != 0 && buffer_slice_pitch % buffer_row_pitch != 0 || buffer_row_pitch == 0 && buffer_slice_pitch % region.width != 0))]
    #[error(InvalidSize, host_slice_pitch != 0 && (host_row_pitch != 0 && host_slice_pitch < region.height * host_row_pitch || host_row_pitch == 0 && host_slice_pitch < region.height * region.width))]
    #[error(InvalidSize, host_slice_pitch != 0 && (host_row_pitch != 0 && host_slice_pitch % host_row_pitch != 0 || host_row_pitch == 0 && host_slice_pitch % region.width != 0))]
    #[error(InvalidSize, "origin, region and pitches together reach outside the buffer")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(BufferWriteRect)]
    fn urEnqueueMemBufferWriteRect(
        queue: Queue,
        #[bounds(buffer_origin, region)] buffer: Mem,
        blocking_write: bool,
        buffer_origin: RectOffset,
        host_origin: RectOffset,
        region: RectRegion,
        buffer_row_pitch: usize,
        buffer_slice_pitch: usize,
        host_row_pitch: usize,
        host_slice_pitch: usize,
        src: *mut c_void,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a copy of bytes from one buffer to another.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, "the source offset plus size runs past the source's end")]
    #[error(InvalidSize, "the destination offset plus size runs past the destination's end")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(BufferCopy)]
    fn urEnqueueMemBufferCopy(
        queue: Queue,
        #[bounds(src_offset, size)] buffer_src: Mem,
        #[bounds(dst_offset, size)] buffer_dst: Mem,
        src_offset: usize,
        dst_offset: usize,
        size: usize,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a copy of a rectangular region between two buffers.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, region.width == 0 || region.height == 0 || region.depth == 0)]
    #[error(InvalidSize, src_row_pitch != 0 && src_row_pitch < region.width)]
    #[error(InvalidSize, dst_row_pitch != 0 && dst_row_pitch < region.width)]
    #[error(InvalidSize, src_slice_pitch != 0 && (src_row_pitch != 0 && src_slice_pitch < region.height * src_row_pitch || src_row_pitch == 0 && src_slice_pitch < region.height * region.width))]
    #[error(InvalidSize, src_slice_pitch != 0 && (src_row_pitch != 0 && src_slice_pitch % src_row_pitch != 0 || src_row_pitch == 0 && src_slice_pitch % region.width != 0))]
    #[error(InvalidSize, dst_slice_pitch != 0 && (dst_row_pitch != 0 && dst_slice_pitch < region.height * dst_row_pitch || dst_row_pitch == 0 && dst_slice_pitch < region.height * region.width))]
    #[error(InvalidSize, dst_slice_pitch != 0 && (dst_row_pitch != 0 && dst_slice_pitch % dst_row_pitch != 0 || dst_row_pitch == 0 && dst_slice_pitch % region.width != 0))]
    #[error(InvalidSize, "origin, region and pitches together reach outside the source")]
    #[error(InvalidSize, "origin, region and pitches together reach outside the destination")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(BufferCopyRect)]
    fn urEnqueueMemBufferCopyRect(
        queue: Queue,
        #[bounds(src_origin, region)] buffer_src: Mem,
        #[bounds(dst_origin, region)] buffer_dst: Mem,
        src_origin: RectOffset,
        dst_origin: RectOffset,
        region: RectRegion,
        src_row_pitch: usize,
        src_slice_pitch: usize,
        dst_row_pitch: usize,
        dst_slice_pitch: usize,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues filling part of a buffer with a repeated pattern.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, pattern_size == 0 || size == 0)]
    #[error(InvalidSize, pattern_size > size)]
    #[error(InvalidSize, (pattern_size & (pattern_size - 1)) != 0)]
    #[error(InvalidSize, size % pattern_size != 0)]
    #[error(InvalidSize, offset % pattern_size != 0)]
    #[error(InvalidSize, "the offset plus size runs past the buffer's end")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(BufferFill)]
    fn urEnqueueMemBufferFill(
        queue: Queue,
        #[bounds(offset, size)] buffer: Mem,
        pattern: *const c_void,
        pattern_size: usize,
        offset: usize,
        size: usize,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a read of an image region into host memory.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, region.width == 0 || region.height == 0 || region.depth == 0)]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(ImageRead)]
    fn urEnqueueMemImageRead(
        queue: Queue,
        #[bounds(origin, region)] image: Mem,
        blocking_read: bool,
        origin: RectOffset,
        region: RectRegion,
        row_pitch: usize,
        slice_pitch: usize,
        dst: *mut c_void,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a write from host memory into an image region.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, region.width == 0 || region.height == 0 || region.depth == 0)]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(ImageWrite)]
    fn urEnqueueMemImageWrite(
        queue: Queue,
        #[bounds(origin, region)] image: Mem,
        blocking_write: bool,
        origin: RectOffset,
        region: RectRegion,
        row_pitch: usize,
        slice_pitch: usize,
        src: *mut c_void,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a copy of a region from one image to another.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, region.width == 0 || region.height == 0 || region.depth == 0)]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(ImageCopy)]
    fn urEnqueueMemImageCopy(
        queue: Queue,
        #[bounds(src_origin, region)] image_src: Mem,
        #[bounds(dst_origin, region)] image_dst: Mem,
        src_origin: RectOffset,
        dst_origin: RectOffset,
        region: RectRegion,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a mapping of a buffer range into host address space.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[error(InvalidSize, "the offset plus size runs past the buffer's end")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    fn urEnqueueMemBufferMap(
        queue: Queue,
        #[bounds(offset, size)] buffer: Mem,
        blocking_map: bool,
        map_flags: MapFlags,
        offset: usize,
        size: usize,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
        #[out] ret_map: *mut *mut c_void,
    );

    /// Queues the removal of an earlier host mapping.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    fn urEnqueueMemUnmap(
        queue: Queue,
        mem: Mem,
        mapped_ptr: *mut c_void,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues filling USM memory with a repeated pattern.
    #[error(InvalidSize, pattern_size == 0 || size == 0)]
    #[error(InvalidSize, pattern_size > size)]
    #[error(InvalidSize, size % pattern_size != 0)]
    #[error(InvalidSize, "the byte count exceeds the allocation behind the pointer")]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(UsmFill)]
    fn urEnqueueUSMFill(
        queue: Queue,
        #[bounds(0, size)] mem: *mut c_void,
        pattern_size: usize,
        pattern: *const c_void,
        size: usize,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a copy of bytes between two USM pointers.
    #[error(InvalidSize, size == 0)]
    #[error(InvalidSize, "the byte count exceeds the source's or the destination's allocation")]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(UsmCopy)]
    fn urEnqueueUSMMemcpy(
        queue: Queue,
        blocking: bool,
        #[bounds(0, size)] dst: *mut c_void,
        #[bounds(0, size)] src: *const c_void,
        size: usize,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a hint to move USM memory before it is used.
    #[error(InvalidSize, size == 0)]
    #[error(InvalidSize, "more bytes are asked for than the memory block holds")]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(UsmPrefetch)]
    fn urEnqueueUSMPrefetch(
        queue: Queue,
        #[bounds(0, size)] mem: *const c_void,
        size: usize,
        flags: UsmMigrationFlags,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a hint about how a USM region will be used.
    #[error(InvalidSize, size == 0)]
    #[error(InvalidSize, "more bytes are asked for than the memory block holds")]
    #[errors(InvalidQueue, InvalidEvent, InvalidMemObject, OutOfHostMemory, OutOfResources)]
    #[command(UsmAdvise)]
    fn urEnqueueUSMAdvise(
        queue: Queue,
        #[bounds(0, size)] mem: *const c_void,
        size: usize,
        advice: UsmAdviceFlags,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues filling a pitched 2D USM region with a pattern.
    #[error(InvalidSize, pitch == 0)]
    #[error(InvalidSize, pitch < width)]
    #[error(InvalidSize, pattern_size == 0)]
    #[error(InvalidSize, pattern_size > width * height)]
    #[error(InvalidSize, pattern_size != 0 && ((pattern_size & (pattern_size - 1)) != 0))]
    #[error(InvalidSize, width == 0)]
    #[error(InvalidSize, height == 0)]
    #[error(InvalidSize, width * height % pattern_size != 0)]
    #[error(InvalidSize, "pitch times height exceeds the memory allocated at the pointer")]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[errors(InvalidMemObject, OutOfHostMemory, OutOfResources, UnsupportedFeature)]
    #[command(UsmFill2d)]
    fn urEnqueueUSMFill2D(
        queue: Queue,
        #[bounds(0, pitch * height)] mem: *mut c_void,
        pitch: usize,
        pattern_size: usize,
        pattern: *const c_void,
        width: usize,
        height: usize,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a copy of a 2D region between pitched USM pointers.
    #[error(InvalidSize, src_pitch == 0)]
    #[error(InvalidSize, dst_pitch == 0)]
    #[error(InvalidSize, src_pitch < width)]
    #[error(InvalidSize, dst_pitch < width)]
    #[error(InvalidSize, height == 0)]
    #[error(InvalidSize, "source pitch times height exceeds the source's allocated memory")]
    #[error(InvalidSize, "destination pitch times height exceeds the destination's allocated memory")]
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[errors(InvalidMemObject, OutOfHostMemory, OutOfResources, UnsupportedFeature)]
    #[command(UsmCopy2d)]
    fn urEnqueueUSMMemcpy2D(
        queue: Queue,
        blocking: bool,
        #[bounds(0, dst_pitch * height)] dst: *mut c_void,
        dst_pitch: usize,
        #[bounds(0, src_pitch * height)] src: *const c_void,
        src_pitch: usize,
        width: usize,
        height: usize,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a write from host memory to a program's device global.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[command(VariableWrite)]
    fn urEnqueueDeviceGlobalVariableWrite(
        queue: Queue,
        program: Program,
        name: *const c_char,
        blocking_write: bool,
        count: usize,
        offset: usize,
        src: *const c_void,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a read of a program's device global into host memory.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[command(VariableRead)]
    fn urEnqueueDeviceGlobalVariableRead(
        queue: Queue,
        program: Program,
        name: *const c_char,
        blocking_read: bool,
        count: usize,
        offset: usize,
        dst: *mut c_void,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a read of data that a kernel put in a host pipe.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    fn urEnqueueReadHostPipe(
        queue: Queue,
        program: Program,
        pipe_symbol: *const c_char,
        blocking: bool,
        dst: *mut c_void,
        size: usize,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a write of host data into a pipe for kernels.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    fn urEnqueueWriteHostPipe(
        queue: Queue,
        program: Program,
        pipe_symbol: *const c_char,
        blocking: bool,
        src: *mut c_void,
        size: usize,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[out] #[optional] event: *mut Event,
    );

    /// Queues a barrier wait that takes additional enqueue properties. The event's place is read, too: null there makes
    /// a new event; a reusable event of urEventCreateExp, or one that was opened from another process, is signalled by
    /// the barrier, again and again, and stays the caller's.
    #[error(InvalidEventWaitList, event_wait_list == null && num_events_in_wait_list > 0)]
    #[error(InvalidEventWaitList, event_wait_list != null && num_events_in_wait_list == 0)]
    #[error(InvalidEventWaitList, "the wait list holds something that is not an event")]
    #[error(InEventListExecStatus, "an event being waited on is in the error state")]
    #[errors(InvalidQueue, InvalidEvent, InvalidValue, OutOfHostMemory, OutOfResources)]
    fn urEnqueueEventsWaitWithBarrierExt(
        queue: Queue,
        #[optional] properties: *const ExpEnqueueExtProperties,
        num_events_in_wait_list: u32,
        #[optional] #[wait_list(num_events_in_wait_list)] event_wait_list: *const Event,
        #[inout] #[optional] event: *mut Event,
    );
}
