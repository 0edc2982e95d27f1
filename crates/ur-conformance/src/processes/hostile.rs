//! Invalid handle bytes of many kinds: each gives a documented error; none opens another object, crashes or
//! hangs.
use super::{
    SHARED, Shared,
    peer::{Dice, Place},
    stage::{kinds, unhex},
};
use crate::{
    bench::Bench,
    case::{Case, Stop, Verdict},
    ensure,
};

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for s in &SHARED {
        let size = match s.kind {
            "memory" => {
                "UR_RESULT_ERROR_INVALID_VALUE: the data size given differs from a memory IPC handle's"
            }
            "physical" => {
                "UR_RESULT_ERROR_INVALID_VALUE: the data size given differs from a physical-memory IPC handle's"
            }
            _ => {
                "UR_RESULT_ERROR_INVALID_VALUE: the data size given differs from an event IPC handle's"
            }
        };
        all.extend([
            s.case(s.open, size, "truncated and extended handles are INVALID_VALUE", sizes),
            s.case(
                s.open,
                "UR_RESULT_ERROR_INVALID_VALUE for forged bytes",
                "a handle with any one bit flipped is INVALID_VALUE",
                bits,
            )
            .long(),
            s.case(
                s.open,
                "UR_RESULT_ERROR_INVALID_VALUE for garbage",
                "random bytes of the right size are INVALID_VALUE",
                random,
            ),
            s.case(
                s.open,
                "UR_RESULT_ERROR_INVALID_VALUE for parts of two handles",
                "halves of two handles do not fit together",
                halves,
            ),
            s.case(
                s.open,
                "UR_RESULT_ERROR_INVALID_VALUE for a wrong kind",
                "a handle of another kind is INVALID_VALUE, cold, warm and at home",
                kinds_apart,
            ),
            s.case(
                s.put,
                "UR_RESULT_ERROR_INVALID_VALUE for a wrong kind",
                "a handle of another kind is not put",
                put_apart,
            ),
        ]);
        if !s.has_bytes() {
            continue;
        }
        for how in ["truncate", "grow", "punch", "seal", "freeze", "reopen"] {
            let rule = "an importer may write what is shared with it, and nothing else";
            let name = format!("an importer that tries to {how} what it was given harms nobody");
            all.push(Case::new(s.family, s.open, rule, name, move |b| tampered(b, s, how)));
        }
    }
    all
}
fn sizes(b: &Bench, s: &Shared) -> Verdict {
    let (_place, _exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let bytes = ticket.len() / 2;
    for length in (1..bytes).step_by(5).chain([bytes - 1]) {
        let cut = &ticket[..2 * length];
        importer.refused(&format!("open {} x {cut}", s.kind), "INVALID_VALUE")?;
    }
    for more in ["00", "0000000000000000", &ticket] {
        importer.refused(&format!("open {} x {ticket}{more}", s.kind), "INVALID_VALUE")?;
    }
    importer.must(&format!("cycle {} {ticket} 1", s.kind))?;
    Ok(())
}
fn bits(b: &Bench, s: &Shared) -> Verdict {
    let (_place, _exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    for is_warm in [false, true] {
        if is_warm {
            importer.must(&format!("open {} there {ticket}", s.kind))?;
        }
        let mut bytes = unhex(&ticket);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let line = format!("open {} x {}", s.kind, hex::encode(&bytes));
            let judged = importer.refused(&line, "INVALID_VALUE");
            judged.map_err(|stop| match stop {
                Stop::Failed(why) => Stop::Failed(format!("bit {bit}: {why}")),
                skipped => skipped,
            })?;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
    importer.must(&format!("cycle {} {ticket} 1", s.kind))?;
    Ok(())
}
fn random(b: &Bench, s: &Shared) -> Verdict {
    let (_place, _exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let mut dice = Dice(11);
    for round in 0..300 {
        let mut bytes = unhex(&ticket);
        // First all bytes are changed, then only those after a valid beginning.
        let from = if round < 100 { 0 } else { round % bytes.len() };
        bytes[from..].iter_mut().for_each(|byte| *byte = dice.below(256) as u8);
        if hex::encode(&bytes) != ticket {
            importer
                .refused(&format!("open {} x {}", s.kind, hex::encode(&bytes)), "INVALID_VALUE")?;
        }
    }
    importer.must(&format!("cycle {} {ticket} 1", s.kind))?;
    Ok(())
}
fn halves(b: &Bench, s: &Shared) -> Verdict {
    let (place, mut exporter, mut importer, one) = Place::shared(b, s.kind)?;
    let two = exporter.shares(s.kind, "second")?;
    let three = place.peer()?.shares(s.kind, "far")?;
    for other in [two, three] {
        for at in (2..one.len()).step_by(2) {
            let mixed = format!("{}{}", &one[..at], &other[at..]);
            if mixed != one && mixed != other {
                importer.refused(&format!("open {} x {mixed}", s.kind), "INVALID_VALUE")?;
            }
        }
    }
    Ok(())
}
fn kinds_apart(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    for is_warm in [false, true] {
        for other in kinds().into_iter().filter(|other| *other != s.kind) {
            for peer in [&mut importer, &mut exporter] {
                peer.refused(&format!("open {other} x {ticket}"), "INVALID_VALUE")?;
            }
        }
        if !is_warm {
            importer.must(&format!("open {} there {ticket}", s.kind))?;
        }
    }
    Ok(())
}
fn put_apart(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    for other in kinds().into_iter().filter(|other| *other != s.kind) {
        let answer = exporter.ask(&format!("put {other} {ticket}"))?;
        ensure!(answer.starts_with('!'), "put as a handle of {other}: {answer}");
    }
    importer.must(&format!("cycle {} {ticket} 1", s.kind))?;
    Ok(())
}
fn tampered(b: &Bench, s: &Shared, how: &str) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    let mut third = place.peer()?;
    exporter.must("set it 1")?;
    for peer in [&mut importer, &mut third] {
        peer.must(&format!("open {} there {ticket}", s.kind))?;
        peer.must("is there 1")?;
    }
    let said = importer.must(&format!("tamper {how}"))?;
    if said == "0 refused 0 done" {
        return Err(Stop::skipped("the importer has no memory file in its hands"));
    }
    if matches!(how, "truncate" | "grow" | "seal") {
        ensure!(said.ends_with(" 0 done"), "{how}: {said}");
    }
    // Whatever the attacker did, the memory is still accessible to the others, without SIGBUS.
    exporter.must("set it 7")?;
    third.must("is there 7")?;
    third.must("set there 8")?;
    exporter.must("is it 8")?;
    exporter.must("make memory next")?;
    exporter.must("set next 1")?;
    Ok(())
}
