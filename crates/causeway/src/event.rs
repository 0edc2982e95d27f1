//! Events: points in the work of queues, of this process or of another one.
use crate::{Context, Error, ErrorKind, Export, Result, Ticket, ffi, ticket::Sealed, wait};
use std::{fmt, sync::Arc, time::Duration};

/// The status of an event's latest signal, or of its command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Status {
    /// Submitted, and not known to have started.
    Submitted,
    /// Started.
    Running,
    /// Done. A new event counts as done.
    Complete,
    /// It did not run, or not to its end: something that it waited for failed, or the process that submitted it is
    /// gone.
    Failed,
}

/// A point in the work of a queue, to wait for.
///
/// Every command returns one. Events of [`Context::create_event`] are signalled by queues, repeatedly; those of
/// [`Context::create_shared_event`] also by other processes that open a ticket for them. A wait is for the latest
/// signal submitted by then; a new event counts as complete. Clones are the same event.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Context, Device, Queue, Status};
///
/// let context = Context::new(&Device::first()?)?;
/// let (first, second) = (Queue::new(&context)?, Queue::new(&context)?);
/// let ready = context.create_event()?;
/// assert_eq!(ready.status()?, Status::Complete);
///
/// first.signal(&ready)?;              // when what is on `first` is done …
/// second.wait_for(&[&ready])?;        // … `second` goes on
/// second.finish()?;
/// ready.wait()?;
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone)]
pub struct Event {
    context: Context,
    raw: Arc<ffi::Event>,
    origin: Origin,
}

/// The origin of an event, which decides what may be done with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A command, for which the event always stands.
    Command,
    /// [`Context::create_event`].
    Created,
    /// [`Context::create_shared_event`].
    Shared,
    /// A ticket of another process or of this one.
    Opened,
}

impl Event {
    pub(crate) fn of_command(context: &Context, raw: Arc<ffi::Event>) -> Self {
        Self { context: context.clone(), raw, origin: Origin::Command }
    }
    pub(crate) fn created(context: &Context, raw: Arc<ffi::Event>, is_shared: bool) -> Self {
        let origin = if is_shared { Origin::Shared } else { Origin::Created };
        Self { context: context.clone(), raw, origin }
    }
    /// Whether other processes may wait for it.
    pub(crate) fn is_known_to_others(&self) -> bool {
        matches!(self.origin, Origin::Shared | Origin::Opened)
    }
    /// Returns an error for events that no queue can signal.
    pub(crate) fn signallable(&self) -> Result<()> {
        if self.origin != Origin::Command {
            return Ok(());
        }
        let sentence = "this event stands for a command and cannot be signalled: signal one of Context::create_event or Context::create_shared_event";
        Err(Error::new(ErrorKind::Unsuitable, sentence))
    }
    pub(crate) fn raw(&self) -> &ffi::Event {
        &self.raw
    }
    /// The status of the latest signal. Never blocks.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn status(&self) -> Result<Status> {
        self.raw.status()
    }
    /// Waits for at most the context's [`patience`](Context::patience).
    ///
    /// # Errors
    /// As [`wait_timeout`](Self::wait_timeout).
    pub fn wait(&self) -> Result<()> {
        self.wait_timeout(self.context.patience())
    }
    /// Waits for the latest signal, or the command, that was submitted by now.
    ///
    /// # Errors
    /// [`ErrorKind::PeerGone`] if the process that was to complete the signal has died; `IN_EVENT_LIST_EXEC_STATUS` if
    /// the signal or command failed for another reason; [`ErrorKind::TimedOut`] after `timeout`.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<()> {
        if self.origin != Origin::Command {
            wait::settled(&self.context, &self.raw, timeout)
        } else {
            wait::done(&self.raw, timeout)
        }
    }
    /// An event for what this one stands for now, which later signals do not change.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn latest(&self) -> Result<Self> {
        let raw = match self.origin {
            Origin::Command => self.raw.clone(),
            _ => self.context.capture(&self.raw)?,
        };
        Ok(Self::of_command(&self.context, raw))
    }
    /// Shares the event with other processes of this user.
    ///
    /// # Errors
    /// [`ErrorKind::Unsuitable`] unless it was made by [`Context::create_shared_event`]; otherwise the adapter's error.
    pub fn share(&self) -> Result<Export<Self>> {
        let sentence = match self.origin {
            Origin::Shared => "",
            Origin::Opened => {
                "this event was opened from a ticket: the process that created it shares it"
            }
            _ => {
                "this event is for this process alone: create it with Context::create_shared_event to share it"
            }
        };
        if !sentence.is_empty() {
            return Err(Error::new(ErrorKind::Unsuitable, sentence));
        }
        Ok(Export::new(ffi::Exported::event(self.context.raw(), &self.raw)?))
    }
}
impl Sealed for Event {
    const WORD: &'static str = "event";
    fn open(context: &Context, ticket: &Ticket<Self>) -> Result<Self> {
        let raw = ffi::Event::open(context.raw(), ticket.as_bytes())?;
        Ok(Self { context: context.clone(), raw, origin: Origin::Opened })
    }
}
impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status() {
            Ok(status) => write!(f, "Event({status:?})"),
            Err(error) => write!(f, "Event({error})"),
        }
    }
}
