//! Commands with wait lists on many queues, from many threads: what the tests of concurrency share.
//! Host tasks and callbacks are closures here; none of them may panic, so they note what they saw.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use super::{PATIENCE, ur::*};
use crate::call;
use std::{
    ffi::c_void,
    ops::Deref,
    panic::resume_unwind,
    ptr::{null, null_mut},
    sync::{
        Condvar, Mutex,
        atomic::{AtomicU64, Ordering::*},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Instant,
};
use ur_queue_flags_t as F;
use ur_result_t as R;

pub const IN_ORDER: F = F(0);
pub const OUT_OF_ORDER: F = F::OUT_OF_ORDER_EXEC_MODE_ENABLE;
pub const BOTH: [F; 2] = [IN_ORDER, OUT_OF_ORDER];

/// What C carries from thread to thread without asking anybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Any<H>(pub H);
unsafe impl<H> Send for Any<H> {}
unsafe impl<H> Sync for Any<H> {}
impl<H> Deref for Any<H> {
    type Target = H;
    fn deref(&self) -> &H {
        &self.0
    }
}
pub type Queue = Any<ur_queue_handle_t>;
pub type Event = Any<ur_event_handle_t>;

/// Runs a test's body, and fails if it is not over in good time.
#[track_caller]
pub fn in_time(body: impl FnOnce() + Send + 'static) {
    let (over, is_over) = channel::<()>();
    let thread = thread::spawn(move || {
        let _over = over;
        body();
    });
    match is_over.recv_timeout(4 * PATIENCE) {
        Err(RecvTimeoutError::Timeout) => panic!("it hung"),
        _ => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
    }
}

/// A program with a context, whose commands are closures and bytes. Any thread may use it.
#[derive(Clone, Copy)]
pub struct Lanes(Any<Ur>);
impl Deref for Lanes {
    type Target = Ur;
    fn deref(&self) -> &Ur {
        &self.0.0
    }
}
impl Lanes {
    pub fn new() -> Self {
        Self(Any(Ur::new()))
    }
    /// The same program with one more context.
    pub fn another(&self) -> Self {
        let context = self.new_context();
        Self(Any(Ur { context, ..self.0.0 }))
    }
    pub fn queue(&self, flags: F) -> Queue {
        Any(self.new_queue(flags))
    }
    pub fn close(&self, queue: Queue) {
        assert_eq!(call!(queue.release(*queue)), R::SUCCESS);
    }
    /// Memory that starts out zero.
    pub fn memory(&self, bytes: usize) -> usize {
        let at = self.alloc(Usm::Shared, bytes).unwrap();
        unsafe { at.write_bytes(0, bytes) };
        at.addr()
    }
    /// A host function behind `after`.
    pub fn task(
        &self,
        queue: Queue,
        after: &[Event],
        what: impl FnOnce() + Send + 'static,
    ) -> Event {
        let data = Box::into_raw(Box::new(Box::new(what) as Box<dyn FnOnce() + Send>));
        unsafe extern "C" fn run(data: *mut c_void) {
            (unsafe { Box::from_raw(data.cast::<Box<dyn FnOnce() + Send>>()) })();
        }
        let run = Some(run as unsafe extern "C" fn(*mut c_void));
        self.made(after, |n, list, event| {
            call!(enqueue_exp.host_task_exp(*queue, run, data.cast(), null(), n, list, event))
        })
    }
    pub fn fill(&self, queue: Queue, after: &[Event], to: usize, byte: u8, bytes: usize) -> Event {
        let (to, byte) = (to as *mut c_void, (&raw const byte).cast());
        self.made(after, |n, list, event| {
            call!(enqueue.usm_fill(*queue, to, 1, byte, bytes, n, list, event))
        })
    }
    pub fn copy(
        &self,
        queue: Queue,
        after: &[Event],
        to: usize,
        from: usize,
        bytes: usize,
    ) -> Event {
        let (to, from) = (to as *mut c_void, from as *const c_void);
        self.made(after, |n, list, event| {
            call!(enqueue.usm_memcpy(*queue, false, to, from, bytes, n, list, event))
        })
    }
    pub fn barrier(&self, queue: Queue, after: &[Event]) -> Event {
        self.made(after, |n, list, event| {
            call!(enqueue.events_wait_with_barrier(*queue, n, list, event))
        })
    }
    /// A wait for `after`, or for all that is in the queue if that is empty.
    pub fn join(&self, queue: Queue, after: &[Event]) -> Event {
        self.made(after, |n, list, event| call!(enqueue.events_wait(*queue, n, list, event)))
    }
    fn made(
        &self,
        after: &[Event],
        enqueue: impl FnOnce(u32, *const ur_event_handle_t, *mut ur_event_handle_t) -> R,
    ) -> Event {
        let mut event = ur_event_handle_t::NULL;
        // An `Any<H>` is no more than its handle, but only Rust's word for it would say so to C.
        let list: Vec<_> = after.iter().map(|event| event.0).collect();
        let at = if list.is_empty() { null() } else { list.as_ptr() };
        let code = enqueue(list.len() as u32, at, &mut event);
        self.check(code).unwrap();
        Any(event)
    }
    pub fn wait(&self, event: Event) {
        self.check(call!(event.wait(1, &event.0))).unwrap();
    }
    pub fn finish(&self, queue: Queue) {
        self.check(call!(queue.finish(*queue))).unwrap();
    }
    pub fn retain(&self, event: Event) {
        assert_eq!(call!(event.retain(*event)), R::SUCCESS);
    }
    pub fn release(&self, event: Event) {
        assert_eq!(call!(event.release(*event)), R::SUCCESS);
    }
    pub fn is_complete(&self, event: Event) -> bool {
        let name = ur_event_info_t::COMMAND_EXECUTION_STATUS;
        let status: u32 =
            self.value(|size, to, ret| call!(event.get_info(*event, name, size, to, ret))).unwrap();
        status == ur_event_status_t::COMPLETE.0
    }
    pub fn references(&self, event: Event) -> u32 {
        let name = ur_event_info_t::REFERENCE_COUNT;
        self.value(|size, to, ret| call!(event.get_info(*event, name, size, to, ret))).unwrap()
    }
    /// `what` is called once, when the event is there.
    pub fn call_at(
        &self,
        event: Event,
        status: ur_execution_info_t,
        what: impl FnOnce(Event) + Send + 'static,
    ) {
        type Call = Box<dyn FnOnce(Event) + Send>;
        unsafe extern "C" fn run(
            event: ur_event_handle_t,
            _: ur_execution_info_t,
            at: *mut c_void,
        ) {
            (unsafe { Box::from_raw(at.cast::<Call>()) })(Any(event));
        }
        let data = Box::into_raw(Box::new(Box::new(what) as Call)).cast();
        assert_eq!(call!(event.set_callback(*event, status, Some(run), data)), R::SUCCESS);
    }
}
/// What lies at an address.
pub fn bytes_at<'a>(at: usize, bytes: usize) -> &'a [u8] {
    unsafe { std::slice::from_raw_parts(at as *const u8, bytes) }
}
pub fn word_at(at: usize) -> u64 {
    unsafe { (at as *const u64).read() }
}
/// Not atomic on purpose: what is done without order loses some of these, and a sanitizer sees it.
pub fn add_at(at: usize, what: u64) {
    let at = at as *mut u64;
    let before = unsafe { at.read() };
    unsafe { at.write(before.wrapping_mul(31).wrapping_add(what)) };
}
pub const NO_EVENT: *mut ur_event_handle_t = null_mut();

/// Where so many meet: each comes and waits for the others.
#[derive(Default)]
pub struct Meeting(Mutex<u64>, Condvar);
impl Meeting {
    /// Whether `all` came in time.
    pub fn attend(&self, all: u64) -> bool {
        let mut here = self.0.lock().unwrap();
        *here += 1;
        self.1.notify_all();
        let end = Instant::now() + PATIENCE;
        while *here < all {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            here = self.1.wait_timeout(here, left).unwrap().0;
        }
        true
    }
}

/// A clock without time: later is more.
#[derive(Default)]
pub struct Ticks(AtomicU64);
impl Ticks {
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, SeqCst) + 1
    }
}
