//! Propagation and reporting of failures.
use super::*;
use ur_ipc::{
    Access,
    arena::{Captured, Progress, Slot},
};

fn debt(slot: &Slot) -> ur_ipc::arena::PendingSignal {
    match slot.capture().unwrap() {
        Captured::PendingSignal(debt) => debt,
        Captured::Complete => panic!("complete already"),
    }
}

#[test]
fn what_was_submitted_behind_a_failure_fails_with_it_and_later_commands_run() {
    let (queue, door) = (in_order(), Door::new());
    let before = queue.put(&[], door.work());
    let fails = queue.put(&[], failing());
    let behind: Vec<_> = (0..3).map(|_| queue.put(&[], call(|| panic!("it ran")))).collect();
    door.open();
    let why = fails.wait().unwrap_err();
    assert!(why.to_string().contains("made to fail"));
    behind.iter().for_each(|one| assert_eq!(one.wait(), Err(why.clone())));
    assert_eq!(before.wait(), Ok(()));
    let told = queue.finish().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::DependencyFailed);
    assert!(told.to_string().contains("made to fail"));
    queue.finish().expect("a failure is told once");
    queue.put(&[], call(|| {})).wait().unwrap();
}

#[test]
fn what_is_submitted_behind_a_failure_of_which_nobody_was_told_is_refused_once() {
    for queue in both() {
        queue.put(&[], failing()).wait().unwrap_err();
        let refused = queue.send([], wanted(call(|| panic!("it ran")))).map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::DependencyFailed);
        assert!(refused.to_string().contains("made to fail"));
        queue.send([], barrier()).unwrap().unwrap().wait().unwrap();
        queue.finish().expect("a failure is told once");
    }
}

#[test]
fn what_depends_on_a_failed_command_does_not_run() {
    for waiting in both() {
        let (owing, door) = (out_of_order(), Door::new());
        let opened = owing.put(&[], door.work());
        let fails = owing.put(&[&opened], failing());
        let unrelated = owing.put(&[&opened], call(|| {}));
        let depends = waiting.put(&[&fails], call(|| panic!("it ran")));
        let in_turn = waiting.put(&[&depends], call(|| panic!("it ran")));
        door.open();
        assert!(in_turn.wait().unwrap_err().to_string().contains("made to fail"));
        assert_eq!(depends.status(), Status::Failed);
        unrelated.wait().unwrap();
        assert!(waiting.finish().is_err());
        assert!(waiting.finish().is_ok());
        assert!(owing.finish().is_err());
    }
}

#[test]
fn a_barrier_behind_a_failure_fails_and_what_comes_after_it_is_submitted_runs() {
    let (queue, door) = (out_of_order(), Door::new());
    let opened = queue.put(&[], door.work());
    let fails = queue.put(&[&opened], failing());
    let barrier_behind = queue.send([], barrier()).unwrap().unwrap();
    let behind = queue.put(&[], call(|| panic!("it ran")));
    door.open();
    assert!(behind.wait().is_err());
    assert_eq!((fails.status(), barrier_behind.status()), (Status::Failed, Status::Failed));
    queue.finish().unwrap_err();
    queue.put(&[], call(|| {})).wait().unwrap();
    queue.send([], barrier()).unwrap().unwrap().wait().unwrap();
}

#[test]
fn a_dependency_that_has_failed_already_is_refused_and_nothing_is_submitted() {
    for queue in both() {
        let failed = out_of_order().put(&[], failing());
        failed.wait().unwrap_err();
        let slot = ur_ipc::arena::slot(Access::SameUser).unwrap();
        let refused = queue
            .signal([Dependency::Local(failed)], Signal::Shared(&slot))
            .map(|_| ())
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::DependencyFailed);
        assert!(matches!(slot.capture().unwrap(), Captured::Complete));
        queue.finish().unwrap();
    }
}

#[test]
fn a_command_that_panics_fails_and_its_queue_goes_on() {
    for queue in both() {
        let panics = queue.put(&[], call(|| panic!("on purpose")));
        assert!(panics.wait().unwrap_err().to_string().contains("panicked"));
        assert!(queue.finish().is_err());
        queue.put(&[], call(|| {})).wait().unwrap();
    }
}

#[test]
fn a_shared_signal_behind_a_failure_fails_and_the_next_one_is_good_again() {
    for queue in both() {
        let slot = ur_ipc::arena::slot(Access::SameUser).unwrap();
        let door = Door::new();
        let opened = queue.put(&[], door.work());
        let fails = queue.put(&[&opened], failing());
        queue.signal([], Signal::Shared(&slot)).unwrap();
        let lost = debt(&slot);
        // A command that waits for the lost signal fails too, in either kind of queue.
        let waiting: Vec<_> = both()
            .iter()
            .map(|other| {
                let dependency = Dependency::Shared(lost.clone());
                other.send([dependency], wanted(Work::Barrier)).unwrap().unwrap()
            })
            .collect();
        assert_eq!(lost.progress(), Progress::Pending);
        door.open();
        assert_eq!(lost.wait(None), Progress::Failed);
        waiting.iter().for_each(|one| assert!(one.wait().is_err()));
        assert!(fails.wait().is_err() && queue.finish().is_err());
        let again = Door::new();
        queue.put(&[], again.work());
        queue.signal([], Signal::Shared(&slot)).unwrap();
        let good = debt(&slot);
        assert_eq!(good.progress(), Progress::Pending);
        again.open();
        assert_eq!(good.wait(None), Progress::Complete);
        assert_eq!(lost.progress(), Progress::Failed);
        queue.finish().unwrap();
    }
}
