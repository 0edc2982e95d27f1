//! Queues and the commands on them. Each command keeps what it needs until it is done (`flight`); blocking
//! transfers are for queues on which nothing waits for another process, or they would have no deadline.
#![expect(unsafe_code, reason = "calls the C ABI")]
use super::{
    Bytes, Context, Event, Memory,
    flight::{Flight, Flights, sweep_strays},
    handle::Owned,
    slot,
};
use crate::{Error, ErrorKind, Result, Status};
use std::{
    any::Any,
    cell::UnsafeCell,
    ffi::c_void,
    sync::{Arc, Mutex},
};
use ur_lock::locked;
use ur_sys::*;

/// A range of memory inside its bounds; never empty.
#[derive(Clone)]
pub(crate) struct Span {
    memory: Arc<Memory>,
    offset: usize,
    bytes: usize,
}
impl Span {
    /// `bytes` of `memory` from `offset` on.
    pub(crate) fn new(memory: &Arc<Memory>, offset: usize, bytes: usize) -> Result<Self> {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= memory.bytes());
        if !fits || bytes == 0 {
            let all = memory.bytes();
            let sentence =
                format!("{bytes} bytes from byte {offset} on are no range of {all} bytes");
            return Err(Error::new(ErrorKind::Length, sentence));
        }
        Ok(Self { memory: memory.clone(), offset, bytes })
    }
    fn at(&self) -> *mut c_void {
        self.memory.at(self.offset)
    }
    fn writable(&self) -> Result<()> {
        if self.memory.is_writable() {
            return Ok(());
        }
        let sentence = "this memory is mapped for reading only: map it with Rights::ReadWrite to write, or copy it if another process made it so";
        Err(Error::new(ErrorKind::ReadOnly, sentence))
    }
    fn same_size(&self, other: usize) -> Result<()> {
        if self.bytes == other {
            return Ok(());
        }
        let sentence =
            format!("{other} bytes and {} bytes cannot be copied onto each other", self.bytes);
        Err(Error::new(ErrorKind::Length, sentence))
    }
}

/// How a queue orders its commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QueueKind {
    /// One after the other.
    InOrder,
    /// As soon as what they wait for is done.
    OutOfOrder,
}

/// A queue.
pub(crate) struct Queue {
    flights: Flights,
    handle: Owned<ur_queue_handle_t>,
    context: Arc<Context>,
}

/// No wait list: what a command waits for is said by barriers before it.
const NONE: (u32, *const ur_event_handle_t) = (0, std::ptr::null());

impl Queue {
    /// A new queue on the context's device.
    pub(crate) fn new(context: &Arc<Context>, kind: QueueKind) -> Result<Self> {
        const ENTRY: &str = "urQueueCreate";
        sweep_strays();
        let api = context.api();
        let create = slot(api.table.queue.create, ENTRY)?;
        let flags = match kind {
            QueueKind::InOrder => ur_queue_flags_t(0),
            QueueKind::OutOfOrder => ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE,
        };
        let stype = ur_structure_type_t::QUEUE_PROPERTIES;
        let properties = ur_queue_properties_t { stype, pNext: std::ptr::null_mut(), flags };
        let mut raw = ur_queue_handle_t::NULL;
        // SAFETY: live handles, whole properties, a place for the handle.
        let code = unsafe { create(context.raw(), context.raw_device(), &properties, &mut raw) };
        api.check(ENTRY, code)?;
        let handle = Owned::new(api, raw);
        Ok(Self { flights: Flights::default(), handle, context: context.clone() })
    }
    /// A queue over a stream of the driver's, which stays its owner's.
    ///
    /// # Safety
    /// `native` is a live stream of the context's device, and lives as long as this.
    pub(crate) unsafe fn over(context: &Arc<Context>, native: usize) -> Result<Self> {
        const ENTRY: &str = "urQueueCreateWithNativeHandle";
        sweep_strays();
        let api = context.api();
        let create = slot(api.table.queue.create_with_native_handle, ENTRY)?;
        let (device, none, mut raw) =
            (context.raw_device(), std::ptr::null(), ur_queue_handle_t::NULL);
        // SAFETY: live handles, no properties, a place for the handle; the stream is the caller's promise.
        let code = unsafe { create(native, context.raw(), device, none, &mut raw) };
        api.check(ENTRY, code)?;
        let handle = Owned::new(api, raw);
        Ok(Self { flights: Flights::default(), handle, context: context.clone() })
    }
    fn raw(&self) -> ur_queue_handle_t {
        self.handle.raw()
    }
    /// Submits through `call(place for the event)` and keeps `needs` until the command is done.
    fn submit(
        &self,
        entry: &'static str,
        needs: Box<dyn Any + Send>,
        call: impl FnOnce(*mut ur_event_handle_t) -> ur_result_t,
    ) -> Result<Arc<Event>> {
        let mut raw = ur_event_handle_t::NULL;
        self.handle.api.check(entry, call(&mut raw))?;
        let event = Event::adopt(&self.context, raw);
        self.flights.add(Flight { event: event.clone(), needs });
        Ok(event)
    }
    /// A copy; `needs` keeps alive what is not in a span.
    ///
    /// # Safety
    /// `bytes` may be written at `to` and read at `from` for as long as `needs` lives.
    unsafe fn memcpy(
        &self,
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
        needs: Box<dyn Any + Send>,
    ) -> Result<Arc<Event>> {
        const ENTRY: &str = "urEnqueueUSMMemcpy";
        let copy = slot(self.handle.api.table.enqueue.usm_memcpy, ENTRY)?;
        self.submit(ENTRY, needs, |event| {
            // SAFETY: the caller's promise; a live queue, a place for the event.
            unsafe { copy(self.raw(), false, to, from, bytes, NONE.0, NONE.1, event) }
        })
    }
    /// Copies device memory to device memory.
    pub(crate) fn copy(&self, from: &Span, to: &Span) -> Result<Arc<Event>> {
        to.writable()?;
        to.same_size(from.bytes)?;
        let needs = Box::new((from.clone(), to.clone()));
        // SAFETY: spans lie inside their memory, which `needs` keeps.
        unsafe { self.memcpy(to.at(), from.at(), to.bytes, needs) }
    }
    /// Copies host data, which moves into the command, to device memory.
    pub(crate) fn upload<T: Bytes + Send + 'static>(
        &self,
        from: Vec<T>,
        to: &Span,
    ) -> Result<Arc<Event>> {
        to.writable()?;
        to.same_size(size_of_val(from.as_slice()))?;
        let at = from.as_ptr().cast();
        // SAFETY: `from` moves, its data does not; `needs` keeps both sides.
        unsafe { self.memcpy(to.at(), at, to.bytes, Box::new((from, to.clone()))) }
    }
    /// Copies device memory to the host, to be collected when it has arrived.
    pub(crate) fn download<T: Bytes + Send + 'static>(&self, from: &Span) -> Result<Download<T>> {
        from.same_size(from.bytes / size_of::<T>() * size_of::<T>())?;
        let values = T::new_vec_zeroed(from.bytes / size_of::<T>()).map_err(|_| {
            let sentence =
                format!("the host has no {} bytes of memory to download into", from.bytes);
            Error::new(ErrorKind::OutOfMemory, sentence)
        })?;
        let landing = Arc::new(Landing(UnsafeCell::new(values)));
        // SAFETY: nobody else looks at it yet.
        let to = unsafe { &mut *landing.0.get() }.as_mut_ptr().cast();
        let needs = Box::new((landing.clone(), from.clone()));
        // SAFETY: the landing is as large as the span and, like the span, kept by `needs`; nobody touches it before
        // the event is complete (`Download::collect`).
        let event = unsafe { self.memcpy(to, from.at(), from.bytes, needs) }?;
        Ok(Download { event, landing })
    }
    /// Repeats `pattern` over device memory.
    pub(crate) fn fill(&self, to: &Span, pattern: &[u8]) -> Result<Arc<Event>> {
        const ENTRY: &str = "urEnqueueUSMFill";
        to.writable()?;
        let fill = slot(self.handle.api.table.enqueue.usm_fill, ENTRY)?;
        let (at, bytes) = (to.at(), to.bytes);
        self.submit(ENTRY, Box::new(to.clone()), |event| {
            let (size, pattern) = (pattern.len(), pattern.as_ptr().cast());
            // SAFETY: the span lies inside its memory, which is kept; the pattern is read before this returns.
            unsafe { fill(self.raw(), at, size, pattern, bytes, NONE.0, NONE.1, event) }
        })
    }
    /// Copies host data to device memory, and returns when that is done.
    pub(crate) fn write_now(&self, from: &[u8], to: &Span) -> Result<()> {
        to.writable()?;
        to.same_size(from.len())?;
        // SAFETY: the call returns when the copy is done, and both sides live as long.
        unsafe { self.memcpy_now(to.at(), from.as_ptr().cast(), to.bytes) }
    }
    /// Copies device memory to the host, and returns when that is done.
    pub(crate) fn read_now(&self, from: &Span, to: &mut [u8]) -> Result<()> {
        from.same_size(to.len())?;
        // SAFETY: the call returns when the copy is done, and both sides live as long.
        unsafe { self.memcpy_now(to.as_mut_ptr().cast(), from.at(), from.bytes) }
    }
    /// # Safety
    /// `bytes` may be written at `to` and read at `from` until this returns.
    unsafe fn memcpy_now(&self, to: *mut c_void, from: *const c_void, bytes: usize) -> Result<()> {
        const ENTRY: &str = "urEnqueueUSMMemcpy";
        let copy = slot(self.handle.api.table.enqueue.usm_memcpy, ENTRY)?;
        let no_event = std::ptr::null_mut();
        // SAFETY: the caller's promise; a live queue; blocking, so done when it returns.
        let code = unsafe { copy(self.raw(), true, to, from, bytes, NONE.0, NONE.1, no_event) };
        self.handle.api.check(ENTRY, code)
    }
    /// A command that is done when all earlier ones are.
    pub(crate) fn barrier(&self) -> Result<Arc<Event>> {
        const ENTRY: &str = "urEnqueueEventsWaitWithBarrier";
        let barrier = slot(self.handle.api.table.enqueue.events_wait_with_barrier, ENTRY)?;
        self.wait(ENTRY, barrier, &[])
    }
    /// Has no later command start before `events` are done.
    pub(crate) fn wait_for(&self, events: &[&Event]) -> Result<()> {
        const ENTRY: &str = "urEnqueueEventsWaitWithBarrier";
        let barrier = slot(self.handle.api.table.enqueue.events_wait_with_barrier, ENTRY)?;
        let event = self.wait(ENTRY, barrier, events)?;
        self.flights.add(Flight { event, needs: Box::new(()) });
        Ok(())
    }
    /// A command that is done when `events` are, and holds up nothing else.
    pub(crate) fn marker(&self, events: &[&Event]) -> Result<Arc<Event>> {
        const ENTRY: &str = "urEnqueueEventsWait";
        let wait = slot(self.handle.api.table.enqueue.events_wait, ENTRY)?;
        self.wait(ENTRY, wait, events)
    }
    fn wait(
        &self,
        entry: &'static str,
        call: ur_pfnEnqueueEventsWait_t,
        events: &[&Event],
    ) -> Result<Arc<Event>> {
        let raw: Vec<_> = events.iter().map(|event| event.raw()).collect();
        let (count, list) = match u32::try_from(raw.len()) {
            Ok(0) => NONE,
            Ok(count) => (count, raw.as_ptr()),
            Err(_) => {
                return Err(Error::new(ErrorKind::Length, "so many events fit in no wait list"));
            }
        };
        let mut raw = ur_event_handle_t::NULL;
        // SAFETY: `count` live events, of which the adapter keeps what it needs; a live queue, a place for the event.
        let code = unsafe { call(self.raw(), count, list, &mut raw) };
        self.handle.api.check(entry, code)?;
        Ok(Event::adopt(&self.context, raw))
    }
    /// Signals a reusable event when all earlier commands are done.
    pub(crate) fn signal(&self, event: &Event) -> Result<()> {
        const ENTRY: &str = "urEnqueueEventsWaitWithBarrierExt";
        let signal = slot(self.handle.api.table.enqueue.events_wait_with_barrier_ext, ENTRY)?;
        let mut raw = event.raw();
        // SAFETY: a live queue, no properties, no wait list, a live event in the place.
        let code = unsafe { signal(self.raw(), std::ptr::null(), NONE.0, NONE.1, &mut raw) };
        self.handle.api.check(ENTRY, code)
    }
    /// Runs `task` on a thread of the adapter's when all earlier commands are done.
    pub(crate) fn host_task(&self, task: impl FnOnce() + Send + 'static) -> Result<Arc<Event>> {
        const ENTRY: &str = "urEnqueueHostTaskExp";
        let run = slot(self.handle.api.table.enqueue_exp.host_task_exp, ENTRY)?;
        let task: Arc<Task> = Arc::new(Mutex::new(Some(Box::new(task))));
        let data = Arc::as_ptr(&task).cast_mut().cast();
        let none = std::ptr::null();
        self.submit(ENTRY, Box::new(task), |event| {
            // SAFETY: the task is kept until the command is done; a live queue, a place for the event.
            unsafe { run(self.raw(), Some(run_task), data, none, NONE.0, NONE.1, event) }
        })
    }
    /// Hands over what is still held back.
    pub(crate) fn flush(&self) -> Result<()> {
        const ENTRY: &str = "urQueueFlush";
        let flush = slot(self.handle.api.table.queue.flush, ENTRY)?;
        // SAFETY: a live queue.
        self.handle.api.check(ENTRY, unsafe { flush(self.raw()) })
    }
    /// Lets go of what finished commands needed; one that failed, once.
    pub(crate) fn sweep(&self) -> Option<Arc<Event>> {
        self.flights.sweep()
    }
}
impl Drop for Queue {
    fn drop(&mut self) {
        sweep_strays();
    }
}

/// A closure on its way to the adapter's thread; taken when it runs.
type Task = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// A panic in the task ends the process, as in every function that C calls: nobody could be told.
unsafe extern "C" fn run_task(data: *mut c_void) {
    // SAFETY: `host_task` keeps the task until its command is done.
    let task = unsafe { &*data.cast::<Task>() };
    let task = locked(task).take();
    if let Some(task) = task {
        task();
    }
}

/// Where a download lands.
struct Landing<T>(UnsafeCell<Vec<T>>);
// SAFETY: looked at by the device until its event is complete, and then by one `Download` only.
unsafe impl<T: Send> Sync for Landing<T> {}

/// Host data on its way from the device.
pub(crate) struct Download<T> {
    pub(crate) event: Arc<Event>,
    landing: Arc<Landing<T>>,
}
impl<T> Download<T> {
    /// The data, or `self` back if they have not arrived.
    pub(crate) fn collect(self) -> Result<Vec<T>, Self> {
        match self.event.status() {
            Ok(Status::Complete) => {
                // SAFETY: the copy is done, and `self`, which is consumed, the only one that looks.
                let values = unsafe { &mut *self.landing.0.get() };
                Ok(std::mem::take(values))
            }
            _ => Err(self),
        }
    }
}
