//! USM: pools get chunks of whole pages; without a pool each allocation is a block of the process's store.
use super::{
    Context, Cpu, Device,
    backing::{ALIGNMENT, Block},
    device::{DriverContext, DriverDevice},
    engine::{Moment, all_queues_sync_point},
    host::host,
    mapping::Writers,
    memory, native,
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object},
};
use ur_core::{
    memory::allocation::{Home, Usm},
    over_driver::usm_pool::{self, HasUsm},
};
use ur_hal::{Allocates, MemoryRequest};

/// What `ur_usm_pool_handle_t` points at.
pub type UsmPool = usm_pool::UsmPool<Cpu>;

/// The largest default alignment in bytes: that of the largest type, sixteen eight-byte numbers.
const NATURAL: usize = 128;

/// Checks the size of an allocation.
///
/// # Errors
/// `code` for zero bytes, and for more than the host's memory.
pub(super) fn check_size(size: usize, code: ErrorCode) -> Result<()> {
    match size > 0 && size as u64 <= host().memory {
        true => Ok(()),
        false => Err(Error::new(
            code,
            format!("{size} bytes are none, or more than the {} there are", host().memory),
        )),
    }
}

impl Allocates for Cpu {
    fn allocate(
        _: &DriverContext,
        _: &Arc<DriverDevice>,
        request: MemoryRequest,
    ) -> ur_hal::Result<Block> {
        Ok(Block::of_request(request)?)
    }
}
impl HasUsm for Cpu {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    const ROW: usize = NATURAL;
    type DriverPools = ();

    fn check_size(_: &Arc<DriverDevice>, bytes: usize) -> Result<()> {
        check_size(bytes, ErrorCode::InvalidUsmSize)
    }
    /// The alignment of the largest type that fits.
    fn natural_alignment(bytes: usize) -> usize {
        NATURAL.min(bytes.checked_next_power_of_two().unwrap_or(NATURAL))
    }
    fn take(
        _: Borrowed<'_, Context>,
        usm: Usm,
        _: Borrowed<'_, Device>,
        (home, bytes, align): (Home, usize, usize),
    ) -> Result<UsmPtr> {
        memory::allocate(usm, home, bytes, align)
    }
    fn take_alone(
        _: Borrowed<'_, Device>,
        (home, bytes, align): (Home, usize, usize),
        is_read_only: bool,
    ) -> Result<UsmPtr> {
        let writers = if is_read_only { Writers::MappedAlready } else { Writers::Everyone };
        memory::allocate_alone(home, bytes, align, writers)
    }
    fn memory_size(_: &Arc<DriverDevice>) -> Result<usize> {
        Ok(usize::try_from(host().memory).unwrap_or(usize::MAX))
    }
    fn submitted(context: &Object<Context>, _since: u64) -> Vec<Moment> {
        all_queues_sync_point(context.as_handle().addr()).into_moments()
    }
    fn zero(_: &DriverContext, _: &Arc<DriverDevice>, at: UsmPtr, bytes: usize) -> Result<()> {
        native::fill(at, &[0], bytes);
        Ok(())
    }
    fn copy(_: Borrowed<'_, Context>, to: UsmPtr, from: UsmPtr, bytes: usize) -> Result<()> {
        native::copy(to, from, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
