//! Commands. The core has judged what arrives here: ranges are within allocations, boxes and rows fit, patterns divide what
//! they fill. What is left is to do it.
use super::{
    Example,
    device::Device,
    event::{Event, capture, wait_for},
    file::{read, write},
    memory::{Allocation, Kernel, Mem},
    queue::{Queue, Submission},
};
use std::any::Any;
use ur_adapter::{
    command::{Enqueued, Report},
    error::{Error, Result},
    object::{Borrowed, Owned},
};
use ur_core::{
    command::{Pixels, Ready, TakesCommands, Used},
    profiling::Profile,
};
use ur_hal::{Address, BoxSpan, Command, HostCall, Pattern, Recorded, Rows};
use ur_sys::*;

/// What the thread does: a command with a copy of what it points at.
pub enum Work {
    Recorded(Recorded),
    Call(HostCall),
}
impl Work {
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for what this device does not do.
    fn of(command: &Command<'_, Example>) -> ur_hal::Result<Self> {
        match command {
            Command::HostCall(call) => Ok(Self::Call(*call)),
            Command::Timestamp => Ok(Self::Recorded(Recorded::Barrier)),
            other => Recorded::of(other).map(Self::Recorded),
        }
    }
    /// Does it, on this thread.
    pub fn run(&self) {
        let recorded = match self {
            Self::Call(call) => return call.call(),
            Self::Recorded(recorded) => recorded,
        };
        let at = |rows: Rows, row: usize| rows.start.get() + row * rows.pitch;
        match recorded.command::<Example>() {
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

/// What has to be there until a command is done.
fn kept(used: &Used<'_, Example>) -> Result<Box<dyn Any + Send>> {
    Ok(match used {
        Used::Buffer { buffer, .. } => Box::new(buffer.storage().clone()),
        Used::Program(program) => Box::new(program.own()?),
    })
}
impl TakesCommands for Example {
    type Known = Allocation;
    fn is_managed(_: Address) -> bool {
        true
    }
    fn buffer_at(_: &Owned<Device>, buffer: &Mem) -> Result<Address> {
        Ok(buffer.storage().base().offset(buffer.origin())?.into())
    }
    fn submit(
        queue: Borrowed<'_, Queue>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Enqueued<Self> {
        let of = report.wants_event().then(|| queue.own()).transpose()?;
        let kept = ready.uses.iter().flatten().map(kept).collect::<Result<_>>()?;
        let (work, profile) = (Work::of(&ready.command)?, ready.profile(queue.profile()));
        let end = queue.put(capture(events)?, Submission { work, profile, kept, signal: None })?;
        let event = of.map(|queue| Event::of(queue, ready.name, end.clone()));
        if let Report::Done { .. } = report {
            wait_for(&[super::event::Pending::Here(end)])?;
        }
        Ok(event)
    }
    fn signal(
        queue: Borrowed<'_, Queue>,
        events: &[Borrowed<'_, Event>],
        signalled: Borrowed<'_, Event>,
    ) -> Result<()> {
        let (work, signal) = (Work::Recorded(Recorded::Barrier), Some(signalled.signal()?));
        // Of a signal one moment is told, if its queue notes any.
        let profile = if queue.profile().is_on() { Profile::Instant } else { Profile::Off };
        let what = Submission { work, profile, kept: vec![], signal };
        queue.put(capture(events)?, what).map(drop)
    }
    fn submit_pixels(
        _: Borrowed<'_, Queue>,
        _: ur_command_t,
        _: &Pixels<'_, Mem>,
        _: &[Borrowed<'_, Event>],
        _: Report,
    ) -> Enqueued<Self> {
        Error::unsupported("urEnqueueMemImageCopy")
    }
    fn launch(
        _: Borrowed<'_, Queue>,
        _: Borrowed<'_, Kernel>,
        _: (Option<&[usize]>, &[usize], Option<&[usize]>),
        _: &[ur_exp_kernel_arg_properties_t],
        _: Option<&ur_kernel_launch_ext_properties_t>,
        _: &[Borrowed<'_, Event>],
        _: Report,
    ) -> Enqueued<Self> {
        Error::unsupported("urEnqueueKernelLaunchWithArgsExp")
    }
}
