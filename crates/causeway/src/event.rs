//! Events: points in the work of queues, of this process or another.
use crate::{Context, Export, Result, Ticket, ffi, ticket::Sealed, wait};
use std::{fmt, sync::Arc, time::Duration};

/// Where an event's latest signal, or the command it stands for, has got to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Status {
    /// Handed over, and not known to have begun.
    Submitted,
    /// Begun.
    Running,
    /// Done. A fresh event counts as done.
    Complete,
    /// It did not run, or not to its end: something that it waited for failed, or the process that owed it is gone.
    Failed,
}

/// A point in the work of a queue, to wait for.
///
/// Commands return one each. Those of [`Context::create_event`] are signalled by queues, again and again; those of
/// [`Context::create_shared_event`] also by other processes that open a ticket for them. Waiting is for the latest
/// signal that was submitted by then; a fresh event counts as complete. Clones are the same event.
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
    /// Whether later signals replace its state.
    reusable: bool,
}

impl Event {
    pub(crate) fn of_command(context: &Context, raw: Arc<ffi::Event>) -> Self {
        Self { context: context.clone(), raw, reusable: false }
    }
    pub(crate) fn reusable(context: &Context, raw: Arc<ffi::Event>) -> Self {
        Self { context: context.clone(), raw, reusable: true }
    }
    pub(crate) fn raw(&self) -> &ffi::Event {
        &self.raw
    }
    /// Where the latest signal has got to. Never blocks.
    ///
    /// # Errors
    /// What the adapter said.
    pub fn status(&self) -> Result<Status> {
        self.raw.status()
    }
    /// Waits as long as the context's [`patience`](Context::patience).
    ///
    /// # Errors
    /// As [`wait_timeout`](Self::wait_timeout).
    pub fn wait(&self) -> Result<()> {
        self.wait_timeout(self.context.patience())
    }
    /// Waits for what was signalled, or submitted, by now.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if that failed, which includes the death of the process that owed the signal;
    /// [`ErrorKind::TimedOut`](crate::ErrorKind::TimedOut) after `timeout`.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<()> {
        if self.reusable {
            wait::settled(&self.context, &self.raw, timeout)
        } else {
            wait::done(&self.raw, timeout)
        }
    }
    /// Offers the event to other processes of this user.
    ///
    /// # Errors
    /// `INVALID_EVENT` unless it is of [`Context::create_shared_event`]; what the adapter said otherwise.
    pub fn share(&self) -> Result<Export<Self>> {
        Ok(Export::new(ffi::Exported::event(self.context.raw(), &self.raw)?))
    }
}
impl Sealed for Event {
    const WORD: &'static str = "event";
    fn open(context: &Context, ticket: &Ticket<Self>) -> Result<Self> {
        Ok(Self::reusable(context, ffi::Event::open(context.raw(), ticket.as_bytes())?))
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
