//! What stands behind another process's signal in queues of other kinds than the plain in-order one: out-of-order queues, recorded
//! commands, functions of the host's; and what becomes of it when a process ends, forks or has no thread left.
use super::{
    death::{DEAD, ended, promptly},
    peer::{Death, Peer, Place},
};
use crate::{
    bench::Bench,
    case::{Case, Stop, Verdict},
    cases, ensure, same,
};
use std::time::Duration;

pub fn cases() -> Vec<Case> {
    cases! { "ipc_event";
        "urQueueFinish", "commands queued behind a dead signal fail likewise", "an out-of-order queue that waits for a dead signal fails in time, with all that is behind", out_of_order;
        "urQueueFinish", "commands queued behind a dead signal fail likewise", "the failure of a queue behind a dead signal is one of its process", reason;
        "urEnqueueEventsWait", "without a list it waits for all before it", "a wait for all of an out-of-order queue fails where one before it is behind a dead signal", all_before;
        "urEnqueueHostTaskExp", "a command whose dependency has failed", "a function behind a dead signal is not reported as called", task;
        "urEnqueueCommandBufferExp", "executions of a command buffer run one after the other", "an execution follows one behind a dead signal, and does not fail with it", executions;
        "urQueueRelease", "commands that never run keep no process", "a process ends with commands behind a signal that does not come", pending;
        "urEnqueueEventsWaitWithBarrier", "commands that never run keep no process", "a process ends with barriers behind a signal that does not come", barred;
        "urEventRelease", "UR_RESULT_ERROR_UNINITIALIZED in a forked child, or as in its parent", "forked children ask, await and release what they inherited, and do not hang", inherited;
        "urQueueCreate", "a forked child ends as any process", "a forked child ends while commands of its parent wait", child_ends;
        "urEnqueueHostTaskExp", "a function is called or the call fails", "a function that no thread can be started for is called or refused", no_thread;
        "urEnqueueEventsWaitWithBarrierExt, urEnqueueHostTaskExp", "what was submitted runs without a wait", "signals and functions of out-of-order queues come though no thread of their process waits", unattended;
    }
}
/// An importer that has opened an event as `there`, which its exporter owes a signal.
fn owed(b: &Bench) -> Verdict<(Place, Peer, Peer)> {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, "event")?;
    importer.must(&format!("open event there {ticket}"))?;
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    Ok((place, exporter, importer))
}
fn fails(peer: &mut Peer, name: &str) -> Verdict {
    let answer = peer.ask(&format!("wait {name}"))?;
    ensure!(answer.starts_with(DEAD), "a wait for {name} ended with {answer}");
    peer.says(&format!("status {name}"), "ERROR")
}
fn out_of_order(b: &Bench) -> Verdict {
    promptly(|| out_of_order_once(b))
}
fn out_of_order_once(b: &Bench) -> Verdict<(Duration, Death)> {
    let (_place, mut exporter, mut importer) = owed(b)?;
    importer.must("follow ooo first there")?;
    importer.must("follow ooo second first")?;
    importer.must("follow ooo-other third second")?;
    importer.begin("finish ooo")?;
    let death = exporter.kill()?;
    let took = ended(&mut importer, death)?;
    for name in ["first", "second", "third"] {
        fails(&mut importer, name)?;
    }
    // The process goes on.
    importer.must("follow ooo-new other")?;
    importer.must("wait other")?;
    importer.must("finish ooo-new")?;
    importer.ends()?;
    Ok(took)
}
fn reason(b: &Bench) -> Verdict {
    for queue in ["r", "ooo"] {
        let (_place, mut exporter, mut importer) = owed(b)?;
        importer.must(&format!("follow {queue} first there"))?;
        exporter.kill()?;
        let answer = importer.ask(&format!("finish {queue}"))?;
        ensure!(answer.starts_with(DEAD), "the queue finished with {answer}");
        // Adapters of others give no reasons.
        let is_told = importer.ask("wait first")?.contains("exporter_gone");
        ensure!(!is_told || answer.contains("exporter_gone"), "the queue finished with {answer}");
    }
    Ok(())
}
fn all_before(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer) = owed(b)?;
    importer.must("follow ooo first there")?;
    importer.must("follow ooo all")?;
    exporter.kill()?;
    fails(&mut importer, "all")
}
fn task(b: &Bench) -> Verdict {
    for queue in ["r", "ooo"] {
        let (_place, mut exporter, mut importer) = owed(b)?;
        importer.must(&format!("call {queue} done there"))?;
        exporter.kill()?;
        fails(&mut importer, "done")?;
    }
    Ok(())
}
fn executions(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer) = owed(b)?;
    importer.must("record buffer")?;
    importer.must("run r first buffer there")?;
    importer.must("run s second buffer")?;
    importer.says("status second", "SUBMITTED")?;
    exporter.kill()?;
    fails(&mut importer, "first")?;
    importer.must("wait second")?;
    importer.says("status second", "COMPLETE")?;
    importer.must("finish s")?;
    Ok(())
}
fn barred(b: &Bench) -> Verdict {
    for queue in ["r", "ooo"] {
        let (_place, _exporter, mut importer) = owed(b)?;
        importer.must(&format!("fence {queue} first there"))?;
        importer.must(&format!("call {queue} second there"))?;
        importer.must(&format!("fence {queue} third first"))?;
        importer.must(&format!("follow {queue} fourth second there"))?;
        importer.must("reusable mine")?;
        importer.must(&format!("signal {queue} mine third"))?;
        importer.ends()?;
    }
    Ok(())
}
fn pending(b: &Bench) -> Verdict {
    for queue in ["r", "ooo"] {
        let (_place, _exporter, mut importer) = owed(b)?;
        importer.must(&format!("follow {queue} first there"))?;
        importer.must(&format!("follow {queue} second first"))?;
        importer.must(&format!("call {queue} third second"))?;
        importer.must(&format!("call {queue} fourth first third there"))?;
        importer.must(&format!("follow {queue} fifth first third"))?;
        importer.must("reusable mine")?;
        importer.must(&format!("signal {queue} mine first fifth"))?;
        importer.ends()?;
    }
    Ok(())
}
fn inherited(b: &Bench) -> Verdict {
    let place = Place::new(b)?;
    let mut peer = place.peer()?;
    peer.must("follow r first")?;
    peer.must("follow ooo second")?;
    for name in ["first", "second"] {
        let codes = peer.must_slowly(&format!("inherit 100 {name}"))?;
        let is_one =
            |code: &str| code == "UR_RESULT_SUCCESS" || code == "UR_RESULT_ERROR_UNINITIALIZED";
        ensure!(codes.split(' ').count() == 3 && codes.split(' ').all(is_one), "{name}: {codes}");
        peer.must(&format!("wait {name}"))?;
    }
    peer.ends()
}
fn child_ends(b: &Bench) -> Verdict {
    for queue in ["r", "ooo"] {
        let place = Place::new(b)?;
        let mut peer = place.peer()?;
        peer.must(&format!("gate {queue} held"))?;
        peer.must(&format!("fence {queue} first"))?;
        peer.must(&format!("call {queue} second first"))?;
        peer.must(&format!("fence {queue} third first second"))?;
        peer.must(&format!("follow {queue} fourth third"))?;
        peer.says("fork-exit", "ok")?;
        peer.must("ungate held")?;
        peer.must("wait third fourth")?;
        peer.ends()?;
    }
    Ok(())
}
fn no_thread(b: &Bench) -> Verdict {
    let place = Place::new(b)?;
    let mut peer = place.peer()?;
    peer.must("gate r held")?;
    peer.must("follow r first")?;
    peer.must("follow ooo second")?;
    peer.must("limit-addresses 0")?;
    let answer = peer.ask("call ooo done")?;
    if answer == "ok" {
        // The thread that may be the only one is free then.
        peer.must("ungate held")?;
        peer.must("wait done")?;
        same!(peer.must("calls")?, "1", "calls of the function");
        return Ok(());
    }
    if answer.starts_with('?') {
        return Err(Stop::skipped(answer));
    }
    ensure!(answer.starts_with('!'), "the call ended with {answer}");
    peer.must("unlimit-addresses")?;
    peer.must("call ooo done")?;
    peer.must("wait done")?;
    same!(peer.must("calls")?, "1", "calls of the function");
    Ok(())
}
fn unattended(b: &Bench) -> Verdict {
    const THREADS: usize = 4;
    const ROUNDS: usize = 200;
    let place = Place::new(b)?;
    let (mut exporter, mut importer) = (place.peer()?, place.peer()?);
    let names: Vec<_> = (0..THREADS).map(|index| format!("e{index}")).collect();
    for name in &names {
        let ticket = exporter.shares("event", name)?;
        importer.must(&format!("open event {name} {ticket}"))?;
    }
    let names = names.join(" ");
    for _ in 0..ROUNDS {
        exporter.must(&format!("swarm-signal {names}"))?;
        importer.must(&format!("wait {names}"))?;
    }
    same!(exporter.must("calls")?, (THREADS * ROUNDS).to_string(), "calls of the functions");
    exporter.ends()
}
