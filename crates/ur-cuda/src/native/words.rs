//! Words in memory shared between processes, which a device's streams can write and wait for.
use super::{
    super::driver::{Dialect, RawContext},
    context::Entered,
    memory::Registered,
};
use ur_hal::Result;

/// `CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP`: usable in all contexts.
const FLAGS: u32 = 3;

/// A piece of shared memory, registered with the driver until this is dropped.
#[derive(Debug)]
pub struct Words<D: Dialect> {
    memory: Registered<D>,
    device: u64,
}
impl<D: Dialect> Words<D> {
    /// Pins `bytes` at `start`: whole pages that must stay mapped until this is dropped.
    ///
    /// # Errors
    /// Returns the driver's error, also for a piece that is registered already.
    pub fn register(
        on: &Entered<D>,
        context: RawContext,
        start: usize,
        bytes: usize,
    ) -> Result<Self> {
        let memory = Registered::register(on, context, start as u64, bytes, FLAGS)?;
        Ok(Self { device: memory.device_address()?, memory })
    }
    /// The device's address of the word at `address`.
    pub fn on_device(&self, address: usize) -> u64 {
        self.device + (address as u64 - self.memory.raw().0)
    }
}
