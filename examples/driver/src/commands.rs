//! Commands. The core has judged what arrives here: ranges are within allocations, boxes and rows fit, patterns divide what
//! they fill. What is left is to do it, and to keep what it uses until then.
use super::{
    Example,
    device::{Device, UUID},
    stream::End,
};
use std::{any::Any, sync::Arc};
use ur_adapter::error::Result;
use ur_core::{
    command::{Ready, Used},
    queue::{HasStreams, Queue},
};
use ur_hal::{Address, Command, Recorded, Submission};
use ur_system::bytes;

/// What the thread does: a command with a copy of what it points at.
pub struct Work(Recorded);
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
        bytes::execute(&self.0.command::<Example>())
    }
}

impl HasStreams for Example {
    ur_core::records_graphs!();
    fn uuid(_: &Device) -> Result<[u8; 16]> {
        Ok(UUID)
    }
    /// All memory is where it is used, and nothing is said of hints about it.
    fn is_managed(_: Address) -> bool {
        true
    }
    /// What a command uses is kept until it is done.
    fn submit_using(
        queue: &Queue<Self>,
        submission: &Submission<'_, Self>,
        ready: &Ready<'_, Self>,
    ) -> ur_hal::Result<Option<Arc<End>>> {
        let kept = |used: &Used<'_, Self>| -> Result<Box<dyn Any + Send>> {
            Ok(match used {
                Used::Buffer { buffer, .. } => Box::new(buffer.storage().clone()),
                Used::Program(program) => Box::new(program.own()?),
                Used::Freed(freed) => Box::new(freed.take()),
            })
        };
        let kept = ready.used().map(kept).collect::<Result<_>>()?;
        queue.stream().put(submission, kept)
    }
}
