//! Command queues. Each has a line and executes closed command lists in order.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    context, device,
    event::deadline,
    fence,
    handle::{self, Object, raw},
    inject::Answer,
    line::Line,
    list::{self, engine, point},
    raw,
};
use std::sync::Arc;
use ze_sys::*;

/// A command queue.
pub struct Queue {
    pub line: Arc<Line>,
    ordinal: u32,
    index: u32,
    flags: ze_command_queue_flags_t,
    mode: ze_command_queue_mode_t,
    priority: ze_command_queue_priority_t,
}
impl Object for Queue {
    const TAG: u64 = 0x7a65_7175_6575_6500;
}
impl Drop for Queue {
    fn drop(&mut self) {
        self.line.close();
    }
}
/// The queue behind `raw`.
///
/// # Errors
/// As [`handle::get`].
pub fn get(raw: ze_command_queue_handle_t) -> Answer<Arc<Queue>> {
    handle::get(raw!(raw))
}

entries! {
    fn zeCommandQueueCreate(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_command_queue_desc_t,
        to: *mut ze_command_queue_handle_t,
    ) {
        let (context, device) = (context::get(context)?, device::get(device)?);
        let desc = raw::get(desc)?;
        if desc.flags > 7 || desc.mode > 2 || desc.priority > 2 {
            return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
        }
        if !context.has(&device) {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        engine(desc.ordinal, desc.index)?;
        let ze_command_queue_desc_t { ordinal, index, flags, mode, priority, .. } = desc;
        let queue = Queue { line: Arc::default(), ordinal, index, flags, mode, priority };
        raw::put(to, handle::make(queue).cast())
    }
    fn zeCommandQueueDestroy(queue: ze_command_queue_handle_t) {
        handle::destroy::<Queue>(raw!(queue)).map(drop)
    }
    fn zeCommandQueueExecuteCommandLists(
        queue: ze_command_queue_handle_t,
        count: u32,
        lists: *mut ze_command_list_handle_t,
        signal: ze_fence_handle_t,
    ) {
        let queue = get(queue)?;
        if lists.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        if count == 0 {
            return Err(ZE_RESULT_ERROR_INVALID_SIZE);
        }
        let fence = fence::maybe(signal)?;
        let mut all = Vec::new();
        for one in raw::list(lists, count as usize)? {
            let one = list::get(one)?;
            if one.ordinal != queue.ordinal {
                return Err(ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
            }
            one.run(&mut all)?;
        }
        let mut last = point(Vec::new(), None);
        last.work = fence.map(|fence| {
            crate::line::Work::Once(Box::new(move || {
                fence.signal();
                Ok(())
            }))
        });
        all.push(last);
        queue.line.submit(all);
        if queue.mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS {
            queue.line.synchronize(None)?;
        }
        Ok(())
    }
    fn zeCommandQueueSynchronize(queue: ze_command_queue_handle_t, timeout: u64) {
        get(queue)?.line.synchronize(deadline(timeout))
    }
    fn zeCommandQueueGetOrdinal(queue: ze_command_queue_handle_t, to: *mut u32) {
        raw::put(to, get(queue)?.ordinal)
    }
    fn zeCommandQueueGetIndex(queue: ze_command_queue_handle_t, to: *mut u32) {
        raw::put(to, get(queue)?.index)
    }
    fn zeCommandQueueGetFlags(queue: ze_command_queue_handle_t, to: *mut ze_command_queue_flags_t) {
        raw::put(to, get(queue)?.flags)
    }
    fn zeCommandQueueGetMode(queue: ze_command_queue_handle_t, to: *mut ze_command_queue_mode_t) {
        raw::put(to, get(queue)?.mode)
    }
    fn zeCommandQueueGetPriority(
        queue: ze_command_queue_handle_t,
        to: *mut ze_command_queue_priority_t,
    ) {
        raw::put(to, get(queue)?.priority)
    }
}
