//! The device's clock: nanoseconds for profiling and for global timestamps. The driver only tells how
//! long after one event another one was, in a number of 24 bits; so times are told from a base event
//! that is never much older, and each base's own time from the one before.
use super::{
    device::Device,
    driver::{Dialect, RawContext},
    native::{context::Entered, event::NativeEvent, stream::Stream},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ur_adapter::error::Result;

/// A base is replaced when it is older: that far away, a driver's time is exact to 61 ns.
const OLD: u64 = 1_000_000_000;

/// How long the first base may take, in nanoseconds.
const PATIENCE: u64 = 10_000_000;

/// A moment that the device's clock is told from.
#[derive(Debug)]
pub struct Base<D: Dialect> {
    event: NativeEvent<D>,
    context: RawContext,
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
        let _on = Entered::<D>::enter(self.context)?;
        self.event.synchronize()?; // over long ago, but for streams that were held up
        Ok(self.at.saturating_add(event.elapsed_ns_since(&self.event)?))
    }
}

/// A device's clock.
#[derive(Debug)]
pub(super) struct Clock<D: Dialect> {
    /// Nothing but bases and timestamps, so that little delays them.
    stream: Stream<D>,
    bases: Mutex<Bases<D>>,
}
#[derive(Debug)]
struct Bases<D: Dialect> {
    newest: Arc<Base<D>>,
    /// An event that will be the next base's once the device has passed it, and when it was recorded.
    next: Option<(NativeEvent<D>, u64)>,
}
impl<D: Dialect> Clock<D> {
    /// # Errors
    /// The driver's own.
    pub(super) fn start(device: &Device<D>) -> Result<Self> {
        let (context, on) = (device.context()?, device.enter()?);
        let stream = Stream::create(&on, 0)?;
        let (event, begun) = mark(device, &stream)?;
        // At first the host's clock, so that the two can be compared; read behind the event, so that
        // nothing seems to start before it was submitted. But a device that is held up is not waited
        // for: what the caller does next may be what it waits for.
        while !event.is_complete()? && now() < begun + PATIENCE {
            std::thread::yield_now();
        }
        let host = now();
        let newest = Arc::new(Base { event, context, at: host, host });
        Ok(Self { stream, bases: Mutex::new(Bases { newest, next: None }) })
    }
    fn bases(&self) -> MutexGuard<'_, Bases<D>> {
        self.bases.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The newest base. One that is old is replaced by the time of some later call: nothing waits here
    /// for a device whose streams may wait for what the caller does next.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn base(&self, device: &Device<D>) -> Result<Arc<Base<D>>> {
        let (newest, next) = {
            let mut bases = self.bases();
            let newest = Arc::clone(&bases.newest);
            if now().saturating_sub(newest.host) < OLD {
                return Ok(newest);
            }
            (newest, bases.next.take())
        };
        let _on = device.enter()?;
        let Some((event, host)) = next else {
            let next = mark(device, &self.stream)?;
            self.bases().next = Some(next);
            return Ok(newest);
        };
        if !event.is_complete()? {
            self.bases().next = Some((event, host));
            return Ok(newest);
        }
        let at = newest.time_of(&event)?;
        let fresh = Arc::new(Base { event, context: newest.context, at, host });
        self.bases().newest = Arc::clone(&fresh);
        Ok(fresh)
    }
    /// The device's clock and the host's, read together.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn read(&self, device: &Device<D>) -> Result<(u64, u64)> {
        let (base, _on) = (self.base(device)?, device.enter()?);
        let (event, _) = mark(device, &self.stream)?;
        event.synchronize()?;
        Ok((base.time_of(&event)?, now()))
    }
}
/// An event that the device has just been given, and when that was by the host's clock.
fn mark<D: Dialect>(device: &Device<D>, stream: &Stream<D>) -> Result<(NativeEvent<D>, u64)> {
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
