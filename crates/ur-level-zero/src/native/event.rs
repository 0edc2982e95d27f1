//! Driver events: counter-based ones, those from pools, those imported from another process, and those of the
//! application. Each kind is a type with its own release.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        driver::{Outcome, RawDevice, RawEvent, RawEventPool, driver},
        error::failure,
    },
    context::NativeContext,
    counter::{Close, Counters, Maker, Sharing},
    fork::{self, release},
};
use std::{
    ptr::{null, null_mut},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicPtr, Ordering::*},
    },
};
use ur_hal::{Error, ErrorKind, Result};
use ze_sys::*;

/// The driver's IPC handle of an event.
pub type IpcBytes = [u8; ZE_MAX_IPC_HANDLE_SIZE as usize];

fn given(told: ze_result_t, raw: Option<RawEvent>, call: &'static str) -> Result<RawEvent> {
    match told {
        ZE_RESULT_SUCCESS => RawEvent::given(raw, call),
        told => Err(failure(call, told)),
    }
}

/// A counter-based event created here. A signal replaces its state; a wait refers to the state at its
/// submission. So it may be destroyed while commands wait for it.
#[derive(Debug)]
pub struct CounterEvent {
    raw: RawEvent,
    _context: Arc<NativeContext>,
}
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
        let (raw, told) = maker.make(context.raw(), device, flags);
        Ok(Self { raw: given(told, raw, maker.call)?, _context: Arc::clone(context) })
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawEvent {
        self.raw
    }
    /// The handle with which another process opens it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn ipc_bytes(&self, sharing: &Sharing) -> Result<IpcBytes> {
        let mut ipc = ze_ipc_event_counter_based_handle_t::default();
        // SAFETY: an owned event; `ipc` is writable.
        match unsafe { (sharing.get)(self.raw, &raw mut ipc) } {
            ZE_RESULT_SUCCESS => Ok(ipc.data.map(|byte| byte as u8)),
            told => Err(failure("zeEventCounterBasedGetIpcHandle", told)),
        }
    }
}
impl Drop for CounterEvent {
    fn drop(&mut self) {
        // SAFETY: owned, and destroyed once.
        release(|| unsafe { driver().event_destroy(self.raw) });
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

/// A counter-based event opened by its handle; closed on drop.
#[derive(Debug)]
pub struct ImportedEvent {
    raw: RawEvent,
    close: Close,
    _context: Arc<NativeContext>,
}
impl ImportedEvent {
    /// Opens an event.
    ///
    /// # Errors
    /// Returns the driver's error, also for an invalid handle.
    pub fn open(sharing: &Sharing, context: &Arc<NativeContext>, bytes: &IpcBytes) -> Result<Self> {
        let ipc = ze_ipc_event_counter_based_handle_t { data: bytes.map(|byte| byte as _) };
        let mut raw = None;
        // SAFETY: the context is live; `raw` is writable; the driver checks the handle.
        let told = unsafe { (sharing.open)(context.raw(), ipc, &raw mut raw) };
        let raw = given(told, raw, "zeEventCounterBasedOpenIpcHandle")?;
        Ok(Self { raw, close: sharing.close, _context: Arc::clone(context) })
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawEvent {
        self.raw
    }
}
impl Drop for ImportedEvent {
    fn drop(&mut self) {
        release(|| {
            // SAFETY: opened here, and closed once.
            let told = unsafe { (self.close)(self.raw) };
            Outcome::new("zeEventCounterBasedCloseIpcHandle", Some(told))
        });
    }
}

/// A driver's event pool, and its free places.
#[derive(Debug)]
pub struct EventPool {
    raw: RawEventPool,
    free: Mutex<Vec<u32>>,
    _context: Arc<NativeContext>,
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
            stype: ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
            pNext: null(),
            flags: ZE_EVENT_POOL_FLAG_HOST_VISIBLE | times,
            count,
        };
        let mut raw = None;
        let (many, first) = (devices.len() as u32, devices.as_ptr());
        // SAFETY: all handles are live, `desc` has its type and `raw` is writable.
        unsafe {
            driver().event_pool_create(context.raw(), &raw const desc, many, first, &raw mut raw)
        }
        .ok()?;
        let raw = RawEventPool::given(raw, "zeEventPoolCreate")?;
        let free = Mutex::new((0..count).rev().collect());
        Ok(Arc::new(Self { raw, free, _context: Arc::clone(context) }))
    }
    /// Creates an event at a free place; `None` if there is none.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn take(self: &Arc<Self>) -> Result<Option<PooledEvent>> {
        let place = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(index) = place else { return Ok(None) };
        let desc = ze_event_desc_t {
            stype: ZE_STRUCTURE_TYPE_EVENT_DESC,
            pNext: null(),
            index,
            signal: ZE_EVENT_SCOPE_FLAG_HOST,
            wait: ZE_EVENT_SCOPE_FLAG_HOST,
        };
        let mut raw = None;
        // SAFETY: the place is free; `desc` has its type and `raw` is writable.
        let made = unsafe { driver().event_create(self.raw, &raw const desc, &raw mut raw) };
        match made.ok().and_then(|()| RawEvent::given(raw, "zeEventCreate")) {
            Ok(raw) => Ok(Some(PooledEvent { raw, index, pool: Arc::clone(self) })),
            Err(error) => {
                self.give_back(index);
                Err(error)
            }
        }
    }
    fn give_back(&self, index: u32) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(index);
    }
}
impl Drop for EventPool {
    fn drop(&mut self) {
        // SAFETY: owned, and destroyed once; its events keep it alive, so there are none.
        release(|| unsafe { driver().event_pool_destroy(self.raw) });
    }
}

/// An event from a pool: it is signalled once, then reset by the host. It must live until everything that
/// signals it or waits for it is complete.
#[derive(Debug)]
pub struct PooledEvent {
    raw: RawEvent,
    index: u32,
    pool: Arc<EventPool>,
}
impl PooledEvent {
    /// The driver's handle.
    pub fn raw(&self) -> RawEvent {
        self.raw
    }
    /// Resets it. Nothing may signal it or wait for it any more.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn reset(&self) -> Result<()> {
        // SAFETY: owned and live.
        unsafe { driver().event_host_reset(self.raw) }.ok()
    }
    /// Signals it from the host.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn signal(&self) -> Result<()> {
        // SAFETY: owned and live.
        unsafe { driver().event_host_signal(self.raw) }.ok()
    }
}
impl Drop for PooledEvent {
    fn drop(&mut self) {
        if fork::check().is_ok() {
            // SAFETY: owned, and destroyed once.
            unsafe { driver().event_destroy(self.raw) }.let_go();
            self.pool.give_back(self.index); // in a forked child another thread may have held the pool's lock
        }
    }
}

/// An event that the application created.
#[derive(Debug)]
pub struct AdoptedEvent {
    raw: RawEvent,
    owned: bool,
}
impl AdoptedEvent {
    /// Wraps an event; `owned`: it is destroyed on drop.
    pub fn new(raw: RawEvent, owned: bool) -> Self {
        Self { raw, owned }
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawEvent {
        self.raw
    }
}
impl Drop for AdoptedEvent {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: ownership was transferred by the application; destroyed once.
            release(|| unsafe { driver().event_destroy(self.raw) });
        }
    }
}

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
            Self::Imported(event) => event.raw(),
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
        let mut times = ze_kernel_timestamp_result_t::default();
        // SAFETY: live as long as `self`; `times` is writable.
        unsafe { driver().event_query_kernel_timestamp(self.raw(), &raw mut times) }.ok()?;
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
        let pools =
            || self.pools[usize::from(timed)].lock().unwrap_or_else(PoisonError::into_inner);
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
