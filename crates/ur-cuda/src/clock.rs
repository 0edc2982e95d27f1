//! The device's clock: nanoseconds for profiling and for global timestamps. The driver only tells how
//! long after one event another one was, in a number of 24 bits; so times are told from a base event
//! that is never much older, and each base's own time from the one before.
//!
//! After a pause that number is coarse: its steps are 250 µs after an hour, 8 ms after a day. So the first time that is
//! asked for after a pause is told by several marks, which lie close to the new base and as far from the old one: each
//! is rounded elsewhere, and together they bound the new base's time to about what passes between two marks (some
//! microseconds). That takes as long as one step, at most 10 ms; after a pause of more than a day it stays coarser.
use super::{
    device::DriverDevice,
    driver::{Dialect, RawContext},
    native::{context::Entered, event::NativeEvent, stream::Stream},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use ur_adapter::error::{ErrorCode, Result};

/// A base is replaced when it is older: that far away, a driver's time is exact to 61 ns.
const OLD: u64 = 1_000_000_000;

/// How long the first base may take, and the marks of one after a pause, in nanoseconds.
const PATIENCE: u64 = 10_000_000;

/// A moment that the device's clock is told from.
#[derive(Debug)]
pub struct Base<D: Dialect> {
    event: NativeEvent<D>,
    context: RawContext,
    /// The clock's.
    stream: Arc<Stream<D>>,
    /// Nanoseconds of the device's clock; known once the device has passed it and somebody asked.
    at: OnceLock<u64>,
    /// The base that its own time is told from, until that is known.
    before: Mutex<Option<Arc<Self>>>,
    /// The host's clock at the time.
    host: u64,
}
impl<D: Dialect> Base<D> {
    /// When `event` was, in nanoseconds of the device's clock. The event is complete, was made with
    /// timing, and was recorded when this base was the newest.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn time_of(&self, event: &NativeEvent<D>) -> Result<u64> {
        let _on = Entered::<D>::enter(self.context)?;
        let at = self.at()?;
        self.event.synchronize()?; // over long ago, but for streams that were held up
        Ok(at.saturating_add_signed(event.elapsed_ns_since(&self.event)?))
    }
    /// Its own time. A context is current.
    fn at(&self) -> Result<u64> {
        let before = || self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let known = before().clone();
        if let Some(known) = known {
            self.event.synchronize()?;
            let at = known.at()?.saturating_add_signed(self.since(&known)?);
            self.at.get_or_init(|| at);
            let done = before().take(); // after the time is there
            drop(done);
        }
        self.at.get().copied().ok_or_else(|| ErrorCode::Unknown.into())
    }
    /// Nanoseconds from `old` to this base, both of which the device has passed.
    fn since(&self, old: &Self) -> Result<i64> {
        let told = self.event.elapsed_ns_since(&old.event)?;
        let mut bounds = Bounds::of(told);
        let (step, end) = (step(told), now() + PATIENCE);
        if step <= EXACT {
            return Ok(told);
        }
        let on = Entered::<D>::enter(self.context)?;
        let mark = NativeEvent::create(&on, true)?;
        while bounds.width() > EXACT {
            mark.record(&self.stream)?;
            while !mark.is_complete()? {
                if now() > end {
                    return Ok(bounds.middle().unwrap_or(told));
                }
                std::thread::yield_now();
            }
            let near = mark.elapsed_ns_since(&self.event)?;
            bounds.meet(mark.elapsed_ns_since(&old.event)?, near);
            if near > step || now() > end {
                break; // the rounding has come round: more marks tell no more
            }
        }
        // Bounds that contradict each other are those of a driver that does not round to the nearest.
        Ok(bounds.middle().unwrap_or(told))
    }
}
/// As exact as the driver's events are, in nanoseconds.
const EXACT: i64 = 2_000;
/// What neighbouring times of the driver's are apart, so many nanoseconds away.
fn step(nanoseconds: i64) -> i64 {
    let milliseconds = (nanoseconds as f64 / 1e6) as f32;
    (f64::from(milliseconds.abs().next_up() - milliseconds.abs()) * 1e6).ceil() as i64
}
/// Between what a time lies that the driver told rounded to the nearest step, perhaps several times.
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
    /// What is later by `near` was told as well.
    fn meet(&mut self, told: i64, near: i64) {
        let other = Self::of(told);
        let slack = step(near) / 2 + 1;
        self.least = self.least.max(other.least - near - slack);
        self.most = self.most.min(other.most - near + slack);
    }
    fn width(self) -> i64 {
        self.most - self.least
    }
    /// `None` if they exclude each other.
    fn middle(self) -> Option<i64> {
        (self.width() >= 0).then_some(self.least + self.width() / 2)
    }
}

/// A device's clock.
#[derive(Debug)]
pub(super) struct Clock<D: Dialect> {
    /// Nothing but bases and timestamps, so that little delays them.
    stream: Arc<Stream<D>>,
    newest: Mutex<Arc<Base<D>>>,
}
impl<D: Dialect> Clock<D> {
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn start(device: &DriverDevice<D>) -> Result<Self> {
        let (context, on) = (device.context()?, device.enter()?);
        let stream = Arc::new(Stream::create(&on, 0)?);
        let (event, begun) = mark(device, &stream)?;
        // At first the host's clock, so that the two can be compared; read behind the event, so that
        // nothing seems to start before it was submitted. But a device that is held up is not waited
        // for: what the caller does next may be what it waits for.
        while !event.is_complete()? && now() < begun + PATIENCE {
            std::thread::yield_now();
        }
        let host = now();
        let (at, before) = (OnceLock::from(host), Mutex::new(None));
        let clock = Arc::clone(&stream);
        let newest = Arc::new(Base { event, context, stream: clock, at, before, host });
        Ok(Self { stream, newest: Mutex::new(newest) })
    }
    fn newest(&self) -> MutexGuard<'_, Arc<Base<D>>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A base that is not old. One that is old is replaced, so that what comes first after a pause is told
    /// from close by. Nothing waits here for a device whose streams may wait for what the caller does next:
    /// as long as the device has not come to the newest base, that one stays.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn base(&self, device: &DriverDevice<D>) -> Result<Arc<Base<D>>> {
        let newest = Arc::clone(&self.newest());
        if now().saturating_sub(newest.host) < OLD {
            return Ok(newest);
        }
        let _on = device.enter()?;
        if newest.at.get().is_none() {
            if !newest.event.is_complete()? {
                return Ok(newest);
            }
            newest.at()?; // so that no base ever hangs on a long line of others
        }
        let (event, host) = mark(device, &self.stream)?;
        let (context, before) = (newest.context, Mutex::new(Some(newest)));
        let (stream, at) = (Arc::clone(&self.stream), OnceLock::new());
        let fresh = Arc::new(Base { event, context, stream, at, before, host });
        let old = std::mem::replace(&mut *self.newest(), Arc::clone(&fresh));
        drop(old); // not under the lock
        Ok(fresh)
    }
    /// The device's clock and the host's, read together.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn read(&self, device: &DriverDevice<D>) -> Result<(u64, u64)> {
        let (base, _on) = (self.base(device)?, device.enter()?);
        let (event, _) = mark(device, &self.stream)?;
        event.synchronize()?;
        let host = now(); // first: to tell the device's time may take marks
        Ok((base.time_of(&event)?, host))
    }
}
/// An event that the device has just been given, and when that was by the host's clock.
fn mark<D: Dialect>(device: &DriverDevice<D>, stream: &Stream<D>) -> Result<(NativeEvent<D>, u64)> {
    let on = device.enter()?;
    let event = NativeEvent::create(&on, true)?;
    event.record(stream)?;
    Ok((event, now()))
}
/// Nanoseconds of the host's clock.
pub(super) fn now() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
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
