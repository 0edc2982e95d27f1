//! Commands. The core has judged what arrives here: ranges are within allocations, boxes and rows fit, patterns divide what
//! they fill. What is left is to do it.
use super::{
    Event, Example, Queue,
    device::{Device, UUID},
    file::{read, write},
    memory::Mem,
    stream::End,
};
use std::{any::Any, sync::Arc};
use ur_adapter::{
    error::Result,
    object::{Borrowed, Owned},
};
use ur_core::{
    command::{Ready, Used},
    graph,
    queue::HasStreams,
};
use ur_hal::{Address, BoxSpan, Command, Pattern, Recorded, Rows, Submission};

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
    pub fn run(&self) {
        let at = |rows: Rows, row: usize| rows.start.get() + row * rows.pitch;
        match self.0.command::<Example>() {
            Command::HostCall(call) => call.call(),
            Command::Copy { to, from, bytes } => write(to, &read(from, bytes)),
            Command::Copy2d { to, from, width, height } => {
                copy_rows(height, width, |row| at(to, row), |row| at(from, row));
            }
            Command::Copy3d(copy) => {
                let [width, height, depth] = copy.region;
                let at = |(base, span): (Address, BoxSpan), row: usize| {
                    let within = row / height * span.slice + row % height * span.row;
                    base.get() + span.start + within
                };
                copy_rows(height * depth, width, |row| at(copy.to, row), |row| at(copy.from, row));
            }
            Command::Fill { to, pattern } => write(to.start(), &repeated(pattern, to.bytes())),
            Command::Fill2d { to, width, height, pattern } => {
                let bytes = repeated(pattern, width * height);
                for (row, bytes) in bytes.chunks(width).enumerate() {
                    write(address(at(to, row)), bytes);
                }
            }
            _ => {} // barriers and hints: their place in the queue is their use
        }
    }
}
fn address(number: usize) -> Address {
    Address::new(number).expect("rows of memory are nowhere at address 0")
}
/// All rows are read before the first is written, as they may overlap.
fn copy_rows(
    rows: usize,
    width: usize,
    to: impl Fn(usize) -> usize,
    from: impl Fn(usize) -> usize,
) {
    let all: Vec<_> = (0..rows).map(|row| read(address(from(row)), width)).collect();
    for (row, bytes) in all.iter().enumerate() {
        write(address(to(row)), bytes);
    }
}
fn repeated(pattern: Pattern<'_>, bytes: usize) -> Vec<u8> {
    pattern.bytes().iter().copied().cycle().take(bytes).collect()
}

impl HasStreams for Example {
    ur_core::records_graphs!();
    fn is_recording(queue: &Queue, events: &[Borrowed<'_, Event>]) -> Result<bool> {
        graph::is_recording(queue, events)
    }
    fn uuid(_: &Device) -> Result<[u8; 16]> {
        Ok(UUID)
    }
    /// All memory is where it is used, and nothing is said of hints about it.
    fn is_managed(_: Address) -> bool {
        true
    }
    fn buffer_at(_: &Owned<Device>, buffer: &Mem) -> Result<Address> {
        Ok(buffer.storage().base().offset(buffer.origin())?.into())
    }
    /// What a command uses is kept until it is done.
    fn submit_using(
        queue: &Queue,
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
