//! Points: ends of commands, and events of the driver's that the application made. What processes owe each other, a queue
//! waits for through an event of the host's, which one watcher completes.
use super::{
    OpenCl,
    cl::*,
    driver::{RawContext, RawEvent},
    error,
    lane::Lane,
    native::{
        event as native,
        own::{Own, Tells},
    },
};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::*},
    },
    time::Instant,
};
use ur_hal::{Error, ErrorKind, Profile, Result, Status, Times, Wait};
use ur_ipc::arena::{PendingSignal, Progress};
use ur_mapping::PerProcess;
use ur_system::owed::{Awaits, Watch};

/// What became of something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Outcome {
    Succeeded,
    Failed,
    /// It was behind a signal that never comes.
    ExporterGone,
}
/// Something whose failure is that of the commands behind it, but that the driver is told of as if it had succeeded: see
/// [`native::settle`].
#[derive(Clone, Debug)]
pub(super) enum Debt {
    /// A signal that another process owes.
    Word(PendingSignal),
    /// What this process itself sees the end of.
    Seen(Arc<OnceLock<Outcome>>),
}
impl Debt {
    /// What became of it; `None` if it is pending.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Word(signal) => match signal.progress() {
                Progress::Pending => None,
                Progress::Complete => Some(Outcome::Succeeded),
                Progress::Failed => Some(Outcome::ExporterGone),
            },
            Self::Seen(end) => end.get().copied(),
        }
    }
    pub(super) fn is_pending(&self) -> bool {
        self.outcome().is_none()
    }
    /// Whether others pay it, so that all commands of an in-order queue behind it fail with it.
    pub(super) fn is_of_others(&self) -> bool {
        matches!(self, Self::Word(_))
    }
    /// Whether the failure of `other` is one of this, too: of one counter's values the greatest says it all.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Word(one), Self::Word(two)) => {
                one.word_address() == two.word_address() && one.value() >= two.value()
            }
            (Self::Seen(one), Self::Seen(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
    /// Adds it to a list, unless that has it.
    pub(super) fn add_to(&self, list: &mut Vec<Self>) {
        if !list.iter().any(|known| known.covers(self)) {
            list.retain(|known| !known.is_pending() || !self.covers(known));
            list.push(self.clone());
        }
    }
}
/// What has failed of these, if anything has. Asks no driver.
pub(super) fn failed(behind: &[Debt]) -> Option<Outcome> {
    let outcomes = behind.iter().filter_map(Debt::outcome);
    outcomes.filter(|&outcome| outcome != Outcome::Succeeded).max()
}
/// What became of a command behind these; `is_good`: as the driver tells.
pub(super) fn outcome(behind: &[Debt], is_good: bool) -> Outcome {
    let own = if is_good { Outcome::Succeeded } else { Outcome::Failed };
    failed(behind).unwrap_or(own)
}

/// What the core knows as a point.
#[derive(Debug)]
pub struct End {
    event: Own<RawEvent>,
    /// The command's own event, where `event` is that of another one behind it whose time is noted. Markers need not fail with what they
    /// are behind.
    own: Option<Own<RawEvent>>,
    /// Of what context. The event keeps it, so that no other has its name.
    context: RawContext,
    /// Which command of which queue; `None` for an event that the application made.
    from: Option<(Arc<Lane>, u64)>,
    profile: Profile,
    submitted: u64,
    /// What may fail before it.
    behind: Vec<Debt>,
    /// Whether it was seen to be complete.
    is_settled: AtomicBool,
}
impl End {
    /// Of a command of which these times are noted.
    pub(super) fn new(
        (event, own): (Own<RawEvent>, Option<Own<RawEvent>>),
        (lane, number): (Arc<Lane>, u64),
        (profile, submitted): (Profile, u64),
        behind: Vec<Debt>,
    ) -> Self {
        let (context, is_settled) = (lane.native().context(), AtomicBool::new(false));
        let from = Some((lane, number));
        Self { event, own, context, from, profile, submitted, behind, is_settled }
    }
    /// Its event, of a command that was sent off, unless it is one of the queue `by` that waits for it.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn event(&self, by: Option<&Lane>) -> Result<&Own<RawEvent>> {
        match &self.from {
            Some((lane, number)) if by.is_none_or(|by| !std::ptr::eq(by, &raw const **lane)) => {
                lane.send(*number)?;
            }
            _ => {}
        }
        Ok(&self.event)
    }
    /// What another command waits for, so that it is behind this one and fails with it.
    fn events(&self, by: Option<&Lane>) -> Result<impl Iterator<Item = &Own<RawEvent>>> {
        Ok(self.own.iter().chain([self.event(by)?]))
    }
    /// How far the command has come, as the host or a queue asks.
    ///
    /// # Errors
    /// The driver's own: it says nothing of the command.
    pub(super) fn status(&self, by: Option<&Lane>) -> Result<Status> {
        if self.is_settled() {
            return Ok(Status::Complete);
        }
        self.judged(native::status(self.event(by)?)?)
    }
    fn judged(&self, said: Status) -> Result<Status> {
        match said {
            Status::Complete if self.has_failed()? => Ok(Status::Failed),
            Status::Complete => {
                self.is_settled.store(true, Release);
                Ok(said)
            }
            other => Ok(other),
        }
    }
    /// Whether it has failed though its event is complete.
    fn has_failed(&self) -> Result<bool> {
        let own = self.own.as_ref().map(native::status).transpose()?;
        Ok(own == Some(Status::Failed) || failed(&self.behind).is_some())
    }
    /// Whether it was seen to be complete.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled.load(Acquire)
    }
    /// What may fail, or has failed, before it.
    pub(super) fn behind(&self) -> &[Debt] {
        &self.behind
    }
    /// Sleeps until it is over, or the deadline has passed; whether it is over.
    ///
    /// # Errors
    /// Why it failed.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Result<bool> {
        if self.is_settled() {
            return Ok(true);
        }
        let is_in_order = self.from.as_ref().is_some_and(|(lane, _)| lane.native().is_in_order());
        let now = match deadline {
            None if is_in_order => native::wait_in_order(&self.event)?,
            _ => native::wait(self.event(None)?, deadline)?,
        };
        match self.judged(now)? {
            Status::Complete => Ok(true),
            Status::Failed => Err(self.failure()),
            _ => Ok(false),
        }
    }
    /// Why it failed. A device that cannot be used any more, or has run out of something, is the driver's own failure.
    pub(super) fn failure(&self) -> Error {
        if let Some(outcome) = failed(&self.behind) {
            return failure(outcome);
        }
        match native::raw_status(self.own.as_ref().unwrap_or(&self.event)) {
            Ok(
                status @ (CL_DEVICE_NOT_AVAILABLE
                | CL_OUT_OF_RESOURCES
                | CL_OUT_OF_HOST_MEMORY
                | CL_MEM_OBJECT_ALLOCATION_FAILURE),
            ) => error::failure("the command", status),
            _ => failure(Outcome::Failed),
        }
    }
    /// When it was submitted, began and ended. A timestamp and a signal are one moment.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn times(&self) -> Result<Option<Times>> {
        if self.profile == Profile::Off {
            return Ok(None);
        }
        let span = match self.status(None)? {
            Status::Complete => {
                let (began, ended) = native::span(&self.event)?;
                Some((if self.profile == Profile::Phases { began } else { ended }, ended))
            }
            _ => None,
        };
        Ok(Some(Times { submitted: self.submitted, span }))
    }
}
/// The error of a command before which something failed.
pub(super) fn failure(outcome: Outcome) -> Error {
    let why = "what a command waits for has failed";
    let error = Error::new(ErrorKind::DependencyFailed, why);
    match outcome {
        Outcome::ExporterGone => error.because(ur_ipc::ErrorKind::ExporterGone),
        _ => error,
    }
}

/// An event of the host's that queues wait for in the place of others: of contexts whose events they do not know, of signals of
/// other processes. Whatever it stands for holds it; it is completed when the last one lets go.
struct StandIn {
    event: Own<RawEvent>,
    outcome: Arc<OnceLock<Outcome>>,
}
impl StandIn {
    fn new(context: RawContext) -> Result<Arc<Self>> {
        Ok(Arc::new(Self { event: native::of_user(context)?, outcome: Arc::default() }))
    }
    /// Has it stand for a command; if that `is_order`, its failure is none of those that wait.
    fn follow(self: &Arc<Self>, end: &End, is_order: bool) -> Result<()> {
        end.events(None)?.try_for_each(|event| {
            let (own, behind) = (Arc::clone(self), end.behind.clone());
            native::call_when_over(event, move |is_good| {
                let outcome = outcome(&behind, is_good);
                if outcome != Outcome::Succeeded && !is_order {
                    let _ = own.outcome.set(outcome); // the first failure is told
                }
            })
        })
    }
}
impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = self.outcome.set(Outcome::Succeeded); // unless something failed
        native::settle(&self.event);
    }
}
/// What a command waits for: events of the driver's, and what may fail of which the driver is not told.
#[derive(Default)]
pub(super) struct Awaited {
    pub(super) events: Vec<RawEvent>,
    pub(super) behind: Vec<Debt>,
    /// There until the command is.
    _stand_in: Option<Arc<StandIn>>,
}
impl Awaited {
    /// Of a command that comes into this queue.
    ///
    /// # Errors
    /// Why something of it has failed; the driver's own; `OutOfResources` without a thread.
    #[inline]
    pub(super) fn new(waits: &[Wait<'_, OpenCl>], queue: &Lane) -> Result<Self> {
        if waits.is_empty() { Ok(Self::default()) } else { Self::of(waits, queue) }
    }
    fn of(waits: &[Wait<'_, OpenCl>], queue: &Lane) -> Result<Self> {
        let context = queue.native().context();
        let (mut here, mut there, mut signals, mut behind) = (vec![], vec![], vec![], vec![]);
        let mut may_last = false;
        for wait in waits {
            match *wait {
                Wait::Point(end) | Wait::End(end) => {
                    let is_order = matches!(wait, Wait::End(_));
                    // What the driver does not tell is waited for.
                    match end.status(Some(queue)).unwrap_or(Status::Submitted) {
                        Status::Complete => continue,
                        Status::Failed if is_order => continue,
                        Status::Failed => return Err(end.failure()),
                        _ if is_order => may_last |= !end.behind.is_empty(),
                        _ => end.behind.iter().for_each(|debt| debt.add_to(&mut behind)),
                    }
                    if end.context == context { &mut here } else { &mut there }
                        .push((end, is_order));
                }
                Wait::Word(signal) => {
                    Debt::Word(signal.clone()).add_to(&mut behind);
                    signals.push(signal.clone());
                }
            }
        }
        // Each once: where one that is named twice fails, Intel's runtime frees the waiting command's event under us.
        here.sort_unstable_by_key(|(end, is_order)| (std::ptr::from_ref(*end), *is_order));
        here.dedup_by_key(|(end, _)| std::ptr::from_ref(*end));
        let has_others = !there.is_empty() || !signals.is_empty();
        let count: usize = here.iter().map(|(end, _)| 1 + usize::from(end.own.is_some())).sum();
        if count + usize::from(has_others) > 1 && (may_last || !behind.is_empty()) {
            // Intel's runtime crashes at the end of a process in which a command still waits for several events.
            there.append(&mut here);
        }
        if there.is_empty() && signals.is_empty() {
            let mut events = Vec::with_capacity(count);
            for (end, _) in here {
                events.extend(end.events(Some(queue))?.map(Own::raw));
            }
            return Ok(Self { events, behind, _stand_in: None });
        }
        let thread = || WATCH.get().ready("causeway-opencl");
        let watch = (!signals.is_empty()).then(thread).transpose()?;
        let stand_in = StandIn::new(context)?;
        if !there.is_empty() {
            behind.retain(Debt::is_of_others); // the others are seen with these
            behind.push(Debt::Seen(Arc::clone(&stand_in.outcome)));
        }
        there.iter().try_for_each(|(end, is_order)| stand_in.follow(end, *is_order))?;
        if let Some(watch) = watch {
            signals.into_iter().for_each(|signal| watch.watch(signal, Arc::clone(&stand_in)));
        }
        Ok(Self { events: vec![stand_in.event.raw()], behind, _stand_in: Some(stand_in) })
    }
}

static WATCH: PerProcess<Watch<StandIn>> = PerProcess::new();
impl Awaits for StandIn {
    fn ended(self: Arc<Self>, _: Progress) {} // it lets go
}

/// A point over an event that C made in this context.
///
/// # Errors
/// `InvalidValue` for one of another context; the driver's own.
pub(super) fn adopted(context: RawContext, raw: Option<RawEvent>, is_owned: bool) -> Result<End> {
    let raw = raw.ok_or(ErrorKind::InvalidValue)?;
    raw.check_context(CL_EVENT_CONTEXT, context, ErrorKind::InvalidValue)?;
    let event = Own::adopted(raw, is_owned)?;
    let (from, profile, is_settled) = (None, Profile::Off, AtomicBool::new(false));
    let (own, behind) = (None, vec![]);
    Ok(End { event, own, context, from, profile, submitted: 0, behind, is_settled })
}
