//! Allocations and frees in stream order. Device memory from the default pool comes from a driver pool that
//! can be shared, and is allocated and freed by the stream itself.
use super::{
    Event, Family, Queue,
    driver::Dialect,
    memory::{self, Freeing, Ordered, has_memory, is_ordered, take_ordered},
    native::{pool::FromPool, stream::Stream},
    submission::put,
    usm::{self, UsmPool},
};
use std::sync::Arc;
use ur_adapter::{
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    object::Borrowed,
};
use ur_core::{
    command::InOrder,
    memory::{
        allocation::{Home, Usm},
        pools::Identified,
    },
    over_driver::usm::free as free_at,
    queue::{FreedInOrder, HasStreams, submit_by},
};
use ur_sys::ur_command_t;

/// Submits the commands that `body` enqueues in a lane.
fn submit<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    name: ur_command_t,
    events: &[Borrowed<'_, Event<D>>],
    report: CompletionRequest,
    body: impl FnOnce(&Stream<D>) -> ur_hal::Result<()>,
) -> Enqueued<Family<D>> {
    Family::<D>::is_recording(&queue, events)?;
    submit_by(queue, (name, queue.profile()), events, report, |what| {
        put(queue.stream().work(), what, body)
    })
}
/// Allocates in stream order, if it is device memory of the default pool and the driver has pools that can be
/// shared; else `None`.
///
/// # Errors
/// As documented for `urEnqueueUSMDeviceAllocExp`; nothing is allocated then.
pub(super) fn allocate<D: Dialect>(
    usm: Usm,
    queue: Borrowed<'_, Queue<D>>,
    pool: Borrowed<'_, UsmPool<D>>,
    size: usize,
    events: &[Borrowed<'_, Event<D>>],
    report: CompletionRequest,
) -> Result<Option<InOrder<Event<D>>>> {
    if usm != Usm::Device || !pool.identity().is_default() {
        return Ok(None);
    }
    let (context, device) = (queue.context(), queue.device());
    let Some(from) = usm::ordered(&pool.driver, device, context.driver_devices())? else {
        return Ok(None);
    };
    if size == 0 {
        return Err(Error::new(ErrorCode::InvalidUsmSize, "0 bytes are no memory"));
    }
    let home = Home {
        context: context.as_handle().addr(),
        device: device.as_handle().addr(),
        pool: if pool.api_refs() > 0 { pool.as_handle().addr() } else { 0 },
        ..Home::default()
    };
    let mut made = None;
    let body = |stream: &Stream<D>| {
        let memory = FromPool::new(Arc::clone(&from), from.alloc(size, stream.raw())?);
        let memory = Ordered::new(memory, size, Arc::clone(pool.totals()))?;
        made = Some(memory::adopt(home, size, memory)?);
        Ok(())
    };
    let command = ur_command_t::ENQUEUE_USM_DEVICE_ALLOC_EXP;
    match (submit(queue, command, events, report, body), made) {
        (Ok(event), Some(at)) => Ok(Some((at, event))),
        (Ok(_), None) => Err(Error::new(ErrorCode::Unknown, "the allocation was never submitted")),
        (Err(error), None) => Err(error),
        (Err(error), Some(at)) => {
            free_at::<Family<D>>(context, at)?;
            Err(error)
        }
    }
}
/// Frees an allocation in stream order, if it was allocated so.
///
/// # Errors
/// The errors of the submission; nothing is freed then.
pub(super) fn free<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    freeing: Freeing<D>,
    events: &[Borrowed<'_, Event<D>>],
    report: CompletionRequest,
) -> Result<FreedInOrder<Family<D>>> {
    if !is_ordered(&freeing) {
        return Ok(FreedInOrder::No(freeing));
    }
    let body = |stream: &Stream<D>| match take_ordered(&freeing) {
        Some(memory) => memory.free_on(stream.raw()),
        None => Ok(()), // other processes have it open: it is freed deferred
    };
    let submitted = submit(queue, ur_command_t::ENQUEUE_USM_FREE_EXP, events, report, body);
    // If the stream already has the free, it cannot be undone.
    if submitted.is_ok() || !has_memory(freeing.allocation()) {
        freeing.finish(queue.context().as_handle().addr());
    } else {
        freeing.undo();
    }
    submitted.map(FreedInOrder::Yes)
}
