//! The driver's events: points in a stream, pooled because making one costs more than recording it.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::{self, DriverDevice},
        driver::{Dialect, RawEvent},
    },
    context::Entered,
    stream::Stream,
};
use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    log,
};
use ur_sys::ur_logger_level_t;

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
    /// A new one in the context that is current; `timing`: its times can be asked for.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(on: &Entered<D>, timing: bool) -> Result<Self> {
        Self::with(on, if timing { 0 } else { WITHOUT_TIMES })
    }
    /// The same, whose waiters sleep and do not spin.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn blocking(on: &Entered<D>) -> Result<Self> {
        Self::with(on, BLOCKING | WITHOUT_TIMES)
    }
    fn with(_on: &Entered<D>, flags: u32) -> Result<Self> {
        let mut raw = None;
        // SAFETY: `raw` is writable.
        unsafe { D::driver().event_create(&raw mut raw, flags) }.ok::<D>()?;
        let null = || Error::new(ErrorCode::Unknown, "the driver gave a null event");
        Ok(Self { raw: raw.ok_or_else(null)?, is_ours: true, _dialect: PhantomData })
    }
    /// Somebody else's, who keeps it for as long as this lives; destroyed with this if `owned`.
    pub fn adopted(raw: RawEvent, owned: bool) -> Self {
        Self { raw, is_ours: owned, _dialect: PhantomData }
    }
    /// The driver's name of it.
    pub fn raw(&self) -> RawEvent {
        self.raw
    }
    /// Marks the point that `stream` has come to.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn record(&self, stream: &Stream<D>) -> Result<()> {
        // SAFETY: both are live.
        unsafe { D::driver().event_record(self.raw, stream.raw()) }.ok::<D>()
    }
    /// Whether everything before the point is done; so it is if none was marked.
    ///
    /// # Errors
    /// The driver's own, those of the commands before it among them.
    pub fn is_complete(&self) -> Result<bool> {
        // SAFETY: it is live.
        unsafe { D::driver().event_query(self.raw) }.ready::<D>()
    }
    /// The same; but an event whose record is part of a graph, of which nothing is known, is an error.
    ///
    /// # Errors
    /// As for [`NativeEvent::is_complete`].
    pub fn has_happened(&self) -> Result<bool> {
        // SAFETY: it is live.
        let outcome = unsafe { D::driver().event_query(self.raw) };
        match outcome.status() {
            Some(status) if status == D::NOT_READY => Ok(false),
            _ => outcome.ok::<D>().map(|()| true),
        }
    }
    /// Waits until everything before the point is done; spins, unless it was made for sleeping.
    ///
    /// # Errors
    /// As for [`NativeEvent::is_complete`].
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: it is live, and any thread may wait.
        unsafe { D::driver().event_synchronize(self.raw) }.ok::<D>()
    }
    /// Nanoseconds from `other` to this, below 0 if this one was first; both are complete and have times. Exact to half a
    /// microsecond near `other`, less far from it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn elapsed_ns_since(&self, other: &Self) -> Result<i64> {
        let mut milliseconds = 0_f32;
        let to = &raw mut milliseconds;
        // SAFETY: both are live, and `to` is writable.
        unsafe { D::driver().event_elapsed(to, other.raw, self.raw) }.ok::<D>()?;
        Ok((f64::from(milliseconds) * 1e6) as i64)
    }
}
impl<D: Dialect> Drop for NativeEvent<D> {
    fn drop(&mut self) {
        if self.is_ours && super::super::device::check_fork::<D>().is_ok() {
            // SAFETY: ours, live, and never used again.
            let gone = unsafe { D::driver().event_destroy(self.raw) }.released::<D>();
            gone.unwrap_or_else(|error| log::say(D::BACKEND, ur_logger_level_t::WARN, &error));
        }
    }
}

/// Events of one device that are not in use, with times and without.
#[derive(Debug)]
pub struct EventPool<D: Dialect> {
    idle: [Mutex<Vec<NativeEvent<D>>>; 2],
    device: i32,
}
impl<D: Dialect> EventPool<D> {
    /// An empty one, for the device with that number.
    pub const fn new(device: i32) -> Self {
        Self { idle: [const { Mutex::new(Vec::new()) }; 2], device }
    }
    /// One that is in nobody's hands; what it marked before is forgotten by the next record.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn take(self: &Arc<Self>, on: &Entered<D>, timing: bool) -> Result<Pooled<D>> {
        let idle =
            self.idle[usize::from(timing)].lock().unwrap_or_else(PoisonError::into_inner).pop();
        let event = idle.map_or_else(|| NativeEvent::create(on, timing), Ok)?;
        Ok(Pooled { event: Some(event), timing, pool: Arc::clone(self) })
    }
}
/// How many idle events are kept at most.
const KEPT: usize = 4096;

/// An event of a pool, which it goes back to.
pub struct Pooled<D: Dialect> {
    /// Taken by drop only.
    event: Option<NativeEvent<D>>,
    timing: bool,
    pool: Arc<EventPool<D>>,
}
impl<D: Dialect> Pooled<D> {
    /// Whose it is.
    ///
    /// # Errors
    /// None: devices stay.
    pub(in super::super) fn device(&self) -> Result<&'static Arc<DriverDevice<D>>> {
        let is_it = |one: &&Arc<DriverDevice<D>>| one.number() == self.pool.device;
        let found = device::all::<D>().iter().find(is_it);
        found.ok_or_else(|| Error::new(ErrorCode::InvalidDevice, "the event's device is gone"))
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
        let mut idle =
            self.pool.idle[usize::from(self.timing)].lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.extend(self.event.take());
        }
        // Else it is destroyed, but not under the lock.
        drop(idle);
    }
}
impl<D: Dialect> fmt::Debug for Pooled<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event.fmt(f)
    }
}
