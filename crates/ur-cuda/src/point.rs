//! Points, of which the core makes events: the end of a command in a lane, or a driver event that the
//! application created. The driver's events are in `native/event.rs`; events that are signalled repeatedly
//! are in the core.
use super::{
    DriverDevice,
    clock::Base,
    driver::{CAPTURED_EVENT, Dialect, RawEvent, is_of_capture},
    lane::captured,
    native::{
        context::Entered,
        event::{NativeEvent, Pooled},
        stream::Stream,
    },
    patience,
    shared_words::{await_all, have_failed, lost},
    work::QueueState,
};
use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering::*},
};
use ur_hal::{Error, ErrorKind, Profile, Result, Status, Times, host_clock};
use ur_ipc::arena::{PendingSignal, Progress};

/// A point in a stream.
#[derive(Debug)]
pub enum Point<D: Dialect> {
    /// The end of a command.
    Command(End<D>),
    /// A driver event that the application created, and a device whose context is current for queries of it.
    Native(NativeEvent<D>, Arc<DriverDevice<D>>),
}

/// The end of a command in its lane.
#[derive(Debug)]
pub struct End<D: Dialect> {
    event: Pooled<D>,
    marks: Option<Marks<D>>,
    status: AtomicU8,
    /// The number of the capture that has it, if it is `CAPTURED`.
    capture: u64,
    /// Whether other code may have captured its stream.
    is_lent: bool,
    /// Pending signals of other processes that the queue's lanes waited for when the command was submitted;
    /// mostly none.
    debts: Vec<PendingSignal>,
    /// The number of its queue state.
    work: u64,
}
/// What the times of a command are computed from.
#[derive(Debug)]
pub(super) struct Marks<D: Dialect> {
    base: Arc<Base<D>>,
    /// When it was submitted, in nanoseconds of the host's clock, which approximates the device's.
    submitted: u64,
    /// `None`: only the end is recorded.
    start: Option<Pooled<D>>,
}
impl<D: Dialect> Marks<D> {
    /// Marks the start of the next command in `stream`; `None` if no times are requested.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn begin(
        device: &DriverDevice<D>,
        on: &Entered<D>,
        stream: &Stream<D>,
        profile: Profile,
    ) -> Result<Option<Self>> {
        if profile == Profile::Off {
            return Ok(None);
        }
        let (base, submitted) = (device.base()?, host_clock());
        let start = match profile {
            Profile::Phases => Some(device.events().take(on, true)?),
            _ => None,
        };
        start.as_ref().map_or(Ok(()), |start| start.record(stream))?;
        Ok(Some(Self { base, submitted, start }))
    }
}
/// The error for what concerns the end of a captured command.
#[cold]
fn in_graph() -> Error {
    let why = "the command was captured into a graph by somebody else in this process, and does not run by itself: wait for what \
               the graph is launched in, and not for its event";
    Error::new(ErrorKind::InvalidOperation, why)
}
const PENDING: u8 = 0;
const COMPLETE: u8 = 1;
const FAILED: u8 = 2;
/// The command was captured into a graph by other code, and does not run here. The driver must not be
/// queried: querying such an event invalidates the capture.
const CAPTURED: u8 = 3;

impl<D: Dialect> End<D> {
    /// The end that `event` marks. The event has been recorded; `capture` is the number of the capture that
    /// the lane is in, and with `is_lent` it may have been in one that has ended.
    pub(super) fn new(
        work: &QueueState<D>,
        event: Pooled<D>,
        marks: Option<Marks<D>>,
        (capture, is_lent): (Option<u64>, bool),
    ) -> Self {
        let (status, marks, debts) = match capture {
            Some(_) => (CAPTURED, None, vec![]),
            None => (PENDING, marks, work.open_debts()),
        };
        let (status, capture) = (AtomicU8::new(status), capture.unwrap_or(0));
        Self { event, marks, status, capture, is_lent, debts, work: work.number }
    }
    fn settle(&self, outcome: &Result<bool>) {
        match outcome {
            Ok(true) if have_failed(&self.debts) => self.status.store(FAILED, Release),
            Ok(true) => self.status.store(COMPLETE, Release),
            Ok(false) => {}
            Err(error) if error.kind().is_gone() => self.status.store(FAILED, Release),
            // Another thread began the capture meanwhile.
            Err(error) if error.status() == Some(CAPTURED_EVENT) => {
                self.status.store(CAPTURED, Release);
            }
            // What the driver does not tell is no failure of the command.
            Err(_) => {}
        }
    }
    fn is_complete(&self) -> bool {
        self.status.load(Acquire) == COMPLETE
    }
    fn status(&self) -> Result<Status> {
        if self.status.load(Acquire) == PENDING {
            let entered = self.event.device()?.enter();
            let outcome = entered.and_then(|_on| self.event.has_happened());
            self.settle(&outcome);
            match outcome {
                // What is recorded in a capture is unknown, and what is on a lost device has failed.
                Err(error)
                    if error.status().is_some_and(is_of_capture) || error.kind().is_gone() => {}
                outcome => _ = outcome?,
            }
        }
        Ok(match self.status.load(Acquire) {
            COMPLETE => Status::Complete,
            FAILED => Status::Failed,
            _ => Status::Submitted,
        })
    }
    /// Waits until the command is complete.
    ///
    /// # Errors
    /// [`ErrorKind::DependencyFailed`] if a signal that its queue waited for will never come;
    /// [`ErrorKind::InvalidOperation`] for a captured command; else the driver's error.
    pub(super) fn wait(&self) -> Result<()> {
        match self.status.load(Acquire) {
            COMPLETE => return Ok(()),
            CAPTURED => return Err(in_graph()),
            FAILED => {}                 // the driver says at once how
            _ => await_all(&self.debts), // sleeps while other processes' signals are pending
        }
        let outcome = self.event.wait().map(|()| true);
        self.settle(&outcome);
        match self.status.load(Acquire) {
            FAILED if outcome.is_ok() => Err(lost()),
            CAPTURED => Err(in_graph()),
            _ => outcome.map(drop),
        }
    }
    fn precede(&self, work: &QueueState<D>, stream: &Stream<D>) -> Result<()> {
        match self.status.load(Acquire) {
            COMPLETE | FAILED => Ok(()),
            // Waiting for a captured event would add the stream to the capture, or end another one.
            CAPTURED if stream.captured_by() != Some(self.capture) => Err(in_graph()),
            // The driver would end the capture.
            PENDING if stream.captured_by().is_some() => match self.status()? {
                Status::Submitted => Err(captured("waiting for a command that runs")),
                _ => Ok(()),
            },
            // It precedes the command in the same stream, and its pending signals are those of the same
            // queue.
            _ if work.is_in_order() && work.number == self.work => Ok(()),
            _ => stream.wait_for(&self.event).inspect_err(|error| {
                if error.status().is_some_and(is_of_capture) {
                    let _noted = self.status(); // it may be in a capture that another thread began
                }
            }),
        }
    }
    fn order(&self, work: &QueueState<D>, stream: &Stream<D>) -> Result<()> {
        self.precede(work, stream)?;
        if self.status.load(Acquire) == FAILED {
            return Err(Error::failed_dependency());
        }
        for debt in self.debts.iter().filter(|debt| debt.progress() != Progress::Complete) {
            work.owe(debt.clone());
        }
        Ok(())
    }
    fn times(&self) -> Result<Option<Times>> {
        let Some(Marks { base, submitted, start }) = &self.marks else { return Ok(None) };
        let span = match self.status()? {
            Status::Complete => {
                let _on = self.event.device()?.enter()?;
                let ended = base.time_of(&self.event)?;
                let began = start.as_ref().map_or(Ok(ended), |start| base.time_of(start))?;
                Some((began, ended))
            }
            _ => None,
        };
        Ok(Some(Times { submitted: *submitted, span }))
    }
}
impl<D: Dialect> Point<D> {
    /// Whether it is known to be complete.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self, Self::Command(end) if end.is_complete())
    }
    /// Checks that it was not captured.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOperation`].
    pub(super) fn check_runs(&self) -> Result<()> {
        match self {
            Self::Command(end) => {
                if end.is_lent {
                    let _noted = end.status(); // a capture that has it is over, and not broken by this
                }
                match end.status.load(Acquire) {
                    CAPTURED => Err(in_graph()),
                    _ => Ok(()),
                }
            }
            Self::Native(..) => Ok(()),
        }
    }
    /// Its current state.
    ///
    /// # Errors
    /// [`ErrorKind::Uninitialized`] in a forked child; the driver's error.
    pub(super) fn status(&self) -> Result<Status> {
        match self {
            Self::Command(end) => end.status(),
            Self::Native(event, device) => {
                let _on = device.enter()?;
                Ok(if event.is_complete()? { Status::Complete } else { Status::Submitted })
            }
        }
    }
    /// Waits until it is complete.
    ///
    /// # Errors
    /// Those of the command's end or of the driver's event, as in `End::wait`.
    pub(super) fn wait(&self) -> Result<()> {
        match self {
            Self::Command(end) => end.wait(),
            Self::Native(event, device) => Ok(patience::wait_for(event, device)?),
        }
    }
    /// When its command was submitted, started and ended; `None` without profiling.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn times(&self) -> Result<Option<Times>> {
        match self {
            Self::Command(end) => end.times(),
            Self::Native(..) => Ok(None),
        }
    }
    /// Makes everything enqueued to `stream` from now on wait for its end, whether it succeeds or fails.
    ///
    /// # Errors
    /// As for [`order`](Self::order), without `DependencyFailed`.
    pub(super) fn precede(&self, work: &QueueState<D>, stream: &Stream<D>) -> Result<()> {
        match self {
            Self::Command(end) => end.precede(work, stream),
            Self::Native(event, _) => Ok(stream.wait_for(event)?),
        }
    }
    /// Makes everything enqueued to `stream` from now on wait for it. `stream` is a lane of `work`.
    ///
    /// # Errors
    /// [`ErrorKind::DependencyFailed`] if its command has failed; [`ErrorKind::InvalidOperation`] if that was
    /// captured by another stream; else the driver's error.
    pub(super) fn order(&self, work: &QueueState<D>, stream: &Stream<D>) -> Result<()> {
        match self {
            Self::Command(end) => end.order(work, stream),
            Self::Native(event, _) => Ok(stream.wait_for(event)?),
        }
    }
    /// The driver's event.
    pub(super) fn raw(&self) -> RawEvent {
        match self {
            Self::Command(end) => end.event.raw(),
            Self::Native(event, _) => event.raw(),
        }
    }
}
