//! How a command gets into a command list: behind what it waits for, with what marks its beginning and
//! its end, at once or in a batch. Which way each kind of command goes is `streams.rs`'s.
use super::{
    LevelZero,
    announcer::NAPS,
    clock,
    driver::{RawDevice, RawEvent, RawList},
    fate::Fate,
    lane::Lane,
    native::{
        event::{EventKind, PooledEvent},
        execute::is_one_append,
        list::List,
    },
    point::Point,
    reusable::{PendingRemote, PendingSignal},
    signal::{Marks, Signal, is_passing},
    work::{CommandId, LockedState, QueueState},
};
use std::sync::{Arc, MutexGuard};
use ur_adapter::error::{Error, Result};
use ur_hal::{Command, Completion, Order, Profile, Wait};

/// What is submitted.
type Submission<'a> = ur_hal::Submission<'a, LevelZero>;

/// Events that have to be there until a command has passed.
pub(super) type PooledEvents = Vec<Arc<PooledEvent>>;

/// How a command comes to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Appends {
    /// By one append, which takes what is to be waited for and signalled with it.
    One,
    /// By any number.
    #[default]
    Any,
}
/// Which way a command gets into a list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct How<'how> {
    pub(super) appends: Appends,
    /// Whether it is submitted at once, whatever the stream's way is.
    pub(super) at_once: bool,
    /// Whether an engine that only copies can do it.
    pub(super) copies: bool,
    /// Whether it waits for the host: see `stall.rs`.
    pub(super) stalls: bool,
    /// Of a command that a thread of ours carries out.
    pub(super) fate: Option<&'how Arc<Fate>>,
}
impl How<'_> {
    /// For a command that lists take as it is.
    #[inline]
    pub(super) fn of(command: &Command<'_, LevelZero>) -> Self {
        let appends = if is_one_append(command) { Appends::One } else { Appends::Any };
        let copies =
            matches!(command, Command::Copy { .. } | Command::Copy2d { .. } | Command::Copy3d(_));
        Self { appends, copies, ..Self::default() }
    }
}

/// What a command waits for: no allocation for a few events.
#[derive(Debug, Default)]
pub(super) struct Waits {
    few: Option<[RawEvent; 8]>,
    count: usize,
    many: Vec<RawEvent>,
    /// What may never come.
    owed: Vec<PendingRemote>,
    /// What may fail though the driver says that it is done.
    fates: Vec<Arc<Fate>>,
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
    pub(super) fn owe(&mut self, owed: PendingRemote) {
        self.owed.push(owed);
    }
    pub(super) fn depend_on(&mut self, fate: &Arc<Fate>) {
        self.fates.push(Arc::clone(fate));
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

impl QueueState {
    /// Submits a command, and returns what marks its end if that is wanted. `body` has, beside the list, the events that have
    /// to be kept until the command has passed.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if what it waits for has failed; the driver's own; its own, if it is waited for.
    #[inline]
    pub(super) fn put(
        self: &Arc<Self>,
        what: &Submission<'_>,
        how: How<'_>,
        body: impl FnOnce(&List<'_>, &mut PooledEvents) -> Result<()>,
    ) -> Result<Option<Signal>> {
        self.check()?;
        let made = match self.place_alone(what, how)? {
            Some((turn, number)) => self.put_alone(turn, number, what, how, body),
            None => self.append_behind(what, how, body),
        };
        let signal = match made {
            Ok(signal) => signal,
            Err(error) => return Err(self.refused(what, error)),
        };
        if what.completion.is_awaited()
            && let Some(signal) = &signal
        {
            signal.wait()?;
        }
        Ok(signal.filter(|_| what.completion.wants_point()))
    }
    /// Of a command that the driver had no memory for a part may be under way, which writes where the caller waits for it: that is
    /// waited for first, in an in-order stream, whose caller waits for all that is before it anyway.
    #[cold]
    fn refused(&self, what: &Submission<'_>, error: Error) -> Error {
        let mut nap = NAPS[0];
        let is_waited_for = what.completion.is_awaited() && self.is_in_order();
        while is_waited_for && is_passing(&error) && matches!(self.is_idle(), Ok(false)) {
            if self.is_lost() {
                break;
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(NAPS[1]);
        }
        error
    }
    /// The lane of a command that waits for nothing but what is before it there; `None` for all others.
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
    /// Puts such a command there: the way of most, on which as little as can be is done.
    #[inline]
    fn put_alone(
        self: &Arc<Self>,
        mut turn: MutexGuard<'_, LockedState>,
        number: usize,
        what: &Submission<'_>,
        how: How<'_>,
        body: impl FnOnce(&List<'_>, &mut PooledEvents) -> Result<()>,
    ) -> Result<Option<Signal>> {
        self.mark_tail(&mut turn, number)?;
        let is_wanted = what.completion != Completion::None;
        let is_late = is_wanted && self.does_without(&mut turn, number);
        let end = if is_wanted && !is_late { Some(self.cache().take(false)?) } else { None };
        let lane = turn.lane_mut(number);
        let spot = CommandId { lane: number as u32, number: lane.count_one() };
        let (at, engines, raw) = (lane.raw(), lane.engines(), end.as_ref().map(EventKind::raw));
        match how.appends {
            Appends::One => body(&List::new(at, engines, &[], raw), lane.held())?,
            Appends::Any => {
                let list = List::new(at, engines, &[], None);
                body(&list, lane.held())?;
                raw.map_or(Ok(()), |raw| list.signal(raw))?;
            }
        }
        lane.tail = is_late.then_some(spot.number);
        lane.tidy(self.cache())?;
        drop(turn);
        let signal = is_wanted.then(|| Signal::new(self, end, None, (Some(spot), 0)));
        if let (Some(signal), Some(fate)) = (&signal, self.fates.last()) {
            signal.depend_on(&fate);
        }
        Ok(signal)
    }
    /// Puts a command into a list, and returns what marks its end, if that is wanted: the way that is never left out.
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
        self.append_behind(what, how, body)
    }
    /// The same, when it was checked.
    fn append_behind(
        self: &Arc<Self>,
        what: &Submission<'_>,
        how: How<'_>,
        body: impl FnOnce(&List<'_>, &mut PooledEvents) -> Result<()>,
    ) -> Result<Option<Signal>> {
        for wait in what.waits {
            point(wait)?.send_for(self)?; // before the turn is taken: it may take another stream's
        }
        let times = match what.profile != Profile::Off && what.completion != Completion::None {
            true => Some(clock::now(&self.device)?),
            false => None,
        };
        let mut turn = self.turn();
        let is_known = self.is_in_order() && self.may_stall();
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
        turn.fence_before(number, &mut known);
        let mut marks = vec![];
        if what.order != Order::Free {
            self.gather(&mut turn, number, &mut known, &mut marks)?;
        }
        let at_once = how.at_once || !known.owed.is_empty();
        let (raw, batch) = self.list_for(&mut turn, number, at_once)?;
        self.mark_tail(&mut turn, number)?;
        let put = Put { list: raw, batch, ..Put::new(self, turn.lane_mut(number), number) };
        let owed = std::mem::take(&mut known.owed);
        let fate = self.fate_of(what, how, std::mem::take(&mut known.fates));
        let mut list = known.list();
        if !owed.is_empty() {
            self.incur(&put.turn(&[], None), list, owed)?;
            list = &[];
        }
        let held = turn.lane_mut(number).held();
        let signal = put.body(what, how, list, times, |list| body(list, held));
        marks.into_iter().for_each(|mark| self.cache().give(mark, false));
        let signal = signal?;
        if let (Some(signal), Some(fate)) = (&signal, fate) {
            signal.depend_on(&fate);
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
    /// What a command's end depends on beside the driver: its own fate, or that of commands which it waits for (`fates`) or
    /// is behind in its queue.
    #[inline]
    fn fate_of(
        &self,
        what: &Submission<'_>,
        how: How<'_>,
        mut fates: Vec<Arc<Fate>>,
    ) -> Option<Arc<Fate>> {
        let last = self.fates.last();
        let is_behind_all = !self.is_in_order() && what.order != Order::Free;
        let open = if is_behind_all { self.fates.open() } else { vec![] };
        if how.fate.is_none() && fates.is_empty() && open.is_empty() {
            return last;
        }
        let is_new = !fates.is_empty() || !open.is_empty() || how.fate.is_some();
        fates.extend(open);
        fates.extend(last);
        let fate = match how.fate {
            Some(own) => {
                own.follow(fates);
                Some(Arc::clone(own))
            }
            None => Fate::behind(fates),
        };
        // Who waits for the command learns of its failure, and nobody else needs to.
        let leads = self.is_in_order() || what.order == Order::Both;
        if let Some(fate) = fate.as_ref().filter(|_| is_new && leads)
            && !what.completion.is_awaited()
        {
            self.fates.follow(fate);
        }
        fate
    }
    /// Waits in a list for what may never come, with a mark behind it that tells whether it did.
    fn incur(&self, list: &List<'_>, waits: &[RawEvent], owed: Vec<PendingRemote>) -> Result<()> {
        list.wait_for(waits)?;
        for owed in owed {
            let passed = self.cache().take(false)?;
            list.wait_for(&[owed.event().raw()])?;
            list.signal(passed.raw())?;
            self.owe(Arc::new(PendingSignal::new(owed, passed)));
        }
        Ok(())
    }
}
/// The driver has no waits for words; `Streams::event_sharing` says so.
fn point<'a>(wait: &Wait<'a, LevelZero>) -> Result<&'a Point> {
    match wait {
        Wait::Point(point) => Ok(point),
        Wait::Word(_) => Error::unsupported("waits for words that processes share"),
    }
}
/// One command on its way into a list.
struct Put<'put> {
    work: &'put Arc<QueueState>,
    list: RawList,
    engines: (RawDevice, usize),
    spot: CommandId,
    batch: u64,
}
impl<'put> Put<'put> {
    /// The next one of a lane: into its immediate list.
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
        let cache = self.work.cache();
        let end = match what.completion {
            Completion::None => None,
            _ => Some(cache.take(submitted.is_some())?),
        };
        let raw = end.as_ref().map(EventKind::raw);
        let mut start = None;
        match how.appends {
            Appends::One => body(&self.turn(waits, raw))?,
            Appends::Any => {
                self.turn(waits, None).wait_for(waits)?;
                let list = self.turn(&[], None);
                if submitted.is_some() && what.profile == Profile::Phases {
                    let begun = cache.take(true)?;
                    list.mark(begun.raw())?;
                    start = Some(begun);
                }
                body(&list)?;
                match (raw, submitted) {
                    (Some(raw), Some(_)) => list.mark(raw)?,
                    (Some(raw), None) => list.signal(raw)?,
                    (None, _) => {}
                }
            }
        }
        let profile = what.profile;
        let times = submitted.map(|submitted| Marks { submitted, start, profile });
        let signal = |end| Signal::new(self.work, Some(end), times, (Some(self.spot), self.batch));
        Ok(end.map(signal))
    }
}
