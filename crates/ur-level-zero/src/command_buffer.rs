//! How what command buffers record is executed: regular, in-order command lists of the driver's, which are made again when
//! something in them changes.
//!
//! All commands run one after another: a sync point says nothing more. What one of them waits for, the
//! whole execution waits for; and the events of its commands are signalled when it is done.
use super::{
    Context, Device, Event, LevelZero, Mem, Queue, TABLE, clock, launch,
    memory::Memory,
    native::{
        event::EventKind,
        list::{List, NativeList},
        queue::can_batch,
        recorded::Kept,
    },
    signal::{Home, Signal, Times},
    submission::{Made, Submission},
    work::Work,
};
use std::{ptr::null, sync::Arc};
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned, Slab},
};
use ur_core::{
    command::{Place, Ready},
    command_buffer::{self, Change, Launch, Node, Records},
    memory::deferred_free,
    profiling::Profile,
};
use ur_hal::Recorded;
use ur_sys::{ur_command_t, ur_exp_kernel_arg_properties_t, ur_native_handle_t};

/// What `ur_exp_command_buffer_handle_t` points at.
pub type CommandBuffer = command_buffer::CommandBuffer<LevelZero>;
/// What `ur_exp_command_buffer_command_handle_t` points at.
pub type CommandBufferCommand = command_buffer::Command<LevelZero>;

/// What one command appends to a list, again and again.
pub enum Step {
    /// A command, and the buffers that it is about.
    Command(Recorded, Vec<Owned<Mem>>),
    /// A launch.
    Launch(Owned<Device>, Arc<Launch<LevelZero>>),
}
impl Step {
    fn append(&self, list: &List<'_>) -> Result<()> {
        match self {
            Self::Command(command, _) => list.append(&command.command::<LevelZero>()),
            Self::Launch(device, launch) => match judged(device, launch)? {
                Some(launch) => launch.append(list),
                None => list.barrier(),
            },
        }
    }
}
fn judged<'l>(
    device: &Owned<Device>,
    launch: &'l Launch<LevelZero>,
) -> Result<Option<launch::Launch<'l>>> {
    let asked = launch::Asked {
        offset: launch.offset.as_deref(),
        global: &launch.global,
        local: launch.local.as_deref(),
        arguments: launch.arguments.given(),
        properties: None,
    };
    launch::Launch::new(launch.kernel.on(device)?, asked)
}

/// The list of a command buffer.
pub struct Recording {
    context: Owned<Context>,
    list: Arc<NativeList>,
    is_profiled: bool,
    /// The mark behind the last execution.
    last: Option<(Arc<Work>, EventKind)>,
}
impl Drop for Recording {
    /// The list may be under way.
    fn drop(&mut self) {
        if let Some((work, mark)) = self.last.take() {
            work.cache().give(mark, false);
            let context = self.context.as_handle().addr();
            deferred_free::leave::<Memory>(context, Arc::clone(&self.list));
        }
    }
}
fn fresh_list((context, device): Place<'_, LevelZero>) -> Result<Arc<NativeList>> {
    let ordinal = device.compute()?.ordinal;
    Ok(Arc::new(NativeList::regular(context.native(), device.raw(), ordinal, null())?))
}
fn turn((_, device): Place<'_, LevelZero>, list: &NativeList) -> Result<List<'static>> {
    let engines = (device.raw(), device.compute()?.longest_pattern);
    Ok(List::new(list.raw(), engines, &[], None))
}
/// What one execution signals.
fn signals(
    nodes: &[Node<LevelZero>],
    queue: &Queue,
    is_profiled: bool,
) -> Result<Vec<(Owned<Event>, Signal)>> {
    let work = queue.work();
    let signal = |event| {
        let times = match is_profiled {
            true => {
                let (submitted, profile) = (clock::now(queue.device())?, Profile::Moment);
                Some(Times { submitted, start: None, profile })
            }
            false => None,
        };
        let end = work.cache().take(is_profiled)?;
        Ok((event, Signal::new(Home::Work(Arc::clone(work)), Some(end), times, (None, 0))))
    };
    nodes.iter().filter_map(|node| node.signal.clone()).map(signal).collect()
}

impl Records for LevelZero {
    type Step = Arc<Step>;
    type Arguments = Arc<Kept>;
    type Recording = Recording;
    const HAS_NATIVE_RECORDINGS: bool = true;
    fn command_buffers() -> &'static Slab<CommandBuffer> {
        static SLAB: Slab<CommandBuffer> = Slab::new(&TABLE);
        &SLAB
    }
    fn commands() -> &'static Slab<CommandBufferCommand> {
        static SLAB: Slab<CommandBufferCommand> = Slab::new(&TABLE);
        &SLAB
    }
    fn recording(place: Place<'_, Self>, is_profiled: bool) -> Result<Recording> {
        if !can_batch() {
            return Err(Error::new(
                ErrorCode::UnsupportedFeature,
                "this driver cannot execute command lists in queues: a newer one may",
            ));
        }
        let (list, context) = (fresh_list(place)?, place.0.clone());
        Ok(Recording { context, list, is_profiled, last: None })
    }
    fn step(ready: &Ready<'_, Self>) -> Result<Arc<Step>> {
        let kept = ready.buffers().map(|(buffer, _)| buffer.own()).collect::<Result<_>>()?;
        Ok(Arc::new(Step::Command(Recorded::of(&ready.command)?, kept)))
    }
    fn again(step: &Arc<Step>) -> Arc<Step> {
        Arc::clone(step)
    }
    fn launch_step((_, device): Place<'_, Self>, launch: &Arc<Launch<Self>>) -> Result<Arc<Step>> {
        judged(device, launch)?;
        Ok(Arc::new(Step::Launch(device.clone(), Arc::clone(launch))))
    }
    fn keep(arguments: &[ur_exp_kernel_arg_properties_t]) -> Result<Arc<Kept>> {
        Kept::new(arguments).map(Arc::new)
    }
    fn keep_changed(
        old: &Arc<Kept>,
        changes: &[ur_exp_kernel_arg_properties_t],
    ) -> Result<Arc<Kept>> {
        old.with(changes).map(Arc::new)
    }
    fn recorded_event(
        (context, device): Place<'_, Self>,
        name: ur_command_t,
        is_profiled: bool,
    ) -> Owned<Event> {
        Event::of_recorded(context.clone(), device.clone(), name, is_profiled)
    }
    fn record_step(
        recording: &mut Recording,
        place: Place<'_, Self>,
        step: &Arc<Step>,
    ) -> Result<()> {
        step.append(&turn(place, &recording.list)?)
    }
    fn close(
        recording: &mut Recording,
        place: Place<'_, Self>,
        nodes: &[Node<Self>],
        change: Change,
    ) -> Result<()> {
        match change {
            Change::Events => Ok(()),
            Change::All => recording.list.close(),
            Change::Commands => {
                let fresh = fresh_list(place)?;
                let turn = turn(place, &fresh)?;
                nodes.iter().try_for_each(|node| node.step.append(&turn))?;
                fresh.close()?;
                let old = std::mem::replace(&mut recording.list, fresh);
                deferred_free::leave::<Memory>(recording.context.as_handle().addr(), old);
                Ok(())
            }
        }
    }
    fn execute(
        recording: &mut Recording,
        nodes: &[Node<Self>],
        queue: Borrowed<'_, Queue>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        let waits = nodes.iter().flat_map(|node| &node.waits).map(Owned::borrow);
        let waits: Vec<_> = events.iter().copied().chain(waits).collect();
        let (work, mark) = (queue.work(), queue.work().cache().take(false)?);
        let signals = signals(nodes, &queue, recording.is_profiled)?;
        let plain = Submission::new(queue, ur_command_t::ENQUEUE_COMMAND_BUFFER_EXP, report);
        let profile = if recording.is_profiled { Profile::Phases } else { plain.profile };
        let submission = Submission { profile, at_once: true, ..plain };
        let made = submission.put(queue, &waits, |list, kept| {
            // Executions follow one another, on whatever queues.
            if let Some((before, mark)) = &recording.last {
                list.wait_for(&[mark.raw()])?;
                if !Arc::ptr_eq(before, work) {
                    before.debts().into_iter().for_each(|debt| work.owe(debt));
                }
                if let EventKind::Pooled(event) = mark {
                    kept.push(Arc::clone(event));
                }
            }
            list.execute(recording.list.raw())?;
            signals.iter().try_for_each(|(_, signal)| list.mark(signal.raw()?))?;
            list.signal(mark.raw())
        });
        if made.is_ok() {
            // Commands submitted from here on wait for this execution.
            signals.into_iter().for_each(|(event, signal)| event.replace(Arc::new(signal)));
            if let Some((before, mark)) = recording.last.replace((Arc::clone(work), mark)) {
                before.cache().give(mark, false);
            }
        }
        made
    }
    fn native(
        _buffer: Borrowed<'_, CommandBuffer>,
        recording: &Recording,
    ) -> Result<ur_native_handle_t> {
        Ok(recording.list.raw().addr() as ur_native_handle_t)
    }
}
