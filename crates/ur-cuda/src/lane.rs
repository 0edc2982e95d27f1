//! Lanes: the streams of a queue, with what is known of how far they are. Which command takes which
//! lane is `work.rs`'s.
use super::{
    DriverDevice,
    driver::{Dialect, is_of_capture},
    native::{context::Entered, event::Pooled, stream::Stream},
    patience,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_core::memory::objects::objects_so_far;

/// How many marks for freed memory are in a lane at most.
const MARKS: usize = 64;

/// One stream of a queue.
#[derive(Debug)]
pub struct Lane<D: Dialect> {
    stream: Stream<D>,
    /// Commands that were begun to be put into it so far, and those that have been.
    begun: AtomicU64,
    put: AtomicU64,
    /// How many are known to be done: as many as had been put before the stream was seen idle.
    done: AtomicU64,
    /// How many objects there were when the last command was begun: memory that is younger it does not
    /// know of.
    latest: AtomicU64,
    /// The last command that freed memory waits for, and the last one that a mark is behind.
    wanted: AtomicU64,
    marked: AtomicU64,
    /// Marks under way, each with the number of the last command before it.
    marks: Mutex<VecDeque<(u64, Arc<Pooled<D>>)>>,
    /// Whether others may put something into it that is not counted here.
    is_lent: AtomicBool,
    /// The number of the last barrier that it waits for.
    fenced: AtomicU64,
    /// Behind the last command that was put into a stream of C's and ran: recorded again with each. While the stream is
    /// captured, nothing can tell any more how far its earlier commands are.
    last: OnceLock<Arc<Pooled<D>>>,
    /// For a stream of C's, which may destroy it when the queue is gone: where its commands end, from
    /// then on. The stream is not touched again.
    end: OnceLock<Option<Arc<Pooled<D>>>>,
}
impl<D: Dialect> Lane<D> {
    pub(super) fn new(stream: Stream<D>) -> Self {
        let is_lent = AtomicBool::new(!stream.is_owned());
        let [begun, put, done, fenced] = [const { AtomicU64::new(0) }; 4];
        let [latest, wanted, marked] = [const { AtomicU64::new(0) }; 3];
        let (marks, last, end) = (Mutex::default(), OnceLock::new(), OnceLock::new());
        Self { stream, begun, put, done, latest, wanted, marked, marks, is_lent, fenced, last, end }
    }
    /// Its stream.
    pub fn stream(&self) -> &Stream<D> {
        &self.stream
    }
    /// One more command is about to be put into it, until what is returned is dropped.
    pub(super) fn begin(&self) -> Putting<'_, D> {
        let objects = objects_so_far();
        if self.latest.load(Relaxed) < objects {
            self.latest.fetch_max(objects, Relaxed); // read by who frees, which C orders behind this
        }
        self.begun.fetch_add(1, AcqRel); // read by tickets: a command they must not miss
        Putting(self)
    }
    /// Others may put something into it from now on.
    pub(super) fn lend(&self) {
        self.is_lent.store(true, Release);
    }
    /// Whether what is put into it now is captured by others and does not run. One that nobody else has is
    /// not asked. A context is current.
    pub(super) fn is_capturing(&self) -> Result<bool> {
        Ok(self.is_lent.load(Acquire) && self.end.get().is_none() && self.stream.is_capturing()?)
    }
    /// Whether nothing can be asked of it now, nor put into it to be asked later: it is captured, or it is the default
    /// stream while one is captured that is ordered with it.
    fn is_out_of_reach(&self) -> Result<bool> {
        match self.is_capturing() {
            Err(error) if error.native_status().is_some_and(is_of_capture) => Ok(true),
            is => is,
        }
    }
    /// # Errors
    /// `INVALID_OPERATION` while it is captured: `what` can neither be done nor recorded then.
    pub(super) fn check_capture(&self, what: &str) -> Result<()> {
        match self.is_capturing()? {
            false => Ok(()),
            true => Err(captured(what)),
        }
    }
    /// Whether everything put into it is known to be done, without asking the driver.
    pub(super) fn is_known_idle(&self) -> bool {
        self.done.load(Acquire) == self.begun.load(Acquire) && !self.is_lent.load(Acquire)
    }
    /// Whether everything put into it is done; while it is captured, nothing is known. One that others put something into is always asked.
    pub(super) fn is_idle(&self) -> Result<bool> {
        if let Some(end) = self.end.get() {
            return end.as_ref().map_or(Ok(true), |end| end.is_complete());
        }
        // First what has been put: of commands that are being put now nothing can be told.
        let put = self.put.load(Acquire);
        if self.is_known_idle() {
            return Ok(true);
        }
        // A question to a captured stream would break the capture.
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
    /// Puts it behind the barrier with that number, unless it is.
    pub(super) fn fence(
        &self,
        number: u64,
        fence: impl FnOnce() -> Option<Arc<Pooled<D>>>,
    ) -> Result<()> {
        if self.fenced.load(Acquire) >= number {
            return Ok(());
        }
        if let Some(event) = fence() {
            self.stream.wait_for(&event)?;
        }
        self.fenced.fetch_max(number, AcqRel);
        Ok(())
    }
    /// The last command so far that may know of memory that is as old as the object with the number
    /// `since`; `None` if there is none, or all are known to be done. The driver is not asked.
    pub(super) fn last_since(&self, since: u64) -> Option<u64> {
        let last = if self.is_lent.load(Acquire) && self.end.get().is_none() {
            // What others put into it is not counted. So this moment is counted as a command of its own,
            // and is over when the stream is seen to have come by here.
            let here = self.begun.fetch_add(1, AcqRel) + 1;
            self.put.fetch_add(1, AcqRel);
            here
        } else {
            // At the time of the free C has ordered its commands before; others cannot know the memory.
            let last = self.begun.load(Acquire);
            if self.latest.load(Relaxed) <= since || self.has_passed(last) {
                return None;
            }
            last
        };
        self.wanted.fetch_max(last, Relaxed); // a hint: see `wants_mark`
        Some(last)
    }
    /// Whether the command with that number, and all before it, are known to be done.
    pub(super) fn has_passed(&self, number: u64) -> bool {
        self.done.load(Acquire) >= number // pairs with whoever saw them done
    }
    /// Whether freed memory waits for commands that no mark is behind.
    pub(super) fn wants_mark(&self) -> bool {
        let wanted = self.wanted.load(Relaxed); // a hint: a mark too few costs time, no more
        wanted > self.marked.load(Relaxed) && !self.has_passed(wanted)
    }
    fn marks(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<Pooled<D>>)>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Asks the driver how far it is; `may_mark`: where it is busy, a mark is put into it that tells later.
    /// One mark at a time serves all memory freed before it. What failed is done.
    pub(super) fn ask(&self, number: u64, device: &DriverDevice<D>, may_mark: bool) {
        let asked = device.enter().and_then(|on| {
            let is_known = self.ask_marks()?;
            // Behind a mark that is not passed there is nothing to ask for.
            if !self.has_passed(number) && !is_known && !self.is_idle()? && may_mark {
                self.put_mark(device, &on)?;
            }
            Ok(())
        });
        // But that a question made no sense, or would have broken a capture, says nothing of the answer.
        let is_unknown = |error: &Error| {
            error.code() == ErrorCode::InvalidContext
                || error.native_status().is_some_and(is_of_capture)
        };
        if asked.is_err_and(|error| !is_unknown(&error)) {
            self.done.fetch_max(number, AcqRel);
        }
    }
    /// Whether a mark is under way; those that are passed are taken away.
    fn ask_marks(&self) -> Result<bool> {
        loop {
            let Some((number, mark)) = self.marks().front().cloned() else { return Ok(false) };
            if !mark.is_complete()? {
                return Ok(true);
            }
            self.done.fetch_max(number, AcqRel);
            let mut marks = self.marks();
            let passed = match marks.front().is_some_and(|(front, _)| *front == number) {
                true => marks.pop_front(),
                false => None, // another thread was quicker
            };
            drop(marks);
            drop(passed); // not under the lock
        }
    }
    /// Puts a mark behind all commands so far, if freed memory waits for one of them.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn put_mark(&self, device: &DriverDevice<D>, on: &Entered<D>) -> Result<()> {
        let is_full = self.marks().len() >= MARKS; // what still stands waits a little longer
        if is_full || !self.wants_mark() || self.end.get().is_some() || self.is_out_of_reach()? {
            return Ok(());
        }
        let put = self.put.load(Acquire); // first, as in `is_idle`
        let mark = device.events().take(on, false)?;
        mark.record(&self.stream)?;
        self.marks().push_back((put, Arc::new(mark)));
        self.marked.fetch_max(put, Relaxed);
        Ok(())
    }
    /// What everything in it so far is before.
    pub(super) fn mark(&self, device: &DriverDevice<D>, on: &Entered<D>) -> Result<Mark<D>> {
        if self.is_idle()? {
            return Ok(Mark::Nothing);
        }
        if let Some(end) = self.end.get() {
            return Ok(end.clone().map_or(Mark::Nothing, Mark::Event));
        }
        if self.is_out_of_reach()? {
            return Ok(Mark::Captured);
        }
        let event = device.events().take(on, false)?;
        event.record(&self.stream)?;
        Ok(Mark::Event(Arc::new(event)))
    }
    /// Whether it is a stream of C's, which may destroy it when the queue is gone.
    fn is_borrowed(&self) -> bool {
        !self.stream.is_owned() && self.stream.raw().is_some()
    }
    /// A command has been put into it that runs: no capture has it.
    pub(super) fn note_last(&self, device: &DriverDevice<D>, on: &Entered<D>) -> Result<()> {
        if !self.is_borrowed() {
            return Ok(()); // it can be asked for as long as it has something to do
        }
        let last = match self.last.get() {
            Some(last) => last,
            None => {
                let fresh = Arc::new(device.events().take(on, false)?);
                self.last.get_or_init(|| fresh)
            }
        };
        last.record(&self.stream)
    }
    /// Marks where its commands end, if it is not ours to keep.
    pub(super) fn leave(&self, device: &DriverDevice<D>) {
        if !self.is_borrowed() {
            return;
        }
        let end = device.enter().and_then(|on| {
            // An event would be captured and never be over: then the last command of this queue tells. What others
            // put into the stream before the capture began, whoever captures it knows of.
            if self.is_out_of_reach()? {
                return Ok(self.last.get().cloned());
            }
            let end = device.events().take(&on, false)?;
            end.record(&self.stream)?;
            Ok(Some(Arc::new(end)))
        });
        // Without a driver there is nothing to wait for; with one that fails, for the last command.
        let _ = self.end.set(end.unwrap_or_else(|_| self.last.get().cloned()));
    }
}
/// Where a lane is at a moment.
pub(super) enum Mark<D: Dialect> {
    /// Everything in it is done.
    Nothing,
    /// Everything in it is before that event.
    Event(Arc<Pooled<D>>),
    /// It is being captured: neither can it be asked, nor can an event be put into it.
    Captured,
}
/// Why `what` is refused.
pub(super) fn captured(what: &str) -> Error {
    Error::new(
        ErrorCode::InvalidOperation,
        format!(
            "the queue's stream is being captured into a graph by somebody else in this process, and \
             {what} cannot be part of one: do it before the capture begins, or after it has ended"
        ),
    )
}
/// A command that is being put into a lane.
pub(super) struct Putting<'lane, D: Dialect>(&'lane Lane<D>);
impl<D: Dialect> Putting<'_, D> {
    /// How many commands have been put into the lane by now, this one not counted.
    pub(super) fn before(&self) -> u64 {
        self.0.put.load(Acquire)
    }
    /// All that was put before and this command are done: `before` says how many they were when a mark behind
    /// them was put into the stream.
    pub(super) fn end(self, before: u64) {
        let lane = self.0;
        std::mem::forget(self);
        let others = lane.put.fetch_add(1, AcqRel);
        // If others were faster, those may not be done that are counted with it.
        let known = if others == before { before + 1 } else { before };
        lane.done.fetch_max(known, AcqRel);
    }
}
impl<D: Dialect> Drop for Putting<'_, D> {
    fn drop(&mut self) {
        self.0.put.fetch_add(1, AcqRel);
    }
}
