//! Host memory that applications allocated themselves: the device reaches it where it is.
use super::{Context, Cpu};
use ur_adapter::{error::Result, memory::UsmPtr, object::Borrowed, per_process::PerProcess};
use ur_core::over_driver::usm_host::{All, PinsMemory};

impl PinsMemory for Cpu {
    /// The driver makes nothing of it.
    const IS_USED: bool = false;
    type Pinned = ();
    fn hosts() -> &'static All<Self> {
        static ALL: PerProcess<All<Cpu>> = PerProcess::new();
        ALL.get()
    }
    fn pin(_: Borrowed<'_, Context>, _: UsmPtr, _: usize, _: bool) -> Result<()> {
        Ok(())
    }
}
