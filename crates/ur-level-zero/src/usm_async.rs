//! Memory that is allocated and freed in a queue's order. It has its address and its bytes at once; the
//! command only holds the place from which on C may use it, and what is freed goes back when the queues
//! have come so far.
use super::{
    Event, LevelZero, Queue,
    enqueue::{Made, submit},
    memory::Freeing,
    platform::check_fork,
    usm::UsmPool,
};
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
};
use ur_core::{
    memory::allocation::{Home, Usm},
    over_driver::usm::{self, Wish, allocate},
};
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
type Allocated = Result<(UsmPtr, Option<Owned<Event>>)>;

/// Allocates `size` bytes for the queue's device, from `pool` or else the one its device uses.
///
/// # Errors
/// `INVALID_USM_SIZE`, `INVALID_VALUE` for a pool of another context or device, what memory runs out with,
/// `UNSUPPORTED_FEATURE` for shared memory on a device without it, and what submitting fails with; then
/// nothing is allocated.
pub(super) fn alloc(
    usm: Usm,
    queue: Borrowed<'_, Queue>,
    pool: Option<Borrowed<'_, UsmPool>>,
    size: usize,
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> Allocated {
    check_fork()?;
    let (context, device) = (queue.context(), queue.device());
    let current;
    let chosen = match pool {
        Some(pool) => pool,
        None => {
            current = UsmPool::current(context.borrow(), device.borrow())?;
            current.borrow()
        }
    };
    let wish = Wish { device: Some(device.borrow()), desc: None, pool: Some(chosen) };
    let at = allocate(usm, context.borrow(), wish, size)?;
    match submit(queue, command(usm), events, report, |_| Ok(())) {
        Ok(event) => Ok((at, event)),
        Err(error) => {
            usm::free::<LevelZero>(context, at)?;
            Err(error)
        }
    }
}
/// Frees the allocation at `mem` once the queue comes to it.
///
/// # Errors
/// `INVALID_MEM_OBJECT` for what is no allocation of the queue's context, `INVALID_VALUE` for such as are
/// from another pool than C says, and what submitting fails with; then nothing is freed.
pub(super) fn free(
    queue: Borrowed<'_, Queue>,
    pool: Option<Borrowed<'_, UsmPool>>,
    mem: UsmPtr,
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    check_fork()?;
    let context = queue.context();
    let freeing = Freeing::begin(handle(context), mem)?;
    let Home { pool: from, .. } = freeing.allocation().home();
    if pool.is_some_and(|pool| handle(&pool) != from) {
        freeing.undo();
        let why = format!("{mem:?} was not allocated from this pool: name its own, or none");
        return Err(Error::new(ErrorCode::InvalidValue, why));
    }
    let command = ur_command_t::ENQUEUE_USM_FREE_EXP;
    match submit(queue, command, events, report, |_| Ok(())) {
        Ok(event) => {
            freeing.finish(|since| context.queues().ticket(since).into_moments());
            Ok(event)
        }
        Err(error) => {
            freeing.undo();
            Err(error)
        }
    }
}
