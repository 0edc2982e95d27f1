//! Events: the positions of streams at the time of their recordings.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    capture,
    code::{
        Answer, CAPTURE_ISOLATION, CAPTURED_EVENT, INVALID_HANDLE, INVALID_VALUE, NOT_READY,
        NOT_SUPPORTED,
    },
    context,
    raw::put,
    state::handle,
    stream::{self, Ticket},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicU64, Ordering::*},
    },
    time::{Duration, Instant},
};
use ur_lock::locked;

struct Event {
    context: u64,
    flags: u32,
    mark: Mutex<Option<Mark>>,
    /// The number of the capture that has its last recording; 0 if it was not captured.
    captured: AtomicU64,
}
/// A recording.
#[derive(Clone)]
struct Mark {
    ticket: Ticket,
    stamp: Arc<OnceLock<Instant>>,
}
static EVENTS: LazyLock<Mutex<HashMap<u64, Arc<Event>>>> = LazyLock::new(Mutex::default);
fn events() -> MutexGuard<'static, HashMap<u64, Arc<Event>>> {
    locked(&EVENTS)
}
/// Returns an event whatever context is current, as real drivers do here.
fn of(id: u64) -> Answer<Arc<Event>> {
    let event = events().get(&id).cloned().ok_or(INVALID_HANDLE)?;
    context::of(event.context).map_err(|_| INVALID_HANDLE)?;
    Ok(event)
}
/// How far the device's clock is ahead of the host's, in nanoseconds. It lets tests simulate a long pause.
static AHEAD: AtomicU64 = AtomicU64::new(0);
fn now() -> Instant {
    Instant::now() + Duration::from_nanos(AHEAD.load(Relaxed)) // only later recordings see a changed offset
}
/// Not a function of the driver's API: puts the device's clock forward.
#[unsafe(no_mangle)]
extern "C" fn softCudaAdvance(nanoseconds: u64) {
    AHEAD.fetch_add(nanoseconds, Relaxed);
}
impl Event {
    fn mark(&self) -> MutexGuard<'_, Option<Mark>> {
        locked(&self.mark)
    }
    /// Fails if its last recording was captured and does not run.
    fn is_recorded(&self) -> Answer {
        match self.captured.load(Acquire) {
            0 => Ok(()),
            number => {
                // As measured with real drivers, this query also invalidates the capture.
                capture::forbid_query_in(number);
                Err(CAPTURED_EVENT)
            }
        }
    }
    /// Returns the time of the last recording.
    fn stamp(&self) -> Answer<Instant> {
        let mark = self.mark().clone().ok_or(INVALID_HANDLE)?;
        if self.flags & 2 != 0 {
            return Err(INVALID_HANDLE);
        }
        if !mark.ticket.is_over() {
            return Err(NOT_READY);
        }
        mark.stamp.get().copied().ok_or(INVALID_HANDLE)
    }
}

entries! {
    fn cuEventCreate(to: *mut u64, flags: u32) {
        let context = context::current()?.id;
        // Flags: 1 blocking waits, 2 without timing, 4 interprocess, which requires 2.
        if flags > 7 || flags & 6 == 4 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        if flags & 4 != 0 {
            return Err(NOT_SUPPORTED);
        }
        let id = handle(0x0e);
        events().insert(id, Arc::new(Event { context, flags, mark: Mutex::default(), captured: AtomicU64::new(0) }));
        put(to, id)
    }
    fn cuEventDestroy_v2(event: u64) {
        events().remove(&event).map(drop).ok_or(INVALID_HANDLE)
    }
    fn cuEventRecord(event: u64, stream: u64) {
        let (event, stream) = (of(event)?, stream::of(stream)?);
        if event.context != stream.context {
            return Err(INVALID_HANDLE);
        }
        event.captured.store(capture::number(stream.id), Release);
        let stamp = Arc::new(OnceLock::new());
        let here = stamp.clone();
        let ticket = stream.submit(move || {
            here.get_or_init(now);
            Ok(())
        })?;
        *event.mark() = Some(Mark { ticket, stamp });
        Ok(())
    }
    fn cuEventQuery(event: u64) {
        let event = of(event)?;
        event.is_recorded()?;
        let over = event.mark().as_ref().is_none_or(|m| m.ticket.is_over());
        context::of(event.context).and_then(|_| context::health())?; // last: what was lost is over, too
        if over { Ok(()) } else { Err(NOT_READY) }
    }
    fn cuEventSynchronize(event: u64) {
        let event = of(event)?;
        event.is_recorded()?;
        let mark = event.mark().clone();
        if let Some(mark) = mark {
            match event.flags & 1 {
                0 => mark.ticket.spin(),
                _ => mark.ticket.wait(),
            }
        }
        context::of(event.context).and_then(|_| context::health())
    }
    fn cuEventElapsedTime(to: *mut f32, start: u64, end: u64) {
        let (start, end) = (of(start)?, of(end)?);
        if start.context != end.context {
            return Err(INVALID_HANDLE);
        }
        let (start, end) = (start.stamp()?, end.stamp()?);
        // The exact difference, converted to milliseconds as a 32-bit float.
        let passed = match end.checked_duration_since(start) {
            Some(after) => after.as_secs_f64(),
            None => -(start - end).as_secs_f64(),
        };
        put(to, (passed * 1e3) as f32)
    }
    fn cuStreamWaitEvent(stream: u64, event: u64, flags: u32) {
        let (stream, event) = (stream::of(stream)?, of(event)?);
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        // Captured and uncaptured work cannot wait for each other, nor can two captures.
        if event.captured.load(Acquire) != capture::number(stream.id) {
            let _was = capture::forbid_query(stream.id);
            return Err(CAPTURE_ISOLATION);
        }
        let mark = event.mark().clone();
        let Some(mark) = mark.filter(|m| !m.ticket.is_over()) else { return Ok(()) };
        stream.submit(move || {
            mark.ticket.wait();
            Ok(())
        })?;
        Ok(())
    }
    fn cuIpcGetEventHandle(to: *mut [u8; 64], event: u64) {
        of(event)?;
        put(to, [0; 64])?;
        Err(NOT_SUPPORTED)
    }
    fn cuIpcOpenEventHandle(to: *mut u64, _handle: crate::ipc::Handle) {
        context::current()?;
        put(to, 0)?;
        Err(NOT_SUPPORTED)
    }
}
