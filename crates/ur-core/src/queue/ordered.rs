//! Memory that queues allocate and free in their order, on devices whose streams do that.
use super::{HasStreams, Queue};
use crate::{
    command::{InOrder, Ready, TakesCommands},
    event::Event,
    memory::{
        allocation::{Allocation, Freeing, Home, Memory as _, Usm},
        ordered::Ordered,
    },
    over_driver::{usm, usm_pool::UsmPool},
};
use ur_adapter::{
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    object::Borrowed,
};
use ur_hal::{Command, Handover, Memory as _, MemoryKind, MemoryRequest};
use ur_sys::ur_command_t as Name;

/// Whether the queue itself allocates this memory: device memory of the default pool.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn is_for_queue<D: HasStreams>(
    usm: Usm,
    queue: Borrowed<'_, Queue<D>>,
    pool: Borrowed<'_, UsmPool<D>>,
) -> Result<bool> {
    let is_default = usm == Usm::Device && pool.is_default();
    Ok(is_default && D::allocates(queue.device().driver())?)
}
/// Allocates device memory in queue order, counted in `pool`.
///
/// # Errors
/// As documented for `urEnqueueUSMDeviceAllocExp`; nothing is allocated then.
pub(super) fn allocate<D: HasStreams>(
    queue: Borrowed<'_, Queue<D>>,
    pool: Borrowed<'_, UsmPool<D>>,
    size: usize,
    events: &[Borrowed<'_, Event<D>>],
    report: CompletionRequest,
) -> Result<InOrder<Event<D>>> {
    let (context, device) = (queue.context(), queue.device());
    pool.check(context.borrow(), device.borrow())?;
    if size == 0 {
        return Error::refuse(ErrorCode::InvalidUsmSize, "0 bytes are no memory");
    }
    let home = Home {
        context: context.as_handle().addr(),
        device: device.as_handle().addr(),
        pool: if pool.api_refs() > 0 { pool.as_handle().addr() } else { 0 },
        ..Home::default()
    };
    let (claim, made) = (pool.totals().claim(size)?, Handover::default());
    let (kind, is_shareable) = (MemoryKind::Device, true);
    let request = MemoryRequest { kind, bytes: size, align: 1, is_shareable };
    let command = Command::AllocAsync { request, made: &made };
    let ready = Ready::new(Name::ENQUEUE_USM_DEVICE_ALLOC_EXP, command);
    let submitted = <D as TakesCommands>::submit(queue, &ready, events, report);
    let Some(memory) = made.take() else {
        let unknown = || Error::new(ErrorCode::Unknown, "the allocation was never submitted");
        return Err(submitted.err().unwrap_or_else(unknown));
    };
    claim.made(size);
    let base = memory.range().start().into();
    let ordered = Ordered::new(memory, size, pool.totals());
    let memory = D::Memory::ordered(ordered);
    let at = Allocation::enter(base, size, Usm::Device, home, memory).base();
    match submitted {
        Ok(event) => Ok((at, event)),
        Err(error) => {
            usm::free::<D>(context, at)?;
            Err(error)
        }
    }
}
/// Frees memory that was allocated in queue order; `Err` returns other memory.
pub(super) fn free<D: HasStreams>(
    queue: Borrowed<'_, Queue<D>>,
    freeing: Freeing<D::Memory>,
    events: &[Borrowed<'_, Event<D>>],
    report: CompletionRequest,
) -> Result<Enqueued<D>, Freeing<D::Memory>> {
    let is_shared = freeing.is_shared();
    let Some(ordered) = freeing.allocation().memory().and_then(|memory| memory.as_ordered()) else {
        return Err(freeing);
    };
    // If other processes have it open, the free is deferred.
    let memory = Handover::default();
    if let Some(own) = ordered.memory().take_if(|_| !is_shared) {
        memory.put(own);
    }
    let command = if is_shared { Command::Barrier } else { Command::FreeAsync(&memory) };
    let ready = Ready::new(Name::ENQUEUE_USM_FREE_EXP, command);
    let submitted = <D as TakesCommands>::submit(queue, &ready, events, report);
    let left = memory.take();
    let is_freed = !is_shared && left.is_none();
    if !is_shared {
        *ordered.memory() = left;
    }
    // If the stream already has the free, it cannot be undone.
    match submitted.is_ok() || is_freed {
        true => freeing.finish(queue.context().as_handle().addr()),
        false => freeing.undo(),
    }
    Ok(submitted)
}
