//! Reusable events, callbacks and times.
use super::*;
use std::sync::{
    atomic::{AtomicU32, Ordering::*},
    mpsc,
};
use ur_ipc::{
    Access,
    arena::{Arena, Captured, Link, Progress},
};

fn slot() -> Slot {
    ur_ipc::arena::slot(Access::SameUser).unwrap()
}
fn captured(slot: &Slot) -> Option<ur_ipc::arena::PendingSignal> {
    match slot.capture().unwrap() {
        Captured::PendingSignal(debt) => Some(debt),
        Captured::Complete => None,
    }
}

#[test]
fn a_later_signal_neither_changes_nor_releases_nor_delays_an_earlier_wait() {
    let event = Reusable::new();
    assert_eq!(event.current().status(), Status::Complete);
    let (early, late) = (in_order(), out_of_order());
    let (first_door, second_door) = (Door::new(), Door::new());
    early.put(&[], first_door.work());
    early.signal([], Signal::Local(&event, Profile::Off)).unwrap();
    let first = event.current();
    assert_eq!(first.status(), Status::Submitted);
    let waits = in_order().put(&[&first], call(|| {}));
    late.put(&[], second_door.work());
    late.signal([], Signal::Local(&event, Profile::Off)).unwrap();
    let second = event.current();
    assert!(!Arc::ptr_eq(&first, &second));
    first_door.open();
    waits.wait().unwrap();
    assert_eq!((first.status(), second.status()), (Status::Complete, Status::Submitted));
    second_door.open();
    second.wait().unwrap();
}

#[test]
fn a_later_shared_signal_leaves_earlier_waits_alone() {
    for queue in both() {
        let slot = slot();
        assert!(captured(&slot).is_none(), "a fresh event counts as complete");
        let (first_door, second_door) = (Door::new(), Door::new());
        queue.put(&[], first_door.work());
        queue.signal([], Signal::Shared(&slot)).unwrap();
        let first = captured(&slot).unwrap();
        queue.put(&[], second_door.work());
        queue.signal([], Signal::Shared(&slot)).unwrap();
        let second = captured(&slot).unwrap();
        let after_first = out_of_order()
            .send([Dependency::Shared(first.clone())], wanted(Work::Barrier))
            .unwrap()
            .unwrap();
        first_door.open();
        after_first.wait().unwrap();
        assert_eq!((first.progress(), second.progress()), (Progress::Complete, Progress::Pending));
        second_door.open();
        assert_eq!(second.wait(None), Progress::Complete);
    }
}

#[test]
fn a_signal_with_nothing_pending_is_complete_when_submit_returns() {
    for queue in both() {
        let (slot, event) = (slot(), Reusable::new());
        queue.signal([], Signal::Shared(&slot)).unwrap();
        queue.signal([], Signal::Local(&event, Profile::Off)).unwrap();
        assert!(captured(&slot).is_none());
        assert_eq!(event.current().status(), Status::Complete);
    }
}

#[test]
fn one_queue_can_wait_for_an_event_and_signal_it_a_thousand_times_behind_one_gate() {
    for [mine, yours] in [both(), [in_order(), in_order()], [out_of_order(), out_of_order()]] {
        let (ping, pong, door) = (slot(), slot(), Door::new());
        let gate = mine.put(&[], door.work());
        let turns = Arc::new(AtomicU32::new(0));
        for turn in 0..1000 {
            let (queue, from, to) = match turn % 2 {
                0 => (&mine, &pong, &ping),
                _ => (&yours, &ping, &pong),
            };
            let first = || Dependency::Local(Arc::clone(&gate));
            let awaited = [captured(from).map_or_else(first, Dependency::Shared)];
            let turns = Arc::clone(&turns);
            let step = call(move || assert_eq!(turns.fetch_add(1, SeqCst), turn));
            let step = queue.send(awaited, wanted(step)).unwrap().unwrap();
            queue.signal([Dependency::Local(step)], Signal::Shared(to)).unwrap();
        }
        assert_eq!(turns.load(SeqCst), 0);
        let last = captured(&pong).unwrap();
        door.open();
        assert_eq!(last.wait(None), Progress::Complete);
        assert_eq!(turns.load(SeqCst), 1000);
    }
}

#[test]
fn callbacks_are_made_once_each_when_their_status_is_reached() {
    for queue in both() {
        let (hold, door, running) = (Door::new(), Door::new(), Door::new());
        let first = queue.put(&[], hold.work());
        let works = {
            let (running, door) = (Arc::clone(&running), Arc::clone(&door));
            queue.put(
                &[&first],
                call(move || {
                    running.open();
                    door.pass();
                }),
            )
        };
        let (tell, told) = mpsc::channel();
        for at in [Status::Submitted, Status::Running, Status::Complete] {
            let tell = tell.clone();
            let this = std::thread::current().id();
            works.call_at(at, move |now| {
                tell.send((at, now, std::thread::current().id() == this)).unwrap();
            });
        }
        assert_eq!(told.try_recv(), Ok((Status::Submitted, Status::Submitted, true)));
        assert!(told.try_recv().is_err());
        hold.open();
        running.pass();
        assert_eq!(told.recv_timeout(DEADLINE), Ok((Status::Running, Status::Running, false)));
        assert!(told.try_recv().is_err());
        door.open();
        assert_eq!(told.recv_timeout(DEADLINE), Ok((Status::Complete, Status::Complete, false)));
        works.call_at(Status::Running, move |now| tell.send((Status::Running, now, true)).unwrap());
        assert_eq!(told.try_recv(), Ok((Status::Running, Status::Complete, true)));
    }
}

#[test]
fn a_callback_may_submit_to_its_own_queue_and_wait_for_another_one() {
    for queue in both() {
        let (queue, other) = (Arc::new(queue), in_order());
        let (tell, told) = mpsc::channel();
        let door = Door::new();
        let first = queue.put(&[], door.work());
        let again = Arc::clone(&queue);
        first.call_at(Status::Complete, move |_| {
            other.put(&[], call(|| {})).wait().unwrap();
            tell.send(again.put(&[], call(|| {}))).unwrap();
        });
        door.open();
        told.recv_timeout(DEADLINE).unwrap().wait().unwrap();
    }
}

#[test]
fn a_failed_command_makes_all_its_callbacks() {
    for queue in both() {
        let (door, (tell, told)) = (Door::new(), mpsc::channel());
        let first = queue.put(&[], door.work());
        let fails = queue.put(&[&first], failing());
        let behind = queue.put(&[&fails], call(|| {}));
        behind.call_at(Status::Running, move |now| tell.send(now).unwrap());
        door.open();
        assert_eq!(told.recv_timeout(DEADLINE), Ok(Status::Failed));
    }
}

#[test]
fn times_are_noted_where_they_were_asked_for() {
    for out_of_order in [false, true] {
        let queue = Queue::new(CONTEXT, out_of_order);
        let door = Door::new();
        let timed = |work| Submission { profile: Profile::Phases, ..wanted(work) };
        let slow = queue.send([], timed(door.work())).unwrap().unwrap();
        let marked = Reusable::new();
        queue.signal([], Signal::Local(&marked, Profile::End)).unwrap();
        assert_eq!(slow.times(), None);
        let early = slow.submitted_at().unwrap();
        door.open();
        queue.finish().unwrap();
        let slow = slow.times().unwrap();
        assert_eq!(slow.submitted, early, "known before the end");
        assert!(0 < slow.submitted && slow.submitted <= slow.started);
        assert!(slow.started <= slow.ended);
        let quick = Submission { order: Order::Both, ..timed(Work::Barrier) };
        let quick = queue.send([], quick).unwrap().unwrap().times().unwrap();
        assert!(slow.ended <= quick.submitted && quick.submitted <= quick.started);
        assert!(quick.started <= quick.ended);
        let one = marked.current().times().unwrap();
        assert!(slow.ended <= one.ended);
        assert_eq!(one.started, one.ended);
    }
    let unasked = in_order().send([], barrier()).unwrap().unwrap();
    assert_eq!(unasked.times(), None);
    let asked = Submission { profile: Profile::End, ..barrier() };
    let stamp = in_order().send([], asked).unwrap().unwrap().times().unwrap();
    assert!(stamp.submitted <= stamp.started && stamp.started == stamp.ended);
}

#[test]
fn a_command_is_timed_from_when_it_begins() {
    use ur_hal::host_clock;
    for out_of_order in [false, true] {
        let queue = Queue::new(CONTEXT, out_of_order);
        let (tell, told) = mpsc::channel();
        let works = wanted(call(move || {
            let inside = host_clock();
            tell.send(inside).unwrap();
            eventually("time goes by", || host_clock() > inside);
        }));
        let works = Submission { profile: Profile::Phases, ..works };
        let works = queue.send([], works).unwrap().unwrap();
        works.wait().unwrap();
        let (inside, times) = (told.recv().unwrap(), works.times().unwrap());
        assert!(times.started <= inside && inside < times.ended);
    }
}

/// Calls the exporter's arena directly, without a broker.
struct Direct(Arena, u32);
impl Link for Direct {
    fn take_counter(&self) -> ur_ipc::Result<(u16, u32)> {
        self.0.grant_counter(self.1)
    }
    fn release_counter(&self, counter: u16) {
        self.0.release_counter(self.1, counter).unwrap();
    }
    fn slot_closed(&self, _slot: u16, _generation: u32) {} // the exporter closed it before
    fn watch(&self, _counter: u16, _participant: u32) -> ur_ipc::Result<bool> {
        Ok(true)
    }
}
#[test]
fn a_signal_of_an_event_that_its_maker_let_go_of_is_refused() {
    use rustix::process::{PidfdFlags, getpid, pidfd_open};
    let event = slot();
    let exporter = event.arena().clone();
    let us = exporter.join(pidfd_open(getpid(), PidfdFlags::empty()).unwrap()).unwrap();
    let (memory, ledger) = exporter.descriptors().unwrap();
    let (instance, number) = (exporter.instance(), exporter.number());
    let link = Arc::new(Direct(exporter.clone(), us));
    let importer = Arena::joined(&memory, &ledger, instance, number, us, link).unwrap();
    exporter.slot_opened(us, event.index(), event.generation()).unwrap();
    let opened = importer.open_slot(event.index(), event.generation()).unwrap();
    for queue in both() {
        queue.signal([], Signal::Shared(&opened)).unwrap();
    }
    exporter.slot_closed(us, event.index(), event.generation()).unwrap();
    drop(event);
    for queue in both() {
        // On an idle queue, and behind a pending command.
        let refused = queue.signal([], Signal::Shared(&opened)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidEvent);
        let door = Door::new();
        queue.put(&[], door.work());
        let refused = queue.signal([], Signal::Shared(&opened)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidEvent);
        door.open();
        queue.finish().unwrap();
    }
}
