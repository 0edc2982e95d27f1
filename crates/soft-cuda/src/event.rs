//! Events: where a stream was when they were recorded.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    code::{Answer, INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED},
    context,
    raw::put,
    state::handle,
    stream::{self, Ticket},
};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

struct Event {
    context: u64,
    flags: u32,
    mark: Mutex<Option<Mark>>,
}
/// One recording.
#[derive(Clone)]
struct Mark {
    ticket: Ticket,
    stamp: Arc<OnceLock<Instant>>,
}
static EVENTS: LazyLock<Mutex<HashMap<u64, Arc<Event>>>> = LazyLock::new(Mutex::default);
fn events() -> MutexGuard<'static, HashMap<u64, Arc<Event>>> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner)
}
/// An event, whatever context is current: real drivers need none for these either.
fn of(id: u64) -> Answer<Arc<Event>> {
    let event = events().get(&id).cloned().ok_or(INVALID_HANDLE)?;
    context::of(event.context).map_err(|_| INVALID_HANDLE)?;
    Ok(event)
}
impl Event {
    fn mark(&self) -> MutexGuard<'_, Option<Mark>> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// When the last recording was reached.
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
        // 1: blocking waits, 2: without time, 4: for other processes, which must be without time.
        if flags > 7 || flags & 6 == 4 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        if flags & 4 != 0 {
            return Err(NOT_SUPPORTED);
        }
        let id = handle(0x0e);
        events().insert(id, Arc::new(Event { context, flags, mark: Mutex::default() }));
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
        let stamp = Arc::new(OnceLock::new());
        let here = stamp.clone();
        let ticket = stream.submit(move || {
            here.get_or_init(Instant::now);
            Ok(())
        })?;
        *event.mark() = Some(Mark { ticket, stamp });
        Ok(())
    }
    fn cuEventQuery(event: u64) {
        let event = of(event)?;
        context::of(event.context)?.health()?;
        let over = event.mark().as_ref().is_none_or(|m| m.ticket.is_over());
        if over { Ok(()) } else { Err(NOT_READY) }
    }
    fn cuEventSynchronize(event: u64) {
        let event = of(event)?;
        let mark = event.mark().clone();
        if let Some(mark) = mark {
            mark.ticket.wait();
        }
        context::of(event.context)?.health()
    }
    fn cuEventElapsedTime(to: *mut f32, start: u64, end: u64) {
        let (start, end) = (of(start)?, of(end)?);
        if start.context != end.context {
            return Err(INVALID_HANDLE);
        }
        let (start, end) = (start.stamp()?, end.stamp()?);
        let passed = match end.checked_duration_since(start) {
            Some(after) => after.as_secs_f32(),
            None => -(start - end).as_secs_f32(),
        };
        put(to, passed * 1e3)
    }
    fn cuStreamWaitEvent(stream: u64, event: u64, flags: u32) {
        let (stream, event) = (stream::of(stream)?, of(event)?);
        if flags > 1 {
            return Err(INVALID_VALUE);
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
