//! Sixteen threads at once: on one queue and on many, with wait lists across them all, making and
//! releasing everything there is. At the end the counts are exact.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod common;
use common::{Dice, alone, descriptors, eventually, lanes::*, memfds, ur::*};
use std::{
    ptr::{null, null_mut},
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*},
    },
    thread,
};
use ur_execution_info_t as X;
use ur_result_t as R;

const THREADS: usize = 16;

#[test]
fn role() {
    common::role();
}
/// Sixteen threads, each with its number, which begin together.
fn sixteen(each: impl Fn(usize) + Sync) {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for n in 0..THREADS {
            let (each, start) = (&each, &start);
            scope.spawn(move || {
                start.wait();
                each(n);
            });
        }
    });
}

#[test]
fn each_of_sixteen_threads_finds_its_own_bytes_on_one_queue() {
    const BYTES: usize = 20 << 10; // more than is done at once by who submits it
    in_time(|| {
        let lanes = Lanes::new();
        for flags in BOTH {
            let queue = lanes.queue(flags);
            let wrong = Arc::new(AtomicUsize::new(0));
            sixteen(|thread| {
                let [one, two] = [(); 2].map(|()| lanes.memory(BYTES));
                let mut last = vec![];
                for round in 1..=40_u8 {
                    let byte = round ^ (thread as u8) << 4;
                    let bytes = if round % 3 == 0 { 100 } else { BYTES };
                    let filled = lanes.fill(queue, &last, one, byte, bytes);
                    let copied = lanes.copy(queue, &[filled], two, one, bytes);
                    let wrong = Arc::clone(&wrong);
                    let seen = lanes.task(queue, &[copied], move || {
                        let bad = bytes_at(two, bytes).iter().any(|&found| found != byte);
                        wrong.fetch_add(usize::from(bad), SeqCst);
                    });
                    [filled, copied].iter().chain(&last).for_each(|&event| lanes.release(event));
                    last = vec![seen];
                    if round % 8 == 0 {
                        lanes.wait(seen);
                    }
                }
                last.iter().for_each(|&event| lanes.release(event));
                lanes.finish(queue);
                [one, two].iter().for_each(|&at| lanes.free(at as *mut _).unwrap());
            });
            assert_eq!(wrong.load(SeqCst), 0);
            lanes.close(queue);
        }
    });
}
#[test]
fn every_command_of_sixteen_threads_is_done_once_and_those_of_one_in_order() {
    const EACH: u64 = 150;
    in_time(|| {
        let lanes = Lanes::new();
        let queue = lanes.queue(IN_ORDER);
        let all = lanes.memory(8);
        let expected = AtomicUsize::new(0);
        sixteen(|_| {
            let mine = Arc::new(AtomicU64::new(0));
            for n in 0..EACH {
                let mine = Arc::clone(&mine);
                let event = lanes.task(queue, &[], move || {
                    // Its queue alone makes this safe: there is no atomic access in it.
                    let now = bytes_at(all, 8);
                    let next = u64::from_ne_bytes(now.try_into().unwrap()) + 1;
                    unsafe { (all as *mut u64).write(next) };
                    let _kept = mine.compare_exchange(n, n + 1, Relaxed, Relaxed);
                });
                if n % 50 == 0 {
                    lanes.wait(event);
                }
                lanes.release(event);
            }
            lanes.finish(queue);
            assert_eq!(mine.load(Relaxed), EACH);
            expected.fetch_add(EACH as usize, SeqCst);
        });
        assert_eq!(word_at(all), expected.load(SeqCst) as u64);
        lanes.free(all as *mut _).unwrap();
        lanes.close(queue);
    });
}
/// Every thread's chain goes over all queues, and each link waits for the last one alone.
#[test]
fn chains_of_sixteen_threads_cross_queues_kinds_and_contexts() {
    const LINKS: u64 = 120;
    in_time(|| {
        let first = Lanes::new();
        let second = first.another();
        let queues: Vec<_> = [first, second]
            .iter()
            .flat_map(|of| BOTH.map(|flags| (*of, of.queue(flags))))
            .collect();
        sixteen(|thread| {
            let mut dice = Dice::new(thread as u64);
            let cell = first.memory(8);
            let mut last: Vec<Event> = vec![];
            let mut expected = 0_u64;
            for link in 1..=LINKS {
                let (of, queue) = queues[dice.below(4) as usize];
                let next = match dice.below(4) {
                    0 => of.barrier(queue, &last),
                    1 => of.join(queue, &last),
                    _ => {
                        expected = expected.wrapping_mul(31).wrapping_add(link);
                        of.task(queue, &last, move || add_at(cell, link))
                    }
                };
                // A wait that waits for nothing would be for all of its queue: the first is such.
                last.drain(..).for_each(|event| first.release(event));
                last.push(next);
            }
            first.wait(last[0]);
            assert_eq!(word_at(cell), expected);
            first.release(last[0]);
            first.free(cell as *mut _).unwrap();
        });
        queues.iter().for_each(|&(of, queue)| {
            of.finish(queue);
            of.close(queue);
        });
    });
}
/// One hands to the next in a ring, each on a queue of its own, in two contexts by turns.
#[test]
fn a_ring_of_sixteen_queues_hands_one_thing_round_and_round() {
    const ROUNDS: usize = 40;
    in_time(|| {
        let contexts = [Lanes::new(), Lanes::new().another()];
        let cell = contexts[0].memory(8);
        let queues: Vec<_> = (0..THREADS).map(|n| contexts[n % 2].queue(BOTH[n / 2 % 2])).collect();
        let posts: Vec<_> = (0..THREADS).map(|_| Mutex::new(None::<Event>)).collect();
        sixteen(|n| {
            let lanes = contexts[n % 2];
            for round in 0..ROUNDS {
                let before = match (n, round) {
                    (0, 0) => vec![],
                    _ => {
                        let mut taken = None;
                        eventually("it is handed over", || {
                            taken = posts[n].lock().unwrap().take();
                            taken.is_some()
                        });
                        taken.into_iter().collect()
                    }
                };
                let what = (round * THREADS + n) as u64;
                let next = lanes.task(queues[n], &before, move || add_at(cell, what));
                before.iter().for_each(|&event| lanes.release(event));
                let place = &posts[(n + 1) % THREADS];
                eventually("the place is free", || place.lock().unwrap().is_none());
                *place.lock().unwrap() = Some(next);
            }
        });
        let last = posts[0].lock().unwrap().take().expect("the last one hands to the first");
        contexts[0].wait(last);
        let all = 0..(ROUNDS * THREADS) as u64;
        let expected = all.fold(0_u64, |sum, n| sum.wrapping_mul(31).wrapping_add(n));
        assert_eq!(word_at(cell), expected);
        contexts[0].release(last);
        queues.iter().for_each(|&queue| contexts[0].close(queue));
        contexts[0].free(cell as *mut _).unwrap();
    });
}
#[test]
fn finish_is_for_all_that_its_thread_submitted_whoever_else_submits() {
    in_time(|| {
        let lanes = Lanes::new();
        let queue = lanes.queue(OUT_OF_ORDER);
        sixteen(|_| {
            let done = Arc::new(AtomicU64::new(0));
            for round in 1..=20_u64 {
                for _ in 0..6 {
                    let done = Arc::clone(&done);
                    let event = lanes.task(queue, &[], move || {
                        done.fetch_add(1, SeqCst);
                    });
                    lanes.release(event); // nobody's, and done all the same
                }
                lanes.finish(queue);
                assert_eq!(done.load(SeqCst), round * 6);
            }
        });
        lanes.close(queue);
    });
}
#[test]
fn references_that_sixteen_threads_take_and_give_are_counted_exactly() {
    in_time(|| {
        let lanes = Lanes::new();
        let queue = lanes.queue(OUT_OF_ORDER);
        let open = Arc::new(AtomicBool::new(false));
        let event = lanes.task(queue, &[], {
            let open = Arc::clone(&open);
            move || {
                while !open.load(Acquire) {
                    thread::yield_now();
                }
            }
        });
        sixteen(|thread| {
            for round in 0..200_usize {
                lanes.retain(event);
                assert_eq!(call!(queue.retain(*queue)), R::SUCCESS);
                assert!(lanes.references(event) >= 2);
                if (round + thread) % 2 == 0 {
                    lanes.release(event);
                }
                lanes.close(queue);
            }
        });
        assert_eq!(lanes.references(event), 1 + (THREADS * 100) as u32);
        let name = ur_queue_info_t::REFERENCE_COUNT;
        let count: u32 = lanes
            .value(|size, to, ret| call!(queue.get_info(*queue, name, size, to, ret)))
            .unwrap();
        assert_eq!(count, 1);
        open.store(true, Release);
        sixteen(|_| {
            lanes.wait(event);
            (0..100).for_each(|_| lanes.release(event));
        });
        assert_eq!(lanes.references(event), 1);
        lanes.release(event);
        assert_eq!(call!(event.release(*event)), R::ERROR_INVALID_EVENT);
        lanes.close(queue);
        assert_eq!(call!(queue.release(*queue)), R::ERROR_INVALID_QUEUE);
    });
}
#[test]
fn callbacks_that_sixteen_threads_ask_for_are_made_once_each_and_may_call_back() {
    const ROUNDS: usize = 25;
    in_time(|| {
        let lanes = Lanes::new();
        for flags in BOTH {
            let queue = lanes.queue(flags);
            let made = Arc::new([const { AtomicUsize::new(0) }; 3]);
            let behind = Arc::new(AtomicUsize::new(0));
            for _ in 0..ROUNDS {
                let event = lanes.task(queue, &[], thread::yield_now);
                sixteen(|thread| {
                    let at = [X::SUBMITTED, X::RUNNING, X::COMPLETE][thread % 3];
                    let (made, behind) = (Arc::clone(&made), Arc::clone(&behind));
                    lanes.retain(event);
                    lanes.call_at(event, at, move |told| {
                        if told == event {
                            made[thread % 3].fetch_add(1, SeqCst);
                        }
                        // A callback uses the queue, and gives the event away that it was told of.
                        let next = lanes.task(queue, &[told], move || {
                            behind.fetch_add(1, SeqCst);
                        });
                        lanes.release(next);
                        lanes.release(told);
                    });
                    if thread % 5 == 0 {
                        lanes.wait(event);
                    }
                });
                lanes.wait(event);
                lanes.release(event);
            }
            let counts = || made.each_ref().map(|count| count.load(SeqCst));
            eventually("all are made", || counts().iter().sum::<usize>() == ROUNDS * THREADS);
            assert_eq!(counts(), [6, 5, 5].map(|each| ROUNDS * each));
            lanes.finish(queue);
            assert_eq!(behind.load(SeqCst), ROUNDS * THREADS);
            lanes.close(queue);
        }
    });
}
#[test]
fn one_reusable_event_is_signalled_and_awaited_by_sixteen_threads() {
    in_time(|| {
        let lanes = Lanes::new();
        let queues = [IN_ORDER, OUT_OF_ORDER, IN_ORDER].map(|flags| lanes.queue(flags));
        for flags in [ur_exp_event_flags_t::default(), ur_exp_event_flags_t::IPC_EXP] {
            let event = Any(ur_event_handle_t(lanes.new_event(flags).unwrap()));
            let done = Arc::new(AtomicU64::new(0));
            sixteen(|thread| {
                let mut dice = Dice::new(thread as u64);
                for _ in 0..60 {
                    let queue = queues[dice.below(3) as usize];
                    match dice.below(4) {
                        0 => lanes.wait(event),
                        1 => lanes.release(lanes.join(queue, &[event])),
                        _ => {
                            let count = Arc::clone(&done);
                            let task = lanes.task(queue, &[event], move || {
                                count.fetch_add(1, SeqCst);
                            });
                            lanes.signal(*queue, event.0.0, &[]).unwrap();
                            lanes.wait(task);
                            lanes.release(task);
                        }
                    }
                }
            });
            lanes.wait(event);
            queues.iter().for_each(|&queue| lanes.finish(queue));
            assert!(lanes.is_complete(event));
            assert!(done.load(SeqCst) > 100);
            lanes.release(event);
        }
        queues.iter().for_each(|&queue| lanes.close(queue));
    });
}

/// A pool that counts what is used of it.
fn pool(lanes: Lanes) -> Any<ur_usm_pool_handle_t> {
    let (stype, flags) = (ur_structure_type_t::USM_POOL_DESC, ur_usm_pool_flags_t::default());
    let mut desc = ur_usm_pool_desc_t { stype, pNext: null(), flags };
    let mut pool = ur_usm_pool_handle_t::NULL;
    assert_eq!(call!(usm.pool_create(lanes.context, &mut desc, &mut pool)), R::SUCCESS);
    Any(pool)
}
fn used(lanes: Lanes, pool: Any<ur_usm_pool_handle_t>) -> usize {
    let name = ur_usm_pool_info_t::USED_CURRENT_EXP;
    lanes.value(|size, to, ret| call!(usm.pool_get_info(*pool, name, size, to, ret))).unwrap()
}
fn alloc(lanes: Lanes, pool: Any<ur_usm_pool_handle_t>, bytes: usize) -> usize {
    let (mut at, context, device) = (null_mut(), lanes.context, lanes.device);
    let code = match bytes % 3 {
        0 => call!(usm.device_alloc(context, device, null(), *pool, bytes, &mut at)),
        1 => call!(usm.shared_alloc(context, device, null(), *pool, bytes, &mut at)),
        _ => call!(usm.host_alloc(context, null(), *pool, bytes, &mut at)),
    };
    lanes.check(code).unwrap();
    at.addr()
}
/// What one thread of the test below has made and not yet released.
#[derive(Default)]
struct Made {
    queues: Vec<Queue>,
    events: Vec<Event>,
    memory: Vec<usize>,
}
/// Gives one of each kind, if there are many, to whoever takes it: what is made here is released there.
fn swap(mine: &mut Made, common: &Mutex<Made>, lanes: Lanes) {
    let mut common = common.lock().unwrap();
    common.queues.append(&mut mine.queues);
    common.events.append(&mut mine.events);
    common.memory.append(&mut mine.memory);
    let queue = (common.queues.len() > 8).then(|| common.queues.swap_remove(0));
    let keep = common.events.len().min(40);
    let events = common.events.split_off(keep);
    let keep = common.memory.len().min(40);
    let memory = common.memory.split_off(keep);
    drop(common);
    queue.into_iter().for_each(|queue| lanes.close(queue));
    events.into_iter().for_each(|event| lanes.release(event));
    memory.into_iter().for_each(|at| lanes.free(at as *mut _).unwrap());
}
fn live(lanes: Lanes, pools: &[Any<ur_usm_pool_handle_t>], thread: usize, common: &Mutex<Made>) {
    let (mut dice, mut mine) = (Dice::new(thread as u64), Made::default());
    for _ in 0..60 {
        let queue = lanes.queue(BOTH[dice.below(2) as usize]);
        let pool = pools[dice.below(pools.len() as u64) as usize];
        let most = [100, 5000, 300_000][dice.below(3) as usize];
        let bytes = 1 + dice.below(most) as usize;
        let at = alloc(lanes, pool, bytes);
        let filled = lanes.fill(queue, &[], at, thread as u8, bytes);
        let checked = lanes.task(queue, &[filled], || ());
        // Before it is freed, whoever frees it: that is C's duty.
        lanes.wait(checked);
        assert!(bytes_at(at, bytes).iter().all(|&found| found == thread as u8));
        let pending = lanes.task(queue, &[checked], thread::yield_now);
        let flags = ur_exp_event_flags_t::default();
        let reusable = Any(ur_event_handle_t(lanes.new_event(flags).unwrap()));
        lanes.signal(*queue, reusable.0.0, &[filled.0.0]).unwrap();
        mine.events.extend([filled, checked, pending, reusable]);
        mine.memory.push(at);
        match dice.below(3) {
            0 => lanes.close(queue), // with a command pending
            _ => mine.queues.push(queue),
        }
        swap(&mut mine, common, lanes);
    }
}
static GONE: AtomicUsize = AtomicUsize::new(0);
unsafe extern "C" fn gone(_: *mut std::ffi::c_void) {
    GONE.fetch_add(1, SeqCst);
}
/// Sixteen threads make all kinds of things in a context of their own, which is gone when they are.
fn live_and_die() {
    let lanes = Lanes::new().another();
    let before = GONE.load(SeqCst);
    let code = call!(context.set_extended_deleter(lanes.context, Some(gone), null_mut()));
    assert_eq!(code, R::SUCCESS);
    let pools = [pool(lanes), pool(lanes), Any(ur_usm_pool_handle_t::NULL)];
    let common = Mutex::new(Made::default());
    sixteen(|thread| live(lanes, &pools, thread, &common));
    let Made { queues, events, memory } = common.into_inner().unwrap();
    assert!(!queues.is_empty() && !events.is_empty() && !memory.is_empty());
    assert!(pools[..2].iter().map(|&pool| used(lanes, pool)).sum::<usize>() > 0);
    memory.into_iter().for_each(|at| lanes.free(at as *mut _).unwrap());
    events.into_iter().for_each(|event| lanes.release(event));
    queues.into_iter().for_each(|queue| lanes.close(queue));
    for pool in &pools[..2] {
        // What was freed is used until the commands before have ended.
        eventually("nothing is used", || used(lanes, *pool) == 0);
        assert_eq!(call!(usm.pool_release(**pool)), R::SUCCESS);
    }
    assert_eq!(GONE.load(SeqCst), before);
    assert_eq!(call!(context.release(lanes.context)), R::SUCCESS);
    // Not one queue, event or pool holds on to its context: the last command may be ending.
    eventually("the context is gone", || GONE.load(SeqCst) == before + 1);
}
#[test]
fn whatever_sixteen_threads_make_and_release_is_gone_at_the_end() {
    alone(|| {
        live_and_die();
        // The process keeps one piece of memory for each size that it ever gave out, and no more: the
        // same sizes once more cost nothing.
        let kept = (descriptors(), memfds());
        for _ in 0..2 {
            live_and_die();
            eventually("it is as before", || (descriptors(), memfds()) == kept);
        }
    });
}
