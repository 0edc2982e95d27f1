//! Ends of commands that nothing marks yet. The last command of a list needs no event of the driver's:
//! the list itself tells whether it is done, and who waits for each command asks no more. A mark is
//! put behind it when something else follows, or when somebody has to wait for it: from there on it is
//! an event as any other. A queue whose commands take their time does without: for a while its
//! commands signal events of their own.
use super::{
    lane::Lane,
    native::event::EventKind,
    work::{CommandId, LockedState, QueueState},
};
use std::sync::{OnceLock, atomic::Ordering::*};
use ur_adapter::error::Result;

/// For so many commands a queue does without, and at most, after a mark was needed.
const PATIENCE: [u32; 2] = [16, 4096];
/// Marks that nobody asked for are looked at when there are more.
const MARKS: usize = 8;

/// How a queue's commands end.
#[derive(Debug)]
pub(super) struct EventPolicy {
    /// So many commands yet signal events of their own.
    rest: u32,
    /// And so many after the next mark that is needed.
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
    /// Whether the next command may do without an event.
    fn is_quick(&mut self) -> bool {
        let is_quick = self.rest == 0;
        self.rest = self.rest.saturating_sub(1);
        is_quick
    }
}

impl QueueState {
    /// A command is done, and so is all before it in its lane.
    #[inline]
    pub(super) fn note_passed(&self, spot: CommandId) {
        let passed = &self.passed[spot.lane as usize];
        if passed.load(Relaxed) < spot.number {
            // Of two threads the one that knows less may win: then less is known.
            passed.store(spot.number, Release); // pairs with `has_passed`
        }
    }
    /// Whether a command is known to be done.
    #[inline]
    pub(super) fn has_passed(&self, spot: CommandId) -> bool {
        self.passed[spot.lane as usize].load(Acquire) >= spot.number
    }
    /// Whether the next command of a lane may do without an event, though C wants one.
    #[inline]
    pub(super) fn does_without(&self, turn: &mut LockedState, number: usize) -> bool {
        let is_ours =
            self.has_cheap_ends && !self.is_batched() && !self.has_debts() && !turn.is_lent(number);
        is_ours && turn.event_policy.is_quick()
    }
    /// Puts a mark behind the last command of a lane if it may need one: something else follows.
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
        let mark = self.cache().take(false)?;
        turn.lane(number).turn().signal(mark.raw())?;
        turn.event_policy.slow();
        let lane = turn.lane_mut(number);
        lane.tail = None;
        lane.marks.push_back((tail, mark));
        self.sweep_marks(number as u32, lane)
    }
    /// Takes back marks that nobody needs any more.
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
                self.cache().give(mark, false);
            }
        }
        Ok(())
    }
    /// Puts what marks the end of a command into `end`; nothing if it is done.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn mark_into(&self, end: &OnceLock<EventKind>, spot: CommandId) -> Result<()> {
        let (mut turn, number) = (self.turn(), spot.lane as usize);
        if end.get().is_some() {
            return Ok(()); // another thread was quicker
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
    /// Whether a lane is seen to have nothing to do. With the turn: on success the driver clears what appends add to.
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub(super) fn is_lane_idle(&self, lane: u32) -> Result<bool> {
        self.turn().there(lane as usize).map_or(Ok(false), |lane| lane.list().wait(0))
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
