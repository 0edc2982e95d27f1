//! What a wait of the host costs the processor: next to nothing, however long it is; and how late it ends. On whatever
//! driver of CUDA there is; without a device the tests say so and are skipped. Alone in their program: it is the
//! process's time that is told.
#![expect(unsafe_code, reason = "plays the C caller")]
mod c;

use c::*;
use rustix::time::{ClockId, clock_gettime};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::Mutex,
    time::{Duration, Instant},
};
use ur_lock::locked;
use ur_sys::{ur_result_t as R, *};

/// One test at a time.
static TURN: Mutex<()> = Mutex::new(());
/// How long the device is busy, and how much of that all threads may be, a driver's too, and the one that waits.
const BUSY: Duration = Duration::from_millis(300);
const MOST: Duration = Duration::from_millis(30);
/// Unoptimized code takes about ten times as long for the same, and a loaded machine doubles that: there only a wait
/// that spins is told from one that sleeps.
const MOST_OF_CALLER: Duration = Duration::from_millis(if cfg!(debug_assertions) { 15 } else { 1 });

unsafe extern "C" fn rest(_data: *mut c_void) {
    std::thread::sleep(BUSY);
}
/// Has the device busy for a while; the event of that.
fn busy(cuda: &Cuda) -> ur_event_handle_t {
    let (queue, none, mut event) = (cuda.queue, null_mut(), ur_event_handle_t::NULL);
    let code =
        call!(enqueue_exp.host_task_exp(queue, Some(rest), none, null(), 0, null(), &mut event));
    assert_eq!(code, R::SUCCESS);
    event
}
/// What the process has used of processors, or the calling thread.
fn used(whose: ClockId) -> Duration {
    let t = clock_gettime(whose);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}
const ALL: ClockId = ClockId::ProcessCPUTime;
const CALLER: ClockId = ClockId::ThreadCPUTime;

#[test]
fn a_long_wait_of_the_host_leaves_the_processor_to_others() {
    let _turn = locked(&TURN);
    let Some(cuda) = Cuda::new() else { return };
    let (at, mut bytes) = (cuda.device_memory(4096), [0_u8; 4096]);
    cuda.write(at, &bytes); // what is made once is made
    let queue = cuda.queue;
    let to: *mut c_void = bytes.as_mut_ptr().cast();
    let copy = |to: *mut c_void, from: *const c_void| {
        call!(enqueue.usm_memcpy(queue, true, to, from, 4096, 0, null(), null_mut()))
    };
    let waits: [(&str, &dyn Fn(ur_event_handle_t) -> R); 6] = [
        ("urQueueFinish", &|_| call!(queue.finish(queue))),
        ("urEventWait", &|event| call!(event.wait(1, &event))),
        ("a blocking copy to the host", &|_| copy(to, at)),
        ("a blocking copy to the device", &|_| copy(at, to)),
        ("urUSMContextMemcpyExp", &|_| {
            call!(usm_exp.context_memcpy_exp(cuda.context, at, at.wrapping_byte_add(2048), 1024))
        }),
        ("urDeviceWaitExp", &|_| call!(device_exp.wait_exp(cuda.device))),
    ];
    for (name, wait) in waits {
        // Whatever else the machine does can only add to it: the best of some waits counts.
        let tries = (0..4).map(|_| {
            let event = busy(&cuda);
            let (begun, before) = (Instant::now(), [ALL, CALLER].map(used));
            assert_eq!(wait(event), R::SUCCESS, "{name}");
            let (took, now) = (begun.elapsed(), [ALL, CALLER].map(used));
            assert!(took > BUSY / 2, "{name} took {took:?}: it did not wait");
            cuda.release_event(event);
            let [all, caller] = [0, 1].map(|whose| now[whose] - before[whose]);
            println!("{name}: {took:?}, {all:?} of processors, {caller:?} of them the caller's");
            all < MOST && caller < MOST_OF_CALLER
        });
        assert!({ tries }.any(|is_cheap| is_cheap), "{name} takes too much of processors");
    }
    cuda.free(at);
}
