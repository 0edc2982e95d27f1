//! Queues and their commands. Each command keeps what it needs until it is done (`flight`). Blocking transfers may only
//! be made on queues on which nothing waits for another process, because they have no deadline.
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

/// A range of memory within its bounds; never empty.
#[derive(Clone)]
pub(crate) struct Span {
    memory: Arc<Memory>,
    offset: usize,
    bytes: usize,
}
impl Span {
    /// The range of `bytes` at `offset` in `memory`.
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
    /// One after another.
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

/// An empty wait list: the dependencies of a command are submitted before it as barriers.
const NONE: (u32, *const ur_event_handle_t) = (0, std::ptr::null());

impl Queue {
    /// Makes a queue on the context's device.
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
        // SAFETY: live handles, initialised properties, a place for the handle.
        let code = unsafe { create(context.raw(), context.raw_device(), &properties, &mut raw) };
        api.check(ENTRY, code)?;
        let handle = Owned::new(api, raw);
        Ok(Self { flights: Flights::default(), handle, context: context.clone() })
    }
    /// Makes a queue over a stream of the driver. The queue does not own the stream.
    ///
    /// # Safety
    /// `native` is a live stream of the context's device, and lives as long as this queue.
    pub(crate) unsafe fn over(context: &Arc<Context>, native: usize) -> Result<Self> {
        const ENTRY: &str = "urQueueCreateWithNativeHandle";
        sweep_strays();
        let api = context.api();
        let create = slot(api.table.queue.create_with_native_handle, ENTRY)?;
        let (device, none, mut raw) =
            (context.raw_device(), std::ptr::null(), ur_queue_handle_t::NULL);
        // SAFETY: live handles, no properties, a place for the handle; the caller promises that the stream is live.
        let code = unsafe { create(native, context.raw(), device, none, &mut raw) };
        api.check(ENTRY, code)?;
        let handle = Owned::new(api, raw);
        Ok(Self { flights: Flights::default(), handle, context: context.clone() })
    }
    fn raw(&self) -> ur_queue_handle_t {
        self.handle.raw()
    }
    /// Submits a command by calling `call` with a place for its event, and keeps `needs` until the command is done.
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
    /// Submits a copy; `needs` keeps memory alive that is not in a span.
    ///
    /// # Safety
    /// `bytes` may be written at `to` and read at `from` as long as `needs` exists.
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
            // SAFETY: a live queue and a place for the event; the caller promises the rest.
            unsafe { copy(self.raw(), false, to, from, bytes, NONE.0, NONE.1, event) }
        })
    }
    /// Copies device memory to device memory.
    pub(crate) fn copy(&self, from: &Span, to: &Span) -> Result<Arc<Event>> {
        to.writable()?;
        to.same_size(from.bytes)?;
        let needs = Box::new((from.clone(), to.clone()));
        // SAFETY: spans lie within their memory, which `needs` keeps.
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
        // SAFETY: moving `from` does not move its data; `needs` keeps both sides.
        unsafe { self.memcpy(to.at(), at, to.bytes, Box::new((from, to.clone()))) }
    }
    /// Copies device memory to the host; the result is collected when the copy is done.
    pub(crate) fn download<T: Bytes + Send + 'static>(&self, from: &Span) -> Result<Download<T>> {
        from.same_size(from.bytes / size_of::<T>() * size_of::<T>())?;
        let values = T::new_vec_zeroed(from.bytes / size_of::<T>()).map_err(|_| {
            let sentence =
                format!("the host has no {} bytes of memory to download into", from.bytes);
            Error::new(ErrorKind::OutOfMemory, sentence)
        })?;
        let landing = Arc::new(Landing(UnsafeCell::new(values)));
        // SAFETY: nothing else refers to the new landing yet.
        let to = unsafe { &mut *landing.0.get() }.as_mut_ptr().cast();
        let needs = Box::new((landing.clone(), from.clone()));
        // SAFETY: the landing is as large as the span, and `needs` keeps both; nothing accesses the landing before the
        // event is complete (`Download::collect`).
        let event = unsafe { self.memcpy(to, from.at(), from.bytes, needs) }?;
        Ok(Download { event, landing })
    }
    /// Fills device memory with `pattern`.
    pub(crate) fn fill(&self, to: &Span, pattern: &[u8]) -> Result<Arc<Event>> {
        const ENTRY: &str = "urEnqueueUSMFill";
        to.writable()?;
        let fill = slot(self.handle.api.table.enqueue.usm_fill, ENTRY)?;
        let (at, bytes) = (to.at(), to.bytes);
        self.submit(ENTRY, Box::new(to.clone()), |event| {
            let (size, pattern) = (pattern.len(), pattern.as_ptr().cast());
            // SAFETY: the span lies within its memory, which is kept; the pattern is read before this returns.
            unsafe { fill(self.raw(), at, size, pattern, bytes, NONE.0, NONE.1, event) }
        })
    }
    /// Copies host data to device memory, and returns when that is done.
    pub(crate) fn write_now(&self, from: &[u8], to: &Span) -> Result<()> {
        to.writable()?;
        to.same_size(from.len())?;
        // SAFETY: the call returns when the copy is done, and both sides live until then.
        unsafe { self.memcpy_now(to.at(), from.as_ptr().cast(), to.bytes) }
    }
    /// Copies device memory to the host, and returns when that is done.
    pub(crate) fn read_now(&self, from: &Span, to: &mut [u8]) -> Result<()> {
        from.same_size(to.len())?;
        // SAFETY: the call returns when the copy is done, and both sides live until then.
        unsafe { self.memcpy_now(to.as_mut_ptr().cast(), from.at(), from.bytes) }
    }
    /// Copies, and returns when that is done.
    ///
    /// # Safety
    /// `bytes` may be written at `to` and read at `from` until this returns.
    unsafe fn memcpy_now(&self, to: *mut c_void, from: *const c_void, bytes: usize) -> Result<()> {
        const ENTRY: &str = "urEnqueueUSMMemcpy";
        let copy = slot(self.handle.api.table.enqueue.usm_memcpy, ENTRY)?;
        let no_event = std::ptr::null_mut();
        // SAFETY: a live queue; the call blocks until the copy is done; the caller promises the rest.
        let code = unsafe { copy(self.raw(), true, to, from, bytes, NONE.0, NONE.1, no_event) };
        self.handle.api.check(ENTRY, code)
    }
    /// Submits a command that is done when all earlier ones are.
    pub(crate) fn barrier(&self) -> Result<Arc<Event>> {
        const ENTRY: &str = "urEnqueueEventsWaitWithBarrier";
        let barrier = slot(self.handle.api.table.enqueue.events_wait_with_barrier, ENTRY)?;
        self.wait(ENTRY, barrier, &[])
    }
    /// Makes later commands wait for `events`.
    pub(crate) fn wait_for(&self, events: &[&Event]) -> Result<()> {
        const ENTRY: &str = "urEnqueueEventsWaitWithBarrier";
        let barrier = slot(self.handle.api.table.enqueue.events_wait_with_barrier, ENTRY)?;
        let event = self.wait(ENTRY, barrier, events)?;
        self.flights.add(Flight { event, needs: Box::new(()) });
        Ok(())
    }
    /// Submits a command that is done when `events` are, and that delays nothing else.
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
        // SAFETY: `count` live events, of which the adapter keeps what it needs; a live queue; a place for the event.
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
    /// Runs `task` on a thread of the adapter when all earlier commands are done.
    pub(crate) fn host_task(&self, task: impl FnOnce() + Send + 'static) -> Result<Arc<Event>> {
        const ENTRY: &str = "urEnqueueHostTaskExp";
        let run = slot(self.handle.api.table.enqueue_exp.host_task_exp, ENTRY)?;
        let task: Arc<Task> = Arc::new(Mutex::new(Some(Box::new(task))));
        let data = Arc::as_ptr(&task).cast_mut().cast();
        let none = std::ptr::null();
        self.submit(ENTRY, Box::new(task), |event| {
            // SAFETY: the task is kept until the command is done; a live queue; a place for the event.
            unsafe { run(self.raw(), Some(run_task), data, none, NONE.0, NONE.1, event) }
        })
    }
    /// Sends commands that were collected to the device.
    pub(crate) fn flush(&self) -> Result<()> {
        const ENTRY: &str = "urQueueFlush";
        let flush = slot(self.handle.api.table.queue.flush, ENTRY)?;
        // SAFETY: a live queue.
        self.handle.api.check(ENTRY, unsafe { flush(self.raw()) })
    }
    /// Releases what finished commands needed. Returns the event of a command that failed since the last call, if any.
    pub(crate) fn sweep(&self) -> Option<Arc<Event>> {
        self.flights.sweep()
    }
}
impl Drop for Queue {
    fn drop(&mut self) {
        sweep_strays();
    }
}

/// A closure for the adapter's thread, which takes it out and runs it.
type Task = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// A panic in the task ends the process, as in every function called from C, because it cannot be reported.
unsafe extern "C" fn run_task(data: *mut c_void) {
    // SAFETY: `host_task` keeps the task until its command is done.
    let task = unsafe { &*data.cast::<Task>() };
    let task = locked(task).take();
    if let Some(task) = task {
        task();
    }
}

/// The destination of a download.
struct Landing<T>(UnsafeCell<Vec<T>>);
// SAFETY: accessed by the device until its event is complete, and then by one `Download` only.
unsafe impl<T: Send> Sync for Landing<T> {}

/// Host data that is being copied from the device.
pub(crate) struct Download<T> {
    pub(crate) event: Arc<Event>,
    landing: Arc<Landing<T>>,
}
impl<T> Download<T> {
    /// The data, or `self` if the copy is not done.
    pub(crate) fn collect(self) -> Result<Vec<T>, Self> {
        match self.event.status() {
            Ok(Status::Complete) => {
                // SAFETY: the copy is done, and only `self`, which is consumed, accesses the landing.
                let values = unsafe { &mut *self.landing.0.get() };
                Ok(std::mem::take(values))
            }
            _ => Err(self),
        }
    }
}
