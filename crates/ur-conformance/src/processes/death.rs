//! Deaths of the exporter or of an importer at each step: the other processes do not hang or crash, and see
//! no foreign objects.
use super::{
    SHARED, Shared,
    peer::{Death, Place, kill},
};
use crate::{
    bench::Bench,
    case::{Case, Stop, Verdict},
    cases, ensure, same,
};
use std::time::{Duration, Instant};

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for s in &SHARED {
        all.extend([
            s.case(
                s.open,
                "a dead exporter's handle opens nothing",
                "an exporter killed before anybody opened leaves a handle that is refused",
                before_open,
            ),
            s.case(
                s.open,
                "what is open outlives the exporter",
                "an exporter killed after the open leaves what is open",
                after_open,
            ),
            s.case(
                s.open,
                "what is open outlives the exporter",
                "an exporter killed after put leaves what is open",
                after_put,
            ),
            s.case(
                s.close,
                "an importer's death gives back what it had",
                "an importer killed with it open leaves the exporter as it was",
                importer,
            ),
            s.case(
                s.open,
                "an importer may die at any moment",
                "importers killed in the middle of opens leave the exporter as it was",
                importers_at_work,
            )
            .long(),
            s.case(
                s.open,
                "an exporter may die at any moment",
                "exporters killed in the middle of opens leave importers that are told",
                exporters_at_work,
            )
            .long(),
            s.case(
                s.open,
                "an exporter that is dead is dead, though its forked child lives",
                "a dead exporter's handle is refused within 100 ms, though its forked child lives",
                child_lives,
            ),
        ]);
    }
    all.extend(cases! { "ipc_event";
        "urEventWait", "UR_RESULT_ERROR_IN_EVENT_LIST_EXEC_STATUS: an event being waited on is in the error state; within 100 ms of the death of who owes it", "a host wait ends within 100 ms when the exporter that owes the signal is killed", owed_to_importer;
        "urEventWait", "UR_RESULT_ERROR_IN_EVENT_LIST_EXEC_STATUS within 100 ms if who owes a signal dies", "a host wait ends within 100 ms when the importer that owes the signal is killed", owed_to_exporter;
        "urQueueFinish", "commands queued behind a dead signal fail likewise", "a queue that waits for a dead signal fails in time, with all that is behind", queue_behind;
        "urEnqueueEventsWaitWithBarrierExt", "UR_RESULT_ERROR_IN_EVENT_LIST_EXEC_STATUS: commands behind a dead signal fail", "what is put behind a failure of which nobody was told yet is refused or fails", queue_behind_untold;
        "urEventGetInfo", "the status of a dead signal is ERROR", "a signal that was complete stays complete when its giver dies", complete_stays;
        "urEnqueueEventsWaitWithBarrierExt", "a signal after the exporter's death works or is refused", "what a dead exporter owed is signalled anew or refused, and nobody hangs", signalled_anew;
    });
    all
}
fn before_open(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    importer.must("idle")?;
    exporter.kill()?;
    importer.refused(&format!("open {} there {ticket}", s.kind), "INVALID_VALUE")?;
    Ok(())
}
fn still_there(s: &Shared, importer: &mut super::peer::Peer) -> Verdict {
    match s.has_bytes() {
        true => {
            importer.must("is there 6")?;
            importer.must("set there 7")?;
        }
        false => {
            importer.must("wait there")?;
        }
    }
    importer.must(&format!("close {} there", s.kind))?;
    importer.ends()
}
fn opened(b: &Bench, s: &Shared) -> Verdict<(Place, super::peer::Peer, super::peer::Peer, String)> {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    match s.has_bytes() {
        true => exporter.must("set it 6")?,
        false => exporter.must("signal q it")?,
    };
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    if !s.has_bytes() {
        importer.must("wait there")?;
    }
    Ok((place, exporter, importer, ticket))
}
fn after_open(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = opened(b, s)?;
    exporter.kill()?;
    importer.refused(&format!("open {} more {ticket}", s.kind), "INVALID_VALUE")?;
    still_there(s, &mut importer)
}
fn after_put(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = opened(b, s)?;
    exporter.must(&format!("put {} {ticket}", s.kind))?;
    exporter.kill()?;
    still_there(s, &mut importer)
}
fn importer(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = opened(b, s)?;
    importer.kill()?;
    let mut second = place.peer()?;
    second.must(&format!("open {} there {ticket}", s.kind))?;
    exporter.must(&format!("put {} {ticket}", s.kind))?;
    exporter.must("drop it")?;
    still_there(s, &mut second)?;
    exporter.ends()
}
fn importers_at_work(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut last, ticket) = Place::shared(b, s.kind)?;
    for round in 0..12_u64 {
        let mut importer = place.peer()?;
        importer.says(&format!("churn {} {ticket}", s.kind), "churning")?;
        // At a different moment each time.
        (0..round).try_for_each(|_| exporter.must("idle").map(drop))?;
        importer.kill()?;
    }
    if s.has_bytes() {
        exporter.must("set it 6")?;
    }
    last.must(&format!("open {} there {ticket}", s.kind))?;
    if !s.has_bytes() {
        // A dead importer may have left a pending signal; a later signal takes effect.
        last.must("signal q there")?;
    }
    still_there(s, &mut last)?;
    exporter.ends()
}
fn exporters_at_work(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::new(b)?;
    let mut importer = place.peer()?;
    for round in 0..8 {
        let mut exporter = place.peer()?;
        let ticket = exporter.shares(s.kind, "it")?;
        importer.says(&format!("churn {} {ticket}", s.kind), "churning")?;
        (0..round).try_for_each(|_| exporter.must("idle").map(drop))?;
        exporter.kill()?;
        // The loop ends with a refusal by one of the entries.
        let answer = importer.hear(super::peer::PATIENCE)?;
        ensure!(answer.starts_with(['!', '#']), "the importer goes on: {answer}");
        importer.must("idle")?;
    }
    Ok(())
}
fn child_lives(b: &Bench, s: &Shared) -> Verdict {
    promptly(|| child_lives_once(b, s))
}
fn child_lives_once(b: &Bench, s: &Shared) -> Verdict<(Duration, Death)> {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let mut cold = place.peer()?;
    importer.must(&format!("cycle {} {ticket} 1", s.kind))?;
    // This peer has not contacted the exporter yet, but has started its driver, which may take seconds.
    cold.must(&format!("make {} own", s.kind))?;
    let child = exporter.must("fork-hold")?;
    let death = exporter.kill()?;
    let mut longest = Duration::ZERO;
    let judged = [&mut importer, &mut cold].into_iter().try_for_each(|peer| {
        let began = Instant::now();
        peer.refused(&format!("open {} there {ticket}", s.kind), "INVALID_VALUE")?;
        longest = longest.max(began.elapsed());
        Ok(())
    });
    kill(&child);
    judged.map(|()| (longest, death))
}

pub const DEAD: &str = "!UR_RESULT_ERROR_IN_EVENT_LIST_EXEC_STATUS";
/// Repeats a round up to five times and succeeds if one takes less than 100 ms from the moment in which the
/// kernel reports the death, because the machine may be busy. A round returns its time and the death.
pub fn promptly(mut round: impl FnMut() -> Verdict<(Duration, Death)>) -> Verdict {
    let (mut best, mut deaths) = (Duration::MAX, Vec::new());
    for _ in 0..5 {
        let (took, death) = round()?;
        best = best.min(took);
        deaths.push(death.took);
        if best < Duration::from_millis(100) {
            return Ok(());
        }
    }
    Err(Stop::failed(format!(
        "after the death it took {best:?} at best, and has to be over after 100 ms (the deaths came {deaths:?} after \
         their kills)"
    )))
}
/// Checks that a peer's wait ended with the error for a dead exporter; returns how long after the death.
pub fn ended(peer: &mut super::peer::Peer, death: Death) -> Verdict<(Duration, Death)> {
    let answer = peer.hear(super::peer::PATIENCE)?;
    let took = death.told.elapsed();
    ensure!(answer.starts_with(DEAD), "the wait ended with {answer}");
    Ok((took, death))
}
fn owed_to_importer(b: &Bench) -> Verdict {
    promptly(|| owed_to_importer_once(b))
}
fn owed_to_importer_once(b: &Bench) -> Verdict<(Duration, Death)> {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, "event")?;
    importer.must(&format!("open event there {ticket}"))?;
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    importer.begin("wait there")?;
    let death = exporter.kill()?;
    let took = ended(&mut importer, death)?;
    importer.says("status there", "ERROR")?;
    Ok(took)
}
fn owed_to_exporter(b: &Bench) -> Verdict {
    promptly(|| owed_to_exporter_once(b))
}
fn owed_to_exporter_once(b: &Bench) -> Verdict<(Duration, Death)> {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, "event")?;
    importer.must(&format!("open event there {ticket}"))?;
    importer.must("gate q held")?;
    importer.must("signal q there")?;
    exporter.begin("wait it")?;
    let death = importer.kill()?;
    let took = ended(&mut exporter, death)?;
    exporter.says("status it", "ERROR")?;
    Ok(took)
}
fn queue_behind(b: &Bench) -> Verdict {
    promptly(|| queue_behind_once(b))
}
fn queue_behind_once(b: &Bench) -> Verdict<(Duration, Death)> {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, "event")?;
    importer.must(&format!("open event there {ticket}"))?;
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    importer.must("follow q first there")?;
    importer.must("follow q second first")?;
    importer.begin("finish q")?;
    let death = exporter.kill()?;
    let took = ended(&mut importer, death)?;
    for name in ["first", "second"] {
        importer.says(&format!("status {name}"), "ERROR")?;
        let answer = importer.ask(&format!("wait {name}"))?;
        ensure!(answer.starts_with(DEAD), "a wait for {name} ended with {answer}");
    }
    // The process itself can continue.
    importer.must("follow r other")?;
    importer.must("wait other")?;
    Ok(took)
}
fn queue_behind_untold(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, "event")?;
    importer.must(&format!("open event there {ticket}"))?;
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    importer.must("follow q first there")?;
    exporter.kill()?;
    let answer = importer.ask("wait there")?; // which says nothing of the queue
    ensure!(answer.starts_with(DEAD), "a wait for the signal ended with {answer}");
    let mut answer = importer.ask("follow q second")?;
    if answer == "ok" {
        answer = importer.ask("wait second")?;
    }
    ensure!(answer.starts_with(DEAD), "what was put behind it ended with {answer}");
    Ok(())
}
fn complete_stays(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, "event")?;
    importer.must(&format!("open event there {ticket}"))?;
    exporter.must("signal q it")?;
    exporter.must("wait it")?;
    exporter.kill()?;
    for _ in 0..3 {
        importer.must("wait there")?;
        importer.says("status there", "COMPLETE")?;
    }
    same!(importer.must("refs there")?, "1", "the count");
    Ok(())
}
fn signalled_anew(b: &Bench) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, "event")?;
    let mut third = place.peer()?;
    for peer in [&mut importer, &mut third] {
        peer.must(&format!("open event there {ticket}"))?;
    }
    exporter.must("gate q held")?;
    exporter.must("signal q it")?;
    exporter.kill()?;
    let answer = importer.ask("signal q there")?;
    if answer == "ok" {
        third.must("wait there")?;
        return third.says("status there", "COMPLETE");
    }
    ensure!(answer.starts_with('!'), "the signal ended with {answer}");
    let answer = third.ask("wait there")?;
    ensure!(answer.starts_with(DEAD), "the wait ended with {answer}");
    third.says("status there", "ERROR")
}
