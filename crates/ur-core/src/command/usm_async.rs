//! Memory that is allocated and freed in a queue's order. Its address and its bytes are there at once: the command only
//! holds the place from which on callers may use it, and what is freed goes back when the queues have come so far. A
//! driver whose queues allocate by themselves does so instead ([`TakesCommands::allocate_in_order`]).
use super::ready::{InOrder, Ready, TakesCommands};
use crate::{
    memory::allocation::{Freeing, Home, Usm},
    over_driver::{
        usm::{self, Wish},
        usm_pool::UsmPool,
    },
};
use ur_adapter::{
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
};
use ur_hal::Order;
use ur_sys::ur_command_t as Name;

/// Allocates `size` bytes for the queue's device, from `pool` or else the one its device uses.
///
/// # Errors
/// `INVALID_USM_SIZE`, `INVALID_VALUE` for a pool of another context or device, what memory runs out with,
/// `UNSUPPORTED_FEATURE` for shared memory on a device without it, and what submitting fails with; then nothing is
/// allocated.
pub(super) fn allocate<D: TakesCommands>(
    usm: Usm,
    queue: Borrowed<'_, D::Queue>,
    pool: Option<Borrowed<'_, UsmPool<D>>>,
    size: usize,
    events: &[Borrowed<'_, D::Event>],
    report: CompletionRequest,
) -> Result<InOrder<D::Event>> {
    D::check_fork()?;
    let (context, device) = D::place_of(&queue);
    let current;
    let pool = match pool {
        Some(pool) => pool,
        None => {
            current = UsmPool::current(context.borrow(), device.borrow())?;
            current.borrow()
        }
    };
    if let Some(made) = D::allocate_in_order(usm, queue, pool, size, events, report)? {
        return Ok(made);
    }
    let wish = Wish { device: Some(device.borrow()), desc: None, pool: Some(pool) };
    let at = usm::allocate(usm, context.borrow(), wish, size)?;
    let name = match usm {
        Usm::Host => Name::ENQUEUE_USM_HOST_ALLOC_EXP,
        Usm::Device => Name::ENQUEUE_USM_DEVICE_ALLOC_EXP,
        Usm::Shared => Name::ENQUEUE_USM_SHARED_ALLOC_EXP,
    };
    match D::submit(queue, &Ready::barrier(name, Order::Free), events, report) {
        Ok(event) => Ok((at, event)),
        Err(error) => {
            usm::free::<D>(context, at)?;
            Err(error)
        }
    }
}
/// Frees the allocation at `mem` once the queue comes to it.
///
/// # Errors
/// `INVALID_MEM_OBJECT` for what is no allocation of the queue's context, `INVALID_VALUE` for such as are from another
/// pool than callers say, and what submitting fails with; then nothing is freed.
pub(super) fn free<D: TakesCommands>(
    queue: Borrowed<'_, D::Queue>,
    pool: Option<Borrowed<'_, UsmPool<D>>>,
    mem: UsmPtr,
    events: &[Borrowed<'_, D::Event>],
    report: CompletionRequest,
) -> Enqueued<D> {
    D::check_fork()?;
    let freeing = Freeing::begin(D::place_of(&queue).0.as_handle().addr(), mem)?;
    let Home { pool: from, .. } = freeing.allocation().home();
    if pool.is_some_and(|pool| pool.as_handle().addr() != from) {
        freeing.undo();
        let why = format!("{mem:?} was not allocated from this pool: name its own, or none");
        return Err(Error::new(ErrorCode::InvalidValue, why));
    }
    D::free_in_order(queue, freeing, events, report)
}
