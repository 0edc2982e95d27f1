//! Out-of-order queues overlap what is independent and order what is not; so do queues among
//! themselves, across contexts and kinds.
mod common;
use common::{Dice, eventually, lanes::*, ur::*};
use std::{
    ptr::{null, null_mut},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
    thread,
    time::Duration,
};

#[test]
fn role() {
    common::role();
}

/// Tasks on these queues, one each, that all wait for each other: whether they met.
fn meet(lanes: Lanes, queues: &[Queue], after: &[Event]) -> Vec<Event> {
    let meeting = Arc::new(Meeting::default());
    let (all, met) = (queues.len() as u64, Arc::new(AtomicU64::new(0)));
    let attend = |&queue: &Queue| {
        let (meeting, met) = (Arc::clone(&meeting), Arc::clone(&met));
        lanes.task(queue, after, move || {
            met.fetch_add(u64::from(meeting.attend(all)), SeqCst);
        })
    };
    let events: Vec<_> = queues.iter().map(attend).collect();
    events.iter().for_each(|&event| lanes.wait(event));
    assert_eq!(met.load(SeqCst), all, "each saw all the others while it ran");
    events
}
fn release(lanes: Lanes, events: impl IntoIterator<Item = Event>) {
    events.into_iter().for_each(|event| lanes.release(event));
}

#[test]
fn two_host_tasks_of_one_out_of_order_queue_wait_for_each_other() {
    in_time(|| {
        let lanes = Lanes::new();
        let queue = lanes.queue(OUT_OF_ORDER);
        for _ in 0..50 {
            release(lanes, meet(lanes, &[queue; 2], &[]));
        }
        // More at once than there are cores, whatever else this process waits for.
        release(lanes, meet(lanes, &[queue; 100], &[]));
        lanes.close(queue);
    });
}
#[test]
fn tasks_of_different_queues_wait_for_each_other_whatever_their_kind_and_context() {
    in_time(|| {
        let (lanes, other) = (Lanes::new(), Lanes::new().another());
        let queues =
            [(lanes, IN_ORDER), (lanes, OUT_OF_ORDER), (other, IN_ORDER), (other, OUT_OF_ORDER)]
                .map(|(of, flags)| of.queue(flags));
        for _ in 0..50 {
            release(lanes, meet(lanes, &queues, &[]));
        }
        queues.iter().for_each(|&queue| lanes.close(queue));
    });
}
#[test]
fn dependents_of_one_command_overlap_and_start_after_it() {
    in_time(|| {
        let lanes = Lanes::new();
        let queue = lanes.queue(OUT_OF_ORDER);
        for _ in 0..30 {
            let (open, early) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
            let gate = lanes.task(queue, &[], {
                let open = Arc::clone(&open);
                move || while !open.load(Acquire) {}
            });
            let meeting = Arc::new(Meeting::default());
            let events = [(); 3].map(|()| {
                let (open, early) = (Arc::clone(&open), Arc::clone(&early));
                let meeting = Arc::clone(&meeting);
                lanes.task(queue, &[gate], move || {
                    let wrong = !open.load(Acquire) || !meeting.attend(3);
                    early.fetch_add(u64::from(wrong), SeqCst);
                })
            });
            events.iter().for_each(|&event| assert!(!lanes.is_complete(event)));
            open.store(true, Release);
            events.iter().for_each(|&event| lanes.wait(event));
            assert_eq!(early.load(SeqCst), 0);
            release(lanes, events.into_iter().chain([gate]));
        }
        lanes.close(queue);
    });
}
#[test]
fn a_barrier_parts_what_overlaps_before_it_from_what_overlaps_behind() {
    in_time(|| {
        let lanes = Lanes::new();
        let queue = lanes.queue(OUT_OF_ORDER);
        for round in 0..30 {
            let (ended, wrong) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let mut events = vec![];
            for side in 0..3_u64 {
                let meeting = Arc::new(Meeting::default());
                for _ in 0..3 {
                    let (meeting, ended) = (Arc::clone(&meeting), Arc::clone(&ended));
                    let wrong = Arc::clone(&wrong);
                    events.push(lanes.task(queue, &[], move || {
                        let before = ended.load(SeqCst);
                        let met = meeting.attend(3);
                        let is_right = met && before / 3 == side;
                        wrong.fetch_add(u64::from(!is_right), SeqCst);
                        ended.fetch_add(1, SeqCst);
                    }));
                }
                // A wait without a list is for all before it too, though it holds nobody back.
                let mut after = vec![];
                if round % 2 == 1 {
                    after.push(lanes.join(queue, &[]));
                }
                let barrier = lanes.barrier(queue, &after);
                events.extend(after.into_iter().chain([barrier]));
            }
            lanes.finish(queue);
            assert_eq!((ended.load(SeqCst), wrong.load(SeqCst)), (9, 0));
            release(lanes, events);
        }
        lanes.close(queue);
    });
}
/// Each command notes when it began and ended, on a clock that only counts.
#[test]
fn random_graphs_run_in_an_order_that_their_edges_allow() {
    const NODES: usize = 60;
    in_time(|| {
        let (lanes, other) = (Lanes::new(), Lanes::new().another());
        let kinds = [
            (lanes, OUT_OF_ORDER),
            (lanes, IN_ORDER),
            (other, OUT_OF_ORDER),
            (lanes, OUT_OF_ORDER),
        ];
        let queues = kinds.map(|(of, flags)| of.queue(flags));
        for seed in 0..25 {
            let mut dice = Dice::new(seed);
            let ticks = Arc::new(Ticks::default());
            let times: Arc<[[AtomicU64; 2]]> = (0..NODES).map(|_| Default::default()).collect();
            let (mut events, mut edges): (Vec<Event>, Vec<(usize, usize)>) = (vec![], vec![]);
            for node in 0..NODES {
                let mut after = vec![];
                for _ in 0..dice.below(4).min(node as u64) {
                    let one = dice.below(node as u64) as usize;
                    edges.push((one, node));
                    after.push(events[one]); // perhaps twice, which is no fault
                }
                let (ticks, times) = (Arc::clone(&ticks), Arc::clone(&times));
                let queue = queues[dice.below(queues.len() as u64) as usize];
                events.push(lanes.task(queue, &after, move || {
                    times[node][0].store(ticks.next(), SeqCst);
                    if node % 7 == 0 {
                        std::thread::yield_now();
                    }
                    times[node][1].store(ticks.next(), SeqCst);
                }));
            }
            queues.iter().for_each(|&queue| lanes.finish(queue));
            for (one, next) in edges {
                let (end, start) = (times[one][1].load(SeqCst), times[next][0].load(SeqCst));
                assert!(end != 0 && end < start, "{one} before {next} (seed {seed})");
            }
            release(lanes, events);
        }
        queues.iter().for_each(|&queue| lanes.close(queue));
    });
}
#[test]
fn copies_and_fills_that_depend_on_each_other_are_done_in_turn_whatever_their_size() {
    const ROUNDS: usize = 12;
    in_time(|| {
        let lanes = Lanes::new();
        let queue = lanes.queue(OUT_OF_ORDER);
        for bytes in [8, 4096, 40 << 10, 9 << 20] {
            let places = [(); 3].map(|()| lanes.memory(bytes));
            let mut events = vec![lanes.fill(queue, &[], places[0], 1, bytes)];
            for round in 1..ROUNDS {
                // A large piece is copied from place to place; a small one follows in its wake.
                let last = *events.last().unwrap();
                let [from, to] = [places[(round - 1) % 3], places[round % 3]];
                let copied = lanes.copy(queue, &[last], to, from, bytes);
                let mark = lanes.fill(queue, &[copied], to + round % bytes, round as u8, 1);
                events.extend([copied, mark]);
            }
            lanes.wait(*events.last().unwrap());
            let last = bytes_at(places[(ROUNDS - 1) % 3], bytes);
            let mut expected = vec![1; bytes];
            (1..ROUNDS).for_each(|round| expected[round % bytes] = round as u8);
            assert!(last == expected, "{bytes} bytes");
            release(lanes, events);
            places.iter().for_each(|&at| lanes.free(at as *mut _).unwrap());
        }
        lanes.close(queue);
    });
}
#[test]
fn independent_copies_are_done_while_a_task_of_the_same_queue_waits_for_them() {
    const LARGE: usize = 4 << 20;
    in_time(|| {
        let lanes = Lanes::new();
        let queue = lanes.queue(OUT_OF_ORDER);
        let [from, to] = [(); 2].map(|()| lanes.memory(LARGE));
        let open = Arc::new(AtomicBool::new(false));
        let gate = lanes.task(queue, &[], {
            let open = Arc::clone(&open);
            move || {
                while !open.load(Acquire) {
                    std::thread::yield_now();
                }
            }
        });
        let filled = lanes.fill(queue, &[], from, 7, LARGE);
        let copied = lanes.copy(queue, &[filled], to, from, LARGE);
        let small = lanes.fill(queue, &[copied], to, 9, 16);
        lanes.wait(small);
        assert!(!lanes.is_complete(gate), "the queue went on past it");
        assert!(bytes_at(to, 16) == [9; 16] && bytes_at(to, LARGE)[16..].iter().all(|&b| b == 7));
        // What is behind a barrier waits for the gate, and nothing else does.
        let behind = lanes.barrier(queue, &[]);
        let last = lanes.fill(queue, &[], to, 1, 16);
        assert!(!lanes.is_complete(behind) && !lanes.is_complete(last));
        open.store(true, Release);
        lanes.finish(queue);
        eventually("all is complete", || {
            [gate, behind, last].iter().all(|&e| lanes.is_complete(e))
        });
        assert_eq!(bytes_at(to, 16), [1; 16]);
        release(lanes, [gate, filled, copied, small, behind, last]);
        [from, to].iter().for_each(|&at| lanes.free(at as *mut _).unwrap());
        lanes.close(queue);
    });
}
/// A queue that waits does not keep another from its work, nor a later command of an out-of-order one.
#[test]
fn who_waits_for_another_queue_holds_up_nobody_else() {
    in_time(|| {
        let (lanes, other) = (Lanes::new(), Lanes::new().another());
        let slow = other.queue(IN_ORDER);
        let open = Arc::new(AtomicBool::new(false));
        let gate = other.task(slow, &[], {
            let open = Arc::clone(&open);
            move || {
                while !open.load(Acquire) {
                    std::thread::yield_now();
                }
            }
        });
        let queues = BOTH.map(|flags| lanes.queue(flags));
        let waiting = queues.map(|queue| lanes.task(queue, &[gate], || ()));
        let third = lanes.queue(IN_ORDER);
        let free = [lanes.task(third, &[], || ()), lanes.task(queues[1], &[], || ())];
        free.iter().for_each(|&event| lanes.wait(event));
        assert!(waiting.iter().all(|&event| !lanes.is_complete(event)));
        open.store(true, Release);
        waiting.iter().for_each(|&event| lanes.wait(event));
        release(lanes, waiting.into_iter().chain(free).chain([gate]));
        [slow, third].into_iter().chain(queues).for_each(|queue| lanes.close(queue));
    });
}
/// A command that uses what the caller takes away would end the process.
#[test]
fn access_to_mapped_memory_is_taken_away_when_the_commands_before_are_over() {
    const BYTES: usize = 1 << 20; // a multiple of the granularity
    use ur_result_t as R;
    use ur_virtual_mem_access_flags_t as Access;
    in_time(|| {
        let lanes = Lanes::new();
        let context = lanes.context;
        let (mut memory, mut at) = (ur_physical_mem_handle_t::NULL, null_mut());
        let made = call!(physical_mem.create(context, lanes.device, BYTES, null(), &mut memory));
        assert_eq!(made, R::SUCCESS);
        assert_eq!(call!(virtual_mem.reserve(context, null(), BYTES, &mut at)), R::SUCCESS);
        let access = Access::READ_WRITE;
        let mapped = call!(virtual_mem.map(context, at, BYTES, memory, 0, access));
        assert_eq!(mapped, R::SUCCESS);
        for (flags, taken) in
            BOTH.into_iter().flat_map(|f| [(f, Access::NONE), (f, Access::READ_ONLY)])
        {
            let (queue, is_over) = (lanes.queue(flags), Arc::new(AtomicBool::new(false)));
            let theirs = Arc::clone(&is_over);
            let held = lanes.task(queue, &[], move || {
                thread::sleep(Duration::from_millis(50));
                theirs.store(true, SeqCst);
            });
            let filled = lanes.fill(queue, &[held], at.addr(), 7, BYTES);
            let set = |access| call!(virtual_mem.set_access(context, at, BYTES, access));
            assert_eq!(set(taken), R::SUCCESS);
            assert!(is_over.load(SeqCst), "the command waits for its turn");
            lanes.wait(filled);
            assert_eq!(set(Access::READ_WRITE), R::SUCCESS);
            release(lanes, [held, filled]);
            lanes.close(queue);
        }
        assert_eq!(call!(virtual_mem.unmap(context, at, BYTES)), R::SUCCESS);
        assert_eq!(call!(virtual_mem.free(context, at, BYTES)), R::SUCCESS);
        assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
    });
}
