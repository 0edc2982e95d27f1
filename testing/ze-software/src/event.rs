//! Events as commands and the host see them: promises of appended commands, captured waits, and the host's
//! signal, reset, query and wait.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    cell::{Cell, Hold},
    clock,
    device::{self, Device},
    handle::{self, Object, raw},
    inject::Answer,
    knob, raw,
};
use std::{
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use ur_lock::locked;
use ze_sys::*;

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Two states, which stay until they are changed.
    Flag,
    /// Its state is that of the latest append that signals it. `opened`: it was opened by an IPC handle.
    Counter { flags: ze_event_counter_based_flags_t, opened: bool },
}
/// The times that an event records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Times {
    None,
    /// By the devices' clock.
    Device,
    /// Also converted to the host's clock.
    Mapped,
}
/// The devices on whose lists an event may be used.
pub enum Homes {
    All,
    /// Those of its pool, by their numbers.
    Pool(Vec<u32>),
    /// For an event created for this device: those that can access its memory.
    Device(u32),
}
/// An event.
pub struct Event {
    pub hold: Hold,
    pub kind: Kind,
    pub times: Times,
    pub signal_scope: ze_event_scope_flags_t,
    pub wait_scope: ze_event_scope_flags_t,
    pub homes: Homes,
    /// The handle of its pool, as a number; 0: none.
    pub pool: usize,
    /// The process that it was opened from; 0: none.
    pub exporter: u32,
    /// With `snapshots`: the state that an opened event had when it was opened.
    pub snapshot: Option<u64>,
    /// The number of the latest promise, if a list that runs repeatedly may raise it.
    pub moving: Mutex<Option<Arc<AtomicU64>>>,
}
impl Object for Event {
    const TAG: u64 = 0x7a65_6576_656e_7400;
}

/// The number of a promise.
#[derive(Clone)]
enum Number {
    Fixed(u64),
    /// Of a list that may run repeatedly: each run is a new promise.
    Moving(Arc<AtomicU64>),
}
impl Number {
    fn now(&self) -> u64 {
        match self {
            Self::Fixed(n) => *n,
            Self::Moving(n) => n.load(SeqCst),
        }
    }
}
/// A dependency, with the state when the waiting command was appended.
#[derive(Clone)]
pub struct Wait {
    hold: Hold,
    number: Number,
}
impl Wait {
    /// The dependency with its current number, for one run.
    pub fn fixed(&self) -> Self {
        Self { hold: self.hold.clone(), number: Number::Fixed(self.number.now()) }
    }
    /// Whether it is complete.
    pub fn is_over(&self) -> bool {
        self.hold.is_done(self.number.now())
    }
    /// Waits until it is complete.
    pub fn wait(&self) {
        let _fulfilled = self.hold.wait(self.number.now(), None);
    }
}
/// The signal that a command has promised to an event.
#[derive(Clone)]
pub struct Promise {
    hold: Hold,
    number: Number,
    counter: bool,
    timed: bool,
    /// The list of the command.
    owner: u64,
}
impl Promise {
    /// Whether the event records times.
    pub const fn is_timed(&self) -> bool {
        self.timed
    }
    /// The promise for a run that is submitted now; `again`: not the first one since the append.
    pub fn fixed(&self, again: bool) -> Self {
        if let Number::Moving(n) = &self.number
            && again
            && self.counter
            && n.load(SeqCst) == self.hold.latest()
        {
            let next = self.hold.promise(self.owner);
            n.store(next.expect("the list has the slot of its previous run"), SeqCst);
        }
        let number = Number::Fixed(self.number.now());
        Self { hold: self.hold.clone(), number, ..*self }
    }
    /// Gives the signal.
    pub fn keep(&self, times: (u64, u64)) {
        if self.counter { self.hold.keep(self.number.now(), times) } else { self.hold.set(times) }
    }
    /// Resets the event, for a reset command.
    pub fn clear(&self) {
        self.hold.clear();
    }
}

impl Event {
    /// With `ZE_SOFTWARE_EVENT_POOL=strict`, ends the process if a list of `device` must not use this event:
    /// Intel's driver would use an allocation that does not exist.
    pub fn check(&self, device: &Device) {
        static STRICT: LazyLock<bool> = LazyLock::new(|| knob::is("EVENT_POOL", "strict"));
        if !*STRICT {
            return;
        }
        let may = match &self.homes {
            Homes::All => true,
            Homes::Pool(devices) => devices.contains(&device.index),
            Homes::Device(home) => device::reach_each_other(*home, device.index),
        };
        if !may {
            eprintln!(
                "ze-software: an event on a list of device {}, which it is not for",
                device.index
            );
            std::process::abort();
        }
    }
    /// The number of its current state.
    fn latest(&self) -> u64 {
        match (self.snapshot, self.is_counter()) {
            (Some(then), _) => then,
            (None, true) => self.hold.latest(),
            (None, false) => 1,
        }
    }
    fn is_counter(&self) -> bool {
        matches!(self.kind, Kind::Counter { .. })
    }
    /// With `ZE_SOFTWARE_IPC_DEAD=abort`, ends the process if the process that the event was opened from has
    /// ended: Intel's driver accesses that process at each query and each append.
    fn refresh(&self) {
        static ABORTS: LazyLock<bool> = LazyLock::new(|| knob::is("IPC_DEAD", "abort"));
        if *ABORTS && self.exporter != 0 && !lives(self.exporter) {
            eprintln!(
                "ze-software: an event is used whose exporter, process {}, is no more",
                self.exporter
            );
            std::process::abort();
        }
    }
    /// The current state, as a dependency. An event without a promise is complete.
    pub fn capture(&self) -> Wait {
        self.refresh();
        let moving = locked(&self.moving).clone();
        let latest = self.latest();
        let number = match moving {
            // The state may have been replaced since, perhaps by another process.
            Some(n) if n.load(SeqCst) == latest => Number::Moving(n),
            _ => Number::Fixed(latest),
        };
        Wait { hold: self.hold.clone(), number }
    }
    /// The promise of a command that is appended to the list `owner`. `moving`: to a list that may run repeatedly.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY` if too many other lists owe a signal.
    pub fn promise(&self, moving: bool, owner: u64) -> Answer<Promise> {
        let (hold, counter) = (self.hold.clone(), self.is_counter());
        let timed = self.times != Times::None;
        if !counter {
            return Ok(Promise { hold, number: Number::Fixed(1), counter, timed, owner });
        }
        let Some(n) = hold.promise(owner) else {
            eprintln!("ze-software: too many lists owe one event a signal");
            return Err(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
        };
        let shared = moving.then(|| Arc::new(AtomicU64::new(n)));
        locked(&self.moving).clone_from(&shared);
        let number = shared.map_or(Number::Fixed(n), Number::Moving);
        Ok(Promise { hold, number, counter, timed, owner })
    }
    /// The number of the current state, and whether it is complete.
    fn status(&self) -> (u64, bool) {
        self.refresh();
        let n = self.latest();
        (n, self.hold.is_done(n))
    }
    /// The times of the current state, by the devices' clock.
    ///
    /// # Errors
    /// `ZE_RESULT_NOT_READY`; `ZE_RESULT_ERROR_INVALID_ARGUMENT` if it records no times.
    pub fn stamps(&self) -> Answer<(u64, u64)> {
        if self.times == Times::None {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        let (n, done) = self.status();
        if done { Ok(self.hold.times(n)) } else { Err(ZE_RESULT_NOT_READY) }
    }
    /// Its cell, and the number of the current state.
    pub fn cell(&self) -> (&Cell, u64) {
        (&self.hold, self.status().0)
    }
}
/// Whether a process exists and has not ended.
fn lives(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z")))
}
/// The event behind `raw`.
///
/// # Errors
/// As for [`handle::get`].
pub fn get(raw: ze_event_handle_t) -> Answer<Arc<Event>> {
    handle::get(raw!(raw))
}
/// The end of a wait of `timeout` nanoseconds from now; `None`: no timeout.
pub fn deadline(timeout: u64) -> Option<Instant> {
    if timeout == u64::MAX {
        return None;
    }
    Instant::now().checked_add(Duration::from_nanos(timeout))
}
/// An event with two states. Counters are signalled by commands only, and are never reset.
fn flag(raw: ze_event_handle_t) -> Answer<Arc<Event>> {
    let event = get(raw)?;
    if event.is_counter() { Err(ZE_RESULT_ERROR_INVALID_ARGUMENT) } else { Ok(event) }
}

entries! {
    fn zeEventDestroy(event: ze_event_handle_t) {
        if let Kind::Counter { opened: true, .. } = get(event)?.kind {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        handle::destroy::<Event>(raw!(event)).map(drop)
    }
    fn zeEventHostSignal(event: ze_event_handle_t) {
        let now = clock::device_now();
        flag(event)?.hold.set((now, now));
        Ok(())
    }
    fn zeEventHostReset(event: ze_event_handle_t) {
        flag(event)?.hold.clear();
        Ok(())
    }
    fn zeEventQueryStatus(event: ze_event_handle_t) {
        device::check_lost()?;
        if get(event)?.status().1 { Ok(()) } else { Err(ZE_RESULT_NOT_READY) }
    }
    fn zeEventHostSynchronize(event: ze_event_handle_t, timeout: u64) {
        let event = get(event)?;
        device::check_lost()?;
        let (n, done) = event.status();
        let over = done || (timeout != 0 && event.hold.wait(n, deadline(timeout)));
        if over { Ok(()) } else { Err(ZE_RESULT_NOT_READY) }
    }
    fn zeEventGetEventPool(event: ze_event_handle_t, to: *mut ze_event_pool_handle_t) {
        match get(event)?.pool {
            0 => Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
            pool => raw::put(to, std::ptr::with_exposed_provenance_mut(pool)),
        }
    }
    fn zeEventGetSignalScope(event: ze_event_handle_t, to: *mut ze_event_scope_flags_t) {
        raw::put(to, get(event)?.signal_scope)
    }
    fn zeEventGetWaitScope(event: ze_event_handle_t, to: *mut ze_event_scope_flags_t) {
        raw::put(to, get(event)?.wait_scope)
    }
}
