//! How this driver takes host memory that C allocated itself: it pins it and maps it for all devices.
use super::{Context, Family, driver::Dialect, native::memory::Registered};
use ur_adapter::{error::Result, memory::UsmPtr, object::Borrowed};
use ur_core::over_driver::usm_host::{self, PinsMemory};

/// What this process made known.
pub(super) type All<D> = usm_host::All<Family<D>>;

impl<D: Dialect> PinsMemory for Family<D> {
    type Pinned = Registered<D>;
    fn hosts() -> &'static All<D> {
        &D::statics().memory.get().hosts
    }
    fn pin(
        context: Borrowed<'_, Context<D>>,
        at: UsmPtr,
        bytes: usize,
        read_only: bool,
    ) -> Result<Registered<D>> {
        Registered::new(&context.devices()[0], at.addr() as u64, bytes, read_only)
    }
}
