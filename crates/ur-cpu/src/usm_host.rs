//! Host memory that applications allocated themselves: the device reaches it where it is.
use super::{Cpu, device::DriverContext};
use ur_adapter::{error::Result, memory::UsmPtr};
use ur_core::over_driver::usm_host::HostRegistration;

impl HostRegistration for Cpu {
    /// The driver makes nothing of it.
    const IS_USED: bool = false;
    type Pinned = ();
    fn pin(_: &DriverContext, _: UsmPtr, _: usize, _: bool) -> Result<()> {
        Ok(())
    }
}
