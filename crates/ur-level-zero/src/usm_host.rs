//! How this driver takes host memory that C allocated itself: it is told of it.
use super::{Context, LevelZero, native::memory::Imported, registry::registry};
use ur_adapter::{error::Result, memory::UsmPtr, object::Borrowed};
use ur_core::over_driver::usm_host;

/// What this process made known.
pub(super) type All = usm_host::All<LevelZero>;

impl usm_host::PinsMemory for LevelZero {
    type Pinned = Imported;
    fn hosts() -> &'static All {
        &registry().get().hosts
    }
    /// That devices only read it is nothing that the driver wants to know.
    fn pin(
        context: Borrowed<'_, Context>,
        at: UsmPtr,
        bytes: usize,
        _read_only: bool,
    ) -> Result<Imported> {
        let (platform, start) = (context.platform().raw(), at.addr() as u64);
        Imported::new(platform, context.native(), start, bytes)
    }
}
