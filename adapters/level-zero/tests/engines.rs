//! What waits where on the device: copies have engines of their own, which all queues share, and some devices have several for
//! kernels. Some tests are for the software driver, as it is told to be; else they say so and are skipped.
mod c;
#[path = "c/calls.rs"]
mod calls;
#[path = "c/gate.rs"]
mod gate;

use c::*;
use calls::*;
use gate::Gate;
use std::{
    ptr::null,
    time::{Duration, Instant},
};
use ur_sys::{ur_queue_flags_t as Flags, ur_result_t as R, *};

#[test]
fn a_thread_that_waits_for_a_signal_holds_up_no_copy_of_another_queue() {
    let Some(zero) = Zero::new() else { return };
    let (held, event) = (queue(&zero, Flags::default()), reusable(&zero));
    let gate = Gate::shut();
    gate.hold(held);
    signal(held, event);
    std::thread::scope(|scope| {
        let address = event.0.expose_provenance();
        let waiter = scope.spawn(move || {
            wait(ur_event_handle_t(std::ptr::with_exposed_provenance_mut(address)));
        });
        let at = zero.device_memory(4096);
        let watch = scope.spawn(move || {
            // A copy that waits for the waiter waits for ever.
            let end = Instant::now() + Duration::from_secs(20);
            while !waiter.is_finished() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
            let is_late = !waiter.is_finished();
            gate.open();
            waiter.join().unwrap();
            assert!(!is_late, "the copies wait for what the other thread waits for");
        });
        for round in 0..50_u8 {
            zero.write(at, &[round; 4096]);
            assert!(zero.read::<u8, 4096>(at) == [round; 4096]);
            std::thread::sleep(Duration::from_millis(1)); // and the other thread begins its wait
        }
        gate.open();
        watch.join().unwrap();
        zero.free(at);
    });
    let_go(event);
    release(held);
}
#[test]
fn lists_are_not_asked_for_ends_where_that_takes_a_flush() {
    let name = "lists_are_not_asked_for_ends_where_that_takes_a_flush";
    if !is_inside(name, &[("ZE_SOFTWARE_PROFILE", "igpu"), ("ZE_SOFTWARE_FLUSH", "never")]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let at = zero.device_memory(4096);
    for flags in [Flags::default(), Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let queue = queue(&zero, flags);
        for n in 0..100 {
            let filled = fill(queue, at, n);
            if n % 2 == 0 {
                assert!(is_complete_in_time(filled));
            }
            wait(filled);
            let_go(filled);
            let_go(barrier(queue, &[]));
        }
        wait(barrier(queue, &[]));
        assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    }
}
#[test]
fn commands_of_an_out_of_order_queue_are_on_all_engines_and_copies_on_one_of_their_own() {
    let name =
        "commands_of_an_out_of_order_queue_are_on_all_engines_and_copies_on_one_of_their_own";
    if !is_inside(name, &[("ZE_SOFTWARE_SHARED_ENGINES", "all")]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let [from, to] = [4096, 4096].map(|bytes| zero.device_memory(bytes));
    zero.write(from, &[7u8; 4096]);
    let (queue, gate) = (queue(&zero, Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE), Gate::shut());
    gate.hold(queue);
    // What holds up one engine of the four holds up no other.
    let filled = fill(queue, from, 9);
    let is_filled = is_complete_in_time(filled);
    (0..3).for_each(|_| gate.hold(queue));
    let mut copied = NO_EVENT;
    let no: *const ur_event_handle_t = null();
    let code = call!(enqueue.usm_memcpy(queue, false, to, from, 4096usize, 0, no, &mut copied));
    assert_eq!(code, R::SUCCESS);
    let is_copied = is_complete_in_time(copied);
    gate.open();
    assert!(is_filled && is_copied, "filled: {is_filled}, copied: {is_copied}");
    assert_eq!(zero.read::<u8, 4096>(to), [9; 4096]);
    [filled, copied].into_iter().for_each(let_go);
    release(queue);
    [from, to].into_iter().for_each(|at| zero.free(at));
}

/// A function of the application's may wait for anything, also for a copy of another queue: no copy behind it may lie in the
/// engine that all copies share.
#[test]
fn copies_behind_what_the_host_holds_up_hold_up_no_copy_of_another_queue() {
    let name = "copies_behind_what_the_host_holds_up_hold_up_no_copy_of_another_queue";
    if !is_inside_or_real(name, &[("ZE_SOFTWARE_SHARED_ENGINES", "1")]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let [from, to, last] = [4096; 3].map(|bytes| zero.device_memory(bytes));
    zero.write(from, &[7u8; 4096]);
    let in_order = || queue(&zero, Flags::default());
    let free = || queue(&zero, Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE);
    type Way<'way> = (&'way str, fn(ur_queue_handle_t, &'static Gate), [ur_queue_handle_t; 2]);
    let held: fn(ur_queue_handle_t, &'static Gate) = |queue, gate| gate.hold(queue);
    let nothing: fn(ur_queue_handle_t, &'static Gate) = |_, _| ();
    let ways: [Way<'_>; 5] = [
        ("behind it in its queue", held, [in_order(), NO_QUEUE]),
        ("behind it in a queue that copied before", held, [in_order(), in_order()]),
        ("that wait for its event", nothing, [in_order(), NO_QUEUE]),
        ("out of order, that wait for its event", nothing, [free(), NO_QUEUE]),
        ("out of order, behind a barrier that is behind it", held, [free(), free()]),
    ];
    for (way, hold, [waiting, before]) in ways {
        let (gate, holder) = (Gate::shut(), in_order());
        gate.hold(holder);
        let end = barrier(holder, &[]);
        if before != NO_QUEUE {
            wait(copy(waiting, (to, from), &[]));
            release(before);
        }
        hold(waiting, gate);
        let behind = barrier(waiting, &[]);
        // One that waits for the gate's event through an event of another queue.
        let through = in_order();
        let passed = barrier(through, &[end]);
        let copies = [copy(waiting, (to, from), &[passed]), copy(through, (to, from), &[])];
        let other = in_order();
        let copied = copy(other, (last, from), &[]);
        let is_copied = is_complete_in_time(copied);
        gate.open();
        assert!(is_copied, "copies {way}");
        [copied, passed, behind, end].into_iter().chain(copies).for_each(|event| {
            wait(event);
            let_go(event);
        });
        [other, through, waiting, holder].into_iter().for_each(release);
        assert_eq!(zero.read::<u8, 4096>(last), [7; 4096]);
        assert_eq!(zero.read::<u8, 4096>(to), [7; 4096]);
    }
    [from, to, last].into_iter().for_each(|at| zero.free(at));
}
