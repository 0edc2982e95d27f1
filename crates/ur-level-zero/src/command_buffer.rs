//! How what command buffers record is executed: regular, in-order command lists of the driver's, which are made again when
//! something in them changes. Where the driver has mutable command lists, the second recording is one, in which it changes
//! launches in their place from then on (`native/mutable.rs`).
//!
//! Where the device does not reach the memory of a command (`crossing.rs`), the recording has several lists, and between two
//! of them a thread does what that command says.
//!
//! All commands run one after another: a sync point says nothing more. What one of them waits for, the
//! whole execution waits for; and the events of its commands are signalled when it is done.
use super::{
    Context, Event, LevelZero, Mem, Queue, clock,
    crossing::Far,
    fate::Fate,
    host_task::by_thread,
    launch,
    memory::Memory,
    native::{
        event::EventKind,
        list::{List, NativeList},
        mutable,
        queue::can_batch,
    },
    point::Point,
    signal::{Marks, Signal},
    submission::{How, PooledEvents},
    work::QueueState,
};
use std::{ptr::null, sync::Arc};
use ur_adapter::{
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_core::{
    command::{Place, Ready},
    command_buffer::{self, Change, Node, Records},
    memory::deferred_free,
    profiling::Profile,
    queue::submit_by,
};
use ur_hal::{Command, KeptLaunch, Recorded};
use ur_sys::{ur_command_t, ur_native_handle_t};

/// What `ur_exp_command_buffer_handle_t` points at.
pub type CommandBuffer = command_buffer::CommandBuffer<LevelZero>;
/// What `ur_exp_command_buffer_command_handle_t` points at.
pub type CommandBufferCommand = command_buffer::Command<LevelZero>;

/// What one command appends to a list, again and again.
pub enum Step {
    /// A command, and the buffers that it is about.
    Command(Recorded, Vec<Owned<Mem>>),
    /// A launch.
    Launch(KeptLaunch<LevelZero>),
    /// What no list of the device can do.
    Far(Far),
}
impl Step {
    fn append(&self, list: &List<'_>) -> Result<()> {
        match self {
            Self::Far(_) => Ok(()), // between two lists
            Self::Command(command, _) => list.append(&command.command()),
            Self::Launch(launch) => launch.lend(|launch| list.append(&Command::Launch(launch))),
        }
    }
}

/// The list of a command buffer.
pub struct Recording {
    context: Owned<Context>,
    /// What is executed before the list, in this order.
    parts: Vec<Part>,
    list: Arc<NativeList>,
    is_profiled: bool,
    /// The mark behind the last execution.
    last: Option<(Arc<QueueState>, EventKind)>,
    /// What is in the list, where the driver changes launches in their place: a recording that was changed once may be
    /// changed again.
    placed: Vec<Placed>,
}
/// A list that was closed, and the command behind it that a thread carries out.
struct Part {
    list: Arc<NativeList>,
    far: Arc<Step>,
}
impl Part {
    fn run(far: &Step) -> Result<()> {
        match far {
            Step::Far(far) => far.run(),
            _ => Ok(()), // a list has it
        }
    }
}
/// One command in a list whose launches the driver changes.
struct Placed {
    step: Arc<Step>,
    /// The driver's number of it; `None`: it is no launch.
    id: Option<u64>,
}
impl Recording {
    /// Has the driver change the launches that are others now. Whether it could: nothing executes the list, and only what a
    /// launch of the same kernel is given has changed.
    fn change_in_place(&mut self, nodes: &[Node<LevelZero>]) -> Result<bool> {
        let is_under_way = match &self.last {
            Some((_, mark)) => !mark.is_complete()?,
            None => false,
        };
        if is_under_way || !self.parts.is_empty() || self.placed.len() != nodes.len() {
            return Ok(false);
        }
        let is_new = |(placed, node): &(&mut Placed, &Node<LevelZero>)| {
            !Arc::ptr_eq(&placed.step, &node.step)
        };
        let others: Vec<_> = self.placed.iter_mut().zip(nodes).filter(is_new).collect();
        let stays = |(placed, node): &(&mut Placed, &Node<LevelZero>)| {
            let is_same = match (&*placed.step, &*node.step) {
                (Step::Launch(old), Step::Launch(new)) => old.has_function_of(new),
                _ => false, // one without items is no launch
            };
            placed.id.is_some() && is_same
        };
        if !others.iter().all(stays) {
            return Ok(false);
        }
        for (placed, node) in others {
            let (Step::Launch(launch), Some(id)) = (&*node.step, placed.id) else {
                return Ok(false);
            };
            let list = self.list.raw();
            match launch.lend(|launch| launch::as_change(launch, id)?.apply(list)) {
                Err(error) if error.code() == ErrorCode::UnsupportedFeature => return Ok(false),
                done => done?,
            }
            placed.step = Arc::clone(&node.step);
        }
        self.list.close()?;
        Ok(true)
    }
}
impl Drop for Recording {
    /// The list may be under way.
    fn drop(&mut self) {
        if let Some((work, mark)) = self.last.take() {
            work.cache().give(mark, false);
            let context = self.context.as_handle().addr();
            let parts = std::mem::take(&mut self.parts);
            let lists = parts.into_iter().map(|part| part.list).chain([Arc::clone(&self.list)]);
            lists.for_each(|list| deferred_free::leave::<Memory>(context, list));
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
    work: &Arc<QueueState>,
    is_profiled: bool,
) -> Result<Vec<(Owned<Event>, Signal)>> {
    let signal = |event| {
        let times = match is_profiled {
            true => {
                let submitted = clock::now(&work.device)?;
                Some(Marks { submitted, start: None, profile: ur_hal::Profile::End })
            }
            false => None,
        };
        let end = work.cache().take(is_profiled)?;
        Ok((event, Signal::new(work, Some(end), times, (None, 0))))
    };
    nodes.iter().filter_map(|node| node.signal.clone()).map(signal).collect()
}

impl Records for LevelZero {
    type Step = Arc<Step>;
    type Recording = Recording;
    const HAS_NATIVE_RECORDINGS: bool = true;
    fn recording(place: Place<'_, Self>, is_profiled: bool) -> Result<Recording> {
        if !can_batch() {
            return Err(Error::new(
                ErrorCode::UnsupportedFeature,
                "this driver cannot execute command lists in queues: a newer one may",
            ));
        }
        let (list, context) = (fresh_list(place)?, place.0.clone());
        let (parts, placed) = (vec![], vec![]);
        Ok(Recording { context, parts, list, is_profiled, last: None, placed })
    }
    fn step((context, device): Place<'_, Self>, ready: &Ready<'_, Self>) -> Result<Arc<Step>> {
        if let Command::Launch(launch) = ready.command {
            launch.geometry.offset_words()?; // while it can still be refused
            return Ok(Arc::new(Step::Launch(KeptLaunch::of(launch))));
        }
        if let Some(far) = Far::of(context.borrow(), device, &ready.command)? {
            return Ok(Arc::new(Step::Far(far)));
        }
        let kept = ready.buffers().map(|(buffer, _)| buffer.own()).collect::<Result<_>>()?;
        Ok(Arc::new(Step::Command(Recorded::of(&ready.command)?, kept)))
    }
    fn again(step: &Arc<Step>) -> Arc<Step> {
        Arc::clone(step)
    }
    fn record_step(
        recording: &mut Recording,
        place: Place<'_, Self>,
        step: &Arc<Step>,
    ) -> Result<()> {
        if let Step::Far(_) = **step {
            recording.list.close()?;
            let list = std::mem::replace(&mut recording.list, fresh_list(place)?);
            recording.parts.push(Part { list, far: Arc::clone(step) });
            return Ok(());
        }
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
            Change::Commands if recording.change_in_place(nodes)? => Ok(()),
            Change::Commands => {
                let (context, device) = place;
                let has_far = nodes.iter().any(|node| matches!(*node.step, Step::Far(_)));
                let is_mutable = mutable::is_supported(device)? && !has_far;
                let first = match is_mutable {
                    true => Arc::new(mutable::list(context.native(), device)?),
                    false => fresh_list(place)?,
                };
                let (mut parts, mut fresh, mut placed) = (vec![], first, vec![]);
                for node in nodes {
                    if let Step::Far(_) = *node.step {
                        fresh.close()?;
                        let list = std::mem::replace(&mut fresh, fresh_list(place)?);
                        parts.push(Part { list, far: Arc::clone(&node.step) });
                        continue;
                    }
                    let is_launch = is_mutable && matches!(*node.step, Step::Launch(_));
                    let id = is_launch.then(|| mutable::next(fresh.raw())).transpose()?;
                    node.step.append(&turn(place, &fresh)?)?;
                    placed.push(Placed { step: Arc::clone(&node.step), id });
                }
                fresh.close()?;
                recording.placed = if is_mutable { placed } else { vec![] };
                let last = std::mem::replace(&mut recording.list, fresh);
                let before = std::mem::replace(&mut recording.parts, parts);
                let old = before.into_iter().map(|part| part.list).chain([last]);
                let context = recording.context.as_handle().addr();
                old.for_each(|list| deferred_free::leave::<Memory>(context, list));
                Ok(())
            }
        }
    }
    fn execute(
        recording: &mut Recording,
        nodes: &[Node<Self>],
        (queue, name): (Borrowed<'_, Queue>, ur_command_t),
        events: &[Borrowed<'_, Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self> {
        let waits = nodes.iter().flat_map(|node| &node.waits).map(Owned::borrow);
        let waits: Vec<_> = events.iter().copied().chain(waits).collect();
        let work = queue.stream().work();
        let mark = work.cache().take(false)?;
        let signals = signals(nodes, work, recording.is_profiled)?;
        let profile = if recording.is_profiled { Profile::Phases } else { queue.profile() };
        let fate = (!recording.parts.is_empty()).then(Fate::by_thread);
        let mut depends = None;
        let stalls = recording.last.as_ref().is_some_and(|(before, _)| before.may_stall());
        let execute = |list: &List<'_>, kept: &mut PooledEvents| {
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
            let count = recording.parts.len();
            for (number, part) in (1..).zip(&recording.parts) {
                list.execute(part.list.raw())?;
                let (far, fate) = (Arc::clone(&part.far), fate.clone());
                by_thread(work, list, kept, move |reached| {
                    let part = || reached.and_then(|()| Part::run(&far));
                    if let Some(fate) = fate {
                        fate.meet_part(part, number == count);
                    }
                })?;
            }
            list.execute(recording.list.raw())?;
            signals.iter().try_for_each(|(_, signal)| list.mark(signal.raw()?))?;
            list.signal(mark.raw())
        };
        let made = submit_by(queue, (name, profile), &waits, report, |submission| {
            let how = How { at_once: true, stalls, fate: fate.as_ref(), ..How::default() };
            let made = work.put(submission, how, execute);
            if let Some(fate) = &fate {
                if made.is_err() {
                    fate.meet(|| Ok(()));
                }
                if submission.completion.is_awaited() {
                    fate.check()?;
                } else {
                    work.fates.add(fate);
                }
            }
            let made = made?;
            depends =
                made.as_ref().map_or_else(|| work.fates.last(), |end| end.dependencies().cloned());
            Ok(made.map(Point::Command))
        });
        if made.is_ok() {
            // Commands submitted from here on wait for this execution.
            let profile = if recording.is_profiled { Profile::Moment } else { Profile::Off };
            for (event, signal) in signals {
                if let Some(dependencies) = &depends {
                    signal.depend_on(dependencies.clone());
                }
                event.signalled(Point::Command(signal), profile);
            }
            if let Some((before, mark)) = recording.last.replace((Arc::clone(work), mark)) {
                before.cache().give(mark, false);
            }
        }
        made
    }
    fn native_buffer(
        _buffer: Borrowed<'_, CommandBuffer>,
        recording: &Recording,
    ) -> Result<ur_native_handle_t> {
        Ok(recording.list.raw().addr() as ur_native_handle_t)
    }
}
