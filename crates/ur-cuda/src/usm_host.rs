//! Registration of host memory that the application allocated: it is pinned and mapped for all devices.
use super::{Family, context::DriverContext, driver::Dialect, native::memory::Registered};
use ur_hal::{Access, Pins, Range, Result};

impl<D: Dialect> Pins for Family<D> {
    type Pinned = Registered<D>;
    fn pin(context: &DriverContext<D>, host: Range, access: Access) -> Result<Registered<D>> {
        let (at, is_read_only) = (host.start().get() as u64, access == Access::Read);
        Registered::new(&context.devices()[0], at, host.bytes(), is_read_only)
    }
}
