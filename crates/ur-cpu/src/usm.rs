//! USM: pools get chunks of whole pages; without a pool each allocation is a block of the process's store.
use super::{
    Context, Cpu,
    backing::ALIGNMENT,
    bytes,
    device::{DriverContext, DriverDevice},
    host::host,
};
use std::sync::Arc;
use ur_adapter::{error::Result, memory::UsmPtr, object::Borrowed};
use ur_core::over_driver::usm_pool::{self, HasUsm};

/// What `ur_usm_pool_handle_t` points at.
pub type UsmPool = usm_pool::UsmPool<Cpu>;

impl HasUsm for Cpu {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    type DriverPools = ();

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
