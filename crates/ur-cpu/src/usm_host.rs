//! Registration of host memory that the application allocated. It has no effect, because the device can
//! access all host memory.
use super::{Cpu, device::DriverContext};
use ur_adapter::{error::Result, memory::UsmPtr};
use ur_core::over_driver::usm_host::HostRegistration;

impl HostRegistration for Cpu {
    /// Registration has no effect.
    const IS_USED: bool = false;
    type Pinned = ();
    fn pin(_: &DriverContext, _: UsmPtr, _: usize, _: bool) -> Result<()> {
        Ok(())
    }
}
