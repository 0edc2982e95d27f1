//! The driver's events. They are pooled because creating one costs more than recording it.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::{self, DriverDevice},
        driver::{Dialect, NOT_READY, RawEvent},
    },
    context::Entered,
    stream::Stream,
};
use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex},
};
use ur_hal::{Error, ErrorKind, Result, made, told};
use ur_lock::locked;

/// `CU_EVENT_BLOCKING_SYNC`
const BLOCKING: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`
const WITHOUT_TIMES: u32 = 2;

/// An event of the driver.
#[derive(Debug)]
pub struct NativeEvent<D: Dialect> {
    raw: RawEvent,
    is_ours: bool,
    _dialect: PhantomData<fn() -> D>,
}
impl<D: Dialect> NativeEvent<D> {
    /// Creates an event in the current context; with `timing` its time can be queried.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(on: &Entered<D>, timing: bool) -> Result<Self> {
        Self::with(on, if timing { 0 } else { WITHOUT_TIMES })
    }
    /// Creates an event without times, for which waiting threads sleep instead of spinning.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn blocking(on: &Entered<D>) -> Result<Self> {
        Self::with(on, BLOCKING | WITHOUT_TIMES)
    }
    fn with(_on: &Entered<D>, flags: u32) -> Result<Self> {
        // SAFETY: `to` is writable.
        let raw = made(|to| unsafe { D::driver().event_create(to, flags) })?;
        Ok(Self::adopted(raw, true))
    }
    /// Wraps an existing event, which must outlive this; with `owned` it is destroyed with this.
    pub fn adopted(raw: RawEvent, owned: bool) -> Self {
        Self { raw, is_ours: owned, _dialect: PhantomData }
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawEvent {
        self.raw
    }
    /// Records the event behind everything in `stream` so far.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn record(&self, stream: &Stream<D>) -> Result<()> {
        // SAFETY: both are live.
        unsafe { D::driver().event_record(self.raw, stream.raw()) }.ok()
    }
    /// Whether everything before the recorded point is complete; also `true` if it was never recorded.
    ///
    /// # Errors
    /// Returns the driver's error, also those of the commands before it.
    pub fn is_complete(&self) -> Result<bool> {
        // SAFETY: the event is live.
        unsafe { D::driver().event_query(self.raw) }.ready()
    }
    /// As [`NativeEvent::is_complete`], but with an error for an event that was recorded in a capture, whose
    /// state is unknown.
    ///
    /// # Errors
    /// As for [`NativeEvent::is_complete`].
    pub fn has_happened(&self) -> Result<bool> {
        // SAFETY: the event is live.
        let outcome = unsafe { D::driver().event_query(self.raw) };
        match outcome.status() {
            Some(status) if status == NOT_READY => Ok(false),
            _ => outcome.ok().map(|()| true),
        }
    }
    /// Waits until everything before the recorded point is complete. Spins, unless the event was created by
    /// [`NativeEvent::blocking`].
    ///
    /// # Errors
    /// As for [`NativeEvent::is_complete`].
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the event is live, and any thread may wait.
        unsafe { D::driver().event_synchronize(self.raw) }.ok()
    }
    /// Nanoseconds from `other` to this event; negative if this one was earlier. Both must be complete and
    /// have times. The precision is half a microsecond near `other`, and less for long times.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn elapsed_ns_since(&self, other: &Self) -> Result<i64> {
        let (from, until) = (other.raw, self.raw);
        // SAFETY: both are live, and `to` is writable.
        let milliseconds: f32 = told(|to| unsafe { D::driver().event_elapsed(to, from, until) })?;
        Ok((f64::from(milliseconds) * 1e6) as i64)
    }
}
impl<D: Dialect> Drop for NativeEvent<D> {
    fn drop(&mut self) {
        if self.is_ours && device::check_fork::<D>().is_ok() {
            // SAFETY: owned, live, and never used again.
            unsafe { D::driver().event_destroy(self.raw) }.let_go();
        }
    }
}

/// The unused events of one device, without times (index 0) and with times (1).
#[derive(Debug)]
pub struct EventPool<D: Dialect> {
    idle: [Mutex<Vec<NativeEvent<D>>>; 2],
    device: i32,
}
impl<D: Dialect> EventPool<D> {
    /// An empty pool for the device with this number.
    pub const fn new(device: i32) -> Self {
        Self { idle: [const { Mutex::new(Vec::new()) }; 2], device }
    }
    /// An unused event; recording it replaces what it recorded before.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn take(self: &Arc<Self>, on: &Entered<D>, timing: bool) -> Result<Pooled<D>> {
        let idle = locked(&self.idle[usize::from(timing)]).pop();
        let event = idle.map_or_else(|| NativeEvent::create(on, timing), Ok)?;
        Ok(Pooled { event: Some(event), timing, pool: Arc::clone(self) })
    }
}
/// The largest number of unused events that are kept.
const KEPT: usize = 4096;

/// An event of a pool, to which it returns on drop.
pub struct Pooled<D: Dialect> {
    /// `None` only during drop.
    event: Option<NativeEvent<D>>,
    timing: bool,
    pool: Arc<EventPool<D>>,
}
impl<D: Dialect> Pooled<D> {
    /// The event's device.
    ///
    /// # Errors
    /// None in practice: devices are never removed.
    pub(in super::super) fn device(&self) -> Result<&'static Arc<DriverDevice<D>>> {
        let is_it = |one: &&Arc<DriverDevice<D>>| one.number() == self.pool.device;
        let found = device::all::<D>().iter().find(is_it);
        found.ok_or_else(|| Error::new(ErrorKind::InvalidDevice, "the event's device is gone"))
    }
}
impl<D: Dialect> std::ops::Deref for Pooled<D> {
    type Target = NativeEvent<D>;
    fn deref(&self) -> &NativeEvent<D> {
        self.event.as_ref().expect("drop alone takes it")
    }
}
impl<D: Dialect> Drop for Pooled<D> {
    fn drop(&mut self) {
        if device::check_fork::<D>().is_err() {
            return; // another thread may have held the pool's lock at the fork
        }
        let mut idle = locked(&self.pool.idle[usize::from(self.timing)]);
        if idle.len() < KEPT {
            idle.extend(self.event.take());
        }
        // If it is not kept it is destroyed, but outside the lock.
        drop(idle);
    }
}
impl<D: Dialect> fmt::Debug for Pooled<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event.fmt(f)
    }
}
