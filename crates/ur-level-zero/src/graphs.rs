//! Graphs: regular, in-order command lists of the driver's, which are made again when something in them changes. Where the
//! driver has mutable command lists, the second one is such a list, in which the driver changes launches in their place from
//! then on (`native/mutable.rs`).
//!
//! A thread executes the commands that no list can contain: calls of the host's functions, and commands whose memory the
//! device does not reach (`crossing.rs`). There the graph is divided into several lists.
//!
//! All commands run one after another. The points of commands that signal events are marked when all are done.
use super::{
    LevelZero, clock,
    context::DriverContext,
    crossing::Far,
    device::DriverDevice,
    fate::Fate,
    host_task::{by_thread, wait_for_end},
    native::{
        event::EventKind,
        list::{List, NativeList},
        mutable,
    },
    point::Point,
    signal::{Marks, Signal},
    streams::Stream,
    submission::{How, PooledEvents},
    utility_lists::UtilityLists,
    work::QueueState,
};
use std::{ptr::null, sync::Arc};
use ur_hal::{
    Command, Error, ErrorKind, Execution, Graphs, HostCall, NativeHandle, Profile, Recorded,
    Result, Submission,
};

/// A command that a thread executes, between two lists.
#[derive(Debug)]
enum ByThread {
    HostCall(HostCall),
    /// A command whose memory the device does not reach.
    Far(Box<Far>),
}
impl ByThread {
    /// `None` for commands that lists contain.
    fn of(
        lists: &Arc<UtilityLists>,
        device: &Arc<DriverDevice>,
        command: &Command<'_, LevelZero>,
    ) -> Result<Option<Self>> {
        match command {
            Command::HostCall(call) => Ok(Some(Self::HostCall((*call).clone()))),
            _ => Ok(Far::of(lists, device, command)?.map(Self::Far)),
        }
    }
    /// Executes it on this thread.
    fn run(&self) -> Result<()> {
        match self {
            Self::HostCall(call) => call.call(),
            Self::Far(far) => far.run()?,
        }
        Ok(())
    }
}
/// One command in a list whose launches the driver changes.
#[derive(Debug)]
struct Placed {
    command: Arc<Recorded<LevelZero>>,
    /// The driver's number of it; `None`: it is no launch.
    id: Option<u64>,
}

/// Recorded commands.
#[derive(Debug)]
pub struct Graph {
    utility_lists: Arc<UtilityLists>,
    device: Arc<DriverDevice>,
    /// Closed lists, in this order, each with the command after it that a thread executes.
    parts: Vec<(NativeList, Arc<ByThread>)>,
    /// The list after all of these.
    last: NativeList,
    /// What is in the list, where the driver changes launches in their place: a graph that was changed once may be
    /// changed again.
    placed: Vec<Placed>,
    /// The mark behind the last execution.
    executed: Option<(Arc<QueueState>, EventKind)>,
}
impl Graph {
    fn new(
        utility_lists: &Arc<UtilityLists>,
        device: &Arc<DriverDevice>,
        is_mutable: bool,
    ) -> Result<Self> {
        let last = match is_mutable {
            true => mutable::list(utility_lists.context(), device)?,
            false => fresh_list(utility_lists, device)?,
        };
        let (utility_lists, device) = (Arc::clone(utility_lists), Arc::clone(device));
        let (parts, placed, executed) = Default::default();
        Ok(Self { utility_lists, device, parts, last, placed, executed })
    }
    fn by_thread(&self, command: &Command<'_, LevelZero>) -> Result<Option<ByThread>> {
        ByThread::of(&self.utility_lists, &self.device, command)
    }
    fn record(&mut self, command: &Recorded<LevelZero>, by_thread: Option<ByThread>) -> Result<()> {
        let Some(by_thread) = by_thread else {
            let engines = (self.device.raw(), self.device.compute()?.longest_pattern);
            let list = self.last.turn(engines);
            return command.lend(|command| list.append(command));
        };
        let fresh = fresh_list(&self.utility_lists, &self.device)?;
        self.last.close()?;
        let list = std::mem::replace(&mut self.last, fresh);
        self.parts.push((list, Arc::new(by_thread)));
        Ok(())
    }
    /// Has the driver change the launches that are others now. Whether it could: nothing executes the list, and only what a
    /// launch of the same kernel is given has changed.
    fn change_in_place(&mut self, commands: &[Arc<Recorded<LevelZero>>]) -> Result<bool> {
        let is_under_way = match &self.executed {
            Some((_, mark)) => !mark.is_complete()?,
            None => false,
        };
        if is_under_way || !self.parts.is_empty() || self.placed.len() != commands.len() {
            return Ok(false);
        }
        let mut others = vec![];
        for (placed, command) in self.placed.iter_mut().zip(commands) {
            if Arc::ptr_eq(&placed.command, command) {
                continue;
            }
            match (placed.id, placed.command.launch(), command.launch()) {
                (Some(id), Some(old), Some(new)) if new.has_function_of(old) => {
                    others.push((placed, id, command, new));
                }
                _ => return Ok(false), // one without items is no launch
            }
        }
        for (placed, id, command, launch) in others {
            match launch.lend(|launch| mutable::change(self.last.raw(), id, launch)) {
                Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(false),
                done => done?,
            }
            placed.command = Arc::clone(command);
        }
        self.last.close()?;
        Ok(true)
    }
    /// Executions follow one another, on whatever queues; the failure of one is not that of the next.
    fn wait_for_last(
        &self,
        work: &Arc<QueueState>,
        list: &List<'_>,
        kept: &mut PooledEvents,
    ) -> Result<()> {
        let Some((before, mark)) = &self.executed else { return Ok(()) };
        match before.has_debts() && !Arc::ptr_eq(before, work) {
            true => wait_for_end((before, mark), work, list, kept)?,
            false => list.wait_for(&[mark.raw()])?,
        }
        if let EventKind::Pooled(event) = mark {
            kept.push(Arc::clone(event));
        }
        Ok(())
    }
    fn note_executed(&mut self, work: &Arc<QueueState>, mark: EventKind) {
        if let Some((before, mark)) = self.executed.replace((Arc::clone(work), mark)) {
            before.cache.give(mark, false);
        }
    }
    /// Appends an execution to a list of `work`, behind the one before.
    fn execute_in(
        &self,
        work: &Arc<QueueState>,
        list: &List<'_>,
        kept: &mut PooledEvents,
        fate: Option<&Arc<Fate>>,
    ) -> Result<()> {
        self.wait_for_last(work, list, kept)?;
        for (number, (part, by)) in (1..).zip(&self.parts) {
            list.surely(|| list.execute(part.raw()))?;
            let (by, fate, is_last) = (Arc::clone(by), fate.cloned(), number == self.parts.len());
            by_thread(work, list, kept, move |reached| {
                if let Some(fate) = fate {
                    fate.meet_part(|| reached.and_then(|()| by.run()), is_last);
                }
            })?;
        }
        list.surely(|| list.execute(self.last.raw()))
    }
}
impl Drop for Graph {
    fn drop(&mut self) {
        if let Some((work, mark)) = self.executed.take() {
            work.cache.give(mark, false);
        }
    }
}
fn fresh_list(lists: &UtilityLists, device: &DriverDevice) -> Result<NativeList> {
    NativeList::regular(lists.context(), device.raw(), device.compute()?.ordinal, null())
}
/// The points of `count` commands, which an execution is about to signal.
fn signals(work: &Arc<QueueState>, count: usize, profile: Profile) -> Result<Vec<Signal>> {
    let is_profiled = profile != Profile::Off;
    let signal = |_| {
        let times = match is_profiled {
            true => Some(Marks { submitted: clock::now(&work.device)?, start: None, profile }),
            false => None,
        };
        let end = work.cache.take(is_profiled)?;
        Ok(Signal::new(work, Some(end), (None, 0), times, None))
    };
    (0..count).map(signal).collect()
}

impl Graphs for LevelZero {
    const HAS_GRAPHS: bool = true;
    fn executes_graphs() -> bool {
        List::can_execute()
    }
    fn check_recordable(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        command: &Command<'_, Self>,
    ) -> Result<()> {
        if let Command::Launch(launch) = command {
            launch.geometry.offset_words()?; // while it can still be refused
        }
        ByThread::of(context.utility_lists(), device, command).map(drop)
    }
    fn graph(context: &DriverContext, device: &Arc<DriverDevice>) -> Result<Graph> {
        if !Self::executes_graphs() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "this driver cannot execute command lists in queues: a newer one may",
            ));
        }
        Graph::new(context.utility_lists(), device, false)
    }
    fn append(graph: &mut Graph, command: &Arc<Recorded<Self>>) -> Result<()> {
        let by_thread = command.lend(|command| graph.by_thread(command))?;
        graph.record(command, by_thread)
    }
    fn close(graph: &mut Graph) -> Result<()> {
        graph.last.close()
    }
    fn change(graph: &mut Graph, commands: &[Arc<Recorded<Self>>]) -> Result<Option<Graph>> {
        if graph.change_in_place(commands)? {
            return Ok(None);
        }
        let by_thread = |command: &Arc<Recorded<Self>>| command.lend(|one| graph.by_thread(one));
        let by_threads = commands.iter().map(by_thread).collect::<Result<Vec<_>>>()?;
        let is_divided = by_threads.iter().any(Option::is_some);
        let is_mutable = mutable::is_supported(&graph.device)? && !is_divided;
        let mut fresh = Graph::new(&graph.utility_lists, &graph.device, is_mutable)?;
        for (command, by_thread) in commands.iter().zip(by_threads) {
            let is_launch = is_mutable && command.launch().is_some();
            let id = is_launch.then(|| mutable::next(fresh.last.raw())).transpose()?;
            fresh.record(command, by_thread)?;
            if is_mutable {
                fresh.placed.push(Placed { command: Arc::clone(command), id });
            }
        }
        fresh.last.close()?;
        fresh.executed = graph.executed.take();
        Ok(Some(fresh))
    }
    fn execute(
        graph: &mut Graph,
        stream: &Stream,
        submission: &Submission<'_, Self>,
        (count, profile): (usize, Profile),
    ) -> Result<Execution<Self>> {
        let work = stream.work()?;
        let mark = work.cache.take(false)?;
        let mut signals = signals(work, count, profile)?;
        let fate = (!graph.parts.is_empty()).then(Fate::by_thread);
        let stalls = graph.executed.as_ref().is_some_and(|(before, _)| before.may_stall());
        let how = How { at_once: true, stalls, fate: fate.as_ref(), ..How::default() };
        let end = work.put_with_fate(submission, how, |list, kept| {
            graph.execute_in(work, list, kept, fate.as_ref())?;
            let end = |signal: &Signal| list.surely(|| list.mark(signal.raw()?));
            signals.iter().try_for_each(end)?;
            list.surely(|| list.signal(mark.raw()))
        })?;
        let depends = match &end {
            Some(Point::Command(end)) => end.dependencies().cloned(),
            _ => work.fates.last(),
        };
        if let Some(depends) = depends {
            signals.iter_mut().for_each(|signal| signal.depend_on(depends.clone()));
        }
        graph.note_executed(work, mark);
        let signals = signals.into_iter().map(Point::Command).collect();
        Ok((end, signals))
    }
    /// The last of its lists.
    fn native_graph(graph: &Graph) -> Result<NativeHandle> {
        Ok(NativeHandle(graph.last.raw().addr() as u64))
    }
}
