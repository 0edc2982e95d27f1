//! Large numbers of handles, opens and rounds, under the default limit on descriptors.
use super::{SHARED, Shared, peer::Place};
use crate::{
    bench::Bench,
    case::{Case, Verdict},
    ensure,
};
use ur_sys::ur_device_info_t;

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for s in &SHARED {
        all.extend([
            s.case(
                s.get,
                "10,000 exports under a limit of 1,024 descriptors",
                "ten thousand handles of one object stand at once under 1,024 descriptors",
                handles,
            )
            .long(),
            s.case(
                s.open,
                "rounds leave nothing",
                "a thousand rounds of open and close leave no descriptor",
                rounds,
            )
            .long(),
            s.case(
                s.open,
                "importers at once",
                "two importers open and close while the exporter makes more",
                at_once,
            )
            .long(),
        ]);
    }
    let name = "ten thousand allocations are shared and open at once under 1,024 descriptors";
    let rule = "10,000 exports under a limit of 1,024 descriptors";
    all.push(Case::new("ipc_memory", "urIPCOpenMemHandleExp", rule, name, allocations).long());
    all
}
fn handles(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::new(b)?;
    let mut exporter = place.peer()?;
    exporter.must("limit 1024")?;
    let ticket = exporter.shares(s.kind, "it")?;
    exporter.must_slowly(&format!("flood {} it 10000", s.kind))?;
    exporter.must(&format!("cycle {} {ticket} 1", s.kind))?;
    exporter.ends()
}
fn allocations(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_MEMORY_SUPPORT_EXP)?;
    let place = Place::new(b)?;
    let (mut exporter, mut importer) = (place.peer()?, place.peer()?);
    for peer in [&mut exporter, &mut importer] {
        peer.must("limit 1024")?;
    }
    let tickets = exporter.must_slowly("many-get 10000 4096")?;
    importer.must_slowly(&format!("many-open {tickets}"))?;
    importer.must_slowly("many-close")?;
    importer.ends()
}
fn rounds(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let cycle = |n: u32| format!("cycle {} {ticket} {n}", s.kind);
    importer.must(&cycle(20))?;
    let before = [importer.must("descriptors")?, exporter.must("descriptors")?];
    importer.must_slowly(&cycle(1000))?;
    super::peer::eventually("what was opened is closed", || {
        let after = [importer.must("descriptors"), exporter.must("descriptors")];
        let count = |text: &str| text.parse::<usize>().unwrap_or(usize::MAX);
        after
            .iter()
            .zip(&before)
            .all(|(after, before)| after.as_ref().is_ok_and(|after| count(after) <= count(before)))
    })
}
fn at_once(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut one, ticket) = Place::shared(b, s.kind)?;
    let mut two = place.peer()?;
    for peer in [&mut one, &mut two] {
        peer.tell(&format!("cycle {} {ticket} 500", s.kind));
    }
    for n in 0..20 {
        let more = exporter.shares(s.kind, &format!("more{n}"))?;
        exporter.must(&format!("put {} {more}", s.kind))?;
        exporter.must(&format!("drop more{n}"))?;
    }
    for peer in [&mut one, &mut two] {
        let answer = peer.hear(super::peer::PATIENCE * 6)?;
        ensure!(answer == "ok", "the rounds ended with {answer}");
    }
    exporter.ends()
}
