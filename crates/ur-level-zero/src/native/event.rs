//! Driver events: counter-based ones, those from pools, those imported from another process, and those of the
//! application. Each kind is a type with its own release.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Destroy, Outcome, RawDevice, RawEvent, RawEventPool, driver},
    context::{InContext, NativeContext},
    counter::{Close, Counters, Maker, Sharing},
    fork,
    owned::Owned,
};
use std::{
    ptr::null_mut,
    sync::{
        Arc, Mutex,
        atomic::{AtomicPtr, Ordering::*},
    },
};
use ur_hal::{Error, ErrorKind, Result, made, told};
use ur_lock::locked;
use ze_sys::*;

/// The driver's IPC handle of an event.
pub type IpcBytes = [u8; ZE_MAX_IPC_HANDLE_SIZE as usize];

/// A counter-based event created here. A signal replaces its state; a wait refers to the state at its
/// submission. So it may be destroyed while commands wait for it.
pub type CounterEvent = InContext<RawEvent>;
impl CounterEvent {
    /// Creates a signalled event. `timed`: it records the start and the end of the command that signals it;
    /// `shared`: it can be shared with other processes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(
        maker: &Maker,
        context: &Arc<NativeContext>,
        device: RawDevice,
        (timed, shared): (bool, bool),
    ) -> Result<Self> {
        let times = if timed { ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP } else { 0 };
        let ipc = if shared { ZE_EVENT_COUNTER_BASED_FLAG_IPC } else { 0 };
        let flags = ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE
            | ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE
            | times
            | ipc;
        let raw = made(|to| maker.make(context.raw(), device, flags, to))?;
        Ok(Self::new(raw, Arc::clone(context)))
    }
    /// The handle with which another process opens it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn ipc_bytes(&self, sharing: &Sharing) -> Result<IpcBytes> {
        // SAFETY: an owned event; `to` is writable.
        let ipc: ze_ipc_event_counter_based_handle_t = told(|to| unsafe {
            let status = (sharing.get)(self.raw(), to);
            Outcome::new("zeEventCounterBasedGetIpcHandle", Some(status))
        })?;
        Ok(ipc.data.map(|byte| byte as u8))
    }
}

/// A lock-free slot for one unused counter-based event.
#[derive(Debug, Default)]
pub struct Spare(AtomicPtr<CounterEvent>);
impl Spare {
    /// Takes the event, if there is one.
    #[inline]
    pub fn take(&self) -> Option<Arc<CounterEvent>> {
        if self.0.load(Relaxed).is_null() {
            return None;
        }
        let at = self.0.swap(null_mut(), Acquire);
        // SAFETY: `put` stored it, and only this call took it.
        (!at.is_null()).then(|| unsafe { Arc::from_raw(at) })
    }
    /// Stores an event; returns it if the slot is occupied.
    #[inline]
    pub fn put(&self, event: Arc<CounterEvent>) -> Option<Arc<CounterEvent>> {
        let at = Arc::into_raw(event).cast_mut();
        let put = self.0.compare_exchange(null_mut(), at, Release, Relaxed);
        // SAFETY: created by `into_raw` above, and not stored.
        put.is_err().then(|| unsafe { Arc::from_raw(at) })
    }
}
impl Drop for Spare {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// A counter-based event of another process, and the function that closes it.
#[derive(Clone, Copy, Debug)]
pub struct OpenedEvent {
    raw: RawEvent,
    close: Close,
}
impl<K> Destroy<K> for OpenedEvent {
    unsafe fn destroy(self, _: &K) -> Outcome {
        // SAFETY: the caller owns it.
        let told = unsafe { (self.close)(self.raw) };
        Outcome::new("zeEventCounterBasedCloseIpcHandle", Some(told))
    }
}
/// A counter-based event opened by its handle; closed on drop.
pub type ImportedEvent = InContext<OpenedEvent>;
impl ImportedEvent {
    /// Opens an event.
    ///
    /// # Errors
    /// Returns the driver's error, also for an invalid handle.
    pub fn open(sharing: &Sharing, context: &Arc<NativeContext>, bytes: &IpcBytes) -> Result<Self> {
        let ipc = ze_ipc_event_counter_based_handle_t { data: bytes.map(|byte| byte as _) };
        // SAFETY: the context is live; `to` is writable; the driver checks the handle.
        let raw = made(|to| unsafe {
            let status = (sharing.open)(context.raw(), ipc, to);
            Outcome::new("zeEventCounterBasedOpenIpcHandle", Some(status))
        })?;
        Ok(Self::new(OpenedEvent { raw, close: sharing.close }, Arc::clone(context)))
    }
}

/// A driver's event pool, and its free places.
#[derive(Debug)]
pub struct EventPool {
    pool: InContext<RawEventPool>,
    free: Mutex<Vec<u32>>,
}
impl EventPool {
    /// Creates a pool with `count` places, for events used in lists of `devices`; `timed` as for
    /// counter-based events.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(
        context: &Arc<NativeContext>,
        devices: &[RawDevice],
        count: u32,
        timed: bool,
    ) -> Result<Arc<Self>> {
        let times = if timed { ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP } else { 0 };
        let desc = ze_event_pool_desc_t {
            flags: ZE_EVENT_POOL_FLAG_HOST_VISIBLE | times,
            count,
            ..Default::default()
        };
        let (many, first) = (devices.len() as u32, devices.as_ptr());
        // SAFETY: all handles are live, `desc` has its type and `to` is writable.
        let raw = made(|to| unsafe {
            driver().event_pool_create(context.raw(), &desc, many, first, to)
        })?;
        let free = Mutex::new((0..count).rev().collect());
        Ok(Arc::new(Self { pool: Owned::new(raw, Arc::clone(context)), free }))
    }
    /// Creates an event at a free place; `None` if there is none.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn take(self: &Arc<Self>) -> Result<Option<PooledEvent>> {
        let Some(index) = locked(&self.free).pop() else { return Ok(None) };
        let place = Place { index, pool: Arc::clone(self) };
        let desc = ze_event_desc_t {
            index,
            signal: ZE_EVENT_SCOPE_FLAG_HOST,
            wait: ZE_EVENT_SCOPE_FLAG_HOST,
            ..Default::default()
        };
        // SAFETY: the place is free; `desc` has its type and `to` is writable.
        let raw = made(|to| unsafe { driver().event_create(self.pool.raw(), &desc, to) })?;
        Ok(Some(PooledEvent::new(raw, place)))
    }
}
/// A place of a pool that an event has; free again on drop.
#[derive(Debug)]
pub struct Place {
    index: u32,
    pool: Arc<EventPool>,
}
impl Drop for Place {
    fn drop(&mut self) {
        if fork::check().is_ok() {
            locked(&self.pool.free).push(self.index); // in a forked child another thread may have held the lock
        }
    }
}

/// An event from a pool: it is signalled once, then reset by the host. It must live until everything that
/// signals it or waits for it is complete.
pub type PooledEvent = Owned<RawEvent, Place>;
impl PooledEvent {
    /// Resets it. Nothing may signal it or wait for it any more.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn reset(&self) -> Result<()> {
        // SAFETY: owned and live.
        unsafe { driver().event_host_reset(self.raw()) }.ok()
    }
    /// Signals it from the host.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn signal(&self) -> Result<()> {
        // SAFETY: owned and live.
        unsafe { driver().event_host_signal(self.raw()) }.ok()
    }
}
/// An event that the application created.
pub type AdoptedEvent = Owned<RawEvent, ()>;

/// A driver event of any kind. Kept to two words, because every event of the application contains one.
#[derive(Debug)]
pub enum EventKind {
    /// Counter-based, created here. Shared by several handles.
    Counter(Arc<CounterEvent>),
    /// From a pool. Shared by the commands that wait for it.
    Pooled(Arc<PooledEvent>),
    /// Counter-based, opened by its handle.
    Imported(Box<ImportedEvent>),
    /// Created by the application.
    Adopted(AdoptedEvent),
}
impl EventKind {
    /// The driver's handle.
    #[inline]
    pub fn raw(&self) -> RawEvent {
        match self {
            Self::Counter(event) => event.raw(),
            Self::Pooled(event) => event.raw(),
            Self::Imported(event) => event.raw().raw,
            Self::Adopted(event) => event.raw(),
        }
    }
    /// A second reference for another thread. While that exists the event is not reused. `None` for kinds
    /// that cannot be shared.
    pub fn shared(&self) -> Option<Self> {
        match self {
            Self::Counter(event) => Some(Self::Counter(Arc::clone(event))),
            Self::Pooled(event) => Some(Self::Pooled(Arc::clone(event))),
            Self::Imported(_) | Self::Adopted(_) => None,
        }
    }
    /// Whether it is signalled.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn is_complete(&self) -> Result<bool> {
        // SAFETY: live as long as `self`.
        unsafe { driver().event_query_status(self.raw()) }.ready()
    }
    /// Waits until it is signalled; `false` after a timeout of `nanoseconds` (`u64::MAX`: no timeout).
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub fn wait(&self, nanoseconds: u64) -> Result<bool> {
        // SAFETY: live as long as `self`.
        unsafe { driver().event_host_synchronize(self.raw(), nanoseconds) }.ready()
    }
    /// The start and the end of the command that signalled it, in ticks of the device. It must be signalled.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn ticks(&self) -> Result<(u64, u64)> {
        // SAFETY: live as long as `self`; `to` is writable.
        let times: ze_kernel_timestamp_result_t =
            told(|to| unsafe { driver().event_query_kernel_timestamp(self.raw(), to) })?;
        Ok((times.global.kernelStart, times.global.kernelEnd))
    }
}
/// Creates events for one device in one context.
#[derive(Debug)]
pub struct EventMaker {
    context: Arc<NativeContext>,
    device: RawDevice,
    /// All devices of the context, because lists of each may wait for an event.
    devices: Vec<RawDevice>,
    counters: Counters,
    /// The number of places of a pool.
    places: u32,
    /// Without times (index 0) and with times (1).
    pools: [Mutex<Vec<Arc<EventPool>>>; 2],
}
impl EventMaker {
    /// A factory that uses `counters` if possible, else pools with `places` events.
    pub fn new(
        context: Arc<NativeContext>,
        (device, devices): (RawDevice, Vec<RawDevice>),
        counters: Counters,
        places: u32,
    ) -> Self {
        Self {
            context,
            device,
            devices,
            counters,
            places,
            pools: [Mutex::default(), Mutex::default()],
        }
    }
    /// Creates an event for one signal.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn make(&self, timed: bool) -> Result<EventKind> {
        match &self.counters.maker {
            Some(maker) => {
                let kind = (timed, false);
                CounterEvent::create(maker, &self.context, self.device, kind)
                    .map(|event| EventKind::Counter(Arc::new(event)))
            }
            None => self.pooled(timed).map(Arc::new).map(EventKind::Pooled),
        }
    }
    /// Creates an event from a pool.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if a new pool has no place; else the driver's error.
    pub fn pooled(&self, timed: bool) -> Result<PooledEvent> {
        let pools = || locked(&self.pools[usize::from(timed)]);
        let known: Vec<_> = pools().iter().rev().cloned().collect();
        for pool in known {
            if let Some(event) = pool.take()? {
                return Ok(event);
            }
        }
        let fresh = EventPool::create(&self.context, &self.devices, self.places, timed)?;
        let event = fresh.take()?;
        pools().push(fresh);
        event.ok_or_else(|| Error::new(ErrorKind::OutOfResources, "an event pool without places"))
    }
}
