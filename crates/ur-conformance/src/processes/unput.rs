//! Handles that are never put: a put is optional, and a handle that is not put costs almost nothing once its
//! object is released.
use super::{
    SHARED, Shared,
    peer::{Peer, Place, eventually},
};
use crate::{
    bench::Bench,
    case::{Case, Verdict},
    ensure,
};

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for s in &SHARED {
        all.extend([
            s.case(
                s.put,
                "is optional",
                "put succeeds after the owner's release, once, also with an open outstanding",
                late,
            ),
            s.case(
                s.put,
                "is optional",
                "a handle put late ends no other that was made since",
                late_among_others,
            ),
            s.case(
                s.get,
                "a handle that is never put costs nothing for ever",
                "ten thousand objects got and released, never put, leave no descriptor and little memory",
                never,
            )
            .long(),
        ]);
    }
    let name = "four hundred times four mebibytes got and freed, never put, leave no memory";
    let rule = "a handle that is never put costs nothing for ever";
    all.extend(
        SHARED
            .iter()
            .filter(|s| s.kind == "memory")
            .map(|s| s.case(s.get, rule, name, large).long()),
    );
    all
}

fn late(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let other = exporter.must(&format!("get {} it", s.kind))?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    exporter.must("drop it")?;
    exporter.must(&format!("put {} {ticket}", s.kind))?;
    exporter.refused(&format!("put {} {ticket}", s.kind), "INVALID_VALUE")?;
    importer.must(&format!("close {} there", s.kind))?;
    exporter.must(&format!("put {} {other}", s.kind))?;
    exporter.refused(&format!("put {} {other}", s.kind), "INVALID_VALUE")?;
    exporter.ends()
}
fn late_among_others(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, first) = Place::shared(b, s.kind)?;
    exporter.must("drop it")?;
    // The new objects may reuse the first one's table entries; only its own put frees the first handle.
    let mut tickets = Vec::new();
    for n in 0..20 {
        tickets.push(exporter.shares(s.kind, &format!("new{n}"))?);
    }
    exporter.must(&format!("put {} {first}", s.kind))?;
    for ticket in &tickets {
        importer.must(&format!("cycle {} {ticket} 1", s.kind))?;
    }
    Ok(())
}
/// Returns the numbers of descriptors and of bytes of memory that the peer holds.
fn had(peer: &mut Peer) -> Verdict<(usize, u64)> {
    let number = |text: String| text.parse().unwrap_or(u64::MAX);
    let descriptors = number(peer.must("descriptors")?);
    Ok((usize::try_from(descriptors).unwrap_or(usize::MAX), number(peer.must("kept")?)))
}
fn returns_to(peer: &mut Peer, before: (usize, u64), more: u64) -> Verdict {
    let mut now = before;
    eventually("descriptors are those of before", || {
        had(peer).is_ok_and(|had| {
            now = had;
            had.0 <= before.0
        })
    })?;
    ensure!(now.1 <= before.1 + more, "{} bytes of memory became {}", before.1, now.1);
    Ok(())
}
fn never(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::new(b)?;
    let mut peer = place.peer()?;
    peer.must(&format!("unput {} 300", s.kind))?;
    peer.must(&format!("put-unput {}", s.kind))?;
    eventually("nothing is shared any more", || place.is_quiet())?;
    let before = had(&mut peer)?;
    for _ in 0..10 {
        peer.must_slowly(&format!("unput {} 1000", s.kind))?;
    }
    returns_to(&mut peer, before, 10_000 * 200)?;
    peer.must(&format!("put-unput {}", s.kind))?;
    peer.ends()
}
fn large(b: &Bench, _: &Shared) -> Verdict {
    let place = Place::new(b)?;
    let mut peer = place.peer()?;
    peer.must("unput-sized 2 4194304")?;
    let before = had(&mut peer)?;
    for _ in 0..8 {
        peer.must_slowly("unput-sized 50 4194304")?;
    }
    returns_to(&mut peer, before, 64 << 20)?;
    peer.must("put-unput memory")?;
    peer.ends()
}
