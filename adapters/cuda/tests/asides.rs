//! Commands on memory that only another device reaches run in a stream of that device: which is made once, and which
//! nothing outlives that such a command uses. Alone in its program, for what the process calls is counted. With fewer
//! than two devices, and on a driver that counts no calls, the tests say so and are skipped.
#![expect(unsafe_code, reason = "plays the C caller")]
mod c;

use c::*;
use std::{
    ffi::{CStr, c_char, c_void},
    ptr::{null, null_mut},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering::*},
    },
    time::Duration,
};
use ur_lock::locked;
use ur_sys::{ur_result_t as R, *};

/// One test at a time.
static TURN: Mutex<()> = Mutex::new(());
const BYTES: usize = 64 << 10;

/// Two devices, each in a context of its own, and a function of the software driver's.
fn two<T: Copy>(name: &CStr) -> Option<(Cuda, Cuda, T)> {
    let (one, other) = (Cuda::new()?, Cuda::of(1));
    // SAFETY: a driver does nothing when it is opened once more.
    let driver = unsafe { libloading::Library::new("libcuda.so.1") }.ok()?;
    // SAFETY: the caller says of which type it is.
    let function = unsafe { driver.get::<T>(name.to_bytes()) }.ok().map(|function| *function);
    if other.is_none() || function.is_none() {
        println!("skipped: it takes 2 devices of the software driver");
    }
    Some((one, other?, function?))
}
fn fill(queue: ur_queue_handle_t, at: *mut c_void, byte: u8, event: *mut ur_event_handle_t) -> R {
    let from = (&raw const byte).cast();
    call!(enqueue.usm_fill(queue, at, 1, from, BYTES, 0, null(), event))
}
/// How many commands have been held up so far.
static HELD: AtomicU32 = AtomicU32::new(0);
unsafe extern "C" fn hold_up(_data: *mut c_void) {
    std::thread::sleep(Duration::from_millis(200));
    HELD.fetch_add(1, Release);
}
/// Has what comes next in the queue wait for a while.
fn busy(queue: ur_queue_handle_t) {
    let none = null_mut();
    let code =
        call!(enqueue_exp.host_task_exp(queue, Some(hold_up), null_mut(), null(), 0, null(), none));
    assert_eq!(code, R::SUCCESS);
}

#[test]
fn a_queue_makes_one_stream_for_all_its_commands_on_another_devices_memory() {
    let _turn = locked(&TURN);
    type Calls = unsafe extern "C" fn(*const c_char) -> u64;
    let Some((one, other, calls)) = two::<Calls>(c"softCudaCallsOf") else { return };
    // SAFETY: the names end with NUL.
    let calls = |name: &CStr| unsafe { calls(name.as_ptr()) };
    let streams = || [c"cuStreamCreateWithPriority", c"cuStreamDestroy_v2"].map(calls);
    let there = other.device_memory(2 * BYTES);
    let half = there.wrapping_byte_add(BYTES);
    let round = |byte: u8| {
        let (queue, none) = (one.queue, null_mut());
        assert_eq!(fill(one.queue, there, byte, none), R::SUCCESS);
        for blocking in [false, true] {
            let copied =
                call!(enqueue.usm_memcpy(queue, blocking, half, there, BYTES, 0, null(), none));
            assert_eq!(copied, R::SUCCESS);
        }
        assert_eq!(other.read::<u8, BYTES>(half), [byte; BYTES]);
    };
    streams(); // from here on they are counted
    // What the host sleeps in when it waits is made with the first sleep.
    for queue in [one.queue, other.queue] {
        busy(queue);
        assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    }
    round(1);
    let before = streams();
    (2..20).for_each(round);
    assert_eq!(streams(), before, "each command made and destroyed a stream");
    // A queue that goes while such a command is under way.
    let (mut queue, mut event) = (ur_queue_handle_t::NULL, ur_event_handle_t::NULL);
    let made = call!(queue.create(one.context, one.device, null(), &mut queue));
    assert_eq!(made, R::SUCCESS);
    busy(queue);
    assert_eq!(fill(queue, there, 77, &mut event), R::SUCCESS);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
    assert_eq!(other.read::<u8, BYTES>(there), [77; BYTES]);
    assert_eq!(call!(event.release(event)), R::SUCCESS);
    other.free(there);
}
#[test]
fn a_command_that_the_queue_cannot_be_put_behind_is_over_when_its_failure_is_told() {
    let _turn = locked(&TURN);
    type Fail = unsafe extern "C" fn(*const c_char, u64);
    let Some((one, other, fail)) = two::<Fail>(c"softCudaFail") else { return };
    let there = other.device_memory(BYTES);
    // The first event marks where the queue is, the second one the end of what the other device does.
    for (byte, name, before) in [(5, c"cuEventRecord", 1), (6, c"cuStreamWaitEvent", 1)] {
        assert_eq!(fill(one.queue, there, 0, null_mut()), R::SUCCESS);
        let held = HELD.load(Acquire);
        busy(one.queue);
        // SAFETY: the name ends with NUL.
        unsafe { fail(name.as_ptr(), before) };
        assert_ne!(fill(one.queue, there, byte, null_mut()), R::SUCCESS);
        assert_eq!(HELD.load(Acquire), held + 1, "it was told while the fill was under way");
        assert_eq!(other.read::<u8, BYTES>(there), [byte; BYTES]);
        assert_eq!(call!(queue.finish(one.queue)), R::SUCCESS);
    }
    other.free(there);
}
#[test]
fn copies_that_the_driver_refused_in_part_leave_the_pinned_memory_to_later_ones() {
    let _turn = locked(&TURN);
    type Fail = unsafe extern "C" fn(*const c_char, u64);
    let Some((one, _other, fail)) = two::<Fail>(c"softCudaFail") else { return };
    const LARGE: usize = 100 << 10;
    let (there, from) = (one.device_memory(LARGE), vec![3_u8; LARGE]);
    let upload = || {
        let (queue, from, none) = (one.queue, from.as_ptr().cast(), null_mut());
        call!(enqueue.usm_memcpy(queue, false, there, from, LARGE, 0, null(), none))
    };
    unsafe extern "C" fn nap(_data: *mut c_void) {
        std::thread::sleep(Duration::from_millis(40)); // longer than a busy machine takes to the next call
    }
    // As many as there are pinned pieces of that size. Each waits until what the driver has taken is over.
    for _ in 0..16 {
        let (queue, none) = (one.queue, null_mut());
        let code =
            call!(enqueue_exp.host_task_exp(queue, Some(nap), null_mut(), null(), 0, null(), none));
        assert_eq!(code, R::SUCCESS);
        // SAFETY: the name ends with NUL. The second function gives the piece back.
        unsafe { fail(c"cuLaunchHostFunc".as_ptr(), 1) };
        assert_ne!(upload(), R::SUCCESS);
    }
    assert_eq!(call!(queue.finish(one.queue)), R::SUCCESS);
    let held = HELD.load(Acquire);
    busy(one.queue);
    assert_eq!(upload(), R::SUCCESS);
    assert_eq!(HELD.load(Acquire), held, "the copy waits in the queue, and not its caller");
    assert_eq!(call!(queue.finish(one.queue)), R::SUCCESS);
    assert_eq!(one.read::<u8, LARGE>(there), [3; LARGE]);
    one.free(there);
}
