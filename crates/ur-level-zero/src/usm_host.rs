//! How this driver takes host memory that C allocated itself: it is told of it.
use super::{LevelZero, context::DriverContext, native::memory::Imported};
use ur_adapter::{error::Result, memory::UsmPtr};
use ur_core::over_driver::usm_host;

impl usm_host::HostRegistration for LevelZero {
    type Pinned = Imported;
    /// That devices only read it is nothing that the driver wants to know.
    fn pin(
        context: &DriverContext,
        at: UsmPtr,
        bytes: usize,
        _read_only: bool,
    ) -> Result<Imported> {
        let (platform, start) = (context.platform().raw(), at.addr() as u64);
        Imported::new(platform, context.native(), start, bytes)
    }
}
