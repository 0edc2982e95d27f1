//! How commands get into a queue: the core has judged them; what they wait for is captured here.
use super::{
    Device, Event, OpenCl, Queue,
    event::{Pending, capture, wait_for},
    mem::{Mem, Pixels},
    memory::Allocation,
    native::{
        queue::{Made, NativeQueue, Waits},
        work::{Ability, execute},
    },
};
use std::sync::Arc;
use ur_adapter::{
    command::{Enqueued, Report},
    error::Result,
    object::{Borrowed, Owned},
};
use ur_core::{
    command::{Ready, TakesCommands},
    profiling::Profile,
};
use ur_hal::{Address, Command, Order};
use ur_sys::*;

/// Puts a command into a queue, behind what these events stand for now.
fn submit(
    queue: Borrowed<'_, Queue>,
    (name, profile): (ur_command_t, Profile),
    events: &[Borrowed<'_, Event>],
    report: Report,
    put: impl FnOnce(&NativeQueue, Ability, Waits<'_>, Made<'_>) -> Result<()>,
) -> Enqueued<OpenCl> {
    let of = report.wants_event().then(|| queue.own()).transpose()?;
    let wants = report != Report::None;
    let end = queue.put(&capture(events)?, (profile, wants), put)?;
    if let (Report::Done { .. }, Some(end)) = (report, &end) {
        wait_for(&[Pending::Here(Arc::clone(end))])?;
    }
    Ok(of.zip(end).map(|(queue, end)| Event::of(queue, name, end)))
}

impl TakesCommands for OpenCl {
    type Known = Allocation;
    /// All memory is where it is used.
    fn is_managed(_: Address) -> bool {
        true
    }
    fn buffer_at(_: &Owned<Device>, buffer: &Mem) -> Result<Address> {
        Ok(buffer.storage().base()?.offset(buffer.origin())?.into())
    }
    fn image_at<'m>(_: &Owned<Device>, image: &'m Mem) -> Result<&'m Arc<Pixels>> {
        image.storage().pixels()
    }
    fn submit(
        queue: Borrowed<'_, Queue>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Enqueued<Self> {
        let how = (ready.name, ready.profile(queue.profile()));
        submit(queue, how, events, report, |native, can, waits, event| {
            execute(native, can, (&ready.command, ready.order), waits, event)
        })
    }
    fn signal(
        queue: Borrowed<'_, Queue>,
        events: &[Borrowed<'_, Event>],
        signalled: Borrowed<'_, Event>,
    ) -> Result<()> {
        let barrier = (&Command::Barrier, Order::Both);
        queue.signal(&capture(events)?, signalled.signal()?, |native, can, waits, event| {
            execute(native, can, barrier, waits, event)
        })
    }
}
