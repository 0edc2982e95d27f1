//! The device's clock: nanoseconds for profiling and for global timestamps. The driver only tells how
//! long after one event another one was, in a number of 24 bits; so times are told from a base event
//! that is never much older, and each base's own time from the one before.
use super::{
    device::Device,
    driver::Dialect,
    native::{event::NativeEvent, stream::Stream},
};
use std::sync::{Arc, Mutex, PoisonError};
use ur_adapter::error::Result;

/// A base is replaced when it is older: that far away, a driver's time is exact to 61 ns.
const OLD: u64 = 1_000_000_000;

/// A moment that the device's clock is told from.
#[derive(Debug)]
pub struct Base<D: Dialect> {
    event: NativeEvent<D>,
    /// Nanoseconds of the device's clock.
    at: u64,
    /// The host's clock at the time.
    host: u64,
}
impl<D: Dialect> Base<D> {
    /// When `event` was, in nanoseconds of the device's clock. The event is complete, was made with
    /// timing, and was recorded when this base was the newest.
    ///
    /// # Errors
    /// The driver's own.
    pub fn time_of(&self, event: &NativeEvent<D>) -> Result<u64> {
        Ok(self.at.saturating_add(event.elapsed_ns_since(&self.event)?))
    }
}

/// A device's clock.
#[derive(Debug)]
pub(super) struct Clock<D: Dialect> {
    /// Nothing but bases and timestamps, so that nothing delays them.
    stream: Stream<D>,
    newest: Mutex<Arc<Base<D>>>,
}
impl<D: Dialect> Clock<D> {
    /// # Errors
    /// The driver's own.
    pub(super) fn start(device: &Device<D>) -> Result<Self> {
        let on = device.enter()?;
        let stream = Stream::create(&on, 0)?;
        let (event, host) = mark(device, &stream)?;
        // At first the host's clock, so that the two can be compared.
        Ok(Self { stream, newest: Mutex::new(Arc::new(Base { event, at: host, host })) })
    }
    fn newest(&self) -> Arc<Base<D>> {
        Arc::clone(&self.newest.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// The newest base, or a new one if that is old.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn base(&self, device: &Device<D>) -> Result<Arc<Base<D>>> {
        let newest = self.newest();
        if now() - newest.host < OLD {
            return Ok(newest);
        }
        let (event, host) = mark(device, &self.stream)?;
        let at = newest.time_of(&event)?;
        let mut place = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&place, &newest) {
            *place = Arc::new(Base { event, at, host });
        }
        Ok(Arc::clone(&place))
    }
    /// The device's clock and the host's, read together.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn read(&self, device: &Device<D>) -> Result<(u64, u64)> {
        let base = self.base(device)?;
        let (event, host) = mark(device, &self.stream)?;
        Ok((base.time_of(&event)?, host))
    }
}
/// An event that the device has passed, and when that was by the host's clock.
fn mark<D: Dialect>(device: &Device<D>, stream: &Stream<D>) -> Result<(NativeEvent<D>, u64)> {
    let on = device.enter()?;
    let event = NativeEvent::create(&on, true)?;
    event.record(stream)?;
    event.synchronize()?;
    Ok((event, now()))
}
/// Nanoseconds of the host's clock.
pub(super) fn now() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
