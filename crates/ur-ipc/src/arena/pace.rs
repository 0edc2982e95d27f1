//! Waiting for a value that is several steps away. A thread that sleeps on a counter is woken by every value before its
//! own, and costs the counter's owner a wake-up each time. Where values come fast, it naps instead, and sleeps on the
//! counter only for the last one.
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use std::{
    num::NonZeroU64,
    thread,
    time::{Duration, Instant},
};

/// Values that come slower than this are worth a wake-up each.
const FAST: Duration = Duration::from_micros(20);
/// The longest nap: a death or an early end is noticed at most this much later.
const LONGEST: Duration = Duration::from_micros(100);
/// The polling interval for a word that a device writes.
const LOOK: Duration = Duration::from_micros(20);
/// A shorter nap is not worth its system calls.
const SHORTEST: Duration = Duration::from_micros(5);

/// What one wait has observed of its counter: the last value seen, and when.
#[derive(Debug, Default)]
pub(super) struct Pace(Option<(Instant, u64)>);

impl Pace {
    /// Sleeps for about half of the expected time until `wanted`, if what was observed so far makes that worthwhile;
    /// returns whether it did.
    pub fn nap(&mut self, seen: u64, wanted: u64, deadline: Option<Instant>) -> bool {
        if wanted - seen == 1 {
            return false;
        }
        let now = Instant::now();
        let Some(nap) = self.next(now, seen, wanted) else { return false };
        sleep(deadline.map_or(nap, |at| at.saturating_duration_since(now).min(nap)));
        true
    }
    /// Sleeps briefly before the next poll of a word whose writer wakes no thread.
    #[expect(clippy::unused_self, reason = "a pace, though always the same")]
    pub fn look(&mut self, deadline: Option<Instant>) -> bool {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        sleep(left.map_or(LOOK, |left| left.min(LOOK)));
        true
    }
    fn next(&mut self, now: Instant, seen: u64, wanted: u64) -> Option<Duration> {
        let (then, before) = self.0.replace((now, seen))?;
        let steps = u32::try_from(seen.checked_sub(before)?).ok()?;
        let step = now.saturating_duration_since(then).checked_div(steps)?;
        let left = u32::try_from(wanted - seen).unwrap_or(u32::MAX);
        let nap = (step.saturating_mul(left) / 2).min(LONGEST);
        (step < FAST && nap >= SHORTEST).then_some(nap)
    }
}

/// Sleeps for a precise time: by default the kernel adds 50 µs.
fn sleep(time: Duration) {
    let slack = current_timer_slack().ok().and_then(NonZeroU64::new);
    // Where the kernel refuses, the nap takes longer.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    thread::sleep(time);
    let _ = set_current_timer_slack(slack);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paced(steps: &[(u64, u64)], wanted: u64) -> Vec<Option<u128>> {
        let start = Instant::now();
        let mut pace = Pace::default();
        let at = |micros| start + Duration::from_micros(micros);
        let naps = steps.iter().map(|&(micros, seen)| pace.next(at(micros), seen, wanted));
        naps.map(|nap| nap.map(|nap| nap.as_micros())).collect()
    }

    #[test]
    fn naps_are_half_of_what_is_left_and_never_long() {
        let naps = paced(&[(0, 0), (10, 10), (20, 20), (30, 40), (40, 90)], 100);
        assert_eq!(naps, [None, Some(45), Some(40), Some(15), None]);
        assert_eq!(paced(&[(0, 0), (10, 10)], 100_000), [None, Some(100)]);
    }
    #[test]
    fn what_comes_slowly_or_not_at_all_is_slept_for() {
        assert_eq!(paced(&[(0, 0), (1000, 10), (2000, 10)], 100), [None, None, None]);
    }
    #[test]
    fn a_nap_ends_with_the_deadline_and_the_last_value_is_never_napped_for() {
        let now = Instant::now();
        let before = now.checked_sub(Duration::from_micros(10)).unwrap();
        assert!(Pace(Some((before, 0))).nap(1, 1000, Some(now)));
        assert!(!Pace(Some((before, 0))).nap(1, 2, None));
    }
}
