//! How a command gets into a command list: behind what it waits for, with what marks its beginning and
//! its end, at once or in a batch. What commands there are is `enqueue.rs`'s.
use super::{
    Event, Queue, clock,
    driver::{RawDevice, RawEvent, RawList},
    lane::Lane,
    native::{
        event::{EventKind, PooledEvent},
        list::List,
    },
    queue::{Spot, Turn},
    reusable::{Debt, Owed, lost},
    signal::{Home, Signal, Times},
};
use std::sync::{Arc, MutexGuard};
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_core::profiling::Profile;
use ur_hal::Order;
use ur_sys::ur_command_t;

/// The event of a command, if C wanted one.
pub(super) type Made = Result<Option<Owned<Event>>>;

/// Events that have to be there until a command has passed.
pub(super) type Kept = Vec<Arc<PooledEvent>>;

/// How a command comes to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Appends {
    /// By one append, which takes what is to be waited for and signalled with it.
    One,
    /// By any number.
    Any,
}

/// Submits a command: `body` appends what it consists of to the list that it is given.
///
/// # Errors
/// `IN_EVENT_LIST_EXEC_STATUS` if what it waits for has failed; `body`'s, and the driver's own.
pub(super) fn submit(
    queue: Borrowed<'_, Queue>,
    command: ur_command_t,
    waits: &[Borrowed<'_, Event>],
    report: Report,
    body: impl FnOnce(&List<'_>) -> Result<()>,
) -> Made {
    Submission::new(queue, command, report).put(queue, waits, |list, _| body(list))
}
/// Submits a command for which `body` appends exactly one of the driver's: that takes what is waited
/// for and what is signalled with it.
///
/// # Errors
/// As for [`submit`].
pub(super) fn submit_one(
    queue: Borrowed<'_, Queue>,
    command: ur_command_t,
    waits: &[Borrowed<'_, Event>],
    report: Report,
    body: impl FnOnce(&List<'_>) -> Result<()>,
) -> Made {
    let submission = Submission::new(queue, command, report);
    Submission { appends: Appends::One, ..submission }.put(queue, waits, |list, _| body(list))
}

/// What a command waits for: no allocation for a few events.
#[derive(Debug, Default)]
pub(super) struct Waits {
    few: Option<[RawEvent; 8]>,
    count: usize,
    many: Vec<RawEvent>,
    /// What may never come.
    owed: Vec<Owed>,
}
impl Extend<RawEvent> for Waits {
    fn extend<T: IntoIterator<Item = RawEvent>>(&mut self, events: T) {
        for event in events {
            match self.few.get_or_insert([event; 8]).get_mut(self.count) {
                Some(place) => {
                    *place = event;
                    self.count += 1;
                }
                None => self.many.push(event),
            }
        }
    }
}
impl Waits {
    pub(super) fn owe(&mut self, owed: Owed) {
        self.owed.push(owed);
    }
    /// All of them.
    fn list(&mut self) -> &[RawEvent] {
        let few = self.few.as_ref().map_or(&[][..], |few| &few[..self.count]);
        if self.many.is_empty() {
            return few;
        }
        self.many.extend(few);
        &self.many
    }
}

/// What is known of a command beside what it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submission {
    pub(super) command: ur_command_t,
    pub(super) order: Order,
    pub(super) report: Report,
    pub(super) appends: Appends,
    /// Which times its event tells.
    pub(super) profile: Profile,
    /// Whether it is submitted at once, whatever the queue's way is.
    pub(super) at_once: bool,
}
impl Submission {
    pub(super) fn new(queue: Borrowed<'_, Queue>, command: ur_command_t, report: Report) -> Self {
        let profile = if queue.is_profiling() { Profile::Phases } else { Profile::Off };
        let (order, appends, at_once) = (Order::Free, Appends::Any, false);
        Self { command, order, report, appends, profile, at_once }
    }
    /// Submits it. `body` has, beside the list, the events that have to be kept until it has passed.
    pub(super) fn put(
        self,
        queue: Borrowed<'_, Queue>,
        waits: &[Borrowed<'_, Event>],
        body: impl FnOnce(&List<'_>, &mut Kept) -> Result<()>,
    ) -> Made {
        let work = queue.work();
        work.check()?;
        if waits.is_empty() && !self.profile.is_on() && !work.is_batched() {
            let mut turn = work.turn();
            let number = work.next(&mut turn)?;
            work.mark_barrier(&mut turn)?;
            let is_free = self.order == Order::Free || turn.is_single();
            if is_free && turn.is_behind_barrier(number) {
                return self.put_alone(queue, turn, number, body);
            }
        }
        let signal = self.append_behind(queue, waits, self.report.wants_event(), body)?;
        let Some(signal) = signal else { return Ok(None) };
        if let Report::Done { .. } = self.report {
            signal.wait()?;
        }
        Ok(self.report.wants_event().then(|| Event::of(self.command, signal)))
    }
    /// The same for one that waits for nothing but what is before it in its lane: the way of most, on
    /// which as little as can be is done.
    #[inline]
    fn put_alone(
        self,
        queue: Borrowed<'_, Queue>,
        mut turn: MutexGuard<'_, Turn>,
        number: usize,
        body: impl FnOnce(&List<'_>, &mut Kept) -> Result<()>,
    ) -> Made {
        let work = queue.work();
        work.mark_tail(&mut turn, number)?;
        let is_wanted = self.report != Report::None;
        let is_late = is_wanted && work.does_without(&mut turn, number);
        let end = if is_wanted && !is_late { Some(work.cache().take(false)?) } else { None };
        let owner = if is_wanted { Some(queue.own()?) } else { None };
        let lane = turn.lane_mut(number);
        let spot = Spot { lane: number as u32, number: lane.count_one() };
        let (at, engines, raw) = (lane.raw(), lane.engines(), end.as_ref().map(EventKind::raw));
        match self.appends {
            Appends::One => body(&List::new(at, engines, &[], raw), lane.held())?,
            Appends::Any => {
                body(&List::new(at, engines, &[], None), lane.held())?;
                let list = List::new(at, engines, &[], None);
                raw.map_or(Ok(()), |raw| list.signal(raw))?;
            }
        }
        lane.tail = is_late.then_some(spot.number);
        lane.tidy(work.cache())?;
        drop(turn);
        let Some(owner) = owner else { return Ok(None) };
        let place = (Some(spot), 0);
        let event = Event::of(self.command, Signal::new(Home::Queue(owner), end, None, place));
        if let Report::Done { .. } = self.report {
            event.wait_for_command()?;
        }
        Ok(Some(event).filter(|_| self.report.wants_event()))
    }
    /// Puts it into a list; what marks its end, if that is wanted.
    pub(super) fn append(
        self,
        queue: Borrowed<'_, Queue>,
        waits: &[Borrowed<'_, Event>],
        body: impl FnOnce(&List<'_>, &mut Kept) -> Result<()>,
    ) -> Result<Option<Signal>> {
        queue.work().check()?;
        self.append_behind(queue, waits, false, body)
    }
    /// The same, when it was checked; `keeps`: what marks its end keeps the queue.
    fn append_behind(
        self,
        queue: Borrowed<'_, Queue>,
        waits: &[Borrowed<'_, Event>],
        keeps: bool,
        body: impl FnOnce(&List<'_>, &mut Kept) -> Result<()>,
    ) -> Result<Option<Signal>> {
        let work = queue.work();
        for event in waits {
            event.send_for(&queue)?; // before the turn is taken: it may take another queue's
        }
        let times = match self.profile.is_on() && self.report.wants_event() {
            true => Some(clock::now(queue.device())?),
            false => None,
        };
        let mut turn = work.turn();
        let number = work.next(&mut turn)?;
        work.mark_barrier(&mut turn)?;
        let mut known = Waits::default();
        for event in waits {
            event
                .order(&queue, &mut known, |kept| turn.keep(number, kept))
                .map_err(in_wait_list)?;
        }
        turn.fence_before(number, &mut known);
        let mut marks = vec![];
        if self.order != Order::Free {
            work.gather(&mut turn, number, &mut known, &mut marks)?;
        }
        let at_once = self.at_once || !known.owed.is_empty();
        let (raw, batch) = work.list_for(&mut turn, number, at_once)?;
        work.mark_tail(&mut turn, number)?;
        let put = Put::new(queue, keeps, turn.lane_mut(number), number);
        let put = Put { list: raw, batch, ..put };
        let owed = std::mem::take(&mut known.owed);
        let mut list = known.list();
        if !owed.is_empty() {
            incur(&queue, &put.turn(&[], None), list, owed)?;
            list = &[];
        }
        let held = turn.lane_mut(number).held();
        let signal = put.body(&self, list, times, |list| body(list, held));
        marks.into_iter().for_each(|mark| work.cache().give(mark, false));
        let signal = signal?;
        if self.order == Order::Both {
            work.set_fence(&mut turn, number)?;
        }
        work.tidy(&mut turn, number)?;
        Ok(signal)
    }
}
/// One command on its way into a list.
struct Put<'put> {
    queue: Borrowed<'put, Queue>,
    /// Whether what marks its end keeps the queue.
    keeps: bool,
    list: RawList,
    engines: (RawDevice, usize),
    spot: Spot,
    batch: u64,
}
impl<'put> Put<'put> {
    /// The next one of a lane: into its immediate list.
    #[inline]
    fn new(queue: Borrowed<'put, Queue>, keeps: bool, lane: &mut Lane, number: usize) -> Self {
        let spot = Spot { lane: number as u32, number: lane.count_one() };
        let (list, engines) = (lane.list().raw(), lane.engines());
        Self { queue, keeps, list, engines, spot, batch: 0 }
    }
    fn turn<'list>(&self, waits: &'list [RawEvent], signal: Option<RawEvent>) -> List<'list> {
        List::new(self.list, self.engines, waits, signal)
    }
    fn home(&self) -> Result<Home> {
        Ok(match self.keeps {
            true => Home::Queue(self.queue.own()?),
            false => Home::Work(Arc::clone(self.queue.work())),
        })
    }
    fn body(
        &self,
        what: &Submission,
        waits: &[RawEvent],
        submitted: Option<u64>,
        body: impl FnOnce(&List<'_>) -> Result<()>,
    ) -> Result<Option<Signal>> {
        let cache = self.queue.work().cache();
        let home = if what.report == Report::None { None } else { Some(self.home()?) };
        let end = match home.is_some() {
            true => Some(cache.take(submitted.is_some())?),
            false => None,
        };
        let raw = end.as_ref().map(EventKind::raw);
        let mut start = None;
        match what.appends {
            Appends::One => body(&self.turn(waits, raw))?,
            Appends::Any => {
                self.turn(waits, None).wait_for(waits)?;
                if submitted.is_some() && what.profile == Profile::Phases {
                    let begun = cache.take(true)?;
                    self.turn(&[], None).mark(begun.raw())?;
                    start = Some(begun);
                }
                body(&self.turn(&[], None))?;
                let turn = self.turn(&[], None);
                match (raw, submitted) {
                    (Some(raw), Some(_)) => turn.mark(raw)?,
                    (Some(raw), None) => turn.signal(raw)?,
                    (None, _) => {}
                }
            }
        }
        let profile = what.profile;
        let times = submitted.map(|submitted| Times { submitted, start, profile });
        let place = (Some(self.spot), self.batch);
        Ok(home.map(|home| Signal::new(home, end, times, place)))
    }
}
/// Waits in a list for what may never come, with a mark behind it that tells whether it did.
fn incur(queue: &Queue, list: &List<'_>, waits: &[RawEvent], owed: Vec<Owed>) -> Result<()> {
    list.wait_for(waits)?;
    for owed in owed {
        let passed = queue.work().cache().take(false)?;
        list.wait_for(&[owed.event().raw()])?;
        list.signal(passed.raw())?;
        queue.work().owe(Arc::new(Debt::new(owed, passed)));
    }
    Ok(())
}
/// Adds what another process owes to what a command waits for.
///
/// # Errors
/// `IN_EVENT_LIST_EXEC_STATUS` for what never comes, and for an event whose exporter has ended, which the driver must not
/// be given any more.
pub(super) fn wait_for_owed(owed: Owed, waits: &mut Waits) -> Result<()> {
    if owed.is_lost() || !owed.is_within_reach() {
        return Err(lost());
    }
    waits.owe(owed);
    Ok(())
}
fn in_wait_list(error: Error) -> Error {
    match error.code() {
        ErrorCode::InvalidEvent => error.with_code(ErrorCode::InvalidEventWaitList),
        _ => error,
    }
}
