//! The order of commands.
use super::*;
use crate::engine::command::Pattern;
use std::sync::atomic::{AtomicU64, Ordering::*};
use ur_adapter::memory::UsmPtr;

#[test]
fn commands_of_an_in_order_queue_run_in_the_order_of_submission() {
    let (queue, seen) = (in_order(), Arc::new(Mutex::new(vec![])));
    for i in 0..500 {
        let seen = Arc::clone(&seen);
        queue.send([], Submission::new(call(move || seen.lock().unwrap().push(i)))).unwrap();
    }
    queue.finish().unwrap();
    assert_eq!(*seen.lock().unwrap(), (0..500).collect::<Vec<_>>());
}

#[test]
fn commands_of_an_out_of_order_queue_overlap() {
    let queue = out_of_order();
    let meeting = Arc::new(AtomicU64::new(0));
    for _ in 0..4 {
        let meeting = Arc::clone(&meeting);
        let work = call(move || {
            meeting.fetch_add(1, SeqCst);
            eventually("all four run at once", || meeting.load(SeqCst) == 4);
        });
        queue.send([], Submission::new(work)).unwrap();
    }
    queue.finish().unwrap();
    assert_eq!(meeting.load(SeqCst), 4);
}

#[test]
fn a_barrier_orders_what_came_before_against_what_comes_after() {
    let queue = out_of_order();
    let (door, ran) = (Door::new(), Arc::new(AtomicU64::new(0)));
    let before: Vec<_> = (0..3).map(|_| queue.put(&[], door.work())).collect();
    let between = queue.send([], barrier()).unwrap().unwrap();
    let after: Vec<_> = (0..3)
        .map(|_| {
            let ran = Arc::clone(&ran);
            queue.put(&[], call(move || add_one(&ran)))
        })
        .collect();
    eventually("the first three run", || before.iter().all(|c| c.status() == Status::Running));
    assert_eq!(between.status(), Status::Submitted);
    assert_eq!(ran.load(SeqCst), 0);
    assert!(after.iter().all(|c| c.status() == Status::Submitted));
    door.open();
    after.iter().for_each(|c| c.wait().unwrap());
    assert!(before.iter().all(|c| c.status() == Status::Complete));
    assert_eq!((between.status(), ran.load(SeqCst)), (Status::Complete, 3));
}

#[test]
fn a_marker_waits_for_all_earlier_commands_and_holds_up_none() {
    let (queue, door) = (out_of_order(), Door::new());
    let before = queue.put(&[], door.work());
    let marker = Submission { order: Order::AfterAll, ..wanted(Work::Barrier) };
    let marker = queue.send([], marker).unwrap().unwrap();
    queue.put(&[], call(|| {})).wait().unwrap();
    assert_eq!(marker.status(), Status::Submitted);
    door.open();
    marker.wait().unwrap();
    assert_eq!(before.status(), Status::Complete);
}

#[test]
fn a_quick_command_on_an_idle_queue_is_done_when_submit_returns() {
    for queue in both() {
        assert_eq!(queue.send([], barrier()).unwrap().unwrap().status(), Status::Complete);
        let (from, mut to) = ([7u8; 64], [0u8; 64]);
        let address = |p: *const u8| UsmPtr::new(p.cast()).unwrap();
        let (to_ptr, from_ptr) = (address(to.as_mut_ptr()), address(from.as_ptr()));
        queue.put(&[], Work::Copy { to: to_ptr.into(), from: from_ptr.into(), bytes: 64 });
        let pattern = Pattern::new(&[1, 2]);
        queue.put(&[], Work::Fill { to: to_ptr.into(), pattern, bytes: 4 });
        assert_eq!(std::hint::black_box(&to)[..6], [1, 2, 1, 2, 7, 7]);
        assert!(queue.is_idle());
    }
}

#[test]
fn a_quick_command_behind_a_pending_one_waits_its_turn() {
    for queue in both() {
        let door = Door::new();
        let first = queue.put(&[], door.work());
        let second = queue.send([], barrier()).unwrap().unwrap();
        assert_eq!(second.status(), Status::Submitted);
        assert!(!queue.is_idle());
        door.open();
        second.wait().unwrap();
        assert_eq!(first.status(), Status::Complete);
    }
}

#[test]
fn a_command_waits_for_all_its_dependencies_whatever_queues_they_are_in() {
    for (on, of) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (waiting, owing) = (&both()[on], [in_order(), out_of_order(), in_order()]);
        let doors: Vec<_> = owing.iter().map(|_| Door::new()).collect();
        let owed: Vec<_> =
            owing.iter().zip(&doors).map(|(queue, door)| queue.put(&[], door.work())).collect();
        let after = waiting.put(&[&owed[of], &owed[2], &owed[1 - of]], call(|| {}));
        doors[..2].iter().for_each(|door| door.open());
        owed[..2].iter().for_each(|one| one.wait().unwrap());
        assert_eq!(after.status(), Status::Submitted);
        doors[2].open();
        after.wait().unwrap();
    }
}

#[test]
fn a_dropped_queue_does_what_it_has() {
    for (context, out_of_order) in [(0x4000, false), (0x4001, true)] {
        let queue = Queue::new(context, out_of_order);
        let (door, done) = (Door::new(), Arc::new(AtomicU64::new(0)));
        let first = queue.put(&[], door.work());
        let rest: Vec<_> = (0..10)
            .map(|_| {
                let done = Arc::clone(&done);
                queue.put(&[], call(move || add_one(&done)))
            })
            .collect();
        let ticket = all_queues_sync_point(context);
        drop(queue);
        assert_eq!(first.outcome(), None);
        assert!(!ticket.has_passed());
        door.open();
        rest.iter().for_each(|one| one.wait().unwrap());
        ticket.wait();
        assert_eq!((done.load(SeqCst), first.status()), (10, Status::Complete));
    }
}

#[test]
fn a_ticket_is_for_what_was_submitted_and_for_no_more() {
    for (context, out_of_order) in [(0x5000, false), (0x5001, true)] {
        let queue = Queue::new(context, out_of_order);
        assert!(all_queues_sync_point(context).has_passed());
        let (first, second) = (Door::new(), Door::new());
        let one = queue.put(&[], first.work());
        let ticket = all_queues_sync_point(context);
        let two = queue.put(&[&one], second.work());
        assert!(!ticket.has_passed());
        first.open();
        ticket.wait();
        assert!(ticket.has_passed() && two.outcome().is_none());
        second.open();
        queue.finish().unwrap();
    }
}

#[test]
fn a_ticket_for_all_queues_is_for_one_context() {
    let (mine, other) = (0x2000, 0x3000);
    let queues = [Queue::new(mine, false), Queue::new(mine, true)];
    let doors = [Door::new(), Door::new()];
    queues.iter().zip(&doors).for_each(|(queue, door)| drop(queue.put(&[], door.work())));
    let (ours, theirs) = (all_queues_sync_point(mine), all_queues_sync_point(other));
    assert!(theirs.has_passed());
    drop(queues); // their pending commands are still executed
    assert!(!all_queues_sync_point(mine).has_passed());
    doors[0].open();
    assert!(!ours.has_passed());
    doors[1].open();
    ours.wait();
    assert!(ours.has_passed());
}

#[test]
fn a_queue_from_before_a_fork_refuses_its_child() {
    let mut queue = in_order();
    queue.fork = queue.fork.wrapping_add(1);
    let code = |error: Error| error.kind();
    assert_eq!(queue.send([], barrier()).map_err(code).unwrap_err(), ErrorKind::Uninitialized);
    assert_eq!(queue.finish().map_err(code), Err(ErrorKind::Uninitialized));
    assert_eq!(queue.flush().map_err(code), Err(ErrorKind::Uninitialized));
}
