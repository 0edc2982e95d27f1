//! The registry of queue states, including those of released queues that are still busy, and sync points:
//! everything submitted up to a moment. Deferred frees of memory and objects wait for sync points.
use super::{
    DriverDevice,
    native::event::EventKind,
    work::{CommandId, QueueState},
};
use std::sync::{Arc, atomic::Ordering::*};
use ur_hal::{Moment as _, Result, StreamState, StreamStates, unless_gone};

impl QueueState {
    /// Ends the use: the queue was released. Its lists are kept until they are idle.
    pub(super) fn leave(&self) {
        self.give_list_back();
        self.is_over.store(true, Release);
        QUEUES.sweep();
    }
    /// Adds the points that its lists must pass until everything submitted so far that may use memory as old
    /// as the object with the number `since` is complete. Submits batches; otherwise does not call the
    /// driver.
    fn note(self: &Arc<Self>, since: u64, into: &mut Vec<Moment>) {
        let mut turn = self.sent();
        for lane in 0..turn.count() {
            let is_lent = turn.is_lent(lane);
            let Some(there) = turn.there(lane) else { continue };
            let number = match is_lent {
                // Commands of other code are not counted. So this moment is counted as a command of its own,
                // which is complete when the list has passed it.
                true => there.count_one(),
                false if there.latest <= since => continue, // its commands cannot use the memory
                false => there.count,
            };
            let spot = CommandId { lane: lane as u32, number };
            if !self.has_passed(spot) {
                into.push(Moment { work: Arc::clone(self), spot });
            }
        }
    }
    /// Checks the progress of a lane. If it is busy, appends a mark, unless one is pending; one mark serves
    /// all memory freed before it.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn look(&self, spot: CommandId) -> Result<()> {
        let mut turn = self.turn();
        let Some(lane) = turn.there(spot.lane as usize) else { return Ok(()) };
        while let Some((number, mark)) = lane.frees.front() {
            if !mark.is_complete()? {
                return Ok(()); // nor are the later ones
            }
            self.note_passed(CommandId { number: *number, ..spot });
            if let Some((_, mark)) = lane.frees.pop_front() {
                self.cache.give(mark, false);
            }
        }
        if self.has_passed(spot) {
            return Ok(());
        }
        // An unsubmitted batch comes after `spot`, which was submitted.
        let number = if lane.has_batch() { spot.number } else { lane.count };
        if self.has_cheap_ends && lane.list.wait(0)? {
            self.note_passed(CommandId { number, ..spot });
            return Ok(());
        }
        let mark = lane.mark(&self.cache)?;
        lane.frees.push_back((number, mark));
        Ok(())
    }
}

/// Adds a queue state to the registry.
pub(super) fn enter(work: &Arc<QueueState>) {
    QUEUES.add(work);
}

/// The queue states of this process, including those of released queues that are still busy.
static QUEUES: StreamStates<QueueState> = StreamStates::new();
impl StreamState for QueueState {
    fn is_released(&self) -> bool {
        self.is_over.load(Acquire)
    }
    fn is_idle(&self) -> bool {
        // A query that fails says nothing, unless the device is lost.
        self.is_idle().unwrap_or_else(|error| error.kind().is_gone())
    }
}

/// A point that a list must pass.
#[derive(Clone, Debug)]
pub struct Moment {
    work: Arc<QueueState>,
    spot: CommandId,
}
impl Moment {
    /// Appends a mark behind it; `None` if it has passed.
    fn mark(&self) -> Result<Option<EventKind>> {
        let mut turn = self.work.turn();
        let Some(lane) = turn.there(self.spot.lane as usize) else { return Ok(None) };
        if self.has_passed() || lane.list.wait(0)? {
            return Ok(None);
        }
        lane.mark(&self.work.cache).map(Some)
    }
}
impl ur_hal::Moment for Moment {
    fn lane(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.work).addr(), self.spot.lane)
    }
    fn number(&self) -> u64 {
        self.spot.number
    }
    fn has_passed(&self) -> bool {
        self.work.has_passed(self.spot) || self.work.is_lost()
    }
    fn ask(&self, _may_mark: bool) {
        if self.work.look(self.spot).is_err_and(|error| error.kind().is_gone()) {
            self.work.note_passed(self.spot); // nothing runs there any more
        }
    }
}
/// The points of everything submitted so far to streams of the context with this handle (0: of all contexts)
/// that may use memory as old as the object with the number `since`. Streams whose driver fails are omitted.
pub(super) fn submitted(context: usize, since: u64) -> Vec<Moment> {
    let mut moments = vec![];
    for work in QUEUES.of(|work| context == 0 || work.context == context) {
        work.note(since, &mut moments); // submits batches, so outside the registry's lock
    }
    moments
}
/// Waits until everything submitted so far is complete. Errors of commands are reported by their queues and
/// events, not here.
///
/// # Errors
/// Returns the driver's error if it is not known that all is complete; none if the device is lost.
pub(super) fn wait_for_all(context: usize) -> Result<()> {
    let (mut marks, mut done) = (vec![], Ok(()));
    for moment in submitted(context, 0) {
        let marked = moment.mark().map(|mark| marks.extend(mark.map(|mark| (moment.work, mark))));
        done = done.and(unless_gone(marked));
    }
    for (work, mark) in marks {
        done = done.and(unless_gone(work.wait_for(&mark)));
        work.cache.give(mark, false);
    }
    done
}
/// Waits for all commands submitted so far to queues of `device`.
///
/// # Errors
/// As for [`QueueState::finish`].
pub(super) fn wait_for_device(device: &DriverDevice) -> Result<()> {
    let meant = QUEUES.of(|work| work.device.is(device));
    // Does not stop at an error: all are complete on return.
    let mut done = Ok(());
    for work in meant {
        done = done.and(work.finish());
    }
    done
}
