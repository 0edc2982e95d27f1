//! What a free costs, and what a queue that stands still holds up: on whatever driver of CUDA there is; without a
//! device the tests say so and are skipped.
#![expect(unsafe_code, reason = "plays the C caller")]
mod c;
#[path = "c/usm.rs"]
mod usm;

use c::*;
use std::{
    ffi::{CStr, c_char, c_void},
    ptr::{null, null_mut},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::*},
    },
    time::{Duration, Instant},
};
use ur_lock::locked;
use ur_sys::{ur_result_t as R, *};
use usm::*;

/// One test at a time: they count what the process does.
static TURN: Mutex<()> = Mutex::new(());

/// Opens when it is told to, or after a long time.
struct Gate(AtomicBool);
impl Gate {
    /// What comes later in `queue` stands still until the gate opens.
    fn close(&'static self, queue: ur_queue_handle_t) {
        unsafe extern "C" fn stand(gate: *mut c_void) {
            // SAFETY: a static is given below.
            let (gate, begun) = (unsafe { &*gate.cast::<Gate>() }, Instant::now());
            while !gate.0.load(Acquire) && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        let data = (&raw const *self).cast_mut().cast();
        let code = call!(enqueue_exp.host_task_exp(
            queue,
            Some(stand),
            data,
            null(),
            0,
            null(),
            null_mut()
        ));
        assert_eq!(code, R::SUCCESS);
    }
    fn open(&self) {
        self.0.store(true, Release);
    }
}
fn queue(cuda: &Cuda, flags: ur_queue_flags_t) -> ur_queue_handle_t {
    let stype = ur_structure_type_t::QUEUE_PROPERTIES;
    let (properties, mut queue) =
        (ur_queue_properties_t { stype, pNext: null_mut(), flags }, ur_queue_handle_t::NULL);
    let code = call!(queue.create(cuda.context, cuda.device, &properties, &mut queue));
    assert_eq!(code, R::SUCCESS);
    queue
}
fn fill(queue: ur_queue_handle_t, at: *mut c_void, bytes: usize) {
    let pattern = 7_u8;
    let from = (&raw const pattern).cast();
    let code = call!(enqueue.usm_fill(queue, at, 1, from, bytes, 0, null(), null_mut()));
    assert_eq!(code, R::SUCCESS);
}
fn finish(queue: ur_queue_handle_t) {
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
}
fn release(queue: ur_queue_handle_t) {
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}
/// Memory of one pool, which says how much it has.
fn pool(cuda: &Cuda) -> ur_usm_pool_handle_t {
    let (stype, flags) = (ur_structure_type_t::USM_POOL_DESC, ur_usm_pool_flags_t::default());
    let (mut desc, mut pool) = (ur_usm_pool_desc_t { stype, pNext: null(), flags }, NONE);
    assert_eq!(call!(usm.pool_create(cuda.context, &mut desc, &mut pool)), R::SUCCESS);
    pool
}
fn from_pool(cuda: &Cuda, pool: ur_usm_pool_handle_t, bytes: usize) -> *mut c_void {
    let mut at = null_mut();
    let code = call!(usm.device_alloc(cuda.context, cuda.device, null(), pool, bytes, &mut at));
    assert_eq!(code, R::SUCCESS);
    at
}
fn size(pool: ur_usm_pool_handle_t, name: ur_usm_pool_info_t) -> usize {
    let mut bytes = 0_usize;
    let to = (&raw mut bytes).cast();
    assert_eq!(call!(usm.pool_get_info(pool, name, 8, to, null_mut())), R::SUCCESS);
    bytes
}

#[test]
fn a_queue_that_stands_still_holds_up_no_memory_that_is_younger_than_its_last_command() {
    let _turn = locked(&TURN);
    let Some(cuda) = Cuda::new() else { return };
    static GATE: Gate = Gate(AtomicBool::new(false));
    let (still, moving) = (cuda.queue, queue(&cuda, ur_queue_flags_t::default()));
    let (pool, bytes) = (pool(&cuda), 2 << 20); // each block is a chunk
    let before = from_pool(&cuda, pool, bytes);
    GATE.close(still);
    cuda.free(before); // which the queue may use
    for _ in 0..1000 {
        let at = from_pool(&cuda, pool, bytes);
        fill(moving, at, bytes);
        cuda.free(at); // which the other queue uses yet, and this one does not know
        finish(moving);
    }
    let most = size(pool, ur_usm_pool_info_t::RESERVED_HIGH_EXP);
    assert!(most <= 4 * bytes, "1,000 blocks one after the other took {most} bytes at once");
    let used = size(pool, ur_usm_pool_info_t::USED_CURRENT_EXP);
    assert_eq!(used, bytes, "what was freed behind the gate, and nothing else");
    GATE.open();
    finish(still);
    assert_eq!(size(pool, ur_usm_pool_info_t::USED_CURRENT_EXP), 0);
    release(moving);
    assert_eq!(call!(usm.pool_release(pool)), R::SUCCESS);
}

#[test]
fn what_was_freed_before_a_queue_comes_to_wait_for_another_does_not_wait_with_it() {
    let _turn = locked(&TURN);
    let Some(cuda) = Cuda::new() else { return };
    if calls(c"cuMemFreeHost").is_none() {
        return println!(
            "skipped: this driver calls the host functions of a context one after the other, so one gate holds up the other"
        );
    }
    static FIRST: Gate = Gate(AtomicBool::new(false));
    static NEVER: Gate = Gate(AtomicBool::new(false));
    let (one, other) = (cuda.queue, queue(&cuda, ur_queue_flags_t::default()));
    let (pool, bytes) = (pool(&cuda), 2 << 20);
    let at = from_pool(&cuda, pool, bytes);
    NEVER.close(other);
    let (mut far, none) = (ur_event_handle_t::NULL, null());
    let wait = enqueue_wait(other, none, 0, &mut far);
    assert_eq!(wait, R::SUCCESS);
    FIRST.close(one);
    fill(one, at, bytes);
    // The far queue does not know this one.
    let known = from_pool(&cuda, pool, bytes);
    fill(one, known, bytes);
    cuda.free(known);
    assert_eq!(enqueue_wait(one, &far, 1, null_mut()), R::SUCCESS);
    FIRST.open();
    let (used, begun) = (ur_usm_pool_info_t::USED_CURRENT_EXP, Instant::now());
    while size(pool, used) != bytes {
        assert!(begun.elapsed() < Duration::from_secs(20), "it waits for the queue's wait");
        std::thread::yield_now();
    }
    NEVER.open();
    [one, other].into_iter().for_each(finish);
    cuda.free(at);
    assert_eq!(call!(event.release(far)), R::SUCCESS);
    release(other);
    assert_eq!(call!(usm.pool_release(pool)), R::SUCCESS);
}
fn enqueue_wait(
    queue: ur_queue_handle_t,
    after: *const ur_event_handle_t,
    count: u32,
    event: *mut ur_event_handle_t,
) -> R {
    call!(enqueue.events_wait(queue, count, after, event))
}

/// Pinned memory goes back to the driver by a call that waits until the context is idle.
#[test]
fn host_memory_that_no_pool_keeps_does_not_have_its_caller_wait_for_a_queue_that_stands_still() {
    let _turn = locked(&TURN);
    let Some(cuda) = Cuda::new() else { return };
    static GATE: Gate = Gate(AtomicBool::new(false));
    let (bytes, count) = (4 << 20, 20); // more than is kept for later
    let allocate = || {
        let mut at = null_mut();
        let code = call!(usm.host_alloc(cuda.context, null(), NONE, bytes, &mut at));
        assert_eq!(code, R::SUCCESS);
        at
    };
    if calls(c"cuMemFreeHost").is_none() {
        return println!("skipped: this driver may wait also when it pins memory");
    }
    let before: Vec<_> = (0..count).map(|_| allocate()).collect();
    GATE.close(cuda.queue);
    let younger: Vec<_> = (0..count).map(|_| allocate()).collect();
    let blocks = [before, younger].concat();
    blocks.into_iter().for_each(|at| cuda.free(at));
    let small = cuda.device_memory(256); // where what is over is looked for
    cuda.free(small);
    let (mut is_empty, name) = (1_u8, ur_queue_info_t::EMPTY);
    let to = (&raw mut is_empty).cast();
    assert_eq!(call!(queue.get_info(cuda.queue, name, 1, to, null_mut())), R::SUCCESS);
    assert_eq!(is_empty, 0, "a free waited for the queue");
    GATE.open();
    finish(cuda.queue);
}

/// How often the software driver was asked for something.
fn calls(name: &CStr) -> Option<u64> {
    // SAFETY: a driver does nothing when it is opened once more.
    let driver = unsafe { libloading::Library::new("libcuda.so.1") }.ok()?;
    type Calls = unsafe extern "C" fn(*const c_char) -> u64;
    // SAFETY: the software driver's, and of this type.
    let count = unsafe { driver.get::<Calls>(b"softCudaCallsOf") }.ok()?;
    // SAFETY: the name ends with NUL.
    Some(unsafe { count(name.as_ptr()) })
}
#[test]
fn a_free_beside_busy_queues_asks_about_one_and_records_no_event_in_each() {
    let _turn = locked(&TURN);
    let Some(cuda) = Cuda::new() else { return };
    const COUNTED: [&CStr; 3] = [c"cuEventRecord", c"cuStreamQuery", c"cuEventQuery"];
    let counted = || COUNTED.map(|name| calls(name).unwrap_or(0));
    if calls(COUNTED[0]).is_none() {
        return println!("skipped: this driver does not count its calls");
    }
    static GATE: Gate = Gate(AtomicBool::new(false));
    let blocks: Vec<_> = (0..100).map(|_| cuda.device_memory(256)).collect();
    let busy: Vec<_> = (0..16).map(|_| queue(&cuda, ur_queue_flags_t::default())).collect();
    busy.iter().for_each(|queue| GATE.close(*queue));
    let before = counted();
    blocks.iter().for_each(|at| cuda.free(*at));
    let after = counted();
    let [records, streams, events] = std::array::from_fn(|n| after[n] - before[n]);
    // Each free asks about the queue that it waits for first, and about one more; an event is put into each
    // queue that is asked about in turn, once.
    assert!(records <= 16, "{records} events for 100 frees");
    assert!(streams + events <= 300, "{streams} + {events} questions for 100 frees");
    GATE.open();
    busy.iter().for_each(|queue| finish(*queue));
    let idle = counted();
    (0..100).for_each(|_| cuda.free(cuda.device_memory(256)));
    let [records, streams, events] = std::array::from_fn(|n| counted()[n] - idle[n]);
    assert!(
        records == 0 && streams + events <= 32,
        "nothing is under way: {records} {streams} {events}"
    );
    busy.into_iter().for_each(release);
}
