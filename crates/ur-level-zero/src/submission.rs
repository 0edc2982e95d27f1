//! Submits commands to command lists: the choice of the lane, the waits before the command, the events at its
//! start and end, and batching. `streams.rs` decides how each kind of command is submitted.
use super::{
    LevelZero, clock,
    driver::{RawDevice, RawEvent, RawList},
    fate::{Dependencies, Fate},
    lane::Lane,
    native::{
        event::{EventKind, PooledEvent},
        execute::is_one_append,
        list::List,
    },
    point::Point,
    reusable::{PendingRemote, PendingSignal},
    signal::{Marks, Signal},
    work::{CommandId, LockedState, QueueState},
};
use smallvec::SmallVec;
use std::sync::{Arc, MutexGuard};
use ur_hal::{Command, Completion, Error, Order, Profile, Result, Wait, wait_for_taken};

/// A submission of this backend.
type Submission<'a> = ur_hal::Submission<'a, LevelZero>;

/// The result of a submission: the command's point, if one is wanted. It is made where it is returned, and moved nowhere.
pub(super) type Made = Result<Option<Point>>;

/// Events that must be kept until a command has executed.
pub(super) type PooledEvents = Vec<Arc<PooledEvent>>;

/// How a command is submitted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct How<'how> {
    /// Whether one call appends it, which takes the events to wait for and to signal. Otherwise it may take any number.
    pub(super) is_one_append: bool,
    /// Whether it is submitted at once, even in a stream with batches.
    pub(super) at_once: bool,
    /// Whether a copy engine can execute it.
    pub(super) copies: bool,
    /// Whether it waits for the host: see `stall.rs`.
    pub(super) stalls: bool,
    /// The result of a command that a thread of the adapter executes.
    pub(super) fate: Option<&'how Arc<Fate>>,
}
impl How<'_> {
    /// For a command that is appended as it is.
    #[inline]
    pub(super) fn of(command: &Command<'_, LevelZero>) -> Self {
        let is_one_append = is_one_append(command);
        let copies =
            matches!(command, Command::Copy { .. } | Command::Copy2d { .. } | Command::Copy3d(_));
        Self { is_one_append, copies, ..Self::default() }
    }
}

/// What a command waits for.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// A few need no allocation.
    pub(super) events: SmallVec<[RawEvent; 8]>,
    /// Signals of other processes, which may never come.
    pub(super) owed: Vec<PendingRemote>,
    /// What may fail although the driver reports completion.
    pub(super) dependencies: Vec<Dependencies>,
}

impl QueueState {
    /// Submits a command. `body` appends it; besides the list it gets the events that must be kept until the command has
    /// executed.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if a dependency has failed; the command's own error, if it is waited for;
    /// else the driver's error.
    #[inline]
    pub(super) fn put(
        self: &Arc<Self>,
        what: &Submission<'_>,
        how: How<'_>,
        body: impl FnOnce(&List<'_>, &mut PooledEvents) -> Result<()>,
    ) -> Made {
        self.check()?;
        let mut begun = None;
        if let Some((turn, number)) = self.place_alone(what, how)? {
            let mut made = self.put_alone(turn, number, &mut begun, what, how, body);
            self.wait_for_made(what, &mut made, begun);
            return made;
        }
        let end = self.append_behind(what, how, &mut begun, body);
        let mut made = end.map(|end| end.map(Point::Command));
        self.wait_for_made(what, &mut made, begun);
        made
    }
    /// Waits for a command if that is wanted, or for what there is of a refused one; `begun`: the lane in which there is at least a
    /// part of it. What was made stays where it is: it can be read only when it has left the processor's store buffer.
    #[inline]
    fn wait_for_made(&self, what: &Submission<'_>, made: &mut Made, begun: Option<usize>) {
        if what.completion.is_awaited() || (what.lends_memory && made.is_err()) {
            self.wait_for_command(what, made, begun);
        }
    }
    fn wait_for_command(&self, what: &Submission<'_>, made: &mut Made, begun: Option<usize>) {
        if let Ok(Some(point)) = made
            && let Err(error) = point.wait()
        {
            *made = Err(error);
        }
        match made {
            Ok(point) if !what.completion.wants_point() => *point = None,
            Ok(_) => {}
            Err(_) => begun.into_iter().for_each(|number| self.wait_for_part(number)),
        }
    }
    /// [`put`](Self::put) of a command of which threads execute parts, if it has a `fate`.
    pub(super) fn put_with_fate(
        self: &Arc<Self>,
        what: &Submission<'_>,
        how: How<'_>,
        body: impl FnOnce(&List<'_>, &mut PooledEvents) -> Result<()>,
    ) -> Made {
        let made = self.put(what, how, body);
        if let Some(fate) = how.fate {
            if made.is_err() {
                fate.meet(|| Ok(())); // If no thread was started: the command will never run, and nothing waits for it.
            }
            if what.completion.is_awaited() {
                fate.check()?; // returns the error of the command itself
            } else {
                self.fates.add(fate);
            }
        }
        made
    }
    /// Waits for what the driver accepted of a command, before its caller is told that the driver refused the rest, or to wait for it:
    /// the command may write where that caller has memory. In its lane it is behind nothing that the whole would not have been behind.
    #[cold]
    fn wait_for_part(&self, number: usize) {
        let _refused = self.flush(); // it may be in a batch, and does not run then
        let end = self.end_of(&mut self.turn(), number);
        if let Ok(Some((_, end))) = end {
            let ended = self.patiently(|slice| end.wait(slice));
            self.cache.give(end, false);
            if ended.is_ok() {
                return;
            }
        }
        wait_for_taken(|| Ok(self.is_lost() || self.is_lane_idle(number as u32)?));
    }
    /// The lane for a command that only depends on earlier commands of the same lane; `None` for all others.
    #[inline]
    fn place_alone(
        &self,
        what: &Submission<'_>,
        how: How<'_>,
    ) -> Result<Option<(MutexGuard<'_, LockedState>, usize)>> {
        let is_alone = what.waits.is_empty() && what.profile == Profile::Off && how.fate.is_none();
        if !is_alone || how.stalls || self.is_batched() {
            return Ok(None);
        }
        let mut turn = self.turn();
        let copies = how.copies && self.may_copy_apart(&turn, what.order);
        let number = self.next(&mut turn, copies)?;
        self.mark_barrier(&mut turn)?;
        let is_free = what.order == Order::Free || turn.is_single();
        Ok((is_free && turn.is_behind_barrier(number)).then_some((turn, number)))
    }
    /// Appends such a command. This is the most frequent path, and does as little as possible.
    #[inline]
    fn put_alone(
        self: &Arc<Self>,
        mut turn: MutexGuard<'_, LockedState>,
        number: usize,
        begun: &mut Option<usize>,
        what: &Submission<'_>,
        how: How<'_>,
        body: impl FnOnce(&List<'_>, &mut PooledEvents) -> Result<()>,
    ) -> Made {
        self.mark_tail(&mut turn, number)?;
        let is_wanted = what.completion != Completion::None;
        let is_late = is_wanted && self.does_without(&mut turn, number);
        let end = if is_wanted && !is_late { Some(self.cache.take(false)?) } else { None };
        let lane = turn.lane_mut(number);
        let spot = CommandId { lane: number as u32, number: lane.count_one() };
        let (at, engines, raw) = (lane.raw(), lane.engines(), end.as_ref().map(EventKind::raw));
        match how.is_one_append {
            true => body(&List::new(at, engines, &[], raw), lane.held())?,
            false => {
                let list = List::new(at, engines, &[], None);
                let whole = body(&list, lane.held())
                    .and_then(|()| raw.map_or(Ok(()), |raw| list.surely(|| list.signal(raw))));
                *begun = list.has_taken().then_some(number);
                whole?;
            }
        }
        *begun = Some(number);
        lane.tail = is_late.then_some(spot.number);
        lane.tidy(&self.cache)?;
        drop(turn);
        if !is_wanted {
            return Ok(None);
        }
        let dependencies = self.fates.last();
        Ok(Some(Point::Command(Signal::new(self, end, (Some(spot), 0), None, dependencies))))
    }
    /// Appends a command, and returns its end if that is wanted. Unlike [`put`](Self::put) always takes the
    /// general path.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    pub(super) fn append(
        self: &Arc<Self>,
        what: &Submission<'_>,
        how: How<'_>,
        body: impl FnOnce(&List<'_>, &mut PooledEvents) -> Result<()>,
    ) -> Result<Option<Signal>> {
        self.check()?;
        self.append_behind(what, how, &mut None, body)
    }
    /// The general path, after the check for lost signals.
    fn append_behind(
        self: &Arc<Self>,
        what: &Submission<'_>,
        how: How<'_>,
        begun: &mut Option<usize>,
        body: impl FnOnce(&List<'_>, &mut PooledEvents) -> Result<()>,
    ) -> Result<Option<Signal>> {
        for wait in what.waits {
            point(wait)?.send_for(self)?; // before the lock is taken, because it may lock another stream
        }
        let times = match what.profile != Profile::Off && what.completion != Completion::None {
            true => Some(clock::now(&self.device)?),
            false => None,
        };
        let mut turn = self.turn();
        let is_known = self.is_in_order && self.may_stall();
        let stalls = !is_known && self.would_stall(what, how)?;
        if stalls {
            self.keep_off_copiers(&mut turn)?;
        }
        let copies = how.copies && !stalls && self.may_copy_apart(&turn, what.order);
        let number = self.next(&mut turn, copies)?;
        self.mark_barrier(&mut turn)?;
        let mut known = Waits::default();
        for wait in what.waits {
            point(wait)?.order(self, &mut known, |kept| turn.keep(number, kept))?;
        }
        let fence = turn.fence_before(number, &mut known.events);
        let mut marks = vec![];
        if what.order != Order::Free {
            self.gather(&mut turn, number, &mut known.events, &mut marks)?;
        }
        let at_once = how.at_once || !known.owed.is_empty();
        let (raw, batch) = self.list_for(&mut turn, number, at_once)?;
        self.mark_tail(&mut turn, number)?;
        let put = Put { list: raw, batch, ..Put::new(self, turn.lane_mut(number), number) };
        let (dependencies, leads) = self.dependencies_of(what, how, known.dependencies);
        let mut list = &known.events[..];
        if !known.owed.is_empty() {
            self.incur(&put.turn(&[], None), list, known.owed)?;
            list = &[];
        }
        let held = turn.lane_mut(number).held();
        let signal = put.body(what, how, list, times, |list| {
            let done = body(list, held);
            *begun = list.has_taken().then_some(number);
            done
        });
        marks.into_iter().for_each(|mark| self.cache.give(mark, false));
        let mut signal = signal?;
        turn.lane_mut(number).fence = fence;
        if let Some(dependencies) = dependencies.as_ref().filter(|_| leads) {
            self.fates.follow(dependencies);
        }
        if let Some(signal) = &mut signal {
            let end = signal.kind().filter(|_| batch != 0);
            let collected = end.and_then(|end| turn.lane_mut(number).batch_signals(end));
            let all = match (dependencies, collected) {
                (Some(one), Some(other)) => Dependencies::all(vec![one, other]),
                (one, other) => one.or(other),
            };
            all.into_iter().for_each(|all| signal.depend_on(all));
        }
        if what.order == Order::Both {
            self.set_fence(&mut turn, number)?;
        }
        self.tidy(&mut turn, number)?;
        Ok(signal)
    }
    /// Whether a command waits for the host, for another process, or for a stream that may do so.
    fn would_stall(&self, what: &Submission<'_>, how: How<'_>) -> Result<bool> {
        if how.stalls || how.fate.is_some() {
            return Ok(true);
        }
        for wait in what.waits {
            if point(wait)?.may_stall(self)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
    /// What a command's end depends on besides the driver: its own result (`how.fate`), or what the commands that it waits for
    /// (`known`) or that precede it in its queue depend on. And whether later commands of the queue depend on that, too.
    #[inline]
    fn dependencies_of(
        &self,
        what: &Submission<'_>,
        how: How<'_>,
        mut known: Vec<Dependencies>,
    ) -> (Option<Dependencies>, bool) {
        let last = self.fates.last();
        if !self.is_in_order && what.order != Order::Free {
            known.extend(self.fates.open());
        }
        if how.fate.is_none() && known.is_empty() {
            return (last, false);
        }
        known.extend(last);
        let before = Dependencies::all(known);
        let all = match how.fate {
            Some(own) => {
                own.follow(before);
                Some(Dependencies::of(own))
            }
            None => before,
        };
        // The caller that waits for the command gets the failure; it is not passed on to later commands.
        let leads = self.is_in_order || what.order == Order::Both;
        (all, leads && !what.completion.is_awaited())
    }
    /// Appends waits for signals of other processes, each with an event behind it that tells whether it came.
    fn incur(&self, list: &List<'_>, waits: &[RawEvent], owed: Vec<PendingRemote>) -> Result<()> {
        list.wait_for(waits)?;
        for owed in owed {
            let passed = self.cache.take(false)?;
            list.wait_for(&[owed.event().raw()])?;
            list.signal(passed.raw())?;
            self.owe(Arc::new(PendingSignal::new(owed, passed)));
        }
        Ok(())
    }
}
/// The point of a wait. Waits for words are not supported, as `Streams::event_sharing` reports.
fn point<'a>(wait: &Wait<'a, LevelZero>) -> Result<&'a Point> {
    match wait {
        Wait::Point(point) => Ok(point),
        Wait::End(_) => Error::unsupported("waits for the end of a command that may fail"),
        Wait::Word(_) => Error::unsupported("waits for words that processes share"),
    }
}
/// A command that is being appended.
struct Put<'put> {
    work: &'put Arc<QueueState>,
    list: RawList,
    engines: (RawDevice, usize),
    spot: CommandId,
    batch: u64,
}
impl<'put> Put<'put> {
    /// The next command of a lane, for its immediate list.
    #[inline]
    fn new(work: &'put Arc<QueueState>, lane: &mut Lane, number: usize) -> Self {
        let spot = CommandId { lane: number as u32, number: lane.count_one() };
        Self { work, list: lane.raw(), engines: lane.engines(), spot, batch: 0 }
    }
    fn turn<'list>(&self, waits: &'list [RawEvent], signal: Option<RawEvent>) -> List<'list> {
        List::new(self.list, self.engines, waits, signal)
    }
    fn body(
        &self,
        what: &Submission<'_>,
        how: How<'_>,
        waits: &[RawEvent],
        submitted: Option<u64>,
        body: impl FnOnce(&List<'_>) -> Result<()>,
    ) -> Result<Option<Signal>> {
        let cache = &self.work.cache;
        let end = match what.completion {
            Completion::None => None,
            _ => Some(cache.take(submitted.is_some())?),
        };
        let raw = end.as_ref().map(EventKind::raw);
        let mut start = None;
        match how.is_one_append {
            true => body(&self.turn(waits, raw))?,
            false => {
                self.turn(waits, None).wait_for(waits)?;
                let list = self.turn(&[], None);
                if submitted.is_some() && what.profile == Profile::Phases {
                    let begun = cache.take(true)?;
                    list.mark(begun.raw())?;
                    start = Some(begun);
                }
                let whole = body(&list).and_then(|()| match (raw, submitted) {
                    (Some(raw), Some(_)) => list.surely(|| list.mark(raw)),
                    (Some(raw), None) => list.surely(|| list.signal(raw)),
                    (None, _) => Ok(()),
                });
                if whole.is_err()
                    && let Some(start) = start.take()
                {
                    cache.give(start, true); // the list signals it
                }
                whole?;
            }
        }
        let profile = what.profile;
        let times = submitted.map(|submitted| Marks { submitted, start, profile });
        let at = (Some(self.spot), self.batch);
        Ok(end.map(|end| Signal::new(self.work, Some(end), at, times, None)))
    }
}
