//! Sixteen threads use the same queues: no command is lost, and none is out of order.
use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use ur_ipc::{
    Access,
    arena::{Captured, Progress},
};

const THREADS: u64 = 16;

#[test]
fn each_thread_sees_its_commands_done_in_order_on_a_queue_of_sixteen_threads() {
    let queue = in_order();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let last = Arc::new(AtomicU64::new(0));
                for i in 1..=200 {
                    let seen = Arc::clone(&last);
                    let work = call(move || assert_eq!(seen.swap(i, SeqCst), i - 1));
                    let one = queue.put(&[], work);
                    if i % 17 == 0 {
                        one.wait().unwrap();
                        assert!(last.load(SeqCst) >= i);
                    }
                    if i % 5 == 0 {
                        queue.send([], barrier()).unwrap();
                    }
                }
                queue.finish().unwrap();
                assert_eq!(last.load(SeqCst), 200);
            });
        }
    });
}

#[test]
fn chains_across_queues_of_both_kinds_keep_their_order() {
    let queues = [in_order(), out_of_order(), in_order(), out_of_order()];
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let queues = &queues;
            scope.spawn(move || {
                let at = Arc::new(AtomicU64::new(0));
                let mut last: Option<Arc<Completion>> = None;
                for i in 0..200 {
                    let at = Arc::clone(&at);
                    let work = call(move || assert_eq!(at.fetch_add(1, SeqCst), i));
                    let queue = &queues[((thread + i * 7) % 4) as usize];
                    last = Some(queue.put(last.as_ref().as_slice(), work));
                }
                last.unwrap().wait().unwrap();
                assert_eq!(at.load(SeqCst), 200);
            });
        }
    });
    queues.iter().for_each(|queue| queue.finish().unwrap());
}

#[test]
fn no_wake_up_is_lost_between_a_waiter_and_its_command() {
    for queue in both() {
        std::thread::scope(|scope| {
            for _ in 0..THREADS / 2 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        queue.put(&[], call(|| {})).wait().unwrap();
                    }
                });
                scope.spawn(|| (0..300).for_each(|_| queue.finish().unwrap()));
            }
        });
    }
}

#[test]
fn signals_of_one_event_from_many_threads_all_complete() {
    let queues = both();
    let slot = ur_ipc::arena::slot(Access::SameUser).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (queues, slot) = (&queues, &slot);
            scope.spawn(move || {
                for i in 0..100 {
                    let queue = &queues[((thread + i) % 2) as usize];
                    let awaited = match slot.capture().unwrap() {
                        Captured::PendingSignal(debt) => Some(Dependency::Shared(debt)),
                        Captured::Complete => None,
                    };
                    queue.send(awaited, wanted(call(|| {}))).unwrap();
                    queue.signal([], Signal::Shared(slot)).unwrap();
                    if let Captured::PendingSignal(debt) = slot.capture().unwrap() {
                        assert_eq!(debt.wait(None), Progress::Complete);
                    }
                }
            });
        }
    });
    queues.iter().for_each(|queue| queue.finish().unwrap());
    assert!(matches!(slot.capture().unwrap(), Captured::Complete));
}

#[test]
fn callbacks_raced_against_completion_are_made_exactly_once() {
    let queue = out_of_order();
    for _ in 0..300 {
        let go = Arc::new(AtomicBool::new(false));
        let made = Arc::new(AtomicU64::new(0));
        let work = {
            let go = Arc::clone(&go);
            call(move || eventually("it may go", || go.load(SeqCst)))
        };
        let one = queue.put(&[], work);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for at in [Status::Running, Status::Complete, Status::Submitted] {
                    let made = Arc::clone(&made);
                    one.call_at(at, move |_| add_one(&made));
                }
            });
            go.store(true, SeqCst);
        });
        one.wait().unwrap();
        eventually("all three are made", || made.load(SeqCst) == 3);
    }
}

#[test]
fn queues_come_and_go_with_work_pending() {
    let done = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for i in 0..20 {
                    let queue = Queue::new(CONTEXT, i % 2 == 0);
                    for _ in 0..5 {
                        let done = Arc::clone(&done);
                        queue.send([], Submission::new(call(move || add_one(&done)))).unwrap();
                    }
                }
            });
        }
    });
    eventually("all is done", || done.load(SeqCst) == THREADS * 100);
}
