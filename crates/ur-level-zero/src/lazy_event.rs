//! Lazy events: ends of commands without a driver event. The last command of a list needs no event, because
//! the completion of the list can be queried, and an application that waits for each command needs no more.
//! If another command follows, or a wait needs it, a mark (a driver event) is appended behind the command,
//! which then has an event like any other. A queue that often needs marks stops using lazy events for a
//! while: its commands then signal events of their own.
use super::{
    lane::Lane,
    native::event::EventKind,
    work::{CommandId, LockedState, QueueState},
};
use std::sync::{OnceLock, atomic::Ordering::*};
use ur_hal::Result;

/// The number of commands without lazy events after a mark was needed: the first value, doubled each time up
/// to the second.
const PATIENCE: [u32; 2] = [16, 4096];
/// With more unused marks than this, completed ones are removed.
const MARKS: usize = 8;

/// Decides whether the next command gets a lazy event.
#[derive(Debug)]
pub(super) struct EventPolicy {
    /// The number of commands that still signal events of their own.
    rest: u32,
    /// The number of such commands after the next mark that is needed.
    next: u32,
}
impl Default for EventPolicy {
    fn default() -> Self {
        Self { rest: 0, next: PATIENCE[0] }
    }
}
impl EventPolicy {
    fn slow(&mut self) {
        self.rest = self.next;
        self.next = (self.next * 2).min(PATIENCE[1]);
    }
    /// Whether the next command may have a lazy event.
    fn is_quick(&mut self) -> bool {
        let is_quick = self.rest == 0;
        self.rest = self.rest.saturating_sub(1);
        is_quick
    }
}

impl QueueState {
    /// Records that a command, and all before it in its lane, are complete.
    #[inline]
    pub(super) fn note_passed(&self, spot: CommandId) {
        let passed = &self.passed[spot.lane as usize];
        if passed.load(Relaxed) < spot.number {
            // Concurrent stores may overwrite a greater number by a smaller one, which only loses knowledge.
            passed.store(spot.number, Release); // pairs with `has_passed`
        }
    }
    /// Whether a command is known to be complete.
    #[inline]
    pub(super) fn has_passed(&self, spot: CommandId) -> bool {
        self.passed[spot.lane as usize].load(Acquire) >= spot.number
    }
    /// Whether the next command of a lane may have a lazy event.
    #[inline]
    pub(super) fn does_without(&self, turn: &mut LockedState, number: usize) -> bool {
        let is_ours =
            self.has_cheap_ends && !self.is_batched() && !self.has_debts() && !turn.is_lent(number);
        is_ours && turn.event_policy.is_quick()
    }
    /// Appends a mark behind the last command of a lane, if that has a lazy event and is not known to be
    /// complete. Called before another command is appended.
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub(super) fn mark_tail(&self, turn: &mut LockedState, number: usize) -> Result<()> {
        match turn.lane_mut(number).tail.take() {
            Some(tail) if !self.has_passed(CommandId { lane: number as u32, number: tail }) => {
                turn.lane_mut(number).tail = Some(tail);
                self.mark_command(turn, number, tail)
            }
            _ => Ok(()),
        }
    }
    #[cold]
    fn mark_command(&self, turn: &mut LockedState, number: usize, tail: u64) -> Result<()> {
        let mark = turn.lane(number).mark(&self.cache)?;
        turn.event_policy.slow();
        let lane = turn.lane_mut(number);
        lane.tail = None;
        lane.marks.push_back((tail, mark));
        self.sweep_marks(number as u32, lane)
    }
    /// Returns marks to the cache whose commands are complete.
    fn sweep_marks(&self, number: u32, lane: &mut Lane) -> Result<()> {
        while let Some((command, mark)) = lane.marks.front() {
            let spot = CommandId { lane: number, number: *command };
            let is_over =
                self.has_passed(spot) || (lane.marks.len() > MARKS && mark.is_complete()?);
            if !is_over {
                break;
            }
            self.note_passed(spot);
            if let Some((_, mark)) = lane.marks.pop_front() {
                self.cache.give(mark, false);
            }
        }
        Ok(())
    }
    /// Stores the mark behind a command in `end`; nothing if the command is complete.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn mark_into(&self, end: &OnceLock<EventKind>, spot: CommandId) -> Result<()> {
        let (mut turn, number) = (self.turn(), spot.lane as usize);
        if end.get().is_some() {
            return Ok(()); // another thread was faster
        }
        if turn.lane(number).tail == Some(spot.number) {
            self.mark_tail(&mut turn, number)?;
        }
        let marks = &mut turn.lane_mut(number).marks;
        let found = marks.iter().position(|(command, _)| *command == spot.number);
        if let Some((_, mark)) = found.and_then(|at| marks.remove(at)) {
            end.get_or_init(|| mark);
        }
        Ok(())
    }
    /// Whether a lane is idle. Queried under the queue's lock, because on success the driver frees data that
    /// appending commands modifies.
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub(super) fn is_lane_idle(&self, lane: u32) -> Result<bool> {
        self.turn().there(lane as usize).map_or(Ok(false), |lane| lane.list.wait(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_whose_commands_need_marks_does_without_for_longer_and_longer() {
        let mut event_policy = EventPolicy::default();
        let commands_until_quick =
            |event_policy: &mut EventPolicy| (0..).find(|_| event_policy.is_quick());
        assert_eq!(commands_until_quick(&mut event_policy), Some(0));
        for rest in [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096] {
            event_policy.slow();
            assert_eq!(commands_until_quick(&mut event_policy), Some(rest));
            assert!(event_policy.is_quick(), "and again, until a mark is needed");
        }
    }
}
