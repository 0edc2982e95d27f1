//! Memory that is allocated and freed in queue order. By default the core allocates at once, so address and bytes are
//! valid immediately; the command only marks the point from which the caller may use them. Memory that is freed is
//! returned to its pool when the commands enqueued before are done. A driver whose queues allocate in stream order does
//! that instead ([`TakesCommands::allocate_in_order`]).
use super::ready::{InOrder, Ready, TakesCommands};
use crate::{
    memory::allocation::{Freeing, Home, Usm},
    over_driver::{
        usm::{self, Wish},
        usm_pool::UsmPool,
    },
    program::Placed,
};
use ur_adapter::{
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
};
use ur_hal::Order;
use ur_sys::ur_command_t as Name;

/// Allocates `size` bytes for the queue's device, from `pool` or else from the device's current pool.
///
/// # Errors
/// `INVALID_USM_SIZE`; `INVALID_VALUE` for a pool of another context or device; `UNSUPPORTED_FEATURE` for shared memory
/// on a device without it; errors of the allocation and of submitting the command. Nothing is allocated then.
pub(super) fn allocate<D: TakesCommands>(
    usm: Usm,
    queue: Borrowed<'_, D::Queue>,
    pool: Option<Borrowed<'_, UsmPool<D>>>,
    size: usize,
    events: &[Borrowed<'_, D::Event>],
    report: CompletionRequest,
) -> Result<InOrder<D::Event>> {
    D::check_fork()?;
    let (context, device) = queue.place();
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
/// Frees the allocation at `mem` when the queue reaches this command.
///
/// # Errors
/// `INVALID_MEM_OBJECT` if `mem` is not an allocation of the queue's context; `INVALID_VALUE` if it was not allocated
/// from `pool`; errors of submitting the command. Nothing is freed then.
pub(super) fn free<D: TakesCommands>(
    queue: Borrowed<'_, D::Queue>,
    pool: Option<Borrowed<'_, UsmPool<D>>>,
    mem: UsmPtr,
    events: &[Borrowed<'_, D::Event>],
    report: CompletionRequest,
) -> Enqueued<D> {
    D::check_fork()?;
    let freeing = Freeing::begin(queue.place().0.as_handle().addr(), mem)?;
    let Home { pool: from, .. } = freeing.allocation().home();
    if pool.is_some_and(|pool| pool.as_handle().addr() != from) {
        freeing.undo();
        let why = format!("{mem:?} was not allocated from this pool: name its own, or none");
        return Error::refuse(ErrorCode::InvalidValue, why);
    }
    D::free_in_order(queue, freeing, events, report)
}
