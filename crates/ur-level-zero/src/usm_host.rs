//! Registration of host memory that the application allocated: the driver imports it.
use super::{LevelZero, context::DriverContext, native::memory::Imported};
use ur_hal::{Access, Pins, Range, Result};

impl Pins for LevelZero {
    type Pinned = Imported;
    /// The driver has no read-only imports.
    fn pin(context: &DriverContext, host: Range, _: Access) -> Result<Imported> {
        let (platform, start) = (context.platform().raw(), host.start().get() as u64);
        Imported::new(platform, context.native(), start, host.bytes())
    }
}
