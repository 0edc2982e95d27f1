//! How the host waits for the driver. At first it polls, because most waits are short. Then it sleeps for
//! short times between polls ("naps"), because the latency of the device's interrupt is longer than a nap.
//! Finally it sleeps until the device wakes it. If the last waits of a thread were equally long (such as in a
//! loop that copies and waits), the next one is expected to last as long, and the thread polls without naps
//! around that time. So the end of such a wait is noticed at once, and only a fraction of the wait costs
//! processor time.
//!
//! The driver's own synchronization calls would spin: whether they do is a setting of the primary context,
//! which other code in the process shares. So the thread sleeps on an event that was created with blocking
//! synchronization. The events of commands are not created so, because that would cost device time for each
//! command.
use super::{
    DriverDevice,
    driver::Dialect,
    native::{
        context::Entered,
        event::{NativeEvent, Pooled},
        stream::Stream,
    },
};
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use std::{
    cell::Cell,
    hint,
    num::NonZeroU64,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};
use ur_hal::Result;
use ur_lock::locked;

/// How long the host polls without naps.
const LOOKS: Duration = Duration::from_micros(50);
/// How long after the start of a wait the host stops napping and sleeps on an event. Copies of some hundred
/// microseconds took 150 more when the host slept on an event (NVIDIA H200, driver 580).
const NAPS: Duration = Duration::from_millis(2);
/// The shortest nap; in longer waits a nap takes 1/[`PART`] of the time waited so far.
const NAP: Duration = Duration::from_micros(30);
const PART: u32 = 16;

/// What a waiting thread does before the next poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Query,
    Nap(Duration),
    /// Stop polling: sleep until the device wakes the thread.
    Sleep,
}
/// The lengths of a thread's last waits that included naps; 0 for none yet.
#[derive(Clone, Copy, Debug)]
struct Recent {
    lengths: [Duration; 4],
    oldest: usize,
}
thread_local! {
    static RECENT: Cell<Recent> = const { Cell::new(Recent::NONE) };
}
impl Recent {
    const NONE: Self = Self { lengths: [Duration::ZERO; 4], oldest: 0 };

    fn note(&mut self, length: Duration) {
        if (LOOKS..NAPS).contains(&length) {
            self.lengths[self.oldest] = length;
            self.oldest = (self.oldest + 1) % self.lengths.len();
        }
    }
    /// How much two lengths may differ and still count as equal.
    fn tolerance(length: Duration) -> Duration {
        NAP + length / 32
    }
    /// The periods, as times since the start of a wait, in which its end is expected: around lengths that
    /// occurred twice.
    fn guarded(&self) -> impl Iterator<Item = (Duration, Duration)> {
        let came_twice = |(at, length): &(usize, &Duration)| {
            let mut others = self.lengths.iter().enumerate().filter(|(other, _)| other != at);
            !length.is_zero()
                && others.any(|(_, o)| o.abs_diff(**length) <= Self::tolerance(**length))
        };
        let around = |(_, &length): (usize, &Duration)| {
            let tolerance = Self::tolerance(length);
            (length.saturating_sub(tolerance + NAP), length + tolerance)
        };
        self.lengths.iter().enumerate().filter(came_twice).map(around)
    }
    /// What to do in a wait that has lasted `waited`.
    fn step(&self, waited: Duration) -> Step {
        if waited < LOOKS {
            return Step::Query;
        }
        if waited >= NAPS {
            return Step::Sleep;
        }
        let mut nap = NAP.max(waited / PART);
        for (from, _) in self.guarded().filter(|(_, to)| waited < *to) {
            match from.checked_sub(waited) {
                None | Some(Duration::ZERO) => return Step::Query,
                Some(left) => nap = nap.min(left),
            }
        }
        Step::Nap(nap)
    }
}
/// Makes the calling thread's naps end in time: by default the kernel's timer slack prolongs them by about 50
/// microseconds.
struct Punctual(Option<NonZeroU64>);
impl Punctual {
    fn new() -> Self {
        // Without it naps are only longer, so a failure is ignored.
        let before = current_timer_slack().ok().and_then(NonZeroU64::new);
        Self(before.filter(|_| set_current_timer_slack(Some(NonZeroU64::MIN)).is_ok()))
    }
}
impl Drop for Punctual {
    fn drop(&mut self) {
        if self.0.is_some() {
            let _restored = set_current_timer_slack(self.0); // the previous value, so it is accepted
        }
    }
}

/// The stream and the event with which one thread at a time sleeps.
#[derive(Debug)]
struct Sleeper<D: Dialect> {
    /// Contains nothing but what is waited for.
    stream: Stream<D>,
    event: NativeEvent<D>,
}
/// The sleepers of a device that are not in use.
#[derive(Debug)]
pub struct Sleepers<D: Dialect>(Mutex<Vec<Sleeper<D>>>);
impl<D: Dialect> Sleepers<D> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
    fn with(&self, on: &Entered<D>, sleep: impl FnOnce(&Sleeper<D>) -> Result<()>) -> Result<()> {
        let idle = locked(&self.0).pop();
        let sleeper = match idle {
            Some(sleeper) => sleeper,
            None => Sleeper { stream: Stream::create(on)?, event: NativeEvent::blocking(on)? },
        };
        sleep(&sleeper)?; // after an error its state is unknown, so it is not reused
        locked(&self.0).push(sleeper);
        Ok(())
    }
}

/// Polls, with naps, for a limited time; returns whether the wait is over.
fn look(mut is_over: impl FnMut() -> Result<bool>) -> Result<bool> {
    if is_over()? {
        return Ok(true);
    }
    let (begun, mut recent, mut punctual) = (Instant::now(), RECENT.get(), None);
    loop {
        match recent.step(begun.elapsed()) {
            Step::Query => hint::spin_loop(),
            Step::Nap(nap) => {
                punctual.get_or_insert_with(Punctual::new);
                thread::sleep(nap);
            }
            Step::Sleep => return Ok(false),
        }
        if is_over()? {
            recent.note(begun.elapsed());
            RECENT.set(recent);
            return Ok(true);
        }
    }
}
/// Waits until everything before `event` in its stream is complete. For a longer wait it sleeps with a stream
/// of `device`.
///
/// # Errors
/// Returns the driver's error: those of the commands before it, and for an event that was recorded in a
/// capture.
pub(super) fn wait_for<D: Dialect>(event: &NativeEvent<D>, device: &DriverDevice<D>) -> Result<()> {
    if look(|| event.has_happened())? {
        return Ok(());
    }
    let on = device.enter()?;
    device.sleepers().with(&on, |sleeper| {
        sleeper.stream.wait_for(event)?;
        sleeper.event.record(&sleeper.stream)?;
        sleeper.event.synchronize()
    })
}
impl<D: Dialect> Pooled<D> {
    /// Waits for an event of a pool, whose device is known.
    ///
    /// # Errors
    /// As for [`wait_for`].
    pub(super) fn wait(&self) -> Result<()> {
        wait_for(self, self.device()?)
    }
}
/// Waits until everything in `stream`, a stream of `device`, is complete.
///
/// # Errors
/// Returns the driver's error, also those of its commands.
pub(super) fn finish<D: Dialect>(stream: &Stream<D>, device: &DriverDevice<D>) -> Result<()> {
    let on = device.enter()?; // the default stream is that of the current context
    if look(|| stream.is_idle())? {
        return Ok(());
    }
    device.sleepers().with(&on, |sleeper| {
        sleeper.event.record(stream)?;
        sleeper.event.synchronize()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }
    fn after(lengths: &[u64]) -> Recent {
        let mut recent = Recent::NONE;
        lengths.iter().for_each(|&length| recent.note(us(length)));
        recent
    }
    /// Simulates a wait of `length`, in which each nap takes `late` longer than requested. Returns the time
    /// spent polling without naps, and how late the end is noticed.
    fn wait(recent: &Recent, length: Duration, late: Duration) -> (Duration, Duration) {
        let (mut now, mut spent) = (Duration::ZERO, Duration::ZERO);
        while now < length {
            match recent.step(now) {
                Step::Query => (now, spent) = (now + us(1), spent + us(1)),
                Step::Nap(nap) => now += nap + late,
                Step::Sleep => break,
            }
        }
        (spent, now.saturating_sub(length))
    }

    #[test]
    fn a_wait_as_long_as_two_before_is_noticed_at_once_for_a_fraction_of_it() {
        for length in [100, 500, 1000, 1900] {
            let recent = after(&[length, length + 5]);
            let (spent, late) = wait(&recent, us(length), us(10));
            assert!(late <= us(1), "{length}: {late:?}");
            assert!(spent <= us(50 + 90 + length / 16), "{length}: {spent:?}");
        }
        // Two kinds of waits alternate.
        let recent = after(&[300, 900, 305, 890]);
        assert!([302, 897].iter().all(|&length| wait(&recent, us(length), us(10)).1 <= us(1)));
    }
    #[test]
    fn what_came_once_is_not_expected_and_noticed_by_a_nap() {
        for recent in [Recent::NONE, after(&[500]), after(&[500, 900, 200, 1400])] {
            for length in [100, 500, 900, 1900] {
                let (spent, late) = wait(&recent, us(length), us(10));
                assert!(
                    spent == LOOKS && late <= us(40 + length / 16),
                    "{length}: {spent:?} {late:?}"
                );
            }
        }
    }
    #[test]
    fn a_long_wait_is_slept_whatever_was_before() {
        let recent = after(&[700, 700, 1500, 1500]);
        assert_eq!(recent.step(NAPS), Step::Sleep);
        let (spent, _) = wait(&recent, NAPS, us(0));
        assert!(spent < us(500), "{spent:?}");
        // Very long and very short waits are not recorded.
        let mut later = recent;
        [us(10), us(300_000)].into_iter().for_each(|length| later.note(length));
        assert_eq!(later.lengths, recent.lengths);
    }
}
