//! The device's clock in nanoseconds, for profiling and for global timestamps. The driver only reports the
//! time between two events, as an `f32` in milliseconds (24 bits of precision). So an event's time is
//! measured from a base event that is rarely older than a second, and the base's own time from the base
//! before it.
//!
//! After a pause the distance to the previous base is coarse: it comes in steps of 250 µs after an hour and
//! of 8 ms after a day. So the time of the first base after a pause is determined with several marks: events
//! that are close to the new base and equally far from the old one. Each is rounded differently, and together
//! they bound the time of the new base to about the interval between two marks (some microseconds). This
//! takes as long as one step, at most 10 ms; after a pause of more than a day the time stays coarser.
use super::{
    device::DriverDevice,
    driver::{Dialect, RawContext},
    native::{context::Entered, event::NativeEvent, stream::Stream},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use ur_hal::{ErrorKind, Result, host_clock};
use ur_lock::locked;

/// Age in nanoseconds from which a base is replaced: over this distance the driver's times are exact to 61
/// ns.
const OLD: u64 = 1_000_000_000;

/// The longest time in nanoseconds that is spent on starting the clock, or on the marks after a pause.
const PATIENCE: u64 = 10_000_000;

/// An event with a known time, from which other times are measured.
#[derive(Debug)]
pub struct Base<D: Dialect> {
    event: NativeEvent<D>,
    context: RawContext,
    /// The clock's stream.
    stream: Arc<Stream<D>>,
    /// Its time in nanoseconds; set by the first query after the device has passed it.
    at: OnceLock<u64>,
    /// The previous base, from which its own time is measured; `None` when that time is known.
    before: Mutex<Option<Arc<Self>>>,
    /// The host's clock when it was recorded.
    host: u64,
}
impl<D: Dialect> Base<D> {
    /// The time of `event` in nanoseconds of the device's clock. The event must be complete, have been
    /// created with timing, and have been recorded while this base was the newest one.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn time_of(&self, event: &NativeEvent<D>) -> Result<u64> {
        let _on = Entered::<D>::enter(self.context)?;
        let at = self.at()?;
        self.event.synchronize()?; // normally long complete; not if its stream was delayed
        Ok(at.saturating_add_signed(event.elapsed_ns_since(&self.event)?))
    }
    /// The base's own time. A context must be current.
    fn at(&self) -> Result<u64> {
        let before = || locked(&self.before);
        let known = before().clone();
        if let Some(known) = known {
            self.event.synchronize()?;
            let at = known.at()?.saturating_add_signed(self.since(&known)?);
            self.at.get_or_init(|| at);
            let done = before().take(); // only now: `at` is set
            drop(done);
        }
        self.at.get().copied().ok_or_else(|| ErrorKind::Unknown.into())
    }
    /// Nanoseconds from `old` to this base. The device must have passed both.
    fn since(&self, old: &Self) -> Result<i64> {
        let told = self.event.elapsed_ns_since(&old.event)?;
        let mut bounds = Bounds::of(told);
        let (step, end) = (step(told), host_clock() + PATIENCE);
        if step <= EXACT {
            return Ok(told);
        }
        let on = Entered::<D>::enter(self.context)?;
        let mark = NativeEvent::create(&on, true)?;
        while bounds.width() > EXACT {
            mark.record(&self.stream)?;
            while !mark.is_complete()? {
                if host_clock() > end {
                    return Ok(bounds.middle().unwrap_or(told));
                }
                std::thread::yield_now();
            }
            let near = mark.elapsed_ns_since(&self.event)?;
            bounds.meet(mark.elapsed_ns_since(&old.event)?, near);
            if near > step || host_clock() > end {
                break; // after one full step further marks repeat the same roundings
            }
        }
        // The bounds contradict each other if the driver does not round to nearest.
        Ok(bounds.middle().unwrap_or(told))
    }
}
/// The precision of the driver's events in nanoseconds.
const EXACT: i64 = 2_000;
/// The distance in nanoseconds between neighbouring `f32` values at this time.
fn step(nanoseconds: i64) -> i64 {
    let milliseconds = (nanoseconds as f64 / 1e6) as f32;
    (f64::from(milliseconds.abs().next_up() - milliseconds.abs()) * 1e6).ceil() as i64
}
/// Lower and upper bound of a time of which the driver reported one or several rounded values.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: i64,
    most: i64,
}
impl Bounds {
    fn of(told: i64) -> Self {
        let half = step(told) / 2 + 1;
        Self { least: told - half, most: told + half }
    }
    /// Narrows the bounds by another report: an event that is later by `near` was reported at `told`.
    fn meet(&mut self, told: i64, near: i64) {
        let other = Self::of(told);
        let slack = step(near) / 2 + 1;
        self.least = self.least.max(other.least - near - slack);
        self.most = self.most.min(other.most - near + slack);
    }
    fn width(self) -> i64 {
        self.most - self.least
    }
    /// The midpoint; `None` if the bounds exclude each other.
    fn middle(self) -> Option<i64> {
        (self.width() >= 0).then_some(self.least + self.width() / 2)
    }
}

/// A device's clock.
#[derive(Debug)]
pub(super) struct Clock<D: Dialect> {
    /// Executes nothing but bases and timestamps, so that it is rarely delayed.
    stream: Arc<Stream<D>>,
    newest: Mutex<Arc<Base<D>>>,
}
impl<D: Dialect> Clock<D> {
    /// Records the first base.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn start(device: &DriverDevice<D>) -> Result<Self> {
        let (context, on) = (device.context()?, device.enter()?);
        let stream = Arc::new(Stream::create(&on)?);
        let (event, begun) = mark(device, &stream)?;
        // The first base gets the host's time, so that the two clocks can be compared. The host's clock is
        // read after the event, so that no command seems to start before it was submitted. The wait has a
        // limit, because a device may be held up by something that the caller does next.
        while !event.is_complete()? && host_clock() < begun + PATIENCE {
            std::thread::yield_now();
        }
        let host = host_clock();
        let (at, before) = (OnceLock::from(host), Mutex::new(None));
        let clock = Arc::clone(&stream);
        let newest = Arc::new(Base { event, context, stream: clock, at, before, host });
        Ok(Self { stream, newest: Mutex::new(newest) })
    }
    fn newest(&self) -> MutexGuard<'_, Arc<Base<D>>> {
        locked(&self.newest)
    }
    /// The newest base, replaced if it is too old, so that times after a pause are measured from nearby. Does
    /// not wait for the device, which may wait for what the caller does next: while the device has not passed
    /// the newest base, that one stays.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn base(&self, device: &DriverDevice<D>) -> Result<Arc<Base<D>>> {
        let newest = Arc::clone(&self.newest());
        if host_clock().saturating_sub(newest.host) < OLD {
            return Ok(newest);
        }
        let _on = device.enter()?;
        if newest.at.get().is_none() {
            if !newest.event.is_complete()? {
                return Ok(newest);
            }
            newest.at()?; // keeps the chain of bases with unknown times short
        }
        let (event, host) = mark(device, &self.stream)?;
        let (context, before) = (newest.context, Mutex::new(Some(newest)));
        let (stream, at) = (Arc::clone(&self.stream), OnceLock::new());
        let fresh = Arc::new(Base { event, context, stream, at, before, host });
        let old = std::mem::replace(&mut *self.newest(), Arc::clone(&fresh));
        drop(old); // outside the lock
        Ok(fresh)
    }
    /// The device's clock and the host's, read together in nanoseconds.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn read(&self, device: &DriverDevice<D>) -> Result<(u64, u64)> {
        let (base, _on) = (self.base(device)?, device.enter()?);
        let (event, _) = mark(device, &self.stream)?;
        event.synchronize()?;
        let host = host_clock(); // before `time_of`, which may have to record marks
        Ok((base.time_of(&event)?, host))
    }
}
/// A newly recorded event, and the host's clock at that time.
fn mark<D: Dialect>(device: &DriverDevice<D>, stream: &Stream<D>) -> Result<(NativeEvent<D>, u64)> {
    let on = device.enter()?;
    let event = NativeEvent::create(&on, true)?;
    event.record(stream)?;
    Ok((event, host_clock()))
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_were_rounded_far_away_tell_together_what_one_alone_does_not() {
        let rounded = |exact: i64| (f64::from((exact as f64 / 1e6) as f32) * 1e6) as i64;
        const HOUR: i64 = 3_600_000_000_000;
        for (hours, gap) in [(1, 7_000), (3, 5_000), (10, 23_000), (24, 11_000)] {
            for phase in [0, 1_234_567, 123_457, 3_999_999] {
                let exact = hours * HOUR + phase;
                let coarse = step(exact);
                let mut bounds = Bounds::of(rounded(exact));
                for near in (gap..=coarse + gap).step_by(gap as usize) {
                    bounds.meet(rounded(exact + near), near);
                }
                let off = (bounds.middle().unwrap() - exact).abs();
                assert!(coarse > 200_000 && off <= gap, "{hours} h, {phase}: {off} of {coarse}");
            }
        }
        assert_eq!(step(1_000_000_000), 62, "near, it is exact");
        let mut contradictory = Bounds::of(rounded(HOUR));
        contradictory.meet(rounded(2 * HOUR), 5);
        assert_eq!(contradictory.middle(), None);
    }
}
