//! Process ends at each step: either side exits or is killed after every step of what two processes do with a
//! handle, and the other processes are unaffected.
use super::{
    SHARED, Shared,
    lifetime::works,
    peer::{Peer, Place},
};
use crate::{
    bench::Bench,
    case::{Case, Verdict},
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Exit,
    Kill,
}
const ENDS: [(End, &str); 2] = [(End::Exit, "exits"), (End::Kill, "is killed")];
impl End {
    fn of(self, peer: &mut Peer) -> Verdict {
        if self == Self::Exit { peer.ends() } else { peer.kill().map(drop) }
    }
}
/// The steps after which a process ends; each includes all earlier ones.
const EXPORTER: [&str; 5] = ["get", "the open", "data came through", "put", "the release"];
const IMPORTER: [&str; 6] =
    ["it was told", "the open", "data came through", "put", "the release", "the close"];

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for s in &SHARED {
        for (end, how) in ENDS {
            for (step, after) in EXPORTER.into_iter().enumerate() {
                let rule = "what is open outlives its exporter, and nothing else of it does";
                let name = format!("an exporter {how} after {after}");
                let judge = move |b: &Bench| exporter(b, s, step, end);
                all.push(Case::new(s.family, s.open, rule, name, judge));
            }
            for (step, after) in IMPORTER.into_iter().enumerate() {
                let rule = "an importer's end is nothing to anybody else";
                let name = format!("an importer {how} after {after}");
                let judge = move |b: &Bench| importer(b, s, step, end);
                all.push(Case::new(s.family, s.close, rule, name, judge));
            }
        }
    }
    all
}
fn open(s: &Shared, peer: &mut Peer, ticket: &str) -> Verdict {
    peer.must(&format!("open {} there {ticket}", s.kind)).map(drop)
}
/// Checks that the importer sees the exporter's write or signal.
fn used(s: &Shared, exporter: &mut Peer, importer: &mut Peer) -> Verdict {
    if s.has_bytes() {
        exporter.must("set it 6")?;
        importer.must("is there 6")?;
    } else {
        exporter.must("signal q it")?;
        exporter.must("finish q")?;
        importer.must("wait there")?;
    }
    Ok(())
}
fn exporter(b: &Bench, s: &Shared, step: usize, end: End) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let (mut third, mut cold) = (place.peer()?, place.peer()?);
    if step >= 1 {
        open(s, &mut importer, &ticket)?;
        open(s, &mut third, &ticket)?;
    }
    if step >= 2 {
        used(s, &mut exporter, &mut importer)?;
    }
    if step >= 3 {
        exporter.must(&format!("put {} {ticket}", s.kind))?;
    }
    if step >= 4 {
        exporter.must("drop it")?;
    }
    end.of(&mut exporter)?;
    for peer in [&mut importer, &mut cold] {
        peer.refused(&format!("open {} more {ticket}", s.kind), "INVALID_VALUE")?;
    }
    if step >= 1 {
        match (s.has_bytes(), step >= 2) {
            (true, true) => drop(third.must("is there 6")?),
            (true, false) => {}
            (false, _) => drop(third.must("wait there")?),
        }
        // Processes that have it open still share it.
        if s.has_bytes() {
            works(s, &mut importer, "there", &mut third, "there")?;
        }
        for peer in [&mut importer, &mut third] {
            peer.must(&format!("close {} there", s.kind))?;
        }
    }
    [&mut importer, &mut third, &mut cold].into_iter().try_for_each(Peer::ends)
}
fn importer(b: &Bench, s: &Shared, step: usize, end: End) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let mut third = place.peer()?;
    open(s, &mut third, &ticket)?;
    importer.must("idle")?;
    if step >= 1 {
        open(s, &mut importer, &ticket)?;
    }
    if step >= 2 {
        used(s, &mut exporter, &mut importer)?;
    }
    let put = format!("put {} {ticket}", s.kind);
    if step >= 3 {
        exporter.must(&put)?;
    }
    if step >= 4 {
        exporter.must("drop it")?;
    }
    if step >= 5 {
        importer.must(&format!("close {} there", s.kind))?;
    }
    end.of(&mut importer)?;
    let mut last = place.peer()?;
    if step < 3 {
        open(s, &mut last, &ticket)?;
        works(s, &mut exporter, "it", &mut last, "there")?;
        exporter.must(&put)?;
    }
    last.refused(&format!("open {} more {ticket}", s.kind), "INVALID_VALUE")?;
    if step < 4 {
        works(s, &mut exporter, "it", &mut third, "there")?;
        exporter.must("drop it")?;
    }
    match s.has_bytes() {
        true => drop(third.must("set there 8").and_then(|_| third.must("is there 8"))?),
        false => drop(third.must("wait there")?),
    }
    third.must(&format!("close {} there", s.kind))?;
    [&mut exporter, &mut third, &mut last].into_iter().try_for_each(Peer::ends)
}
