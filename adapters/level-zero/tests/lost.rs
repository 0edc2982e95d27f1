//! A device that is lost: who has something there is told, and all of it goes back to the driver. On the software driver, which
//! loses it when it is told to.
mod c;
#[path = "c/calls.rs"]
mod calls;
#[path = "c/gate.rs"]
mod gate;

use c::*;
use calls::*;
use gate::Gate;
use std::{
    ptr::{null, null_mut},
    time::{Duration, Instant},
};
use ur_sys::{ur_queue_flags_t as Flags, ur_result_t as R};

#[test]
fn a_device_that_is_lost_is_told_of_and_everything_is_released() {
    let name = "a_device_that_is_lost_is_told_of_and_everything_is_released";
    if !is_inside(name, &[("ZE_SOFTWARE_LOST_AFTER", "40")]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let at = zero.device_memory(4096);
    let (pattern, mut codes, mut events) = (9_u8, vec![], vec![]);
    for _ in 0..100 {
        let (mut event, from) = (NO_EVENT, (&raw const pattern).cast());
        let to = &raw mut event;
        codes.push(call!(enqueue.usm_fill(zero.queue, at, 1usize, from, 4096usize, 0, null(), to)));
        events.extend(Some(event).filter(|event| !event.0.is_null()));
    }
    let first = codes.iter().position(|code| *code != R::SUCCESS).expect("it is lost");
    assert!(
        first > 10 && codes[first..].iter().all(|code| *code == R::ERROR_DEVICE_LOST),
        "{codes:?}"
    );
    assert_eq!(call!(queue.finish(zero.queue)), R::ERROR_DEVICE_LOST);
    let last = events.last().copied().unwrap();
    assert_ne!(call!(event.wait(1, &raw const last)), R::SUCCESS);
    events.into_iter().for_each(let_go);
    zero.free(at);
}

#[test]
fn what_a_lost_device_had_goes_back_to_the_driver() {
    let name = "what_a_lost_device_had_goes_back_to_the_driver";
    let unpooled = ("UR_L0_DISABLE_USM_ALLOCATOR", "1");
    if !is_inside(name, &[("ZE_SOFTWARE_LOST_AFTER", "40"), unpooled]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let before = ["fd", "task"].map(count); // an allocation has a descriptor there, a list a thread
    let memory: Vec<_> = (0..20).map(|_| zero.device_memory(1 << 16)).collect();
    let queues: Vec<_> = (0..4).map(|_| queue(&zero, Flags::default())).collect();
    let (gate, byte) = (Gate::shut(), 1_u8);
    queues.iter().for_each(|queue| gate.hold(*queue)); // all of it is under way when the device goes
    for number in 0..50 {
        let (queue, from) = (queues[number % 4], (&raw const byte).cast());
        let (at, none) = (memory[number % 20], null_mut());
        let _lost = call!(enqueue.usm_fill(queue, at, 1usize, from, 4096usize, 0, null(), none));
    }
    memory.into_iter().for_each(|at| zero.free(at));
    for queue in queues {
        assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    }
    gate.open();
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        // What is made and released looks after what went before.
        zero.free(zero.device_memory(1 << 16));
        assert_eq!(call!(queue.release(queue(&zero, Flags::default()))), R::SUCCESS);
        let now = ["fd", "task"].map(count);
        if now[0] <= before[0] + 2 && now[1] <= before[1] + 2 {
            break;
        }
        assert!(Instant::now() < end, "descriptors and threads: {now:?}, and at first {before:?}");
        std::thread::yield_now();
    }
}
