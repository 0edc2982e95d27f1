//! Shared events: one state, which is visible and changed through every handle in every process.
use super::peer::{PATIENCE, Peer, Place};
use crate::{
    bench::{Bench, share::Kind},
    case::{Case, Verdict},
    cases, ensure, same,
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "ipc_event";
        "urIPCOpenEventHandleExp", "a fresh event may be shared before its first signal", "a fresh event is complete in every process", fresh;
        "urIPCOpenEventHandleExp", "state is shared both ways", "either side signals, and the other sees submitted and complete", both_ways;
        "urIPCOpenEventHandleExp", "the latest signal is everyone's state", "a third party's signal is the state of all", latest;
        "urIPCOpenEventHandleExp", "wait lists of other processes", "a command of another process waits for the signal", waits;
        "urIPCOpenEventHandleExp", "a host wait of another process", "a host wait in another process ends when the signal comes", host_wait;
        "urIPCOpenEventHandleExp", "state is shared both ways", "what a process signals through one handle, it waits for through another", twice;
        "urIPCOpenEventHandleExp", "a dependency is captured at submission", "a later signal neither releases nor delays a waiter of another process", captured;
        "urIPCOpenEventHandleExp", "an opened event is an ordinary event", "an opened event has a count of one and is retained, released and shared no further", ordinary;
        "urIPCGetEventHandleExp", "UR_RESULT_ERROR_INVALID_EVENT: the event was not created as shareable between processes", "an event made without the flag is INVALID_EVENT", not_shareable;
        "urIPCGetEventHandleExp", "UR_RESULT_ERROR_INVALID_EVENT: the event was not created as shareable between processes", "an event of a command is INVALID_EVENT", of_a_command;
        "urIPCGetEventHandleExp", "UR_RESULT_ERROR_INVALID_EVENT: the event itself came from opening another process's handle", "an opened event is not shared on", no_re_export;
        "urIPCGetEventHandleExp", "UR_RESULT_ERROR_UNSUPPORTED_FEATURE: the event records profiling data or timestamps", "a timed event is UNSUPPORTED_FEATURE", timed;
        "urIPCOpenEventHandleExp", "wait lists of other processes", "sixty-four pairs of commands on two queues, each behind both before, wait for the signal of another process", pairs;
        "urEnqueueUSMMemcpy", "blocking: the call returns when the copy is done", "a copy that is waited for in its call comes behind another process's signal", copied_behind;
        "urEnqueueEventsWaitWithBarrierExt", "nobody need wait before signalling again or releasing", "an event is released by all while its signal is owed, and its waiters are served", released;
    };
    all.push(
        Case::new(
            "ipc_event",
            "urEnqueueEventsWaitWithBarrierExt",
            "a chain of waits and signals behind a gate",
            "a thousand waits and signals between two processes run in order, and not before the gate opens",
            chain,
        )
        .long(),
    );
    all
}
/// The event is named `it` in the exporter and `there` in the importer.
fn pair(b: &Bench) -> Verdict<(Place, Peer, Peer)> {
    let (place, exporter, mut importer, ticket) = Place::shared(b, "event")?;
    importer.must(&format!("open event there {ticket}"))?;
    Ok((place, exporter, importer))
}
fn fresh(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer) = pair(b)?;
    importer.says("status there", "COMPLETE")?;
    importer.must("wait there")?;
    importer.must("follow q after there")?;
    importer.must("wait after")?;
    exporter.says("status it", "COMPLETE")
}
fn copied_behind(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer) = pair(b)?;
    for queue in ["q", "ooo"] {
        exporter.must("gate q held")?;
        exporter.must("signal q it")?;
        importer.begin(&format!("copy {queue} there"))?;
        exporter.must("ungate held")?;
        let answer = importer.hear(PATIENCE)?;
        ensure!(answer == "ok", "the copy ended with {answer}");
    }
    Ok(())
}
fn both_ways(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer) = pair(b)?;
    for _ in 0..3 {
        signalled(&mut exporter, "it", &mut importer, "there")?;
        signalled(&mut importer, "there", &mut exporter, "it")?;
    }
    Ok(())
}
fn signalled(one: &mut Peer, of_one: &str, two: &mut Peer, of_two: &str) -> Verdict {
    one.must("gate q held")?;
    one.must(&format!("signal q {of_one}"))?;
    one.says(&format!("status {of_one}"), "SUBMITTED")?;
    two.says(&format!("status {of_two}"), "SUBMITTED")?;
    one.must("ungate held")?;
    two.must(&format!("wait {of_two}"))?;
    one.says(&format!("status {of_one}"), "COMPLETE")?;
    two.says(&format!("status {of_two}"), "COMPLETE")
}
fn twice(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, "event")?;
    exporter.must(&format!("open event again {ticket}"))?;
    importer.must(&format!("open event there {ticket}"))?;
    importer.must(&format!("open event again {ticket}"))?;
    for (peer, first) in [(&mut exporter, "it"), (&mut importer, "there")] {
        for [signals, waits] in [[first, "again"], ["again", first]] {
            peer.must("gate q held")?;
            peer.must(&format!("signal q {signals}"))?;
            peer.says(&format!("status {waits}"), "SUBMITTED")?;
            peer.must(&format!("follow r after {waits}"))?;
            let status = peer.must("status after")?;
            ensure!(status != "COMPLETE", "a command did not wait behind {waits}");
            peer.must("ungate held")?;
            peer.must(&format!("wait {waits}"))?;
            peer.must("wait after")?;
        }
    }
    Ok(())
}
fn latest(b: &Bench) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, "event")?;
    let mut third = place.peer()?;
    importer.must(&format!("open event there {ticket}"))?;
    third.must(&format!("open event far {ticket}"))?;
    importer.must("gate q held")?;
    importer.must("signal q there")?;
    third.must("signal q far")?;
    for (peer, name) in [(&mut exporter, "it"), (&mut importer, "there"), (&mut third, "far")] {
        peer.must(&format!("wait {name}"))?;
        peer.says(&format!("status {name}"), "COMPLETE")?;
    }
    importer.must("ungate held")?;
    importer.must("finish q")?;
    Ok(())
}
fn waits(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer) = pair(b)?;
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    importer.must("follow q after there")?;
    let status = importer.must("status after")?;
    ensure!(status != "COMPLETE", "the command did not wait");
    exporter.must("ungate held")?;
    importer.must("wait after")?;
    importer.says("status after", "COMPLETE")
}
/// The number of ways from the last commands to the signal doubles with each pair: who follows all of them does not come to an end.
fn pairs(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer) = pair(b)?;
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    for queue in ["q", "ooo"] {
        importer.must(&format!("follow {queue} {queue}0 there"))?;
    }
    for last in 0..64 {
        for queue in ["q", "ooo"] {
            importer.must(&format!("follow {queue} {queue}{} q{last} ooo{last}", last + 1))?;
        }
    }
    for event in ["q64", "ooo64"] {
        let status = importer.must(&format!("status {event}"))?;
        ensure!(status != "COMPLETE", "the last commands did not wait");
    }
    exporter.must("ungate held")?;
    importer.must("wait q64 ooo64")?;
    importer.must("finish q")?;
    importer.must("finish ooo")?;
    Ok(())
}
fn host_wait(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer) = pair(b)?;
    for _ in 0..5 {
        exporter.must("gate q held")?;
        exporter.must("signal q it")?;
        importer.begin("wait there")?;
        exporter.must("ungate held")?;
        same!(importer.hear(super::peer::PATIENCE)?, "ok", "the wait");
    }
    Ok(())
}
fn captured(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer) = pair(b)?;
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    importer.must("follow q early there")?;
    importer.must("signal r there")?;
    exporter.must("wait it")?; // waits for the later signal, which is complete
    let status = importer.must("status early")?;
    ensure!(status != "COMPLETE", "a later signal released who waits for an earlier one");
    exporter.must("ungate held")?;
    importer.must("wait early")?;
    Ok(())
}
fn ordinary(b: &Bench) -> Verdict {
    let (_place, _exporter, mut importer) = pair(b)?;
    importer.says("refs there", "1")?;
    importer.refused("get event there", "INVALID_EVENT")?;
    importer.must("signal q there")?;
    importer.must("wait there")?;
    importer.must("drop there")?;
    importer.ends()
}
fn refused(b: &Bench, event: *mut std::ffi::c_void, expected: ur_result_t) -> Verdict {
    let (code, given) = b.get_code(Kind::Event, event)?;
    b.was_refused("urIPCGetEventHandleExp", code, expected)?;
    same!(code, expected, "the code");
    ensure!(given.data.is_null(), "the result is written to");
    Ok(())
}
fn not_shareable(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_EVENT_SUPPORT_EXP)?;
    let event = b.new_event(ur_exp_event_flags_t::default())?;
    refused(b, event, ur_result_t::ERROR_INVALID_EVENT)
}
fn of_a_command(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_EVENT_SUPPORT_EXP)?;
    refused(b, b.object("Event")?, ur_result_t::ERROR_INVALID_EVENT)
}
fn no_re_export(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_EVENT_SUPPORT_EXP)?;
    let event = b.shareable(Kind::Event)?;
    let given = b.get(Kind::Event, event)?;
    let opened = b.open(Kind::Event, &given.bytes)?;
    refused(b, opened, ur_result_t::ERROR_INVALID_EVENT)
}
fn timed(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_EVENT_SUPPORT_EXP)?;
    b.needs(ur_device_info_t::PER_EVENT_PROFILING_SUPPORT_EXP)?;
    let event = b.new_event(ur_exp_event_flags_t::ENABLE_PROFILING)?;
    refused(b, event, ur_result_t::ERROR_UNSUPPORTED_FEATURE)
}
fn released(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer) = pair(b)?;
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    importer.must("follow q after there")?;
    importer.must("drop there")?;
    exporter.must("drop it")?;
    exporter.must("ungate held")?;
    importer.must("wait after")?;
    Ok(())
}
/// Two events: each side waits for the other side's event and signals its own, in turn, all behind one gate.
fn chain(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer, first) = Place::shared(b, "event")?;
    let second = importer.shares("event", "mine")?;
    importer.must(&format!("open event other {first}"))?;
    exporter.must("make event mine")?;
    exporter.must(&format!("open event other {second}"))?;
    // The exporter signals `it`; the importer signals its `mine`.
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    for _ in 0..500 {
        importer.must("signal q mine other")?;
        exporter.must("signal q it other")?;
    }
    importer.says("status other", "SUBMITTED")?;
    exporter.must("ungate held")?;
    exporter.must_slowly("wait it")?;
    importer.says("status mine", "COMPLETE")?;
    exporter.must("finish q")?;
    importer.must("finish q")?;
    Ok(())
}
