//! Commands. The core has judged what arrives here: ranges are within allocations, boxes and rows fit, patterns divide what
//! they fill. What is left is to do it.
use super::Example;
use ur_hal::{Command, Recorded};
use ur_system::bytes;

/// What the thread does: a command with a copy of what it points at.
pub struct Work(Recorded<Example>);
impl Work {
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for what this device does not do.
    pub fn of(command: &Command<'_, Example>) -> ur_hal::Result<Self> {
        match command {
            Command::Timestamp | Command::Signal(_) => Ok(Self(Recorded::Barrier)),
            other => Recorded::of(other).map(Self),
        }
    }
    /// Does it, on this thread.
    ///
    /// # Errors
    /// For what the device does not do.
    pub fn run(&self) -> ur_hal::Result<()> {
        self.0.lend(bytes::execute)
    }
}
