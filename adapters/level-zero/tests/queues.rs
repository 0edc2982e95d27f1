//! Queues and events as a C program has them, on whatever driver of Level Zero there is; without a device the tests say
//! so and are skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "c/calls.rs"]
mod calls;
#[path = "c/gate.rs"]
mod gate;
#[path = "../../cuda/tests/c/refuser.rs"]
mod refuser;

use c::*;
use calls::*;
use gate::Gate;
use refuser::Refuser;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{
        Mutex, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use ur_level_zero::driver::{self, RawContext, RawDevice};
use ur_lock::{read_locked, write_locked};
use ur_sys::{ur_profiling_info_t as Time, ur_queue_flags_t as Flags, ur_result_t as R, *};

/// Counts what a thread allocates; the driver has an allocator of its own.
struct Counting;
thread_local! { static TAKEN: Cell<usize> = const { Cell::new(0) }; }
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _late = TAKEN.try_with(|taken| taken.set(taken.get() + 1));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) };
    }
}
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Objects of all tests lie in the same places, so that others' may make room there: one test wants to be alone.
static ALONE: RwLock<()> = RwLock::new(());

/// For how long `cargo xtask level-zero-card` wants to see what goes wrong now and then.
fn card_seconds() -> Option<Duration> {
    std::env::var("CAUSEWAY_CARD_SECONDS").ok()?.parse().ok().map(Duration::from_secs)
}
#[test]
fn patterns_of_any_length_fill_from_any_address() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    let at = zero.device_memory(4096);
    for length in [1usize, 2, 3, 4, 5, 8, 12, 16, 24, 64, 100, 128, 256] {
        for offset in [0usize, 1, 7, 64] {
            zero.write(at, &[0xeeu8; 4096]);
            let pattern: Vec<u8> = (0..length).map(|n| n as u8 ^ 0x5a).collect();
            let bytes = length * 5;
            let to = at.wrapping_byte_add(offset);
            let (p, none) = (pattern.as_ptr().cast(), null_mut());
            let code = call!(enqueue.usm_fill(zero.queue, to, length, p, bytes, 0, null(), none));
            assert_eq!(code, R::SUCCESS);
            let found = zero.read::<u8, 4096>(at);
            let wanted: Vec<u8> = pattern.iter().copied().cycle().take(bytes).collect();
            assert_eq!(found[offset..offset + bytes], wanted, "{length} bytes at {offset}");
            assert!(found[..offset].iter().all(|b| *b == 0xee), "before {offset}");
            assert!(found[offset + bytes..].iter().all(|b| *b == 0xee), "behind {length}");
        }
    }
    zero.free(at);
}
/// What it freed while the queue was busy is given back although the list is gone, and kept until then.
#[test]
fn the_application_may_destroy_its_list_when_the_queue_over_it_is_released() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    let (driver, context) = (driver::driver(), RawContext::from_addr(zero.native()).unwrap());
    let device = RawDevice::from_addr(zero.native_device()).unwrap();
    let is_allocated = |at: *mut c_void| {
        let mut found = ze_sys::ze_memory_allocation_properties_t {
            stype: ze_sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
            ..Default::default()
        };
        let to = &raw mut found;
        let asked = unsafe { driver.mem_get_alloc_properties(context, at, to, &mut None) };
        assert_eq!(asked.status(), Some(0));
        found.type_ != ze_sys::ZE_MEMORY_TYPE_UNKNOWN
    };
    // Also if the driver refuses the first call of the release, or all of them.
    let refuser = Refuser::new();
    let refusals = if refuser.is_some() { &[0, 1, 1000][..] } else { &[0] };
    for (is_busy, refused) in
        [true, false].into_iter().flat_map(|is| refusals.iter().map(move |n| (is, *n)))
    {
        if is_busy && refused > 1 {
            continue; // then it is waited for
        }
        let (mut list, mut theirs) = (None, NO_QUEUE);
        let desc = ze_sys::ze_command_queue_desc_t {
            stype: ze_sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
            flags: ze_sys::ZE_COMMAND_QUEUE_FLAG_IN_ORDER,
            ..Default::default()
        };
        let made =
            unsafe { driver.command_list_create_immediate(context, device, &desc, &mut list) };
        assert_eq!(made.status(), Some(0));
        let list = list.unwrap();
        let (native, of, to) = (list.addr(), (zero.context, zero.device), &raw mut theirs);
        let adopted = call!(queue.create_with_native_handle(native, of.0, of.1, null(), to));
        assert_eq!(adopted, R::SUCCESS);
        let (at, gate) = (zero.device_memory(64 << 20), Gate::shut());
        gate.hold(theirs);
        let filled = fill(theirs, at, 0x55);
        zero.free(at);
        if !is_busy {
            gate.open();
            wait(filled);
        }
        let release = || call!(queue.release(theirs));
        let released = match &refuser {
            Some(refuser) if refused > 0 => {
                refuser.times(refused);
                let (code, _) = refuser.during(Some(0), release);
                refuser.times(1);
                code
            }
            _ => release(),
        };
        assert_eq!(released, R::SUCCESS);
        assert!(!is_busy || is_allocated(at), "a command was to write it");
        gate.open();
        wait(filled);
        let ended = unsafe { driver.command_list_host_synchronize(list, u64::MAX) };
        assert_eq!(ended.status(), Some(0));
        assert_eq!(unsafe { driver.command_list_destroy(list) }.status(), Some(0));
        zero.finish();
        zero.free(zero.device_memory(64 << 20)); // and what is over is given back
        assert!(!is_allocated(at), "memory was lost with the list");
        let_go(filled);
    }
}
#[test]
fn rows_are_filled_with_one_pattern_that_goes_on() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    let at = zero.device_memory(4096);
    for (pitch, width, height, length) in
        [(64usize, 64usize, 4usize, 4usize), (64, 48, 7, 12), (32, 10, 6, 4), (100, 99, 1, 9)]
    {
        zero.write(at, &[0u8; 4096]);
        let pattern: Vec<u8> = (1..=length as u8).collect();
        let (p, none) = (pattern.as_ptr().cast(), null_mut());
        let code = call!(enqueue.usm_fill_2d(
            zero.queue,
            at,
            pitch,
            length,
            p,
            width,
            height,
            0,
            null(),
            none
        ));
        assert_eq!(code, R::SUCCESS, "{pitch} {width} {height} {length}");
        let found = zero.read::<u8, 4096>(at);
        let mut all = pattern.iter().copied().cycle();
        for row in 0..height {
            let wanted: Vec<u8> = all.by_ref().take(width).collect();
            assert_eq!(found[row * pitch..row * pitch + width], wanted, "row {row} of {width}");
            if row + 1 < height {
                let between = &found[row * pitch + width..(row + 1) * pitch];
                assert!(between.iter().all(|b| *b == 0), "behind row {row}");
            }
        }
    }
    zero.free(at);
}
#[test]
fn a_barrier_of_an_out_of_order_queue_is_behind_all_and_before_all() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    let free = queue(&zero, Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let gate = Gate::shut();
    gate.hold(free);
    let overtakes = {
        let mut event = NO_EVENT;
        let first = barrier(zero.queue, &[]);
        let code = call!(enqueue.events_wait(free, 1, &raw const first, &mut event));
        assert_eq!(code, R::SUCCESS);
        let_go(first);
        event
    };
    wait(overtakes);
    let across: Vec<_> = (0..6).map(|_| barrier(free, &[])).collect();
    assert!(across.iter().all(|event| status(*event) != ur_event_status_t::COMPLETE));
    gate.open();
    wait(across[5]);
    assert!(across.iter().all(|event| status(*event) == ur_event_status_t::COMPLETE));
    across.into_iter().chain([overtakes]).for_each(let_go);
    release(free);
}
#[test]
fn an_event_is_of_its_own_command_whatever_comes_behind_it_and_whoever_waits() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    for flags in [Flags::default(), Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let held = queue(&zero, flags);
        let (gate, other) = (Gate::shut(), Gate::shut());
        gate.hold(held);
        let event = barrier(held, &[]);
        let waiter = {
            let event = event.0.expose_provenance();
            std::thread::spawn(move || {
                wait(ur_event_handle_t(std::ptr::with_exposed_provenance_mut(event)));
            })
        };
        other.hold(held);
        let last = barrier(held, &[event]);
        let across = barrier(zero.queue, &[event]);
        assert_ne!(status(event), ur_event_status_t::COMPLETE);
        gate.open();
        let deadline = Instant::now() + Duration::from_secs(60);
        for behind in [event, across] {
            while status(behind) != ur_event_status_t::COMPLETE {
                assert!(Instant::now() < deadline, "it waits for what is behind it");
                std::thread::yield_now();
            }
        }
        waiter.join().unwrap();
        assert_ne!(status(last), ur_event_status_t::COMPLETE);
        other.open();
        wait(last);
        [event, across, last].into_iter().for_each(let_go);
        release(held);
    }
}
#[test]
fn times_come_in_their_order_and_are_the_devices() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    let timed = queue(&zero, Flags::PROFILING_ENABLE);
    let (at, mut before, mut after) = (zero.device_memory(1 << 20), 0u64, 0u64);
    assert_eq!(
        call!(device.get_global_timestamps(zero.device, &mut before, null_mut())),
        R::SUCCESS
    );
    let mut filled = NO_EVENT;
    let (seven, list) = ([7u8], null());
    let p = seven.as_ptr().cast();
    let code = call!(enqueue.usm_fill(timed, at, 1usize, p, 1usize << 20, 0, list, &mut filled));
    assert_eq!(code, R::SUCCESS);
    wait(filled);
    let mut moment = NO_EVENT;
    let code = call!(enqueue_exp.timestamp_recording_exp(zero.queue, true, 0, null(), &mut moment));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(
        call!(device.get_global_timestamps(zero.device, &mut after, null_mut())),
        R::SUCCESS
    );
    let names =
        [Time::COMMAND_QUEUED, Time::COMMAND_SUBMIT, Time::COMMAND_START, Time::COMMAND_END];
    let times: Vec<_> = names.iter().map(|name| time(filled, *name)).collect();
    let mark = time(moment, Time::COMMAND_END);
    let all: Vec<_> = [before].into_iter().chain(times).chain([mark, after]).collect();
    assert!(all.is_sorted(), "{all:?}");
    let told = names.map(|name| time(moment, name));
    assert!(told.is_sorted() && told[2] == mark, "it starts where it ends, at {mark}: {told:?}");
    [filled, moment].into_iter().for_each(let_go);
    release(timed);
    zero.free(at);
}
#[test]
fn a_host_wait_is_for_the_signal_that_it_began_with() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    let event = reusable(&zero);
    let signal = |queue| signal(queue, event);
    let (first, second) = (queue(&zero, Flags::default()), queue(&zero, Flags::default()));
    let (gate, other) = (Gate::shut(), Gate::shut());
    gate.hold(first);
    other.hold(second);
    signal(first);
    std::thread::scope(|scope| {
        // Behind this command is what the event stood for when it was enqueued; so is what waits for it.
        let behind = barrier(zero.queue, &[event]);
        let waiter = {
            let behind = behind.0.expose_provenance();
            scope.spawn(move || {
                wait(ur_event_handle_t(std::ptr::with_exposed_provenance_mut(behind)))
            })
        };
        signal(second); // owed for as long as the second gate is shut
        assert_eq!(status(event), ur_event_status_t::SUBMITTED);
        gate.open();
        waiter.join().unwrap();
        assert_eq!(status(event), ur_event_status_t::SUBMITTED);
        let_go(behind);
    });
    other.open();
    wait(event);
    assert_eq!(status(event), ur_event_status_t::COMPLETE);
    let_go(event);
    [first, second].into_iter().for_each(release);
}
#[test]
fn a_command_on_its_way_allocates_nothing() {
    let _alone = write_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    let at = zero.device_memory(4096);
    let mut host = [0u8; 64];
    let mut round = || {
        let event = barrier(zero.queue, &[]);
        let (to, list, mut copied) = (host.as_mut_ptr().cast(), &raw const event, NO_EVENT);
        let code =
            call!(enqueue.usm_memcpy(zero.queue, false, to, at, 64usize, 1, list, &mut copied));
        assert_eq!(code, R::SUCCESS);
        wait(copied);
        [event, copied].into_iter().for_each(let_go);
    };
    (0..200).for_each(|_| round()); // until there are events to use again
    let before = TAKEN.get();
    (0..1000).for_each(|_| round());
    assert_eq!(TAKEN.get() - before, 0, "in 1000 rounds of two commands, a wait and two releases");
    zero.free(at);
}

/// The counters of devices come round: on ze-software as the environment says, on hardware within minutes.
#[test]
fn time_passes_on_the_device_as_on_the_host_and_times_of_commands_lie_in_it() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    let now = || {
        let (mut device, mut host) = (0_u64, 0_u64);
        let code = call!(device.get_global_timestamps(zero.device, &mut device, &mut host));
        assert_eq!(code, R::SUCCESS);
        (device, host)
    };
    let timed = queue(&zero, Flags::PROFILING_ENABLE);
    let (begun, mut latest) = (now(), 0);
    // `cargo xtask level-zero-card` wants to see it for longer, so that counters come round.
    let long = card_seconds().map_or(Duration::ZERO, |seconds| seconds * 2);
    let start = Instant::now();
    for round in 0.. {
        if round >= 50 && start.elapsed() >= long {
            break;
        }
        let before = now().0;
        let event = barrier(timed, &[]);
        wait(event);
        let (begin, end) = (time(event, Time::COMMAND_START), time(event, Time::COMMAND_END));
        let all = [latest, before, begin, end, now().0];
        assert!(all.is_sorted(), "{all:?}");
        latest = end;
        let_go(event);
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = now();
    let (device, host) = ((ended.0 - begun.0) as f64, (ended.1 - begun.1) as f64);
    assert!((device / host - 1.0).abs() < 0.0005, "{device} ns there are {host} ns here");
    release(timed);
}

#[test]
fn a_thread_asks_for_events_and_finishes_while_another_one_fills() {
    let Some(zero) = Zero::new() else { return };
    let _together = read_locked(&ALONE);
    for flags in [Flags::default(), Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let made = queue(&zero, flags).0.expose_provenance();
        let queue = || ur_queue_handle_t(std::ptr::with_exposed_provenance_mut(made));
        let at = zero.device_memory(1 << 16) as usize;
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let latest = Mutex::new(None::<usize>);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let start = Instant::now();
                let long = card_seconds().map_or(Duration::ZERO, |seconds| seconds / 2);
                for round in 0.. {
                    if round >= 2000 && start.elapsed() >= long {
                        break;
                    }
                    let mut event = NO_EVENT;
                    let to = std::ptr::with_exposed_provenance_mut::<c_void>(at);
                    let pattern = (&raw const at).cast();
                    let code = call!(enqueue.usm_fill(
                        queue(),
                        to,
                        1,
                        pattern,
                        1 << 16,
                        0,
                        null(),
                        &mut event
                    ));
                    assert_eq!(code, R::SUCCESS);
                    let old = latest.lock().unwrap().replace(event.0.expose_provenance());
                    old.into_iter().for_each(|old| let_go(event_at(old)));
                }
                is_over.store(true, std::sync::atomic::Ordering::Release);
            });
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Acquire) {
                    let asked = latest.lock().unwrap().take();
                    let Some(asked) = asked.map(event_at) else { continue };
                    status(asked);
                    let_go(asked);
                }
            });
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Acquire) {
                    assert_eq!(call!(queue.finish(queue())), R::SUCCESS);
                }
            });
        });
        latest.lock().unwrap().take().into_iter().for_each(|last| let_go(event_at(last)));
        release(queue());
    }
}
/// What is collected while other threads finish the queue or ask whether it is empty is not done by that.
#[test]
fn a_command_that_lies_in_a_batch_is_not_done_because_another_thread_finishes() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    let batched = queue(&zero, Flags::SUBMISSION_BATCHED).0.expose_provenance();
    let queue = || ur_queue_handle_t(std::ptr::with_exposed_provenance_mut(batched));
    let context = zero.context.0.expose_provenance();
    let context = || ur_context_handle_t(std::ptr::with_exposed_provenance_mut(context));
    let is_over = AtomicBool::new(false);
    let fills = || {
        let (mut at, pool) = (null_mut::<c_void>(), ur_usm_pool_handle_t::NULL);
        let code = call!(usm.host_alloc(context(), null(), pool, 4096usize, &mut at));
        assert_eq!(code, R::SUCCESS);
        let early = (0..10_000_u32).find(|round| {
            let event = fill(queue(), at, *round as u8);
            wait(event);
            let_go(event);
            let last = at.cast::<u8>().wrapping_add(4095);
            let last = unsafe { last.read_volatile() };
            last != *round as u8
        });
        is_over.store(true, Ordering::Release);
        assert_eq!(call!(queue.finish(queue())), R::SUCCESS);
        assert_eq!(call!(usm.free(context(), at)), R::SUCCESS);
        assert_eq!(early, None, "the event of this round was complete before its command was sent");
    };
    let until_over = |each: &dyn Fn()| {
        while !is_over.load(Ordering::Acquire) {
            each();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(fills);
            scope.spawn(|| until_over(&|| assert_eq!(call!(queue.finish(queue())), R::SUCCESS)));
        }
        scope.spawn(|| until_over(&|| _ = is_empty(queue())));
    });
    release(queue());
}
fn is_empty(queue: ur_queue_handle_t) -> bool {
    let (mut empty, name) = (2_u8, ur_queue_info_t::EMPTY);
    let to = (&raw mut empty).cast();
    assert_eq!(call!(queue.get_info(queue, name, 1usize, to, null_mut())), R::SUCCESS);
    empty == 1
}
#[test]
fn a_queue_that_collects_becomes_empty_though_nothing_but_that_is_asked() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    let batched = queue(&zero, Flags::SUBMISSION_BATCHED);
    let at = zero.device_memory(4096);
    let event = fill(batched, at, 3);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_empty(batched) {
        assert!(Instant::now() < deadline, "nobody sends what it has collected");
        std::thread::yield_now();
    }
    assert_eq!(zero.read::<u8, 4096>(at), [3; 4096]);
    let_go(event);
    release(batched);
    zero.free(at);
}
/// The driver may have no memory to mark the end of a command that is under way.
#[test]
fn a_command_whose_end_cannot_be_marked_is_waited_for_all_the_same() {
    let name = "a_command_whose_end_cannot_be_marked_is_waited_for_all_the_same";
    // The first one puts the queue, which the host holds up, on a list of another kind.
    let fails = [2, 3, 4].map(|nth| format!("zeCommandListAppendSignalEvent:{nth}=0x70000003"));
    if !is_inside(name, &[("ZE_SOFTWARE_FAIL", &fails.join(","))]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let (at, held, gate) = (zero.device_memory(4096), queue(&zero, Flags::default()), Gate::shut());
    gate.hold(held);
    let filled = fill(held, at, 7);
    assert_eq!(status(filled), ur_event_status_t::SUBMITTED);
    std::thread::scope(|scope| {
        let address = filled.0.expose_provenance();
        let waiter = scope.spawn(move || wait(event_at(address)));
        assert_eq!(status(filled), ur_event_status_t::SUBMITTED);
        gate.open();
        waiter.join().unwrap();
    });
    assert_eq!(zero.read::<u8, 4096>(at), [7; 4096]);
    let_go(filled);
    release(held);
    zero.free(at);
}
/// A caller whose blocking copy is refused may do as it likes with its memory.
#[test]
fn a_blocking_copy_that_is_refused_in_part_writes_nothing_after_it_has_returned() {
    let name = "a_blocking_copy_that_is_refused_in_part_writes_nothing_after_it_has_returned";
    // On integrated graphics each command signals an event: that of a copy of rows behind the copy.
    let fails = ("ZE_SOFTWARE_FAIL", "zeCommandListAppendSignalEvent:0=0x70000003");
    if !is_inside(name, &[("ZE_SOFTWARE_PROFILE", "igpu"), fails]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    const BYTES: usize = 64 << 20;
    let (at, byte, none) = (zero.device_memory(BYTES), 7_u8, null_mut());
    let from = (&raw const byte).cast();
    let code = call!(enqueue.usm_fill(zero.queue, at, 1usize, from, BYTES, 0, null(), none));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(zero.read::<u8, 1>(at), [7]);
    let unordered = queue(&zero, Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE);
    for queue in [zero.queue, unordered] {
        let mut here = vec![0_u8; BYTES];
        let (to, pitch, rows) = (here.as_mut_ptr().cast::<c_void>(), BYTES / 2, 2_usize);
        let code = call!(enqueue.usm_memcpy_2d(
            queue,
            true,
            to,
            pitch,
            at,
            pitch,
            pitch,
            rows,
            0,
            null(),
            none
        ));
        let last = to.cast::<u8>().wrapping_add(BYTES - 1);
        let last = unsafe { last.read_volatile() };
        assert_eq!((code, last), (R::ERROR_OUT_OF_DEVICE_MEMORY, 7), "it is under way");
    }
    assert_eq!(call!(queue.release(unordered)), R::SUCCESS);
    zero.free(at);
}
#[test]
fn a_released_queue_has_sent_what_it_had_collected() {
    let _others = read_locked(&ALONE);
    let Some(zero) = Zero::new() else { return };
    for flags in [Flags::SUBMISSION_BATCHED, Flags(0)] {
        let (queue, mut at, pool) = (queue(&zero, flags), null_mut(), ur_usm_pool_handle_t::NULL);
        let made = call!(usm.host_alloc(zero.context, null(), pool, 64, &mut at));
        assert_eq!(made, R::SUCCESS);
        unsafe { at.cast::<u8>().write_volatile(0) }; // it may be the memory of the other queue's fill
        let seen = || unsafe { at.cast::<u8>().read_volatile() };
        let (byte, mut event) = (5_u8, NO_EVENT);
        let (from, list) = ((&raw const byte).cast(), null());
        let code = call!(enqueue.usm_fill(queue, at, 1usize, from, 64usize, 0, list, &mut event));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(call!(queue.release(queue)), R::SUCCESS); // the event keeps it, and is not asked
        let end = Instant::now() + Duration::from_secs(10);
        while seen() != 5 {
            assert!(Instant::now() < end, "{flags:?}: never sent");
            std::thread::sleep(Duration::from_millis(1));
        }
        let_go(event);
        zero.free(at);
    }
}
