//! Memory that streams allocate and free in their order.
use super::{
    Family, backing::Chunk, context::ContextState, driver::Dialect, native::pool::FromPool,
    point::Point, submission::put, work::QueueState,
};
use std::sync::Arc;
use ur_hal::{Handover, Result, Submission};

/// Allocates memory in the order of a stream.
///
/// # Errors
/// As for [`put`]; nothing is allocated then, or `made` has it.
pub(super) fn allocate<D: Dialect>(
    (work, context): (&QueueState<D>, &ContextState<D>),
    what: &Submission<'_, Family<D>>,
    bytes: usize,
    made: &Handover<Chunk<D>>,
) -> Result<Option<Point<D>>> {
    let from = context.pool(&work.device)?;
    put(work, what, |stream| {
        let memory = FromPool::new(Arc::clone(&from), from.alloc(bytes, stream.raw())?);
        made.put(Chunk::ordered(&work.device, memory, bytes)?);
        Ok(())
    })
}
/// Frees such memory in the order of a stream.
///
/// # Errors
/// As for [`put`]; `memory` has it still unless the stream has the free.
pub(super) fn free<D: Dialect>(
    work: &QueueState<D>,
    what: &Submission<'_, Family<D>>,
    memory: &Handover<Chunk<D>>,
) -> Result<Option<Point<D>>> {
    put(work, what, |stream| memory.take().map_or(Ok(()), |chunk| chunk.free_on(stream.raw())))
}
