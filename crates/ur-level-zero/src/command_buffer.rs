//! How what command buffers record is executed: regular, in-order command lists of the driver's, which are made again when
//! something in them changes. Where the driver has mutable command lists, the second recording is one, in which it changes
//! launches in their place from then on (`native/mutable.rs`).
//!
//! A thread executes the commands that no list can contain: calls of the host's functions, and commands whose memory the
//! device does not reach (`crossing.rs`). There the recording is divided into several lists.
//!
//! All commands run one after another: a sync point says nothing more. What one of them waits for, the
//! whole execution waits for; and the events of its commands are signalled when it is done.
use super::{
    Context, Event, LevelZero, Queue, clock,
    crossing::Far,
    fate::Fate,
    host_task::{by_thread, wait_for_end},
    launch,
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
    graph,
    memory::deferred_free,
    over_driver::memory::Memory,
    profiling::Profile,
    queue::submit_by,
};
use ur_hal::{Command, ErrorKind, KeptLaunch};
use ur_sys::{ur_command_t, ur_native_handle_t};

/// What `ur_exp_command_buffer_handle_t` points at.
type CommandBuffer = command_buffer::CommandBuffer<LevelZero>;

/// One recorded command.
pub enum Step {
    /// A command that a list contains or that calls the host.
    Kept(command_buffer::Step<LevelZero>),
    /// A command whose memory the device does not reach.
    Far(Far),
}
impl Step {
    fn launch(&self) -> Option<&KeptLaunch<LevelZero>> {
        match self {
            Self::Kept(step) => step.launch(),
            Self::Far(_) => None,
        }
    }
    /// Whether a thread executes it, between two lists.
    fn is_by_thread(&self) -> bool {
        match self {
            Self::Kept(step) => step.host_call().is_some(),
            Self::Far(_) => true,
        }
    }
    /// Executes it on this thread, if it [is for a thread](Self::is_by_thread).
    fn run(&self) -> ur_hal::Result<()> {
        match self {
            Self::Kept(step) => step.host_call().iter().for_each(|call| call.call()),
            Self::Far(far) => far.run()?,
        }
        Ok(())
    }
}

/// The list of a command buffer.
pub struct Recording {
    context: Owned<Context>,
    lists: Lists,
    is_profiled: bool,
    /// The mark behind the last execution.
    last: Option<(Arc<QueueState>, EventKind)>,
    /// What is in the list, where the driver changes launches in their place: a recording that was changed once may be
    /// changed again.
    placed: Vec<Placed>,
}
/// The lists of a recording.
struct Lists {
    /// Closed lists, in this order, each with the command after it that a thread executes.
    parts: Vec<(Arc<NativeList>, Arc<Step>)>,
    /// The list after all of these.
    last: Arc<NativeList>,
}
impl Lists {
    fn record(&mut self, place: Place<'_, LevelZero>, step: &Arc<Step>) -> Result<()> {
        match &**step {
            Step::Kept(kept) if !step.is_by_thread() => {
                let list = turn(place, &self.last)?;
                Ok(kept.lend(|command| list.append(command))?)
            }
            _ => {
                self.last.close()?;
                let list = std::mem::replace(&mut self.last, fresh_list(place)?);
                self.parts.push((list, Arc::clone(step)));
                Ok(())
            }
        }
    }
    /// Destroys the lists when no command uses them any more.
    fn leave(&self, context: usize) {
        let lists = self.parts.iter().map(|(list, _)| list).chain([&self.last]);
        lists.for_each(|list| deferred_free::leave::<Memory<LevelZero>>(context, Arc::clone(list)));
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
        if is_under_way || !self.lists.parts.is_empty() || self.placed.len() != nodes.len() {
            return Ok(false);
        }
        let is_new = |(placed, node): &(&mut Placed, &Node<LevelZero>)| {
            !Arc::ptr_eq(&placed.step, &node.step)
        };
        let others: Vec<_> = self.placed.iter_mut().zip(nodes).filter(is_new).collect();
        let stays = |(placed, node): &(&mut Placed, &Node<LevelZero>)| {
            let is_same = match (placed.step.launch(), node.step.launch()) {
                (Some(old), Some(new)) => old.has_function_of(new),
                _ => false, // one without items is no launch
            };
            placed.id.is_some() && is_same
        };
        if !others.iter().all(stays) {
            return Ok(false);
        }
        for (placed, node) in others {
            let (Some(launch), Some(id)) = (node.step.launch(), placed.id) else {
                return Ok(false);
            };
            let list = self.lists.last.raw();
            match launch.lend(|launch| launch::as_change(launch, id)?.apply(list)) {
                Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(false),
                done => done?,
            }
            placed.step = Arc::clone(&node.step);
        }
        self.lists.last.close()?;
        Ok(true)
    }
}
impl Drop for Recording {
    /// The list may be under way.
    fn drop(&mut self) {
        if let Some((work, mark)) = self.last.take() {
            work.cache().give(mark, false);
            self.lists.leave(self.context.as_handle().addr());
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
        let lists = Lists { parts: vec![], last: fresh_list(place)? };
        Ok(Recording { context: place.0.clone(), lists, is_profiled, last: None, placed: vec![] })
    }
    fn step((context, device): Place<'_, Self>, ready: &Ready<'_, Self>) -> Result<Arc<Step>> {
        if let Command::Launch(launch) = ready.command {
            launch.geometry.offset_words()?; // while it can still be refused
        }
        Ok(Arc::new(match Far::of(context.utility_lists(), device.driver(), &ready.command)? {
            Some(far) => Step::Far(far),
            None => Step::Kept(command_buffer::Step::of(ready)?),
        }))
    }
    fn again(step: &Arc<Step>) -> Arc<Step> {
        Arc::clone(step)
    }
    fn record_step(
        recording: &mut Recording,
        place: Place<'_, Self>,
        step: &Arc<Step>,
    ) -> Result<()> {
        recording.lists.record(place, step)
    }
    fn close(
        recording: &mut Recording,
        place: Place<'_, Self>,
        nodes: &[Node<Self>],
        change: Change,
    ) -> Result<()> {
        match change {
            Change::Events => Ok(()),
            Change::All => Ok(recording.lists.last.close()?),
            Change::Commands if recording.change_in_place(nodes)? => Ok(()),
            Change::Commands => {
                let (context, device) = place;
                let is_divided = nodes.iter().any(|node| node.step.is_by_thread());
                let is_mutable = mutable::is_supported(device)? && !is_divided;
                let last = match is_mutable {
                    true => Arc::new(mutable::list(context.native(), device)?),
                    false => fresh_list(place)?,
                };
                let (mut lists, mut placed) = (Lists { parts: vec![], last }, vec![]);
                for node in nodes {
                    let is_launch = is_mutable && node.step.launch().is_some();
                    let id = is_launch.then(|| mutable::next(lists.last.raw())).transpose()?;
                    lists.record(place, &node.step)?;
                    placed.push(Placed { step: Arc::clone(&node.step), id });
                }
                lists.last.close()?;
                recording.placed = if is_mutable { placed } else { vec![] };
                let old = std::mem::replace(&mut recording.lists, lists);
                old.leave(recording.context.as_handle().addr());
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
        let work = queue.stream().work()?;
        let mark = work.cache().take(false)?;
        let signals = signals(nodes, work, recording.is_profiled)?;
        let profile = if recording.is_profiled { Profile::Phases } else { queue.profile() };
        let fate = (!recording.lists.parts.is_empty()).then(Fate::by_thread);
        let mut depends = None;
        let stalls = recording.last.as_ref().is_some_and(|(before, _)| before.may_stall());
        let execute = |list: &List<'_>, kept: &mut PooledEvents| {
            // Executions follow one another, on whatever queues; the failure of one is not that of the next.
            if let Some((before, mark)) = &recording.last {
                match before.has_debts() && !Arc::ptr_eq(before, work) {
                    true => wait_for_end((before, mark), work, list, kept)?,
                    false => list.wait_for(&[mark.raw()])?,
                }
                if let EventKind::Pooled(event) = mark {
                    kept.push(Arc::clone(event));
                }
            }
            let Lists { parts, last } = &recording.lists;
            for (number, (part, step)) in (1..).zip(parts) {
                list.execute(part.raw())?;
                let (step, fate, is_last) = (Arc::clone(step), fate.clone(), number == parts.len());
                by_thread(work, list, kept, move |reached| {
                    if let Some(fate) = fate {
                        fate.meet_part(|| reached.and_then(|()| step.run()), is_last);
                    }
                })?;
            }
            list.execute(last.raw())?;
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
    fn record_all(
        queue: Borrowed<'_, Queue>,
        name: ur_command_t,
        nodes: &[Node<Self>],
        events: &[Borrowed<'_, Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self> {
        graph::splice(queue, name, nodes, events, report)
    }
    fn native_buffer(
        _buffer: Borrowed<'_, CommandBuffer>,
        recording: &Recording,
    ) -> Result<ur_native_handle_t> {
        Ok(recording.lists.last.raw().addr() as ur_native_handle_t)
    }
}
