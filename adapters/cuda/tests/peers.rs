//! Two devices, each in a context of its own, and their memory: out of the reach of each other's kernels until C switches
//! peer access on, for what is there already and for what comes later; copied all the same. On whatever driver of CUDA
//! there is; with fewer than two devices the tests say so and are skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "c/crossing.rs"]
mod crossing;
#[path = "c/refuser.rs"]
mod refuser;
#[path = "c/usm.rs"]
mod usm;

use c::*;
use refuser::Refuser;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::*},
    },
    time::{Duration, Instant},
};
use ur_lock::locked;
use ur_sys::{ur_result_t as R, ur_virtual_mem_access_flags_t as Access, *};
use usm::*;

/// Held by whoever enables access, and by whoever looks whether there is any: it is the process's.
static ACCESS: Mutex<()> = Mutex::new(());

fn any_two() -> Option<(Cuda, Cuda)> {
    let (one, other) = (Cuda::new()?, Cuda::of(1));
    if other.is_none() {
        println!("skipped: it takes 2 devices to have peers");
    }
    Some((one, other?))
}
/// Two with a link.
fn two() -> Option<(Cuda, Cuda)> {
    let (one, other) = any_two()?;
    let (name, mut reaches) = (ur_exp_peer_info_t::UR_PEER_ACCESS_SUPPORT, 0_i32);
    let to = (&raw mut reaches).cast();
    let code = call!(usm_p2p_exp.peer_access_get_info_exp(
        one.device,
        other.device,
        name,
        4,
        to,
        null_mut()
    ));
    assert_eq!(code, R::SUCCESS);
    if reaches == 0 {
        println!("skipped: no link leads from the one device to the other");
        return None;
    }
    Some((one, other))
}
/// Memory of the queue's order.
fn ordered(cuda: &Cuda, bytes: usize) -> *mut c_void {
    let (mut at, none) = (null_mut(), ur_usm_pool_handle_t::NULL);
    let (queue, made) = (cuda.queue, null_mut());
    let code = call!(enqueue_exp.usm_device_alloc_exp(
        queue,
        none,
        bytes,
        null(),
        0,
        null(),
        &mut at,
        made
    ));
    assert_eq!((code, call!(queue.finish(queue))), (R::SUCCESS, R::SUCCESS));
    at
}
fn copy(cuda: &Cuda, to: *mut c_void, from: *const c_void) -> R {
    let (queue, none) = (cuda.queue, null_mut());
    call!(enqueue.usm_memcpy(queue, true, to, from, 4096, 0, null(), none))
}
#[test]
fn what_was_allocated_before_and_after_peer_access_was_enabled_is_reached() {
    let Some((one, other)) = two() else { return };
    let _alone = locked(&ACCESS);
    let (before, own) = (other.device_memory(4096), one.device_memory(4096));
    let pooled = ordered(&other, 4096);
    let enable = || call!(usm_p2p_exp.enable_peer_access_exp(one.device, other.device));
    assert_eq!((enable(), enable()), (R::SUCCESS, R::SUCCESS));
    // Larger than what a chunk holds: certainly memory that was not there before.
    let after = other.device_memory(96 << 20);
    for (seed, there) in [(10, before), (20, pooled), (30, after)] {
        other.write(there, &numbers(seed));
        assert_eq!(copy(&one, own, there), R::SUCCESS, "{seed}");
        assert_eq!(one.read::<u32, 1024>(own), numbers(seed));
        one.write(own, &numbers(seed + 1));
        assert_eq!(copy(&one, there, own), R::SUCCESS, "{seed}");
        assert_eq!(other.read::<u32, 1024>(there), numbers(seed + 1));
        // The first device's own commands write there too.
        let pattern = 5_u8;
        let (queue, from) = (one.queue, (&raw const pattern).cast());
        let filled = call!(enqueue.usm_fill(queue, there, 1, from, 4096, 0, null(), null_mut()));
        assert_eq!((filled, call!(queue.finish(queue))), (R::SUCCESS, R::SUCCESS), "{seed}");
        assert_eq!(other.read::<u8, 4096>(there), [5; 4096]);
    }
    let disable = || call!(usm_p2p_exp.disable_peer_access_exp(one.device, other.device));
    assert_eq!((disable(), disable()), (R::SUCCESS, R::SUCCESS));
    let queue = other.queue;
    let none = ur_usm_pool_handle_t::NULL;
    let freed = call!(enqueue_exp.usm_free_exp(queue, none, pooled, 0, null(), null_mut()));
    assert_eq!((freed, call!(queue.finish(queue))), (R::SUCCESS, R::SUCCESS));
    other.free(before);
    other.free(after);
    one.free(own);
}

/// What the driver says that `device` may do with the memory at `at`: 3 is to read and write.
fn rights(device: i32, at: *const c_void) -> u32 {
    let driver = unsafe { libloading::Library::new("libcuda.so.1") }.unwrap();
    macro_rules! driver {
        ($name:literal, $($argument:expr => $ty:ty),*) => {{
            let call = unsafe { driver.get::<unsafe extern "C" fn($($ty),*) -> i32>($name) }.unwrap();
            assert_eq!(unsafe { call($($argument),*) }, 0, "{:?}", $name);
        }};
    }
    let (mut context, mut rights) = (0, 0_u64);
    driver!(b"cuDevicePrimaryCtxRetain", &raw mut context => *mut usize, device => i32);
    driver!(b"cuCtxPushCurrent_v2", context => usize);
    driver!(b"cuPointerGetAttribute", &raw mut rights => *mut u64, 16 => i32, at.addr() => usize);
    driver!(b"cuCtxPopCurrent_v2", &raw mut context => *mut usize);
    driver!(b"cuDevicePrimaryCtxRelease_v2", device => i32);
    rights as u32
}
#[test]
fn a_switch_of_peer_access_that_the_driver_refuses_can_be_tried_again() {
    let (Some((one, other)), Some(refuser)) = (two(), Refuser::new()) else { return };
    let _alone = locked(&ACCESS);
    let there = [other.device_memory(4096), other.device_memory(96 << 20)];
    let switch = |on| match on {
        true => call!(usm_p2p_exp.enable_peer_access_exp(one.device, other.device)),
        false => call!(usm_p2p_exp.disable_peer_access_exp(one.device, other.device)),
    };
    let seen = || there.map(|at| rights(0, at));
    for on in [true, false] {
        let (set, unset) = if on { ([3; 2], [0; 2]) } else { ([0; 2], [3; 2]) };
        assert_eq!((switch(!on), seen()), (R::SUCCESS, unset));
        refuser.each(|nth| {
            let (_refused, calls) = refuser.during(nth, || switch(on));
            assert_eq!((switch(on), seen()), (R::SUCCESS, set), "on: {on}, refused: {nth:?}");
            assert_eq!((switch(!on), seen()), (R::SUCCESS, unset), "on: {on}, refused: {nth:?}");
            calls
        });
    }
    switch(false);
    there.into_iter().for_each(|at| other.free(at));
}
#[test]
fn a_peer_may_do_with_a_mapping_what_its_own_device_may() {
    let Some((one, other)) = two() else { return };
    let _alone = locked(&ACCESS);
    let (context, granule, mut at) = (other.context, granule(&other), null_mut());
    assert_eq!(call!(virtual_mem.reserve(context, null(), granule, &mut at)), R::SUCCESS);
    let memory = physical(&other, granule);
    let map = |access| call!(virtual_mem.map(context, at, granule, memory, 0, access));
    let set = |access| call!(virtual_mem.set_access(context, at, granule, access));
    let switch = |on| match on {
        true => call!(usm_p2p_exp.enable_peer_access_exp(one.device, other.device)),
        false => call!(usm_p2p_exp.disable_peer_access_exp(one.device, other.device)),
    };
    let seen = || rights(0, at);
    assert_eq!((map(Access::READ_ONLY), seen()), (R::SUCCESS, 0));
    assert_eq!((switch(true), seen()), (R::SUCCESS, 1));
    for (access, own) in [(Access::READ_WRITE, 3), (Access::NONE, 0), (Access::READ_ONLY, 1)] {
        assert_eq!((set(access), seen()), (R::SUCCESS, own));
    }
    assert_eq!((switch(false), seen()), (R::SUCCESS, 0));
    assert_eq!((set(Access::READ_WRITE), seen()), (R::SUCCESS, 0));
    assert_eq!(call!(virtual_mem.unmap(context, at, granule)), R::SUCCESS);
    assert_eq!(call!(virtual_mem.free(context, at, granule)), R::SUCCESS);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
}
#[test]
fn copies_take_no_peer_access_and_leave_none_behind() {
    let Some((one, other)) = any_two() else { return };
    let _alone = locked(&ACCESS);
    let own = one.device_memory(4096);
    let (plain, large) = (other.device_memory(4096), other.device_memory(96 << 20));
    let pooled = ordered(&other, 4096);
    for (seed, there) in [(10, plain), (20, pooled), (30, large)] {
        // Of a pool's memory real drivers say that any device may use it.
        let before = rights(0, there);
        assert!(before == 0 || there == pooled, "{seed}: {before} before any copy");
        for (queue, to, from) in [(&one, own, there), (&other, own, there), (&one, there, own)] {
            let (holds, gets) = if from == own { (&one, &other) } else { (&other, &one) };
            holds.write(from, &numbers(seed));
            gets.write(to, &numbers(0));
            assert_eq!(copy(queue, to, from), R::SUCCESS, "{seed}");
            assert_eq!(gets.read::<u32, 1024>(to), numbers(seed));
        }
        assert_eq!(rights(0, there), before, "{seed}, after the copies");
    }
    assert_eq!(rights(1, own), 0);
    let (queue, none) = (other.queue, ur_usm_pool_handle_t::NULL);
    let freed = call!(enqueue_exp.usm_free_exp(queue, none, pooled, 0, null(), null_mut()));
    assert_eq!((freed, call!(queue.finish(queue))), (R::SUCCESS, R::SUCCESS));
    [plain, large].into_iter().for_each(|at| other.free(at));
    one.free(own);
}

/// Runs in a queue until it is opened, but not for ever, so that a call that waits for it comes back and is found out.
unsafe extern "C" fn pass(data: *mut c_void) {
    let gate = unsafe { Arc::from_raw(data.cast_const().cast::<AtomicBool>()) };
    let end = Instant::now() + Duration::from_secs(20);
    while !gate.load(Acquire) && Instant::now() < end {
        std::thread::sleep(Duration::from_micros(100));
    }
    gate.store(true, Release);
}
#[test]
fn no_copy_between_devices_has_the_caller_wait_for_what_is_before_it() {
    let Some((one, other)) = any_two() else { return };
    let bytes = 9 << 20;
    let (own, there) = (one.device_memory(bytes), other.device_memory(bytes));
    let (sent, mut got) = (vec![7_u8; bytes], vec![0_u8; bytes]);
    let gate = Arc::new(AtomicBool::new(false));
    let data = Arc::into_raw(gate.clone()).cast_mut().cast();
    let (queue, none) = (one.queue, null_mut());
    let held = call!(enqueue_exp.host_task_exp(queue, Some(pass), data, null(), 0, null(), none));
    assert_eq!(held, R::SUCCESS);
    // There and back again by one queue: by way of the other device, within it, and from and to memory of C's.
    let half = there.cast::<u8>().wrapping_add(bytes / 2).cast::<c_void>();
    for (to, from, bytes) in [
        (there, sent.as_ptr().cast::<c_void>(), bytes / 2),
        (half, there.cast_const(), bytes / 2),
        (own, there.cast_const(), bytes),
        (got.as_mut_ptr().cast(), half.cast_const(), bytes / 2),
        (got[bytes / 2..].as_mut_ptr().cast(), own.cast_const(), bytes / 2),
    ] {
        let code = call!(enqueue.usm_memcpy(queue, false, to, from, bytes, 0, null(), none));
        assert_eq!(code, R::SUCCESS);
    }
    assert!(!gate.swap(true, AcqRel), "a call waited for the queue");
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert!(got == sent);
    other.free(there);
    one.free(own);
}
