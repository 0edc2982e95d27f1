//! Memory that is allocated and freed in a queue's order. An allocation's address and memory are
//! there at once; its command only holds the place from which on C may use it. A free takes the
//! address from C at once, and its command, when it has run, lets the memory go: without the wait
//! for the context's other queues that `urUSMFree` stands for, since the order is C's to give.
use super::{
    Cpu, Event, Queue,
    engine::{Order, Submission, Work},
    enqueue::{Made, enqueue, place},
    memory::Freeing,
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

/// Allocates `size` bytes for the queue's device, from `pool` or else the one its device uses.
///
/// # Errors
/// `INVALID_USM_SIZE`, `INVALID_VALUE` for a pool of another context or device, what memory runs
/// out with, and what enqueueing fails with; then nothing is allocated.
pub(super) fn alloc(
    usm: Usm,
    queue: Borrowed<'_, Queue>,
    pool: Option<Borrowed<'_, UsmPool>>,
    size: usize,
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> Result<(UsmPtr, Option<Owned<Event>>)> {
    let (context, device) = (queue.context(), queue.device());
    let current;
    let of_device = match pool {
        Some(_) => pool,
        None => {
            current = UsmPool::current(context.borrow(), device.borrow())?;
            Some(current.borrow())
        }
    };
    let wish = Wish { device: Some(device.borrow()), desc: None, pool: of_device };
    let at = allocate(usm, context.borrow(), wish, size)?;
    match enqueue(queue, command(usm), events, place(Order::Free), report) {
        Ok(event) => Ok((at, event)),
        Err(error) => {
            usm::free::<Cpu>(context, at)?;
            Err(error)
        }
    }
}

/// Frees the allocation at `mem` once the queue comes to it.
///
/// # Errors
/// `INVALID_MEM_OBJECT` for what is no allocation of the queue's context, `INVALID_VALUE` for such
/// as are from another pool than C says, and what enqueueing fails with; then nothing is freed.
pub(super) fn free(
    queue: Borrowed<'_, Queue>,
    pool: Option<Borrowed<'_, UsmPool>>,
    mem: UsmPtr,
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    let freeing = Freeing::begin(handle(queue.context()), mem)?;
    let Home { pool: from, .. } = freeing.allocation().home();
    if pool.is_some_and(|pool| handle(&pool) != from) {
        freeing.undo();
        let why = format!("{mem:?} was not allocated from this pool: name its own, or none");
        return Err(Error::new(ErrorCode::InvalidValue, why));
    }
    let spent = freeing.again();
    let work = Work::Call(Box::new(move || {
        drop(spent);
        Ok(())
    }));
    let command = ur_command_t::ENQUEUE_USM_FREE_EXP;
    match enqueue(queue, command, events, Submission::new(work), report) {
        Ok(event) => {
            freeing.announce();
            Ok(event)
        }
        Err(error) => {
            freeing.undo();
            Err(error)
        }
    }
}
