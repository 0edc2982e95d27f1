//! Hand-overs whose second side ends while it is being opened.
use super::*;
use crate::Device;
use std::{
    env,
    process::{self, Command, Stdio},
};

const ROLE: &str = "CAUSEWAY_TEST_CLAIMANT";
const PATIENCE: Duration = Duration::from_secs(100); // far more than it may take

fn context() -> Context {
    Context::new(&Device::first().unwrap()).unwrap()
}

/// The other process of the next test: it dies between its claim and its ticket.
#[test]
fn claims_and_dies() {
    let Ok(ticket) = env::var(ROLE) else { return };
    let claimed = HandOver::claimed(&context(), &ticket.parse().unwrap());
    process::exit(if claimed.is_ok() { 77 } else { 1 }); // without running destructors
}
#[test]
fn a_second_side_that_died_between_its_claim_and_its_ticket_is_gone() {
    let queue = Queue::new(&context()).unwrap();
    let mut first = HandOver::new(&queue).unwrap();
    let export = first.share().unwrap();
    let mut other = Command::new(env::current_exe().unwrap());
    other.args(["--exact", "hand_over::tests::claims_and_dies", "--nocapture"]);
    let ended = other.env(ROLE, export.ticket().to_string()).stdout(Stdio::null()).status();
    assert_eq!(ended.unwrap().code(), Some(77));
    first.give(&queue).unwrap();
    let error = first.take_timeout(&queue, PATIENCE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PeerGone, "{error}");
}
#[test]
fn a_second_side_that_failed_between_its_claim_and_its_ticket_is_withdrawn() {
    let context = context();
    let queue = Queue::new(&context).unwrap();
    let mut first = HandOver::new(&queue).unwrap();
    let export = first.share().unwrap();
    first.give(&queue).unwrap();
    let claimed = HandOver::claimed(&context, export.ticket()).unwrap();
    let short = Duration::from_millis(50);
    let early = first.take_timeout(&queue, short).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::TimedOut, "it may still leave its ticket");
    let late = HandOver::claimed(&context, export.ticket()).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Denied);
    drop(claimed);
    let error = first.take_timeout(&queue, PATIENCE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Withdrawn, "{error}");
}
