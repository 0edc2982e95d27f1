//! Children, grandchildren and threads: handles in processes that were forked or started by others, and in
//! several threads of one process.
use super::{
    SHARED, Shared,
    lifetime::works,
    peer::{Peer, Place, has_program},
};
use crate::{
    bench::Bench,
    case::{Case, Stop, Verdict},
};

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for s in &SHARED {
        all.extend([
            s.case(
                s.open,
                "opens in a grandchild",
                "a forked child's forked child opens, on either side",
                grandchild,
            ),
            s.case(
                s.open,
                "opens in a grandchild",
                "a program that a program started opens, and its parents know nothing of it",
                started,
            ),
            s.case(
                s.open,
                "opens after fork",
                "a forked child goes on as an importer of its own",
                child_imports,
            ),
            s.case(
                s.get,
                "shares after fork",
                "a forked child shares what it makes, as a process of its own",
                child_exports,
            ),
            s.case(
                s.open,
                "opens after fork",
                "what a child of the importer opens and leaves open is nothing to its parent",
                child_leaves,
            ),
            s.case(
                s.open,
                "a handle means one object for ever",
                "bytes of a released object do not open what has its very address now",
                same_address,
            ),
            s.case(
                s.open,
                "several threads open and close at once",
                "eight threads of an importer open, use and close one handle",
                swarm,
            ),
            s.case(
                s.open,
                "several threads open and close at once",
                "threads of two importers are at it while the exporter's threads share more",
                swarms,
            )
            .long(),
        ]);
    }
    all
}
fn grandchild(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    for peer in [&mut exporter, &mut importer] {
        peer.must(&format!("fork fork cycle {} {ticket} 3", s.kind))?;
    }
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    importer.must(&format!("fork fork cycle {} {ticket} 3", s.kind))?;
    works(s, &mut exporter, "it", &mut importer, "there")
}
fn started(b: &Bench, s: &Shared) -> Verdict {
    has_program("sh")?;
    let (place, mut exporter, _, ticket) = Place::shared(b, s.kind)?;
    // A shell starts a shell that starts the importer and waits for it.
    let script = "sh -c '\"$0\" \"$@\"; exit $?' \"$0\" \"$@\"; exit $?";
    let mut importer = place.peer_by(&["sh", "-c", script], |_| {})?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    works(s, &mut exporter, "it", &mut importer, "there")?;
    importer.must(&format!("close {} there", s.kind))?;
    importer.ends()
}
fn child_imports(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    importer.must(&format!("cycle {} {ticket} 2", s.kind))?;
    importer.must("fork-on")?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    works(s, &mut exporter, "it", &mut importer, "there")?;
    importer.must(&format!("close {} there", s.kind))?;
    exporter.ends()
}
fn child_exports(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, old) = Place::shared(b, s.kind)?;
    importer.must(&format!("cycle {} {old} 2", s.kind))?;
    exporter.must("fork-on")?;
    let ticket = exporter.shares(s.kind, "own")?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    works(s, &mut exporter, "own", &mut importer, "there")?;
    exporter.must(&format!("put {} {ticket}", s.kind))?;
    importer.refused(&format!("open {} more {ticket}", s.kind), "INVALID_VALUE")?;
    Ok(())
}
fn child_leaves(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    for n in 0..3 {
        importer.must(&format!("fork open {} child{n} {ticket}", s.kind))?;
    }
    works(s, &mut exporter, "it", &mut importer, "there")?;
    importer.must(&format!("close {} there", s.kind))?;
    importer.ends()
}
fn same_address(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let mut cold = place.peer()?;
    importer.must(&format!("cycle {} {ticket} 2", s.kind))?;
    let old = exporter.must("address it")?;
    exporter.must(&format!("put {} {ticket}", s.kind))?;
    exporter.must("drop it")?;
    for n in 0..500 {
        let name = format!("new{n}");
        let fresh = exporter.shares(s.kind, &name)?;
        if exporter.must(&format!("address {name}"))? != old {
            continue;
        }
        for peer in [&mut importer, &mut cold, &mut exporter] {
            peer.refused(&format!("open {} there {ticket}", s.kind), "INVALID_VALUE")?;
        }
        importer.must(&format!("open {} there {fresh}", s.kind))?;
        return works(s, &mut exporter, &name, &mut importer, "there");
    }
    Err(Stop::skipped("five hundred objects later the adapter has not used the address again"))
}
fn swarm(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    if s.has_bytes() {
        exporter.must("set it 4")?;
    }
    importer.must(&format!("swarm {} {ticket} 40 4", s.kind))?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    works(s, &mut exporter, "it", &mut importer, "there")?;
    importer.ends()
}
fn swarms(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut one, ticket) = Place::shared(b, s.kind)?;
    let mut two = place.peer()?;
    if s.has_bytes() {
        exporter.must("set it 4")?;
    }
    for peer in [&mut one, &mut two] {
        peer.tell(&format!("swarm {} {ticket} 100 4", s.kind));
    }
    exporter.must_slowly(&format!("swarm-get {} it 100", s.kind))?;
    let hear = |peer: &mut Peer| -> Verdict {
        crate::same!(peer.hear(super::peer::PATIENCE * 6)?, "ok", "what the threads did");
        Ok(())
    };
    [&mut one, &mut two].into_iter().try_for_each(hear)?;
    [&mut exporter, &mut one, &mut two].into_iter().try_for_each(Peer::ends)
}
