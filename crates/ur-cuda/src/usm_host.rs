//! Registration of host memory that the application allocated: it is pinned and mapped for all devices.
use super::{Family, context::DriverContext, driver::Dialect, native::memory::Registered};
use ur_adapter::{error::Result, memory::UsmPtr};
use ur_core::over_driver::usm_host::HostRegistration;

impl<D: Dialect> HostRegistration for Family<D> {
    type Pinned = Registered<D>;
    fn pin(
        context: &DriverContext<D>,
        at: UsmPtr,
        bytes: usize,
        read_only: bool,
    ) -> Result<Registered<D>> {
        Ok(Registered::new(&context.devices()[0], at.addr() as u64, bytes, read_only)?)
    }
}
