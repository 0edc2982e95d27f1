//! Plans: order, overlap, failures, and runs that never come to be.
use super::*;
use crate::engine::{Completion, Plan, Run};
use std::sync::{Barrier, Mutex};

fn run(call: impl Fn() -> Result<()> + Send + Sync + 'static) -> Work {
    Work::Run(Arc::new(call))
}
fn plan(parts: &[(Work, &[usize])]) -> Arc<Plan> {
    Arc::new(Plan::new(parts.iter().map(|(work, after)| (work, *after))))
}
fn hands() -> Arc<Queue> {
    Arc::new(Queue::new(7_001, true))
}

#[test]
fn a_step_is_done_after_those_that_it_follows() {
    let noted = Arc::new(Mutex::new(vec![]));
    let note = |number| {
        let noted = Arc::clone(&noted);
        run(move || {
            noted.lock().unwrap().push(number);
            Ok(())
        })
    };
    let diamond = plan(&[(note(0), &[]), (note(1), &[0]), (note(2), &[0]), (note(3), &[1, 2])]);
    for _ in 0..200 {
        Run::new(Arc::clone(&diamond), vec![], hands()).execute().unwrap();
        let order = std::mem::take(&mut *noted.lock().unwrap());
        assert!(order == [0, 1, 2, 3] || order == [0, 2, 1, 3], "{order:?}");
    }
}
#[test]
fn steps_that_follow_nothing_of_each_other_overlap() {
    let meeting = Arc::new(Barrier::new(4));
    let meet = || {
        let meeting = Arc::clone(&meeting);
        run(move || {
            meeting.wait();
            Ok(())
        })
    };
    let wide = plan(&[(meet(), &[]), (meet(), &[]), (meet(), &[]), (meet(), &[])]);
    for _ in 0..50 {
        Run::new(Arc::clone(&wide), vec![], hands()).execute().unwrap();
    }
}
#[test]
fn a_failed_step_spoils_those_behind_it_and_no_others() {
    let failing = run(|| Err(ur_adapter::error::ErrorCode::Unknown.into()));
    let parts = plan(&[
        (failing, &[]),
        (run(|| Ok(())), &[0]),
        (run(|| Ok(())), &[]),
        (Work::Barrier, &[1]),
    ]);
    let told: Vec<_> = (0..4).map(|step| (step, Completion::submitted(Profile::Off))).collect();
    Run::new(parts, told.clone(), hands()).execute().unwrap_err();
    let ends: Vec<_> = told.iter().map(|(_, one)| one.status()).collect();
    assert_eq!(ends, [Status::Failed, Status::Failed, Status::Complete, Status::Failed]);
}
#[test]
fn a_panic_in_a_step_is_a_failure() {
    let parts = plan(&[(run(|| panic!("on purpose")), &[]), (Work::Barrier, &[0])]);
    let why = Run::new(parts, vec![], hands()).execute().unwrap_err();
    assert!(why.to_string().contains("panicked"), "{why}");
}
#[test]
fn what_a_run_that_never_came_to_be_was_to_signal_has_failed() {
    let told = Completion::submitted(Profile::Off);
    let parts = plan(&[(Work::Barrier, &[])]);
    drop(Run::new(parts, vec![(0, Arc::clone(&told))], hands()));
    assert_eq!(told.status(), Status::Failed);
    told.wait().unwrap_err();
}
#[test]
fn an_empty_plan_is_done_at_once() {
    Run::new(plan(&[]), vec![], hands()).execute().unwrap();
}
