//! Memory that is allocated and freed in a queue's order. Device memory for which C names no pool is
//! from a pool of the driver's that can be shared: it is allocated and freed by the stream itself.
//! Memory of other kinds, and of C's pools, has its address and its bytes at once; its command only holds
//! the place from which on C may use it, and what is freed goes back when the queues have come so far.
use super::{
    Event, Family, Queue,
    device::check_fork,
    driver::Dialect,
    memory::{self, Freeing, Ordered, has_memory, take_ordered},
    native::pool::{DriverPool, FromPool},
    submission::{Made, submit},
    usm::{self, UsmPool},
};
use std::sync::Arc;
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
};
use ur_core::memory::{
    allocation::{Home, Usm},
    pools::Identified,
};
use ur_core::over_driver::usm::{Wish, allocate, free as free_at};
use ur_sys::ur_command_t;

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}
/// What C calls the allocation of this kind.
fn command(usm: Usm) -> ur_command_t {
    match usm {
        Usm::Host => ur_command_t::ENQUEUE_USM_HOST_ALLOC_EXP,
        Usm::Device => ur_command_t::ENQUEUE_USM_DEVICE_ALLOC_EXP,
        Usm::Shared => ur_command_t::ENQUEUE_USM_SHARED_ALLOC_EXP,
    }
}

/// What an allocation's command answers: the address, and its event if C wants one.
type Allocated<D> = Result<(UsmPtr, Option<Owned<Event<D>>>)>;

/// Allocates `size` bytes for the queue's device, from `pool` or else the one its device uses.
///
/// # Errors
/// `INVALID_USM_SIZE`, `INVALID_VALUE` for a pool of another context or device, what memory runs out with,
/// `UNSUPPORTED_FEATURE` for shared memory on a device without it, and what submitting fails with; then
/// nothing is allocated.
pub(super) fn alloc<D: Dialect>(
    usm: Usm,
    queue: Borrowed<'_, Queue<D>>,
    pool: Option<Borrowed<'_, UsmPool<D>>>,
    size: usize,
    events: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Allocated<D> {
    check_fork::<D>()?;
    let (context, device) = (queue.context(), queue.device());
    let current;
    let chosen = match pool {
        Some(pool) => pool,
        None => {
            current = UsmPool::current(context.borrow(), device.borrow())?;
            current.borrow()
        }
    };
    if usm == Usm::Device
        && chosen.identity().is_default()
        && let Some(from) = usm::ordered(&chosen.driver, device, context.devices())?
    {
        return ordered(queue, chosen, &from, size, events, report);
    }
    let wish = Wish { device: Some(device.borrow()), desc: None, pool: Some(chosen) };
    let at = allocate(usm, context.borrow(), wish, size)?;
    match submit(queue, command(usm), events, report, |_stream| Ok(())) {
        Ok(event) => Ok((at, event)),
        Err(error) => {
            free_at::<Family<D>>(context, at)?;
            Err(error)
        }
    }
}
/// Has the stream itself allocate.
fn ordered<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    pool: Borrowed<'_, UsmPool<D>>,
    from: &Arc<DriverPool<D>>,
    size: usize,
    events: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Allocated<D> {
    if size == 0 {
        return Err(Error::new(ErrorCode::InvalidUsmSize, "0 bytes are no memory"));
    }
    let home = Home {
        context: handle(queue.context()),
        device: handle(queue.device()),
        pool: if pool.api_refs() > 0 { handle(&pool) } else { 0 },
    };
    let mut made = None;
    let body = |stream: &super::native::stream::Stream<D>| {
        let memory = FromPool::new(Arc::clone(from), from.alloc(size, stream.raw())?);
        let memory = Ordered::new(memory, size, Arc::clone(pool.totals()))?;
        made = Some(memory::adopt(home, size, memory)?);
        Ok(())
    };
    let done = submit(queue, command(Usm::Device), events, report, body);
    match (done, made) {
        (Ok(event), Some(at)) => Ok((at, event)),
        (Ok(_), None) => Err(Error::new(ErrorCode::Unknown, "the allocation was never submitted")),
        (Err(error), None) => Err(error),
        (Err(error), Some(at)) => {
            free_at::<Family<D>>(queue.context(), at)?;
            Err(error)
        }
    }
}

/// Frees the allocation at `mem` once the queue comes to it.
///
/// # Errors
/// `INVALID_MEM_OBJECT` for what is no allocation of the queue's context, `INVALID_VALUE` for such as are
/// from another pool than C says, and what submitting fails with; then nothing is freed.
pub(super) fn free<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    pool: Option<Borrowed<'_, UsmPool<D>>>,
    mem: UsmPtr,
    events: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Made<D> {
    check_fork::<D>()?;
    let context = queue.context();
    let freeing = Freeing::<D>::begin(handle(context), mem)?;
    let Home { pool: from, .. } = freeing.allocation().home();
    if pool.is_some_and(|pool| handle(&pool) != from) {
        freeing.undo();
        let why = format!("{mem:?} was not allocated from this pool: name its own, or none");
        return Err(Error::new(ErrorCode::InvalidValue, why));
    }
    let body = |stream: &super::native::stream::Stream<D>| match take_ordered(&freeing) {
        Some(memory) => memory.free_on(stream.raw()),
        None => Ok(()), // it goes back once the queues have come so far
    };
    let before = |since| context.queues().ticket(since).into_moments();
    let submitted = submit(queue, ur_command_t::ENQUEUE_USM_FREE_EXP, events, report, body);
    match submitted {
        Ok(event) => {
            freeing.finish(before);
            Ok(event)
        }
        // The stream has it: C cannot have it back.
        Err(error) if !has_memory(freeing.allocation()) => {
            freeing.finish(before);
            Err(error)
        }
        Err(error) => {
            freeing.undo();
            Err(error)
        }
    }
}
