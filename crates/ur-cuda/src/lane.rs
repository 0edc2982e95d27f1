//! A lane: one stream of a queue, with counters of the commands in it and of those known to be complete.
//! `work.rs` chooses the lane of a command.
use super::{
    DriverDevice,
    driver::{Dialect, is_of_capture},
    native::{context::Entered, event::Pooled, stream::Stream},
    patience,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*, fence},
    },
    thread,
};
use ur_hal::{Error, ErrorKind, Result, objects_so_far, repeated};
use ur_lock::locked;

/// The largest number of pending marks for deferred frees in a lane.
const MARKS: usize = 64;

/// One stream of a queue.
#[derive(Debug)]
pub struct Lane<D: Dialect> {
    pub(super) stream: Stream<D>,
    /// The number of commands of which the submission has begun, and of those of which it has ended.
    begun: AtomicU64,
    put: AtomicU64,
    /// The number of commands that are known to be complete: all that had been submitted before the stream
    /// was seen idle.
    done: AtomicU64,
    /// Whether the device was seen to be lost: nothing runs any more, which is no completion.
    is_lost: AtomicBool,
    /// The number of objects when the last submission began. No command so far can use memory that is
    /// younger.
    latest: AtomicU64,
    /// The last command that a deferred free waits for, and the last one that has a mark behind it.
    wanted: AtomicU64,
    marked: AtomicU64,
    /// Pending marks, each with the number of the last command before it. A mark is an event that tells that
    /// the commands before it are complete.
    marks: Mutex<VecDeque<(u64, Arc<Pooled<D>>)>>,
    /// Whether code outside this adapter may enqueue commands, which are not counted here.
    is_lent: AtomicBool,
    /// The number of the last barrier that it waits for.
    fenced: AtomicU64,
    /// Only for a stream that the application created: the point behind the last command that ran. Needed because a
    /// captured stream cannot be queried for its earlier commands.
    last: Mutex<Last<D>>,
    /// Only for a stream that the application created and may destroy after the queue is released: what the lane waits for
    /// then besides its marks. Once it is set, the stream is not used any more. If the stream was captured, it is the end of
    /// the queue's own commands: other code must wait for its own before it frees memory.
    end: OnceLock<Last<D>>,
    /// Only for such a stream: the number of threads that may be calling the driver with it.
    users: AtomicUsize,
}
/// The point behind the last command that ran.
#[derive(Debug)]
enum Last<D: Dialect> {
    /// No command ran.
    Nothing,
    Event(Arc<Pooled<D>>),
    /// Not known: the driver refused the event, or a capture began meanwhile and may have it. What the commands may use is
    /// kept for good.
    Unknown,
}
/// The right to call the driver with the stream of a lane: the application may destroy it only when this is dropped.
struct InUse<'lane>(Option<&'lane AtomicUsize>);
impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.inspect(|users| _ = users.fetch_sub(1, Release)); // pairs with `leave`
    }
}
impl<D: Dialect> Lane<D> {
    pub(super) fn new(stream: Stream<D>) -> Self {
        let is_lent = AtomicBool::new(false);
        let [begun, put, done, fenced] = [const { AtomicU64::new(0) }; 4];
        let [latest, wanted, marked] = [const { AtomicU64::new(0) }; 3];
        let (marks, last, end) = (Mutex::default(), Mutex::new(Last::Nothing), OnceLock::new());
        let is_lost = AtomicBool::new(false);
        Self {
            stream,
            begun,
            put,
            done,
            is_lost,
            latest,
            wanted,
            marked,
            marks,
            is_lent,
            fenced,
            last,
            end,
            users: AtomicUsize::new(0),
        }
    }
    /// The right to use the stream; `None` if it has been left. A thread that holds the queue itself does not need it.
    fn in_use(&self) -> Option<InUse<'_>> {
        if !self.is_borrowed() {
            return Some(InUse(None));
        }
        self.users.fetch_add(1, Relaxed);
        let used = InUse(Some(&self.users));
        fence(SeqCst); // with the one in `leave`: this thread sees the end, or that one sees this user
        self.end.get().is_none().then_some(used)
    }
    /// To be called before a command is enqueued; the submission lasts until the returned guard is dropped.
    pub(super) fn begin(&self) -> Putting<'_, D> {
        let objects = objects_so_far();
        if self.latest.load(Relaxed) < objects {
            // read by a thread that frees memory, which the application orders after this
            self.latest.fetch_max(objects, Relaxed);
        }
        self.begun.fetch_add(1, AcqRel); // acquired by sync points, which must not miss a command
        Putting(self)
    }
    /// Code outside this adapter may enqueue commands from now on.
    pub(super) fn lend(&self) {
        self.is_lent.store(true, Release);
    }
    /// Whether code outside this adapter may enqueue commands, or capture them.
    pub(super) fn is_lent(&self) -> bool {
        self.is_lent.load(Acquire)
    }
    /// Whether the stream is being captured by other code, so that commands enqueued now do not run. Streams
    /// that no other code has are not queried. A context must be current.
    pub(super) fn is_capturing(&self) -> Result<bool> {
        let used = if self.is_lent() { self.in_use() } else { None };
        used.map_or(Ok(false), |_used| self.stream.is_capturing())
    }
    /// Whether the stream can neither be queried nor have events recorded now: it is captured, or it is the
    /// default stream while a stream is captured that synchronizes with it.
    pub(super) fn is_out_of_reach(&self) -> Result<bool> {
        match self.is_capturing() {
            Err(error) if error.status().is_some_and(is_of_capture) => Ok(true),
            is => is,
        }
    }
    /// # Errors
    /// `INVALID_OPERATION` while it is captured: `what` can then be neither executed nor recorded.
    pub(super) fn check_capture(&self, what: &str) -> Result<()> {
        match self.is_capturing()? {
            false => Ok(()),
            true => Err(captured(what)),
        }
    }
    /// Whether all its commands are known to be complete, without a driver query.
    pub(super) fn is_known_idle(&self) -> bool {
        self.done.load(Acquire) == self.begun.load(Acquire) && !self.is_lent()
    }
    /// Whether all its commands are complete; `false` while it is captured, because the state is unknown
    /// then. If other code may enqueue commands, the driver is always queried.
    pub(super) fn is_idle(&self) -> Result<bool> {
        // Read before the query: the query says nothing about commands that are submitted concurrently.
        let put = self.put.load(Acquire);
        let _used = self.in_use();
        if let Some(end) = self.end.get() {
            let own = match end {
                Last::Nothing => true,
                Last::Event(event) => event.is_complete()?,
                Last::Unknown => false,
            };
            let idle = own && !self.ask_marks()?;
            if idle {
                self.done.fetch_max(put, AcqRel); // no mark will tell it any more
            }
            return Ok(idle);
        }
        if self.is_known_idle() {
            return Ok(true);
        }
        // Querying a captured stream would invalidate the capture.
        if self.is_out_of_reach()? {
            return Ok(false);
        }
        let idle = self.stream.is_idle()?;
        if idle {
            self.done.fetch_max(put, AcqRel);
        }
        Ok(idle)
    }
    pub(super) fn synchronize(&self, device: &DriverDevice<D>) -> Result<()> {
        if self.is_known_idle() {
            return Ok(());
        }
        self.check_capture("waiting for the queue")?;
        let put = self.put.load(Acquire);
        patience::finish(&self.stream, device)?;
        self.done.fetch_max(put, AcqRel);
        Ok(())
    }
    /// Makes it wait for the barrier with this number, unless it does already.
    pub(super) fn fence(
        &self,
        number: u64,
        fence: impl FnOnce() -> Option<Arc<Pooled<D>>>,
    ) -> Result<()> {
        if self.is_fenced(number) {
            return Ok(());
        }
        if let Some(event) = fence() {
            match self.stream.wait_for(&event) {
                // It was set when other code began a capture, is part of the graph, and orders nothing that runs.
                Err(error)
                    if error.status().is_some_and(is_of_capture) && !self.is_out_of_reach()? => {}
                waits => waits?,
            }
        }
        self.fenced.fetch_max(number, AcqRel);
        Ok(())
    }
    /// The number of the last command that may use memory as old as the object with the number `since`;
    /// `None` if there is none, or all are known to be complete. Does not query the driver.
    pub(super) fn last_since(&self, since: u64) -> Option<u64> {
        let last = if self.is_lent() && self.end.get().is_none() {
            // Commands of other code are not counted. So this moment is counted as a command of its own,
            // which is complete when the stream has passed it.
            let here = self.begun.fetch_add(1, AcqRel) + 1;
            self.put.fetch_add(1, AcqRel);
            here
        } else {
            // The application has ordered commands that use the memory before the free; later ones cannot use
            // it.
            let last = self.begun.load(Acquire);
            if self.latest.load(Relaxed) <= since || self.has_passed(last) {
                return None;
            }
            last
        };
        self.wanted.fetch_max(last, Relaxed); // a hint for `wants_mark`
        Some(last)
    }
    /// Whether the command with this number and all before it are known to be complete, or the device is lost.
    pub(super) fn has_passed(&self, number: u64) -> bool {
        // The first pairs with the store by the thread that saw them complete.
        self.done.load(Acquire) >= number || self.is_lost.load(Relaxed)
    }
    /// Whether a deferred free waits for commands that have no mark behind them.
    pub(super) fn wants_mark(&self) -> bool {
        let wanted = self.wanted.load(Relaxed); // a hint: a missing mark only delays the free
        wanted > self.marked.load(Relaxed) && !self.has_passed(wanted)
    }
    fn marks(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<Pooled<D>>)>> {
        locked(&self.marks)
    }
    /// Queries the driver for completed commands. With `may_mark` a mark is recorded if the lane is busy; one
    /// mark serves all memory freed before it. In a lane whose device is lost all commands have passed.
    pub(super) fn ask(&self, number: u64, device: &DriverDevice<D>, may_mark: bool) {
        let asked = device.enter().and_then(|on| {
            let is_known = self.ask_marks()?;
            // While a mark is pending, the stream cannot be idle.
            if !self.has_passed(number) && !is_known && !self.is_idle()? && may_mark {
                self.put_mark(device, &on)?;
            }
            Ok(())
        });
        if asked.is_err_and(|error| error.kind().is_gone()) {
            self.is_lost.store(true, Relaxed);
        }
    }
    /// For a stream of the application's: records a mark behind all commands so far, also of other code, unless they are
    /// complete. The stream cannot be asked any more if the queue is released in a capture.
    pub(super) fn mark_moment(&self, device: &DriverDevice<D>) -> Result<()> {
        let on = device.enter()?;
        let Some(_used) = self.in_use() else { return Ok(()) };
        if self.is_out_of_reach()? {
            return Ok(());
        }
        let put = self.put.load(Acquire); // before the query, as in `is_idle`
        match self.stream.is_idle()? {
            true => _ = self.done.fetch_max(put, AcqRel),
            false => self.push_mark(put, self.end_now(device, &on)?),
        }
        Ok(())
    }
    /// Notes a mark behind the command with this number and all before it; `None` if a capture may have it.
    fn push_mark(&self, put: u64, mark: Option<Arc<Pooled<D>>>) {
        if let Some(mark) = mark {
            self.marks().push_back((put, mark));
            self.marked.fetch_max(put, Relaxed);
        }
    }
    /// Whether a mark is pending. Removes those that have passed.
    fn ask_marks(&self) -> Result<bool> {
        let newest = match &*self.marks() {
            many if many.len() > MARKS => many.back().cloned(),
            _ => None,
        };
        if let Some((number, newest)) = newest
            && newest.is_complete()?
        {
            self.done.fetch_max(number, AcqRel);
            let passed: Vec<_> = {
                let mut marks = self.marks();
                let count = marks.iter().take_while(|(mark, _)| *mark <= number).count();
                marks.drain(..count).collect()
            };
            drop(passed); // outside the lock
        }
        loop {
            let Some((number, mark)) = self.marks().front().cloned() else { return Ok(false) };
            if !mark.is_complete()? {
                return Ok(true);
            }
            self.done.fetch_max(number, AcqRel);
            let mut marks = self.marks();
            let passed = match marks.front().is_some_and(|(front, _)| *front == number) {
                true => marks.pop_front(),
                false => None, // another thread removed it
            };
            drop(marks);
            drop(passed); // outside the lock
        }
    }
    /// Records a mark behind all commands so far, if a deferred free waits for one of them.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn put_mark(&self, device: &DriverDevice<D>, on: &Entered<D>) -> Result<()> {
        let is_full = self.marks().len() >= MARKS; // further frees wait for the next free place
        let Some(_used) = self.in_use() else { return Ok(()) };
        if is_full || !self.wants_mark() || self.is_out_of_reach()? {
            return Ok(());
        }
        let put = self.put.load(Acquire); // before recording, as in `is_idle`
        self.push_mark(put, self.end_now(device, on)?);
        Ok(())
    }
    /// The point behind everything enqueued so far.
    pub(super) fn mark(&self, device: &DriverDevice<D>, on: &Entered<D>) -> Result<Mark<D>> {
        if self.is_idle()? {
            return Ok(Mark::Nothing);
        }
        let _used = self.in_use();
        if let Some(end) = self.end.get() {
            return Ok(match end {
                Last::Event(event) => Mark::Event(Arc::clone(event)),
                Last::Nothing | Last::Unknown => Mark::Nothing,
            });
        }
        if self.is_out_of_reach()? {
            return Ok(Mark::Captured);
        }
        Ok(self.end_now(device, on)?.map_or(Mark::Captured, Mark::Event))
    }
    /// Whether the application created the stream, and may destroy it when the queue is released.
    pub(super) fn is_borrowed(&self) -> bool {
        !self.stream.is_owned() && self.stream.raw().is_some()
    }
    /// To be called after a command was enqueued that runs, that is, which is not captured. `ran`: the driver has taken work
    /// of it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn note_last(
        &self,
        device: &DriverDevice<D>,
        on: &Entered<D>,
        ran: bool,
    ) -> Result<()> {
        if !self.is_borrowed() {
            return Ok(()); // an own stream can be queried at any time
        }
        let mut last = locked(&self.last); // until it is behind this thread's command
        let noted = self.end_now(device, on);
        match &noted {
            Ok(Some(event)) => *last = Last::Event(Arc::clone(event)),
            _ if ran => *last = Last::Unknown,
            _ => {} // the earlier one is behind all that ran
        }
        noted.map(drop)
    }
    /// An event behind everything so far; `None` if a capture has it, or may have.
    fn end_now(&self, device: &DriverDevice<D>, on: &Entered<D>) -> Result<Option<Arc<Pooled<D>>>> {
        let event = device.events().take(on, false)?;
        event.record(&self.stream)?;
        Ok((!self.is_out_of_reach()?).then(|| Arc::new(event)))
    }
    /// Whether it waits for the barrier with this number.
    pub(super) fn is_fenced(&self, number: u64) -> bool {
        self.fenced.load(Acquire) >= number
    }
    /// For a stream of the application: records the end of the queue's commands, after which the stream is
    /// not used.
    pub(super) fn leave(&self, device: &DriverDevice<D>) {
        if !self.is_borrowed() || self.end.get().is_some() {
            return;
        }
        // Recording an event in a capture would capture it, and it would never complete. So the event behind the
        // queue's last command is used. Commands of other code before the capture are the business of that code.
        let end = repeated(|| {
            let on = device.enter()?;
            if self.is_out_of_reach()? { Ok(None) } else { self.end_now(device, &on) }
        });
        let _ = self.end.set(match end {
            Ok(Some(end)) => Last::Event(end),
            Ok(None) => std::mem::replace(&mut *locked(&self.last), Last::Nothing),
            Err(error) if error.kind().is_gone() => Last::Nothing, // the driver has shut down
            Err(_) => Last::Unknown,
        });
        fence(SeqCst); // see `in_use`
        while self.users.load(Acquire) != 0 {
            thread::yield_now(); // for the length of a query: nobody waits for the device with it
        }
    }
}
/// The point behind everything enqueued in a lane so far.
pub(super) enum Mark<D: Dialect> {
    /// Everything is complete.
    Nothing,
    /// Everything precedes this event.
    Event(Arc<Pooled<D>>),
    /// The stream is being captured: it can neither be queried nor have an event recorded.
    Captured,
}
/// The error for an operation that cannot be done while a stream is captured.
pub(super) fn captured(what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!(
            "the queue's stream is being captured into a graph by somebody else in this process, and \
             {what} cannot be part of one: do it before the capture begins, or after it has ended"
        ),
    )
}
/// A command that is being submitted to a lane.
pub(super) struct Putting<'lane, D: Dialect>(&'lane Lane<D>);
impl<D: Dialect> Putting<'_, D> {
    /// The number of commands submitted to the lane so far, without this one.
    pub(super) fn before(&self) -> u64 {
        self.0.put.load(Acquire)
    }
    /// Ends the submission, when this command and all before it are complete. `before` is the number of
    /// commands submitted when the mark was recorded of which this is known.
    pub(super) fn end(self, before: u64) {
        let lane = self.0;
        std::mem::forget(self);
        let others = lane.put.fetch_add(1, AcqRel);
        // If other threads submitted commands meanwhile, the next number may belong to one of those.
        let known = if others == before { before + 1 } else { before };
        lane.done.fetch_max(known, AcqRel);
    }
}
impl<D: Dialect> Drop for Putting<'_, D> {
    fn drop(&mut self) {
        self.0.put.fetch_add(1, AcqRel);
    }
}
