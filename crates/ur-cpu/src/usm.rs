//! USM: pools get chunks of whole pages; without a pool each allocation is a block of the process's store.
use super::{
    Context, Cpu, Device,
    backing::ALIGNMENT,
    bytes,
    device::{DriverContext, DriverDevice},
    host::host,
};
use std::sync::Arc;
use ur_adapter::{error::Result, memory::UsmPtr, object::Borrowed};
use ur_core::{
    memory::allocation::{Home, Usm},
    over_driver::usm_pool::{self, HasUsm},
};
use ur_system::usm;

/// What `ur_usm_pool_handle_t` points at.
pub type UsmPool = usm_pool::UsmPool<Cpu>;

impl HasUsm for Cpu {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    type DriverPools = ();

    fn take(
        context: Borrowed<'_, Context>,
        usm: Usm,
        device: Borrowed<'_, Device>,
        request: (Home, usize, usize),
    ) -> Result<UsmPtr> {
        usm::take(context, usm, device, request)
    }
    fn take_alone(
        device: Borrowed<'_, Device>,
        request: (Home, usize, usize),
        is_read_only: bool,
    ) -> Result<UsmPtr> {
        usm::take_alone::<Cpu>(device.driver(), request, is_read_only)
    }
    fn memory_size(_: &Arc<DriverDevice>) -> Result<usize> {
        Ok(usize::try_from(host().memory).unwrap_or(usize::MAX))
    }
    fn zero(_: &DriverContext, _: &Arc<DriverDevice>, at: UsmPtr, size: usize) -> Result<()> {
        bytes::fill(at, &[0], size);
        Ok(())
    }
    fn copy(_: Borrowed<'_, Context>, to: UsmPtr, from: UsmPtr, size: usize) -> Result<()> {
        bytes::copy(to, from, size);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
