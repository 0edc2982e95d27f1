//! Queues: commands in order, and transfers that return when they are done.
use crate::{Buffer, Context, Error, ErrorKind, Event, Plain, Result, ffi, wait};
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use zerocopy::IntoBytes;

/// A queue executes commands on a device one after another, while the host continues. Clones are the same queue.
///
/// Its methods submit a command and return at once, with an [`Event`] for its end. Everything that a command needs is
/// kept until then, whatever you drop. The methods of [`Buffer`] return when the transfer is done.
///
/// **A process must finish its queues before it ends**: its commands, and the signals after them, end with it, and
/// waiting processes get [`ErrorKind::PeerGone`]. Dropping the last clone of a queue that has signalled a shared event
/// therefore waits for that signal, for at most the context's [`patience`](Context::patience). `std::process::exit`
/// drops nothing, and statics are never dropped: call [`finish`](Self::finish) first.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Buffer, Context, Device, Queue};
///
/// let context = Context::new(&Device::first()?)?;
/// let queue = Queue::new(&context)?;
/// let (a, b) = (Buffer::<u16>::new(&context, 1000)?, Buffer::<u16>::new(&context, 1000)?);
/// queue.fill(&a, 7)?;
/// queue.copy(&a, &b)?;
/// let values = queue.download(&b)?;
/// assert_eq!(values.wait()?, [7; 1000]);
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone)]
pub struct Queue {
    inner: Arc<Inner>,
}
struct Inner {
    context: Context,
    commands: ffi::Queue,
    /// The queue for blocking transfers. Nothing on it waits for another process, so they always end.
    transfers: OnceLock<ffi::Queue>,
    /// Whether a signal that other processes may wait for was ever submitted.
    owes: AtomicBool,
}
/// Waits, for at most the context's patience, until signals that other processes may wait for are complete, because
/// they would be lost if the process ended.
impl Drop for Inner {
    fn drop(&mut self) {
        if *self.owes.get_mut() {
            // The error is dropped: a waiting process learns from the event that a signal failed.
            let _ =
                self.commands.barrier().and_then(|end| wait::done(&end, self.context.patience()));
        }
    }
}

impl Queue {
    /// Makes a queue on the context's device.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn new(context: &Context) -> Result<Self> {
        Ok(Self::of(context, ffi::Queue::new(context.raw(), ffi::QueueKind::InOrder)?))
    }
    /// Makes a queue over a stream that another library made: what is submitted here is ordered after what that library
    /// has submitted to the stream, and before what it submits next. The stream stays the other library's.
    ///
    /// # Safety
    /// `native` must be a live stream of the context's device (a `CUstream` or `hipStream_t`), and live as long as this
    /// queue.
    ///
    /// # Errors
    /// Returns the adapter's error.
    #[expect(unsafe_code, reason = "the caller vouches for a handle of the driver's")]
    pub unsafe fn over_native(context: &Context, native: usize) -> Result<Self> {
        // SAFETY: the caller promises the same.
        let commands = unsafe { ffi::Queue::over(context.raw(), native) }?;
        Ok(Self::of(context, commands))
    }
    fn of(context: &Context, commands: ffi::Queue) -> Self {
        let (context, transfers) = (context.clone(), OnceLock::new());
        let owes = AtomicBool::new(false);
        Self { inner: Arc::new(Inner { context, commands, transfers, owes }) }
    }
    /// The context.
    pub fn context(&self) -> &Context {
        &self.inner.context
    }
    fn event(&self, raw: Arc<ffi::Event>) -> Event {
        Event::of_command(self.context(), raw)
    }
    /// Sets every value of a buffer to `value`.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`] if the buffer is mapped or was opened for reading only; otherwise the adapter's error.
    pub fn fill<T: Plain>(&self, buffer: &Buffer<T>, value: T) -> Result<Event> {
        let pattern = value.as_bytes();
        Ok(self.event(self.inner.commands.fill(&self.span(buffer)?, pattern)?))
    }
    /// Copies one buffer to another of the same length.
    ///
    /// # Errors
    /// [`ErrorKind::Length`] if the lengths differ; [`ErrorKind::ReadOnly`] if `to` is mapped or was opened for reading
    /// only; otherwise the adapter's error.
    pub fn copy<T: Plain>(&self, from: &Buffer<T>, to: &Buffer<T>) -> Result<Event> {
        Ok(self.event(self.inner.commands.copy(&self.span(from)?, &self.span(to)?)?))
    }
    /// Copies values, which move into the command, to a buffer of the same length.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn upload<T: Plain>(&self, from: Vec<T>, to: &Buffer<T>) -> Result<Event> {
        Ok(self.event(self.inner.commands.upload(from, &self.span(to)?)?))
    }
    /// Copies a buffer to the host.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn download<T: Plain>(&self, from: &Buffer<T>) -> Result<Download<T>> {
        let raw = self.inner.commands.download(&self.span(from)?)?;
        Ok(Download { context: self.context().clone(), raw })
    }
    /// Makes everything submitted later wait for `events`, that is for their latest signals submitted by now. Without
    /// events it does nothing.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn wait_for(&self, events: &[&Event]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let events: Vec<_> = events.iter().map(|event| event.raw()).collect();
        self.inner.commands.wait_for(&events)
    }
    /// Signals a reusable event when everything submitted before is done. From now on the event stands for that.
    ///
    /// # Errors
    /// [`ErrorKind::Unsuitable`] if it is the event of a command; otherwise the adapter's error.
    pub fn signal(&self, event: &Event) -> Result<()> {
        event.signallable()?;
        self.inner.commands.signal(event.raw())?;
        if event.is_known_to_others() {
            self.inner.owes.store(true, Ordering::Relaxed); // read only by `drop`, which comes after every call
        }
        Ok(())
    }
    /// Returns an event for the end of everything submitted so far.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn marker(&self) -> Result<Event> {
        Ok(self.event(self.inner.commands.barrier()?))
    }
    /// Runs `task` on a thread of the runtime when everything submitted before is done; what is submitted later waits
    /// for its end. The task must not use this crate. A panic in it ends the process, because it cannot be reported.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if the device [runs no host tasks](crate::Device::runs_host_tasks); otherwise the
    /// adapter's error.
    pub fn host_task(&self, task: impl FnOnce() + Send + 'static) -> Result<Event> {
        Ok(self.event(self.inner.commands.host_task(task)?))
    }
    /// Sends commands that the runtime may have collected to the device. Waiting does so too.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn flush(&self) -> Result<()> {
        self.inner.commands.flush()
    }
    /// Waits until everything submitted so far is done, for at most the context's [`patience`](Context::patience).
    ///
    /// # Errors
    /// As [`finish_timeout`](Self::finish_timeout).
    pub fn finish(&self) -> Result<()> {
        self.finish_timeout(self.context().patience())
    }
    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// The error of a command, if one failed since the last call; [`ErrorKind::TimedOut`] after `timeout`.
    pub fn finish_timeout(&self, timeout: Duration) -> Result<()> {
        let end = self.inner.commands.barrier()?;
        let waited = wait::done(&end, timeout);
        if matches!(&waited, Err(error) if error.kind() == ErrorKind::TimedOut) {
            return waited;
        }
        match self.inner.commands.sweep() {
            Some(failed) => wait::done(&failed, timeout).and(waited),
            None => waited,
        }
    }
    /// Copies values to a buffer after everything submitted so far, and returns when that is done.
    pub(crate) fn write_now<T: Plain>(&self, from: &[T], to: &Buffer<T>) -> Result<()> {
        let to = self.span(to)?;
        self.finish()?;
        self.transfers()?.write_now(from.as_bytes(), &to)
    }
    /// Copies a buffer to the host after everything submitted so far, and returns when that is done.
    pub(crate) fn read_now<T: Plain>(&self, from: &Buffer<T>, to: &mut [T]) -> Result<()> {
        let from = self.span(from)?;
        self.finish()?;
        self.transfers()?.read_now(&from, to.as_mut_bytes())
    }
    fn transfers(&self) -> Result<&ffi::Queue> {
        if let Some(transfers) = self.inner.transfers.get() {
            return Ok(transfers);
        }
        let new = ffi::Queue::new(self.context().raw(), ffi::QueueKind::InOrder)?;
        Ok(self.inner.transfers.get_or_init(|| new))
    }
    fn span<T>(&self, buffer: &Buffer<T>) -> Result<ffi::Span> {
        if self.context().is(buffer.context()) {
            return buffer.span();
        }
        let sentence =
            "this buffer is of another context than the queue: open or allocate it in the queue's";
        Err(Error::new(ErrorKind::Length, sentence))
    }
}
impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("context", self.context()).finish()
    }
}

/// Values that are being copied to the host.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// # use causeway::{Buffer, Context, Device, Queue};
/// # let queue = Queue::new(&Context::new(&Device::first()?)?)?;
/// let buffer = Buffer::from_slice(&queue, b"hello")?;
/// let download = queue.download(&buffer)?;
/// drop(buffer);                                  // the command keeps what it needs
/// assert_eq!(download.wait()?, b"hello");
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[must_use = "the values are lost unless waited for"]
pub struct Download<T> {
    context: Context,
    raw: ffi::Download<T>,
}
impl<T: Plain> Download<T> {
    /// An event for the end of the copy.
    pub fn event(&self) -> Event {
        Event::of_command(&self.context, self.raw.event.clone())
    }
    /// Waits for the values for at most the context's [`patience`](Context::patience).
    ///
    /// # Errors
    /// The error of the copy, or [`ErrorKind::TimedOut`]. To be able to wait again, wait for [`event`](Self::event)
    /// first.
    pub fn wait(self) -> Result<Vec<T>> {
        let (begun, patience, mut raw) = (Instant::now(), self.context.patience(), self.raw);
        loop {
            wait::done(&raw.event, patience.saturating_sub(begun.elapsed()))?;
            match raw.collect() {
                Ok(values) => return Ok(values),
                Err(not_yet) => raw = not_yet,
            }
        }
    }
}
impl<T> fmt::Debug for Download<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").field("status", &self.raw.event.status()).finish()
    }
}
