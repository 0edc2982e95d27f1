//! Registration of host memory that the application allocated: the driver imports it.
use super::{LevelZero, context::DriverContext, native::memory::Imported};
use ur_adapter::{error::Result, memory::UsmPtr};
use ur_core::over_driver::usm_host;

impl usm_host::HostRegistration for LevelZero {
    type Pinned = Imported;
    /// The driver has no read-only imports.
    fn pin(
        context: &DriverContext,
        at: UsmPtr,
        bytes: usize,
        _read_only: bool,
    ) -> Result<Imported> {
        let (platform, start) = (context.platform().raw(), at.addr() as u64);
        Ok(Imported::new(platform, context.native(), start, bytes)?)
    }
}
