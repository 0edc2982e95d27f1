//! How the lists of one stream work together: which one the next command takes, what barriers mean
//! for the others, when batches are sent, and what the queue waits for that may never come.
use super::{
    announcer,
    context::DriverContext,
    crossing::is_possible,
    device::DriverDevice,
    driver::RawEvent,
    fate::{Dependencies, Fates},
    lane::Lane,
    lazy_event::EventPolicy,
    native::{
        context::NativeContext,
        event::EventKind,
        list::{Engine, NativeList},
    },
    reusable::{PendingSignal, lost},
    signal::{BRIEF, Cache, EVER, SLICE},
    sync_point,
    utility_lists::UtilityLists,
};
use crate::log::notice;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
};
use ur_hal::{Result, Severity, host_clock, repeated};
use ur_lock::locked;

/// Lists of an out-of-order queue: the last is for copies, on an engine of their own, where the device has one.
const LANES: usize = COPIES + 1;
/// The number of that lane.
pub(super) const COPIES: usize = 4;

/// Where a command is: the number of its lane, and its own number there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CommandId {
    pub(super) lane: u32,
    pub(super) number: u64,
}

/// Which engines a queue's lists are for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Engines {
    /// That of the first, which is the only one of an in-order queue.
    pub(super) first: Engine,
    /// How many engines of that kind the others are spread over, at least 1: 1 where C chose one.
    pub(super) spread: u32,
    /// The engine that only copies, and the longest pattern that it fills with, where copies may go there: not in order.
    pub(super) copier: Option<(Engine, usize)>,
}

/// A queue's lists. They outlive it for as long as they have something to do.
#[derive(Debug)]
pub struct QueueState {
    pub(super) device: Arc<DriverDevice>,
    pub(super) native: Arc<NativeContext>,
    pub(super) utility_lists: Arc<UtilityLists>,
    /// The number by which the core knows the context.
    pub(super) context: usize,
    pub(super) engines: Engines,
    pattern: usize,
    /// Whether there can be memory that its device does not reach.
    pub(super) has_far_memory: bool,
    /// Whether lists tell of the ends of commands that signal nothing as cheaply as events would.
    pub(super) has_cheap_ends: bool,
    /// How many commands get to the device together, if nobody waits for one earlier; `None`: each as it is enqueued.
    batch_size: Option<u32>,
    pub(super) is_in_order: bool,
    pub(super) cache: Arc<Cache>,
    turn: Mutex<LockedState>,
    /// Of each lane the number of the last command that is known to be done, and with it all before it.
    pub(super) passed: [AtomicU64; LANES],
    /// The number of the last batch that was sent.
    sent: AtomicU64,
    /// Whether its queue is gone.
    pub(super) is_over: AtomicBool,
    pub(super) is_lost: AtomicBool,
    pub(super) has_debts: AtomicBool,
    pub(super) debts: Mutex<VecDeque<Arc<PendingSignal>>>,
    /// See `stall.rs`.
    pub(super) may_stall: AtomicBool,
    /// Of commands that threads of ours carry out, until somebody has waited for all.
    pub(super) fates: Fates,
    /// When it was last asked whether they are paid, in nanoseconds.
    looked: AtomicU64,
}
/// What one thread at a time has: the driver wants that of lists. So this one lock is held across
/// calls of the driver that append.
#[derive(Debug)]
pub(super) struct LockedState {
    /// In the order in which they are taken; one that nobody has taken yet is not there.
    lanes: Vec<Option<Lane>>,
    /// The lane that the last command took.
    last: usize,
    /// Whether C was told of the first list: what is in it is not known any more.
    is_lent: bool,
    /// Whether the first list belongs to the application, which may have destroyed it.
    is_left: bool,
    /// Signalled behind the last barrier, and its number.
    fence: Option<EventKind>,
    fences: u64,
    /// The lane whose last command is the last barrier, with no `fence` behind it yet.
    unmarked: Option<usize>,
    /// How commands end.
    pub(super) event_policy: EventPolicy,
    /// The number of the batch that is being filled.
    batch: u64,
}

impl QueueState {
    pub(super) fn new(
        (context, number): (&DriverContext, usize),
        device: &Arc<DriverDevice>,
        engines: Engines,
        (batch_size, is_in_order): (Option<u32>, bool),
        list: Option<NativeList>,
    ) -> Result<Arc<Self>> {
        let many = if is_in_order { 1 } else { LANES };
        let pattern = device.compute()?.longest_pattern;
        let is_lent = list.is_some();
        let list = match list {
            Some(list) => list,
            None => NativeList::immediate(context.native(), device.raw(), engines.first)?,
        };
        let mut lanes: Vec<_> = (0..many).map(|_| None).collect();
        lanes[0] = Some(Lane::new(list, device.raw(), pattern));
        let (last, fence, fences, unmarked) = (0, None, 0, None);
        let event_policy = EventPolicy::default();
        let turn = LockedState {
            lanes,
            last,
            is_lent,
            is_left: false,
            fence,
            fences,
            unmarked,
            event_policy,
            batch: 1,
        };
        let work = Arc::new(Self {
            device: Arc::clone(device),
            native: Arc::clone(context.native()),
            utility_lists: Arc::clone(context.utility_lists()),
            context: number,
            engines,
            pattern,
            has_far_memory: is_possible(device),
            has_cheap_ends: device.shows_ends_of_lists(),
            batch_size,
            is_in_order,
            cache: context.events().of(context, device, batch_size.is_some()),
            turn: Mutex::new(turn),
            passed: Default::default(),
            sent: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            has_debts: AtomicBool::new(false),
            debts: Mutex::default(),
            may_stall: AtomicBool::new(false),
            fates: Fates::default(),
            looked: AtomicU64::new(0),
        });
        sync_point::enter(&work);
        Ok(work)
    }
    pub(super) fn is_batched(&self) -> bool {
        self.batch_size.is_some()
    }
    /// Takes the queue's lists: one thread at a time.
    pub(super) fn turn(&self) -> MutexGuard<'_, LockedState> {
        locked(&self.turn)
    }
    /// The number of the lane that the next command takes: the last one's where that is known to be
    /// done, so that who waits for each command has one list at work. Copies (`copies`) have an engine of their own, where
    /// none of them may wait for what may stall: all lists of all queues share it.
    #[inline]
    pub(super) fn next(&self, turn: &mut LockedState, copies: bool) -> Result<usize> {
        if turn.lanes.len() == 1 {
            return Ok(turn.last);
        }
        if copies && let Some((engine, pattern)) = self.engines.copier {
            self.open_lane(turn, COPIES, engine, pattern)?;
            return Ok(COPIES);
        }
        if self.has_passed_all(turn, turn.last) {
            return Ok(turn.last);
        }
        let number = (turn.last + 1) % COPIES;
        let Engines { first, spread, .. } = self.engines;
        let index = (first.index + number as u32) % spread;
        self.open_lane(turn, number, Engine { index, ..first }, self.pattern)?;
        turn.last = number;
        Ok(number)
    }
    fn open_lane(
        &self,
        turn: &mut LockedState,
        number: usize,
        engine: Engine,
        pattern: usize,
    ) -> Result<()> {
        if turn.lanes[number].is_none() {
            let list = NativeList::immediate(&self.native, self.device.raw(), engine)?;
            turn.lanes[number] = Some(Lane::new(list, self.device.raw(), pattern));
        }
        Ok(())
    }
    /// Whether all commands are known to be done, without asking the driver.
    pub(super) fn is_known_idle(&self) -> bool {
        let turn = self.turn();
        !self.has_debts() && (0..turn.lanes.len()).all(|lane| self.has_passed_all(&turn, lane))
    }
    /// Whether all that was put into a lane is known to be done.
    fn has_passed_all(&self, turn: &LockedState, lane: usize) -> bool {
        let number = turn.lanes[lane].as_ref().map_or(0, |lane| lane.count);
        !turn.is_lent(lane) && self.has_passed(CommandId { lane: lane as u32, number })
    }
    /// The immediate list that C can ask for: behind everything that was enqueued.
    pub(super) fn first(&self) -> Result<Arc<NativeList>> {
        let mut turn = self.sent();
        // Not behind what C puts there.
        self.mark_barrier(&mut turn)?;
        self.mark_tail(&mut turn, 0)?;
        turn.is_lent = true;
        Ok(Arc::clone(&turn.lane(0).list))
    }
    /// Goes on in a list of its own on this engine, which waits for everything in the first one.
    pub(super) fn go_on_in_another(&self, turn: &mut LockedState, engine: Engine) -> Result<()> {
        let list = NativeList::immediate(&self.native, self.device.raw(), engine)?;
        let mark = self.cache.take(false)?;
        turn.lane_mut(0).go_on_in(list, &mark)?;
        turn.keep(0, &mark);
        self.cache.give(mark, false);
        Ok(())
    }
    /// Sends what has been collected, and uses the list of the application no more, which may be destroyed when the queue is
    /// released: goes on in one that waits for it. If the driver refuses that, it is waited for.
    pub(super) fn give_list_back(&self) {
        let flushed = self.flush();
        flushed.unwrap_or_else(|error| notice(Severity::Error, &error));
        if self.turn().in_use(0).is_none_or(|lane| lane.list.is_owned()) {
            return;
        }
        let gone_on = repeated(|| {
            let mut turn = self.turn();
            match turn.lane(0).list.wait(0)? {
                true => Ok(()), // nothing of it is under way
                false => self.go_on_in_another(&mut turn, self.engines.first),
            }
        });
        let ended = gone_on.or_else(|_| self.finish()); // a failure of its commands is no business of the release
        let mut turn = self.turn();
        turn.is_lent = false;
        if !turn.lane(0).list.is_owned() {
            self.note_passed(CommandId { lane: 0, number: turn.lane(0).count });
            turn.is_left = true;
            drop(turn);
            ended.unwrap_or_else(|error| notice(Severity::Error, &error));
        }
    }
    /// Puts the first list, which C can ask for, behind the last barrier.
    pub(super) fn keep_first_behind_barrier(&self) -> Result<()> {
        let mut turn = self.turn();
        self.mark_barrier(&mut turn)?;
        let mut waits = vec![];
        let fence = turn.fence_before(0, &mut waits);
        self.mark_tail(&mut turn, 0)?;
        turn.lane_mut(0).count_one();
        turn.lane(0).turn().wait_for(&waits)?;
        turn.lane_mut(0).fence = fence;
        Ok(())
    }
    /// Adds to `waits` all that is in lanes other than this one; `marks`: what stands for that, to be
    /// given back when it is waited for.
    pub(super) fn gather(
        &self,
        turn: &mut LockedState,
        number: usize,
        waits: &mut impl Extend<RawEvent>,
        marks: &mut Vec<EventKind>,
    ) -> Result<()> {
        for other in 0..turn.lanes.len() {
            if other == number || self.has_passed_all(turn, other) {
                continue;
            }
            let Some(lane) = turn.lanes[other].as_ref() else { continue };
            if self.has_cheap_ends && lane.list.wait(0)? {
                continue;
            }
            let mark = lane.mark(&self.cache)?;
            waits.extend([mark.raw()]);
            turn.keep(number, &mark);
            marks.push(mark);
        }
        Ok(())
    }
    /// All that comes later waits for what the lane has by now.
    pub(super) fn set_fence(&self, turn: &mut LockedState, number: usize) -> Result<()> {
        if turn.lanes.len() == 1 {
            return Ok(());
        }
        turn.fences += 1;
        let fences = turn.fences;
        turn.lane_mut(number).fence = fences;
        if let Some(old) = turn.fence.take() {
            self.cache.give(old, false);
        }
        turn.unmarked = Some(number);
        // Where nobody else puts anything, the mark can wait: often the barrier is done by then.
        if turn.is_lent(number) { self.mark_barrier(turn) } else { Ok(()) }
    }
    /// Sees to it that a barrier has its mark before anything else is put behind it.
    #[inline]
    pub(super) fn mark_barrier(&self, turn: &mut LockedState) -> Result<()> {
        turn.unmarked.map_or(Ok(()), |number| self.mark(turn, number))
    }
    fn mark(&self, turn: &mut LockedState, number: usize) -> Result<()> {
        if !self.has_passed_all(turn, number) {
            turn.fence = Some(turn.lane(number).mark(&self.cache)?);
        }
        turn.unmarked = None;
        Ok(())
    }
    /// The list that a command is appended to, and the batch it is in (0: none); `at_once`: whatever
    /// the queue's way is.
    pub(super) fn list_for(
        &self,
        turn: &mut LockedState,
        number: usize,
        at_once: bool,
    ) -> Result<(super::driver::RawList, u64)> {
        let batch = turn.batch;
        if !self.is_batched() {
            return Ok((turn.lane(number).list.raw(), 0));
        }
        if at_once {
            self.send(turn)?;
            return Ok((turn.lane(number).list.raw(), 0));
        }
        let make = |next| {
            NativeList::regular(&self.native, self.device.raw(), self.engines.first.ordinal, next)
        };
        let list = turn.lane_mut(number).batch(&self.cache, make)?;
        Ok((list, batch))
    }
    /// After a command: sends a batch that is full, lets go of what has passed.
    pub(super) fn tidy(&self, turn: &mut LockedState, number: usize) -> Result<()> {
        if let Some(most) = self.batch_size
            && turn.lane(number).filled() >= most
        {
            self.send(turn)?;
        }
        turn.lane_mut(number).tidy(&self.cache)
    }
    fn send(&self, turn: &mut LockedState) -> Result<()> {
        if !turn.lanes.iter().flatten().any(Lane::has_batch) {
            return Ok(());
        }
        let number = turn.batch;
        turn.batch += 1;
        let mut outcome = Ok(());
        for lane in turn.lanes.iter_mut().flatten() {
            if let Err(refused) = lane.send(&self.cache) {
                outcome = outcome.and(refused.check());
                // The commands that come next depend on some that failed, and whoever finishes the queue is told.
                let known = self.fates.last().into_iter().chain([Dependencies::of(&refused)]);
                Dependencies::all(known.collect()).iter().for_each(|all| self.fates.follow(all));
                self.fates.add(&refused);
            }
        }
        self.sent.fetch_max(number, AcqRel);
        outcome
    }
    /// Sends what has been collected.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn flush(&self) -> Result<()> {
        if self.is_batched() { self.send(&mut self.turn()) } else { Ok(()) }
    }
    /// Locks the queue's lists and submits what has been collected. As long as the lock is held nobody collects more, so that every
    /// command with a number is the driver's, or failed because the driver refused its batch: `finish` returns that error.
    pub(super) fn sent(&self) -> MutexGuard<'_, LockedState> {
        let mut turn = self.turn();
        if self.is_batched() {
            let _refused = self.send(&mut turn);
        }
        turn
    }
    /// Sends the batch with this number, if it has not been sent.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn flush_up_to(&self, batch: u64) -> Result<()> {
        if self.sent.load(Acquire) >= batch { Ok(()) } else { self.flush() }
    }
    /// Whether everything is done. What has been collected is sent first: who asks again and again sees the end of it.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn is_idle(&self) -> Result<bool> {
        let turn = self.sent();
        let mut lanes = (0..turn.lanes.len()).filter_map(|number| turn.in_use(number));
        lanes.try_fold(true, |idle, lane| Ok(idle && lane.list.wait(0)?))
    }
    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if that never happens; the driver's own.
    pub(super) fn finish(&self) -> Result<()> {
        let mut ends: [Option<(u64, EventKind)>; LANES] = Default::default();
        let mut turn = self.sent();
        for (number, end) in (0..turn.lanes.len()).zip(&mut ends) {
            *end = self.end_of(&mut turn, number)?;
        }
        drop(turn);
        for (lane, (number, end)) in (0..).zip(ends).filter_map(|(lane, end)| Some((lane, end?))) {
            let ended = self.patiently(|slice| end.wait(slice));
            self.cache.give(end, false);
            ended?;
            self.note_passed(CommandId { lane, number });
            self.is_lane_idle(lane)?; // what failed the list says, not the event
        }
        announcer::look();
        self.fates.tell()
    }
    /// The number of the last command of a lane, and what marks its end; `None` if that has come. The list itself is
    /// waited for only as long as others can wait for their turn.
    pub(super) fn end_of(
        &self,
        turn: &mut LockedState,
        number: usize,
    ) -> Result<Option<(u64, EventKind)>> {
        let Some(lane) = turn.there(number) else { return Ok(None) };
        let count = lane.count;
        if lane.list.wait(BRIEF)? {
            self.note_passed(CommandId { lane: number as u32, number: count });
            return Ok(None);
        }
        Ok(Some((count, lane.mark(&self.cache)?)))
    }
    /// Waits for an event of this queue's.
    ///
    /// # Errors
    /// As for [`QueueState::finish`].
    #[inline]
    pub(super) fn wait_for(&self, event: &EventKind) -> Result<()> {
        if !self.has_debts() && event.wait(EVER)? {
            return Ok(());
        }
        self.patiently(|slice| event.wait(slice))
    }
    /// For ever, unless it may be that nothing comes.
    pub(super) fn patiently(&self, wait: impl Fn(u64) -> Result<bool>) -> Result<()> {
        loop {
            let slice = if self.has_debts() { SLICE } else { EVER };
            if wait(slice)? {
                return Ok(());
            }
            if self.is_lost() {
                return Err(lost());
            }
        }
    }
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` for a queue that waits for what never comes.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        if self.has_debts() { self.check_debts() } else { Ok(()) }
    }
    #[cold]
    fn check_debts(&self) -> Result<()> {
        let (now, before) = (host_clock(), self.looked.load(Relaxed));
        if now.saturating_sub(before) < SLICE && !self.is_lost.load(Acquire) {
            return Ok(()); // each submission need not ask the driver about every debt
        }
        self.looked.store(now, Relaxed);
        if self.is_lost() { Err(lost()) } else { Ok(()) }
    }
}
impl LockedState {
    /// Whether a command in this lane is behind the last barrier by being there.
    #[inline]
    pub(super) fn is_behind_barrier(&self, number: usize) -> bool {
        self.lane(number).fence == self.fences
    }
    /// The same, where the lane may not have been taken yet.
    pub(super) fn is_behind_barrier_there(&self, number: usize) -> bool {
        let lane = self.lanes.get(number).and_then(Option::as_ref);
        lane.map_or(0, |lane| lane.fence) == self.fences
    }
    /// The lane with that number, if it has been taken.
    pub(super) fn there(&mut self, number: usize) -> Option<&mut Lane> {
        self.in_use(number)?;
        self.lanes.get_mut(number)?.as_mut()
    }
    fn in_use(&self, number: usize) -> Option<&Lane> {
        let is_left = number == 0 && self.is_left;
        self.lanes.get(number)?.as_ref().filter(|_| !is_left)
    }
    /// How many lanes there may be.
    pub(super) fn count(&self) -> usize {
        self.lanes.len()
    }
    /// Whether C has this lane's list, and may have put something there.
    #[inline]
    pub(super) fn is_lent(&self, number: usize) -> bool {
        number == 0 && self.is_lent
    }
    /// Whether there is only one lane.
    #[inline]
    pub(super) fn is_single(&self) -> bool {
        self.lanes.len() == 1
    }
    #[inline]
    pub(super) fn lane(&self, number: usize) -> &Lane {
        self.lanes[number]
            .as_ref()
            .expect("`next` made the lanes that it names; the first is always there")
    }
    #[inline]
    pub(super) fn lane_mut(&mut self, number: usize) -> &mut Lane {
        self.lanes[number]
            .as_mut()
            .expect("`next` made the lanes that it names; the first is always there")
    }
    /// The lane waits for this event until it has passed it.
    pub(super) fn keep(&mut self, number: usize, event: &EventKind) {
        if let EventKind::Pooled(event) = event {
            self.lane_mut(number).held().push(Arc::clone(event));
        }
    }
    /// Adds to `waits` the last barrier, if the lane is not behind it; returns its number, to be noted as the lane's when the
    /// list waits.
    pub(super) fn fence_before(&mut self, number: usize, waits: &mut impl Extend<RawEvent>) -> u64 {
        if self.lane(number).fence != self.fences {
            let fence = self.fence.take();
            if let Some(event) = &fence {
                waits.extend([event.raw()]);
                self.keep(number, event);
            }
            self.fence = fence;
        }
        self.fences
    }
}
