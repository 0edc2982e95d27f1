//! How this driver takes host memory that C allocated itself: it pins it and maps it for all devices.
use super::{Context, allocation, driver::Dialect, native::memory::Registered};
use crate::over_driver::usm_host::PinsMemory;
pub(super) use crate::over_driver::usm_host::{All, import, info, register, release, unregister};
use ur_adapter::{error::Result, memory::UsmPtr, object::Borrowed};

impl<D: Dialect> PinsMemory for D {
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
    fn is_usm(at: UsmPtr, bytes: usize) -> bool {
        allocation::touches::<D>(at, bytes)
    }
}
