//! Where USM comes from: pools get whole pages; without a pool the process's store is asked for each allocation.
use super::{
    Context, Cpu, Device, TABLE,
    backing::{ALIGNMENT, Block, LARGE},
    context::DriverContext,
    engine::{Moment, all_queues_ticket},
    host::host,
    mapping::page,
    memory, native,
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object, Owned, Slab},
};
use ur_core::{
    memory::allocation::{Home, Usm},
    over_driver::usm_pool::{self, DevicePools, HasUsm},
};
use ur_hal::{Allocates, MemoryRequest};

/// What `ur_usm_pool_handle_t` points at.
pub type UsmPool = usm_pool::UsmPool<Cpu>;

/// The alignment of what nobody aligns: that of the largest type, sixteen eight-byte numbers.
const NATURAL: usize = 128;

/// # Errors
/// `code` for no bytes, and for more than the host has.
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
    /// Whole pages, so that no two pools share one.
    fn allocate(
        _: &DriverContext,
        _: &Owned<Device>,
        MemoryRequest { kind, bytes, align, .. }: MemoryRequest,
    ) -> ur_hal::Result<Block> {
        let whole = if bytes < LARGE { bytes.next_power_of_two().max(page()) } else { bytes };
        Ok(Block::take(memory::side(kind.into()), whole, align.max(page()))?)
    }
}
impl HasUsm for Cpu {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    const ROW: usize = NATURAL;
    type DriverPools = ();

    fn usm_pools() -> &'static Slab<UsmPool> {
        static SLAB: Slab<UsmPool> = Slab::new(&TABLE);
        &SLAB
    }
    fn driver_context(context: &Context) -> &Arc<DriverContext> {
        context.driver_context()
    }
    fn pools(context: &Context) -> &DevicePools<Self> {
        context.pools()
    }
    fn check_size(_: &Device, bytes: usize) -> Result<()> {
        check_size(bytes, ErrorCode::InvalidUsmSize)
    }
    /// That of the largest type that fits.
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
    fn memory_size(_: &Device) -> Result<usize> {
        Ok(usize::try_from(host().memory).unwrap_or(usize::MAX))
    }
    fn submitted(context: &Object<Context>, _since: u64) -> Vec<Moment> {
        all_queues_ticket(context.as_handle().addr()).into_moments()
    }
    fn zero(_: &DriverContext, _: &Device, at: UsmPtr, bytes: usize) -> Result<()> {
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
