//! What handles and opened objects survive: every step of either side, in every order.
use super::{
    SHARED, Shared,
    peer::{Peer, Place},
};
use crate::{
    bench::Bench,
    case::{Case, Verdict},
    same,
};

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for s in &SHARED {
        all.extend([
            s.case(
                s.open,
                "opened in another process",
                "another process opens what is shared, and closes it",
                opened,
            ),
            s.case(
                s.open,
                "any number of opens, each with its close",
                "a hundred opens are a hundred, each with its own close",
                many_opens,
            ),
            s.case(
                s.open,
                "any number of processes",
                "two importers have it open, and one's end is nothing to the other",
                two_importers,
            ),
            s.case(
                s.open,
                "opens in the exporting process",
                "the exporting process opens its own handle, and both ends are counted",
                at_home,
            ),
            s.case(
                s.open,
                "opens in a grandchild",
                "forked children of either side open the bytes they were handed",
                forked,
            ),
            s.case(
                s.put,
                "ends the handle",
                "after put the bytes open nothing, and what is open stays",
                after_put,
            ),
            s.case(
                s.put,
                "ends the handle once",
                "a handle is put once, and by the pointer that get gave",
                put_once,
            ),
            s.case(
                s.get,
                "handles are apart",
                "two handles of one object are two, and each ends alone",
                two_handles,
            ),
            s.case(s.get, "one size", "all handles of a kind have one size", one_size),
            s.case(
                s.open,
                "the end of the owner's object",
                "after the owner's release the bytes open nothing, and what is open stays",
                after_release,
            ),
            s.case(
                s.open,
                "the end of the exporter",
                "after the exporter ended the bytes open nothing, and what is open stays",
                after_exit,
            ),
            s.case(
                s.open,
                "a handle means one object for ever",
                "bytes of a released object do not open what is made next in its place",
                replayed,
            ),
            s.case(
                s.close,
                "every step in every order",
                "put, release and close come in any order",
                any_order,
            ),
        ]);
        if s.kind == "event" {
            all.push(s.case(
                s.open,
                "the end of the exporter",
                "an exporter ends while its threads enqueue, and after that the bytes open nothing",
                busy_exit,
            ));
        }
        if s.has_bytes() {
            all.push(s.case(
                s.open,
                "data seen both ways",
                "each side sees what the other wrote",
                both_ways,
            ));
            all.push(s.case(
                s.open,
                "two importers",
                "two importers see each other's bytes",
                each_others,
            ));
            all.push(s.case(
                s.close,
                "UR_RESULT_ERROR_INVALID_VALUE for what no open gave",
                "what is closed was opened, once",
                closed_once,
            ));
        }
    }
    all
}

fn opened(b: &Bench, s: &Shared) -> Verdict {
    let (_place, _exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    importer.must(&format!("close {} there", s.kind))?;
    importer.ends()
}
fn many_opens(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    for n in 0..100 {
        importer.must(&format!("open {} there{n} {ticket}", s.kind))?;
    }
    for n in (0..99).rev() {
        importer.must(&format!("close {} there{n}", s.kind))?;
    }
    works(s, &mut exporter, "it", &mut importer, "there99")?;
    importer.must(&format!("close {} there99", s.kind))?;
    Ok(())
}
/// Checks that two names in two processes are the same object.
pub fn works(s: &Shared, one: &mut Peer, of_one: &str, two: &mut Peer, of_two: &str) -> Verdict {
    if s.has_bytes() {
        one.must(&format!("set {of_one} 17"))?;
        two.must(&format!("is {of_two} 17"))?;
        two.must(&format!("set {of_two} 18"))?;
        one.must(&format!("is {of_one} 18"))?;
        return Ok(());
    }
    one.must("gate g held")?;
    one.must(&format!("signal g {of_one}"))?;
    two.says(&format!("status {of_two}"), "SUBMITTED")?;
    one.must("ungate held")?;
    two.must(&format!("wait {of_two}"))?;
    two.says(&format!("status {of_two}"), "COMPLETE")
}
fn both_ways(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    exporter.must("set it 3")?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    importer.must("is there 3")?;
    works(s, &mut exporter, "it", &mut importer, "there")
}
fn two_importers(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut one, ticket) = Place::shared(b, s.kind)?;
    let mut two = place.peer()?;
    for peer in [&mut one, &mut two] {
        peer.must(&format!("open {} there {ticket}", s.kind))?;
    }
    works(s, &mut exporter, "it", &mut one, "there")?;
    one.must(&format!("close {} there", s.kind))?;
    one.ends()?;
    works(s, &mut exporter, "it", &mut two, "there")
}
fn each_others(b: &Bench, s: &Shared) -> Verdict {
    let (place, _exporter, mut one, ticket) = Place::shared(b, s.kind)?;
    let mut two = place.peer()?;
    for peer in [&mut one, &mut two] {
        peer.must(&format!("open {} there {ticket}", s.kind))?;
    }
    works(s, &mut one, "there", &mut two, "there")
}
fn at_home(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::new(b)?;
    let mut peer = place.peer()?;
    let ticket = peer.shares(s.kind, "it")?;
    peer.must(&format!("open {} one {ticket}", s.kind))?;
    peer.must(&format!("open {} two {ticket}", s.kind))?;
    if s.has_bytes() {
        peer.must("set one 9")?;
        peer.must("is two 9")?;
        peer.must("is it 9")?;
    } else {
        peer.must("signal q one")?;
        peer.must("wait two it")?;
    }
    // The owner releases the object while it is open: the opens keep it until the last close.
    peer.must(&format!("put {} {ticket}", s.kind))?;
    peer.must("drop it")?;
    peer.must(&format!("close {} one", s.kind))?;
    match s.has_bytes() {
        true => peer.must("is two 9")?,
        false => peer.must("wait two")?,
    };
    peer.must(&format!("close {} two", s.kind))?;
    peer.ends()
}
fn forked(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    exporter.must(&format!("fork cycle {} {ticket} 3", s.kind))?;
    importer.must(&format!("fork cycle {} {ticket} 3", s.kind))?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    importer.must(&format!("fork cycle {} {ticket} 3", s.kind))?;
    works(s, &mut exporter, "it", &mut importer, "there")
}
fn after_put(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let mut cold = place.peer()?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    exporter.must(&format!("put {} {ticket}", s.kind))?;
    for peer in [&mut importer, &mut cold, &mut exporter] {
        peer.refused(&format!("open {} more {ticket}", s.kind), "INVALID_VALUE")?;
    }
    works(s, &mut exporter, "it", &mut importer, "there")
}
fn put_once(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::new(b)?;
    let mut peer = place.peer()?;
    let ticket = peer.shares(s.kind, "it")?;
    peer.refused(&format!("put-copy {} {ticket}", s.kind), "INVALID_VALUE")?;
    peer.must(&format!("cycle {} {ticket} 1", s.kind))?;
    peer.must(&format!("put {} {ticket}", s.kind))?;
    peer.refused(&format!("put {} {ticket}", s.kind), "INVALID_VALUE")?;
    Ok(())
}
fn two_handles(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, first) = Place::shared(b, s.kind)?;
    let second = exporter.must(&format!("get {} it", s.kind))?;
    crate::ensure!(first != second, "both handles have the same bytes");
    exporter.must(&format!("put {} {first}", s.kind))?;
    importer.refused(&format!("open {} there {first}", s.kind), "INVALID_VALUE")?;
    importer.must(&format!("open {} there {second}", s.kind))?;
    works(s, &mut exporter, "it", &mut importer, "there")
}
fn one_size(b: &Bench, s: &Shared) -> Verdict {
    let (place, _exporter, mut other, first) = Place::shared(b, s.kind)?;
    for name in ["one", "two", "three"] {
        same!(other.shares(s.kind, name)?.len(), first.len(), "the size of a handle");
    }
    drop(place);
    Ok(())
}
fn after_release(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let (mut third, mut cold) = (place.peer()?, place.peer()?);
    for peer in [&mut importer, &mut third] {
        peer.must(&format!("open {} there {ticket}", s.kind))?;
    }
    if s.has_bytes() {
        exporter.must("set it 5")?;
    }
    exporter.must("drop it")?;
    // A handle that was not put may keep its object alive; after the put and the release nothing can be
    // opened.
    let _allowed_to_fail = exporter.ask(&format!("put {} {ticket}", s.kind))?;
    for peer in [&mut importer, &mut cold] {
        peer.refused(&format!("open {} more {ticket}", s.kind), "INVALID_VALUE")?;
    }
    if s.has_bytes() {
        importer.must("is there 5")?;
    }
    works(s, &mut importer, "there", &mut third, "there")
}
fn after_exit(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let mut cold = place.peer()?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    if s.has_bytes() {
        exporter.must("set it 6")?;
    }
    exporter.ends()?;
    for peer in [&mut importer, &mut cold] {
        peer.refused(&format!("open {} more {ticket}", s.kind), "INVALID_VALUE")?;
    }
    match s.has_bytes() {
        true => importer.must("is there 6")?,
        false => importer.must("wait there")?,
    };
    importer.must(&format!("close {} there", s.kind))?;
    importer.ends()
}
fn busy_exit(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::new(b)?;
    let mut importer = place.peer()?;
    for _ in 0..4 {
        let mut exporter = place.peer()?;
        let ticket = exporter.shares(s.kind, "it")?;
        exporter.begin("exit-busy")?;
        exporter.ends()?;
        importer.refused(&format!("open {} there {ticket}", s.kind), "INVALID_VALUE")?;
    }
    Ok(())
}
fn replayed(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let mut cold = place.peer()?;
    importer.must(&format!("cycle {} {ticket} 2", s.kind))?;
    exporter.must(&format!("put {} {ticket}", s.kind))?;
    exporter.must("drop it")?;
    // A new object may reuse the address, the descriptor and the table entries of the old one.
    for round in 0..20 {
        let fresh = exporter.shares(s.kind, &format!("new{round}"))?;
        crate::ensure!(fresh != ticket, "a new object has the old one's bytes");
    }
    for peer in [&mut importer, &mut cold] {
        peer.refused(&format!("open {} there {ticket}", s.kind), "INVALID_VALUE")?;
    }
    Ok(())
}
fn any_order(b: &Bench, s: &Shared) -> Verdict {
    let steps = ["put", "drop", "close"];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let place = Place::new(b)?;
    let (mut exporter, mut importer) = (place.peer()?, place.peer()?);
    for order in orders {
        let ticket = exporter.shares(s.kind, "it")?;
        importer.must(&format!("open {} there {ticket}", s.kind))?;
        for step in order {
            match steps[step] {
                // The owner's release may have ended the handle already.
                "put" if order[0] == 1 || order == [2, 1, 0] => {
                    exporter.ask(&format!("put {} {ticket}", s.kind))?;
                }
                "put" => drop(exporter.must(&format!("put {} {ticket}", s.kind))?),
                "drop" => drop(exporter.must("drop it")?),
                _ => drop(importer.must(&format!("close {} there", s.kind))?),
            }
        }
        importer.refused(&format!("open {} there {ticket}", s.kind), "INVALID_VALUE")?;
    }
    exporter.ends()?;
    importer.ends()
}
fn closed_once(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    if s.kind == "memory" {
        exporter.refused("close memory it", "INVALID_VALUE")?;
        importer.must(&format!("open memory there {ticket}"))?;
        importer.must("alias again there 0")?;
        importer.must("close memory there")?;
        importer.refused("close memory again", "INVALID_VALUE")?;
        return Ok(());
    }
    let answer = exporter.ask("close physical it")?;
    crate::ensure!(answer.starts_with('!'), "what was not opened was closed: {answer}");
    exporter.must("set it 1")?;
    Ok(())
}
