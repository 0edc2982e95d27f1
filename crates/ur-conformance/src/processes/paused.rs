//! An importer that is stopped in the middle of an open for longer than an exporter waits: objects that it
//! had open before stay unchanged, whatever the owner does meanwhile.
use super::{SHARED, Shared, peer::Place};
use crate::{
    bench::Bench,
    case::{Case, Verdict},
};
use std::{thread, time::Duration};

/// Longer than an exporter keeps a grant that the importer does not acknowledge.
const PAUSE: Duration = Duration::from_millis(1600);
/// How many objects of the same size are made after the old one was released.
const NEW: usize = 50;

pub fn cases() -> Vec<Case> {
    let case = |s: &'static Shared| {
        s.case(
            s.open,
            "what is open stays what it is until it is closed",
            "an importer stopped in the middle of an open keeps what it had, and nobody else's",
            stopped,
        )
    };
    SHARED.iter().map(case).collect()
}
fn stopped(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let other = exporter.shares(s.kind, "other")?;
    if s.has_bytes() {
        exporter.must("set it 6")?;
        exporter.must("set other 7")?;
    }
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    // The exporter is stopped while the request is pending, and the importer before the answer arrives, so
    // that the importer does not acknowledge the answer.
    exporter.stop()?;
    importer.begin(&format!("open {} second {other}", s.kind))?;
    importer.stop()?;
    exporter.go_on()?;
    exporter.must("idle")?;
    // A deliberate sleep: the test is about the time that passes.
    thread::sleep(PAUSE);
    exporter.must(&format!("put {} {ticket}", s.kind))?;
    exporter.must("drop it")?;
    for n in 0..NEW {
        exporter.must(&format!("make {} new{n}", s.kind))?;
        if s.has_bytes() {
            exporter.must(&format!("set new{n} 9"))?;
        }
    }
    importer.go_on()?;
    crate::same!(importer.hear(super::peer::PATIENCE)?, "ok", "the open that was interrupted");
    if s.has_bytes() {
        importer.must("is there 6")?;
        importer.must("set there 8")?;
        importer.must("is second 7")?;
    } else {
        importer.must("gate q held")?;
        importer.must("signal q there")?;
        importer.says("status there", "SUBMITTED")?;
    }
    for n in 0..NEW {
        match s.has_bytes() {
            true => drop(exporter.must(&format!("is new{n} 9"))?),
            false => exporter.says(&format!("status new{n}"), "COMPLETE")?,
        }
    }
    if s.has_bytes() {
        return importer.must(&format!("close {} there", s.kind)).map(drop);
    }
    importer.must("ungate held")?;
    importer.must("wait there")?;
    Ok(())
}
