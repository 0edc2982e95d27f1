//! How the lists of one queue work together: which one the next command takes, what barriers mean
//! for the others, when batches are sent, and what the queue waits for that may never come.
use super::{
    Context, Device,
    driver::RawEvent,
    lane::Lane,
    native::{
        context::NativeContext,
        event::EventKind,
        list::{Engine, NativeList},
    },
    shared_event::{Debt, Progress, lost},
    signal::{Cache, EVER, SLICE},
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
};
use ur_adapter::{error::Result, log, object::Owned};
use ur_sys::ur_logger_level_t;

/// Lists of an out-of-order queue.
const LANES: usize = 4;

/// When commands get to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submission {
    /// As they are enqueued.
    Immediate,
    /// As many together, or when somebody waits for one.
    Batched {
        /// So many.
        most: u32,
    },
}

/// A queue's lists. They outlive it for as long as they have something to do.
#[derive(Debug)]
pub struct Work {
    device: Owned<Device>,
    native: Arc<NativeContext>,
    /// The address of the context's handle: compared, never followed.
    context: usize,
    engine: Engine,
    pattern: usize,
    submission: Submission,
    is_in_order: bool,
    cache: Arc<Cache>,
    turn: Mutex<Turn>,
    /// The number of the last batch that was sent.
    sent: AtomicU64,
    is_over: AtomicBool,
    is_lost: AtomicBool,
    has_debts: AtomicBool,
    debts: Mutex<VecDeque<Arc<Debt>>>,
    /// When it was last asked whether they are paid, in nanoseconds.
    looked: AtomicU64,
}
/// What one thread at a time has: the driver wants that of lists. So this one lock is held across
/// calls of the driver that append.
#[derive(Debug)]
pub(super) struct Turn {
    /// In the order in which they are taken; one that nobody has taken yet is not there.
    lanes: Vec<Option<Lane>>,
    next: usize,
    /// Signalled behind the last barrier, and its number.
    fence: Option<EventKind>,
    fences: u64,
    /// The number of the batch that is being filled.
    batch: u64,
}

impl Work {
    pub(super) fn new(
        context: &Owned<Context>,
        device: &Owned<Device>,
        engine: Engine,
        (submission, is_in_order): (Submission, bool),
        list: Option<NativeList>,
    ) -> Result<Arc<Self>> {
        let is_batched = submission != Submission::Immediate;
        let many = if is_in_order { 1 } else { LANES };
        let pattern = device.compute()?.longest_pattern;
        let list = match list {
            Some(list) => list,
            None => NativeList::immediate(context.native(), device.raw(), engine)?,
        };
        let mut lanes: Vec<_> = (0..many).map(|_| None).collect();
        lanes[0] = Some(Lane::new(list, device.raw(), pattern));
        let turn = Turn { lanes, next: 0, fence: None, fences: 0, batch: 1 };
        let work = Arc::new(Self {
            device: device.clone(),
            native: Arc::clone(context.native()),
            context: context.as_handle().addr(),
            engine,
            pattern,
            submission,
            is_in_order,
            cache: context.events().of(context, device, is_batched),
            turn: Mutex::new(turn),
            sent: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            has_debts: AtomicBool::new(false),
            debts: Mutex::default(),
            looked: AtomicU64::new(0),
        });
        EVERYONE.add(&work);
        Ok(work)
    }
    pub(super) fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }
    pub(super) fn is_in_order(&self) -> bool {
        self.is_in_order
    }
    pub(super) fn is_batched(&self) -> bool {
        self.submission != Submission::Immediate
    }
    /// Takes the queue's lists: one thread at a time.
    pub(super) fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The number of the lane that the next command takes.
    pub(super) fn next(&self, turn: &mut Turn) -> Result<usize> {
        let number = turn.next;
        turn.next = (number + 1) % turn.lanes.len();
        if turn.lanes[number].is_none() {
            let list = NativeList::immediate(&self.native, self.device.raw(), self.engine)?;
            turn.lanes[number] = Some(Lane::new(list, self.device.raw(), self.pattern));
        }
        Ok(number)
    }
    /// The immediate list that C can ask for: behind everything that was enqueued.
    pub(super) fn first(&self) -> Result<Arc<NativeList>> {
        self.flush()?;
        let turn = self.turn();
        Ok(Arc::clone(turn.lane(0).list()))
    }
    /// Puts the first list, which C can ask for, behind the last barrier.
    pub(super) fn keep_first_behind_barrier(&self) -> Result<()> {
        let mut turn = self.turn();
        let mut waits = vec![];
        turn.fence_before(0, &mut waits);
        turn.lane(0).turn().wait_for(&waits)
    }
    /// Adds to `waits` all that is in lanes other than this one; `marks`: what stands for that, to be
    /// given back when it is waited for.
    pub(super) fn gather(
        &self,
        turn: &mut Turn,
        number: usize,
        waits: &mut impl Extend<RawEvent>,
        marks: &mut Vec<EventKind>,
    ) -> Result<()> {
        for other in 0..turn.lanes.len() {
            let Some(lane) = turn.lanes[other].as_ref().filter(|_| other != number) else {
                continue;
            };
            if lane.list().wait(0)? {
                continue;
            }
            let mark = self.cache.take(false)?;
            lane.turn().signal(mark.raw())?;
            waits.extend([mark.raw()]);
            turn.keep(number, &mark);
            marks.push(mark);
        }
        Ok(())
    }
    /// All that comes later waits for what the lane has by now.
    pub(super) fn set_fence(&self, turn: &mut Turn, number: usize) -> Result<()> {
        if turn.lanes.len() == 1 {
            return Ok(());
        }
        let mark = self.cache.take(false)?;
        turn.lane(number).turn().signal(mark.raw())?;
        turn.fences += 1;
        let fences = turn.fences;
        turn.lane_mut(number).fence = fences;
        if let Some(old) = turn.fence.replace(mark) {
            self.cache.give(old, false);
        }
        Ok(())
    }
    /// The list that a command is appended to, and the batch it is in (0: none); `at_once`: whatever
    /// the queue's way is.
    pub(super) fn list_for(
        &self,
        turn: &mut Turn,
        number: usize,
        at_once: bool,
    ) -> Result<(super::driver::RawList, u64)> {
        let batch = turn.batch;
        if !self.is_batched() {
            return Ok((turn.lane(number).list().raw(), 0));
        }
        if at_once {
            self.send(turn)?;
            return Ok((turn.lane(number).list().raw(), 0));
        }
        let make =
            |next| NativeList::regular(&self.native, self.device.raw(), self.engine.ordinal, next);
        let list = turn.lane_mut(number).batch(&self.cache, make)?;
        Ok((list, batch))
    }
    /// After a command: sends a batch that is full, lets go of what has passed.
    pub(super) fn tidy(&self, turn: &mut Turn, number: usize) -> Result<()> {
        if let Submission::Batched { most } = self.submission
            && turn.lane(number).filled() >= most
        {
            self.send(turn)?;
        }
        turn.lane_mut(number).tidy(&self.cache)
    }
    fn send(&self, turn: &mut Turn) -> Result<()> {
        if !turn.lanes.iter().flatten().any(Lane::has_batch) {
            return Ok(());
        }
        let number = turn.batch;
        turn.batch += 1;
        for lane in turn.lanes.iter_mut().flatten() {
            lane.send(&self.cache)?;
        }
        self.sent.fetch_max(number, AcqRel);
        Ok(())
    }
    /// Sends what has been collected.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn flush(&self) -> Result<()> {
        if self.is_batched() { self.send(&mut self.turn()) } else { Ok(()) }
    }
    /// Sends the batch with this number, if it has not been sent.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn flush_up_to(&self, batch: u64) -> Result<()> {
        if self.sent.load(Acquire) >= batch { Ok(()) } else { self.flush() }
    }
    fn lists(&self) -> Vec<Arc<NativeList>> {
        let turn = self.turn();
        turn.lanes.iter().flatten().map(|lane| Arc::clone(lane.list())).collect()
    }
    pub(super) fn is_idle(&self) -> Result<bool> {
        if self.turn().lanes.iter().flatten().any(Lane::has_batch) {
            return Ok(false);
        }
        self.lists().iter().try_fold(true, |idle, list| Ok(list.wait(0)? && idle))
    }
    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if that never happens; the driver's own.
    pub(super) fn finish(&self) -> Result<()> {
        self.flush()?;
        if self.turn().lanes.len() == 1 {
            let list = Arc::clone(self.turn().lane(0).list());
            return self.patiently(|slice| list.wait(slice));
        }
        self.lists().iter().try_for_each(|list| self.patiently(|slice| list.wait(slice)))
    }
    /// Waits for an event of this queue's.
    ///
    /// # Errors
    /// As for [`Work::finish`].
    pub(super) fn wait_for(&self, event: &EventKind) -> Result<()> {
        self.patiently(|slice| event.wait(slice))
    }
    /// For ever, unless it may be that nothing comes.
    fn patiently(&self, wait: impl Fn(u64) -> Result<bool>) -> Result<()> {
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
    /// Whether its lists wait for what may never come.
    pub(super) fn has_debts(&self) -> bool {
        self.has_debts.load(Acquire)
    }
    /// One of its lists waits for that.
    pub(super) fn owe(&self, debt: Arc<Debt>) {
        // The oldest are paid first: what is kept is what is owed, and a little more.
        let oldest = self.open().front().cloned();
        let paid = oldest.filter(|oldest| oldest.progress() == Progress::Paid);
        let mut open = self.open();
        if let (Some(paid), Some(oldest)) = (&paid, open.front())
            && Arc::ptr_eq(paid, oldest)
        {
            open.pop_front();
        }
        open.push_back(debt);
        self.has_debts.store(true, Release);
    }
    /// What its lists wait for.
    pub(super) fn debts(&self) -> Vec<Arc<Debt>> {
        match self.has_debts() {
            true => self.open().iter().cloned().collect(),
            false => vec![],
        }
    }
    fn open(&self) -> MutexGuard<'_, VecDeque<Arc<Debt>>> {
        self.debts.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether one of its lists waits for what never comes.
    pub(super) fn is_lost(&self) -> bool {
        if !self.has_debts() || self.is_lost.load(Acquire) {
            return self.is_lost.load(Acquire);
        }
        let (mut paid, mut is_lost) = (vec![], false);
        for debt in self.debts() {
            match debt.progress() {
                Progress::Pending => {}
                Progress::Paid => paid.push(debt),
                Progress::Lost => is_lost = true,
            }
        }
        self.is_lost.fetch_or(is_lost, AcqRel);
        let mut debts = self.open();
        let is_paid = |debt: &Arc<Debt>| paid.iter().any(|one| Arc::ptr_eq(one, debt));
        debts.retain(|debt| !is_paid(debt)); // `paid` still keeps what they keep
        self.has_debts.store(!debts.is_empty(), Release);
        drop(debts);
        drop(paid); // not under the lock
        is_lost
    }
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` for a queue that waits for what never comes.
    pub(super) fn check(&self) -> Result<()> {
        if !self.has_debts() {
            return Ok(());
        }
        let (now, before) = (host_now(), self.looked.load(Relaxed));
        if now.saturating_sub(before) < SLICE && !self.is_lost.load(Acquire) {
            return Ok(()); // each submission need not ask the driver about every debt
        }
        self.looked.store(now, Relaxed);
        if self.is_lost() { Err(lost()) } else { Ok(()) }
    }
    /// The queue is gone; its lists stay until they are idle.
    pub(super) fn leave(&self) {
        if let Err(error) = self.flush() {
            log::say(ur_logger_level_t::ERROR, &error);
        }
        self.is_over.store(true, Release);
        EVERYONE.sweep();
    }
    fn is_done(&self) -> bool {
        self.is_over.load(Acquire) && self.is_idle().unwrap_or(true)
    }
    /// What it takes to know when everything submitted so far is done.
    fn note(self: &Arc<Self>, into: &mut Vec<(Arc<Self>, EventKind)>) -> Result<()> {
        self.flush()?;
        let turn = self.turn();
        for lane in turn.lanes.iter().flatten() {
            if !lane.list().wait(0)? {
                let mark = self.cache.take(false)?;
                lane.turn().signal(mark.raw())?;
                into.push((Arc::clone(self), mark));
            }
        }
        Ok(())
    }
}
impl Turn {
    pub(super) fn lane(&self, number: usize) -> &Lane {
        self.lanes[number]
            .as_ref()
            .expect("`next` made the lanes that it names; the first is always there")
    }
    pub(super) fn lane_mut(&mut self, number: usize) -> &mut Lane {
        self.lanes[number]
            .as_mut()
            .expect("`next` made the lanes that it names; the first is always there")
    }
    /// The lane waits for this event until it has passed it.
    pub(super) fn keep(&mut self, number: usize, event: &EventKind) {
        if let EventKind::Pooled(event) = event {
            self.lane_mut(number).hold(Arc::clone(event));
        }
    }
    /// Adds to `waits` the last barrier, if the lane is not behind it.
    pub(super) fn fence_before(&mut self, number: usize, waits: &mut impl Extend<RawEvent>) {
        let fences = self.fences;
        if self.lane(number).fence == fences {
            return;
        }
        self.lane_mut(number).fence = fences;
        let pooled = match &self.fence {
            Some(EventKind::Pooled(event)) => Some(Arc::clone(event)),
            _ => None,
        };
        waits.extend(self.fence.as_ref().map(EventKind::raw));
        if let Some(event) = pooled {
            self.lane_mut(number).hold(event);
        }
    }
}

/// Nanoseconds of the host's clock.
fn host_now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The queues of this process, and what released ones have still to do.
#[derive(Debug)]
struct Everyone(Mutex<Vec<Arc<Work>>>);
static EVERYONE: Everyone = Everyone(Mutex::new(Vec::new()));
impl Everyone {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Work>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn add(&self, work: &Arc<Work>) {
        self.sweep();
        self.all().push(Arc::clone(work));
    }
    /// Lets go of what is over and idle; the driver is not asked under the lock.
    fn sweep(&self) {
        let over: Vec<_> = self.all().iter().filter(|w| w.is_over.load(Acquire)).cloned().collect();
        let gone: Vec<_> = over.into_iter().filter(|w| w.is_done()).collect();
        let mut all = self.all();
        let is_gone = |w: &Arc<Work>| gone.iter().any(|g| Arc::ptr_eq(g, w));
        let taken: Vec<_> = all.extract_if(.., |w| is_gone(w)).collect();
        drop(all);
        drop(taken);
    }
    fn of(&self, is_meant: impl Fn(&Work) -> bool) -> Vec<Arc<Work>> {
        self.all().iter().filter(|work| is_meant(work)).cloned().collect()
    }
}

/// Everything submitted up to a moment.
#[derive(Debug)]
pub(super) struct Ticket(Vec<(Arc<Work>, EventKind)>);
impl Ticket {
    /// Whether it is done; what failed is done.
    pub(super) fn is_over(&self) -> bool {
        self.0.iter().all(|(work, mark)| mark.is_complete().unwrap_or(true) || work.is_lost())
    }
    /// Waits until it is done; how commands ended is for their queues and events to tell.
    pub(super) fn wait(&self) {
        self.0.iter().for_each(|(work, mark)| drop(work.wait_for(mark)));
    }
}
impl Drop for Ticket {
    fn drop(&mut self) {
        for (work, mark) in self.0.drain(..) {
            work.cache.give(mark, false);
        }
    }
}
/// What was submitted so far to queues of the context with this handle; 0: of all contexts.
/// A queue whose driver is gone has nothing to wait for.
pub(super) fn ticket(context: usize) -> Ticket {
    let mut marks = vec![];
    for work in EVERYONE.of(|work| context == 0 || work.context == context) {
        let _ = work.note(&mut marks);
    }
    Ticket(marks)
}
/// Waits for all commands submitted so far to queues of `device`.
///
/// # Errors
/// As for [`Work::finish`].
pub(super) fn wait_for_device(device: &Device) -> Result<()> {
    let meant = EVERYONE.of(|work| work.device.is(device));
    // All have ended when this returns, failures or not.
    let mut done = Ok(());
    for work in meant {
        done = done.and(work.finish());
    }
    done
}
