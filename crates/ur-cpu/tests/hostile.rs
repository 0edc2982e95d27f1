//! Handle bytes that are wrong in every way: requirement M6, and what it says for all three kinds. Each is a documented
//! error with a sentence; none opens another object, crashes, hangs or leaks.
mod common;
use common::{ur::KINDS, *};
use siphasher::sip::SipHasher24;
use std::hash::Hasher;

#[test]
fn role() {
    common::role();
}
const WORDS: [&str; 3] = ["memory", "physical", "event"];
const MAPPED: &str = "1048576";

/// An exporter of one object of each kind, each under the name of its kind, and the tickets.
fn exporter(place: &Place) -> (Peer, [String; 3]) {
    let mut exporter = place.peer();
    exporter.must("alloc memory 5000");
    exporter.must("fill memory 0 5000 42");
    exporter.must(&format!("physical physical {MAPPED}"));
    exporter.must("event event");
    let tickets = WORDS.map(|kind| exporter.must(&format!("get {kind} {kind}")));
    (exporter, tickets)
}
/// Wrong bytes change nothing: not what the exporter has open, and not what the importer has.
struct Calm((usize, usize), (usize, usize));
impl Calm {
    fn now(exporter: &mut Peer, importer: &mut Peer) -> Self {
        let [a, b] =
            [exporter, importer].map(|peer| (peer.number("descriptors"), peer.number("memfds")));
        Self(a, b)
    }
    fn holds(&self, exporter: &mut Peer, importer: &mut Peer) {
        eventually("nothing was leaked", || {
            let now = Self::now(exporter, importer);
            now.0 <= self.0 && now.1 <= self.1
        });
    }
}
/// Opens and closes each once, so that what is made at first use is there.
fn warm_up(importer: &mut Peer, tickets: &[String; 3]) {
    for (kind, ticket) in WORDS.iter().zip(tickets) {
        importer.must(&format!("cycle {kind} {ticket} 2"));
    }
}

/// M6, P4, E8
#[test]
fn handles_of_every_wrong_size_are_refused_and_the_right_size_is_said() {
    let (place, mut importer) = (Place::new(), Place::new().peer());
    let (_exporter, tickets) = exporter(&place);
    for (kind, ticket) in WORDS.iter().zip(&tickets) {
        for length in (1..ticket.len() / 2).step_by(7).chain([ticket.len() / 2 - 1]) {
            let cut = &ticket[..2 * length];
            let why = importer.refused(&format!("open {kind} x {cut}"), "INVALID_VALUE");
            assert!(why.contains(&format!("{}", ticket.len() / 2)), "{why}");
        }
        for more in ["00", "0000000000000000", ticket] {
            importer.refused(&format!("open {kind} x {ticket}{more}"), "INVALID_VALUE");
        }
    }
}
/// M6, and its warm opens: with the objects open all the while, and without.
#[test]
fn every_flipped_bit_is_refused() {
    let place = Place::new();
    let (mut exporter, tickets) = exporter(&place);
    let mut importer = place.peer();
    warm_up(&mut importer, &tickets);
    for is_warm in [false, true] {
        for (kind, ticket) in WORDS.iter().zip(&tickets) {
            if is_warm {
                importer.must(&format!("open {kind} {kind} {ticket}"));
            }
            let calm = Calm::now(&mut exporter, &mut importer);
            let mut bytes = hex::decode(ticket).unwrap();
            for bit in 0..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                importer
                    .refused(&format!("open {kind} x {}", hex::encode(&bytes)), "INVALID_VALUE");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            calm.holds(&mut exporter, &mut importer);
        }
    }
}
/// M6
#[test]
fn random_bytes_are_refused() {
    let place = Place::new();
    let (_exporter, tickets) = exporter(&place);
    let (mut importer, mut dice) = (place.peer(), Dice::new(11));
    for kind in WORDS {
        for _ in 0..100 {
            let bytes: Vec<_> =
                hex::decode(&tickets[0]).unwrap().iter().map(|_| dice.below(256) as u8).collect();
            importer.refused(&format!("open {kind} x {}", hex::encode(&bytes)), "INVALID_VALUE");
        }
    }
}
/// M6: each kind given to each other kind's open, and the sentence says which it is.
#[test]
fn a_handle_of_another_kind_is_refused_by_name_cold_warm_and_at_home() {
    let place = Place::new();
    let (mut exporter, tickets) = exporter(&place);
    let mut importer = place.peer();
    let says = |kind: &str| match kind {
        "physical" => "physical memory",
        "event" => "event",
        _ => "memory",
    };
    for is_warm in [false, true] {
        for peer in [&mut importer, &mut exporter] {
            for (kind, ticket) in WORDS.iter().zip(&tickets) {
                for other in KINDS.map(|kind| kind.word()).iter().filter(|other| *other != kind) {
                    let why = peer.refused(&format!("open {other} x {ticket}"), "INVALID_VALUE");
                    assert!(
                        why.contains(&format!("is an {}", says(kind)))
                            || why.contains(&format!("is a {}", says(kind)))
                            || why.contains(&format!("is {}", says(kind))),
                        "{why}"
                    );
                    assert!(why.contains(&format!("{} was asked for", says(other))), "{why}");
                }
                if !is_warm {
                    peer.must(&format!("open {kind} warm-{kind} {ticket}"));
                }
            }
        }
    }
}
/// Where fields lie in a handle, and how long they are.
const FIELDS: [(&str, usize, usize); 24] = [
    ("version", 8, 2),
    ("kind", 10, 1),
    ("transport", 11, 1),
    ("backend", 12, 2),
    ("door", 14, 1),
    ("reserved", 15, 1),
    ("uid", 16, 4),
    ("pid", 20, 4),
    ("instance", 24, 16),
    ("boot", 40, 8),
    ("host", 48, 8),
    ("pid namespace", 56, 8),
    ("start time", 64, 8),
    ("directory", 72, 8),
    ("device", 80, 16),
    ("secret", 96, 16),
    ("generation", 112, 4),
    ("ledger", 116, 4),
    ("index", 120, 2),
    ("slot", 122, 2),
    ("offset", 128, 8),
    ("length", 136, 8),
    ("size", 144, 8),
    ("slot generation", 152, 4),
];
/// For messages, and for finding an exporter that one is not connected to: what they say decides nothing else.
const HINTS: [&str; 5] = ["uid", "pid", "pid namespace", "start time", "directory"];

/// A forger can do everything but know the exporter's key: the checksum is right.
fn forge(ticket: &str, at: usize, with: &[u8]) -> String {
    const KEY: &[u8; 16] = b"causeway ticket ";
    let mut bytes = hex::decode(ticket).unwrap();
    bytes[at..at + with.len()].copy_from_slice(with);
    let summed = bytes.len() - 8;
    let mut hasher = SipHasher24::new_with_key(KEY);
    hasher.write(&bytes[..summed]);
    bytes[summed..].copy_from_slice(&hasher.finish().to_le_bytes());
    hex::encode(&bytes)
}
/// M6: forged, with a foreign pid or another's name, with other ranges and other objects' places.
#[test]
fn a_forged_field_is_refused_or_means_nothing() {
    let place = Place::new();
    let (mut exporter, tickets) = exporter(&place);
    let mut importer = place.peer();
    warm_up(&mut importer, &tickets);
    assert_eq!(
        forge(&tickets[0], 0, &hex::decode(&tickets[0]).unwrap()[..8]),
        tickets[0],
        "forging works"
    );
    let calm = Calm::now(&mut exporter, &mut importer);
    let mut dice = Dice::new(12);
    for (kind, ticket) in WORDS.iter().zip(&tickets) {
        for is_warm in [false, true] {
            if is_warm {
                importer.must(&format!("open {kind} {kind} {ticket}"));
            }
            for (field, at, length) in FIELDS {
                let honest = hex::decode(ticket).unwrap()[at..at + length].to_vec();
                let mut attempts = vec![vec![0; length], vec![0xff; length]];
                for step in [1, 255] {
                    attempts.push(honest.clone());
                    attempts.last_mut().unwrap()[0] = honest[0].wrapping_add(step);
                }
                attempts.push(honest.iter().map(|_| dice.below(256) as u8).collect());
                for forged in attempts.iter().filter(|forged| **forged != honest) {
                    let forged = forge(ticket, at, forged);
                    let answer = importer.ask(&format!("open {kind} x {forged}"));
                    if answer == "ok" {
                        assert!(HINTS.contains(&field), "{kind}: a forged {field} was believed");
                        if *kind == "memory" {
                            assert_eq!(importer.must("all x 0 5000 42"), "true");
                        }
                        importer.must(&format!("close {kind} x"));
                    } else {
                        // A door that is not the exporter's own is barred by the kernel: P4 has a code for it.
                        let code = match (*kind, field) {
                            ("physical", "door") => "!UR_RESULT_ERROR_INVALID_ARGUMENT ",
                            _ => "!UR_RESULT_ERROR_INVALID_VALUE ",
                        };
                        let other = field == "door"
                            && answer.starts_with("!UR_RESULT_ERROR_INVALID_VALUE ");
                        assert!(answer.starts_with(code) || other, "{kind}, {field}: {answer}");
                    }
                }
            }
            if is_warm {
                importer.must(&format!("close {kind} {kind}"));
            }
        }
    }
    calm.holds(&mut exporter, &mut importer);
}
/// M6
#[test]
fn a_part_of_one_handle_does_not_fit_another() {
    let place = Place::new();
    let mut exporter = place.peer();
    let mut importer = place.peer();
    exporter.must("alloc one 100");
    exporter.must("alloc two 100");
    let (one, two) = (exporter.must("get memory one"), exporter.must("get memory two"));
    for (field, at, length) in FIELDS {
        let taken = hex::decode(&two).unwrap()[at..at + length].to_vec();
        if taken != hex::decode(&one).unwrap()[at..at + length] {
            let mixed = forge(&one, at, &taken);
            let answer = importer.ask(&format!("open memory x {mixed}"));
            assert!(answer.starts_with("!UR_RESULT_ERROR_INVALID_VALUE "), "{field}: {answer}");
        }
    }
    importer.must(&format!("open memory one {one}"));
}
/// M6
#[test]
fn a_handle_replayed_after_put_is_refused_cold_warm_and_at_home() {
    let place = Place::new();
    let (mut exporter, tickets) = exporter(&place);
    let (mut warm, mut cold) = (place.peer(), place.peer());
    for (kind, ticket) in WORDS.iter().zip(&tickets) {
        warm.must(&format!("open {kind} {kind} {ticket}"));
        exporter.must(&format!("put {kind} {ticket}"));
        for _ in 0..2 {
            for peer in [&mut warm, &mut cold, &mut exporter] {
                let why = peer.refused(&format!("open {kind} x {ticket}"), "INVALID_VALUE");
                assert!(why.contains("put") || why.contains("withdrawn"), "{kind}: {why}");
            }
        }
        // Its line may be another export's by now.
        for _ in 0..20 {
            exporter.must(&format!("get {kind} {kind}"));
        }
        warm.refused(&format!("open {kind} x {ticket}"), "INVALID_VALUE");
        cold.refused(&format!("open {kind} x {ticket}"), "INVALID_VALUE");
    }
}
/// M6
#[test]
fn a_handle_replayed_after_free_does_not_open_what_has_the_address_next() {
    for bytes in [200, 3 << 20] {
        let (_place, mut exporter, mut importer) = Place::pair();
        exporter.must(&format!("alloc a {bytes}"));
        let at = exporter.must("at a");
        let ticket = exporter.must("get memory a");
        exporter.must("free a");
        let mut again = 0;
        for n in 0..64 {
            exporter.must(&format!("alloc n{n} {bytes}"));
            again += usize::from(exporter.must(&format!("at n{n}")) == at);
            importer.refused(&format!("open memory x {ticket}"), "INVALID_VALUE");
            exporter.refused(&format!("open memory x {ticket}"), "INVALID_VALUE");
            if again > 0 {
                break;
            }
            exporter.must(&format!("free n{n}"));
        }
        assert!(again > 0 || bytes > 200, "the address never came again: nothing was tested");
        // And what is there now is shared under a name of its own.
        exporter.must(&format!("put memory {ticket}"));
        importer.refused(&format!("open memory x {ticket}"), "INVALID_VALUE");
    }
}
/// M6
#[test]
fn events_and_physical_memory_that_were_released_are_refused() {
    let place = Place::new();
    let (mut exporter, tickets) = exporter(&place);
    let mut importer = place.peer();
    exporter.must("release event");
    exporter.must("drop-physical physical");
    for (kind, ticket) in WORDS.iter().zip(&tickets).skip(1) {
        for peer in [&mut importer, &mut exporter] {
            let why = peer.refused(&format!("open {kind} x {ticket}"), "INVALID_VALUE");
            assert!(why.contains("freed") || why.contains("released"), "{kind}: {why}");
        }
    }
}
/// M6: the exporter is another process under the same name, in the same directory.
#[test]
fn a_handle_of_an_exporter_that_started_again_is_refused() {
    let place = Place::new();
    let (mut first, tickets) = exporter(&place);
    let (mut warm, mut cold) = (place.peer(), place.peer());
    for (kind, ticket) in WORDS.iter().zip(&tickets) {
        warm.must(&format!("open {kind} {kind} {ticket}"));
    }
    first.ends();
    let (mut second, others) = exporter(&place);
    for (kind, ticket) in WORDS.iter().zip(&tickets) {
        for peer in [&mut warm, &mut cold, &mut second] {
            let why = peer.refused(&format!("open {kind} x {ticket}"), "INVALID_VALUE");
            assert!(why.contains("gone"), "{kind}: {why}");
        }
    }
    for (kind, ticket) in WORDS.iter().zip(&others) {
        cold.must(&format!("open {kind} {kind} {ticket}"));
    }
}
/// Which machine and which boot a handle came from decides nothing: an exporter that is there answers for itself, and finds
/// that these are not the bytes that it gave.
#[test]
fn handles_that_name_another_host_or_boot_are_for_the_exporter_to_judge() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("alloc a 100");
    let ticket = exporter.must("get memory a");
    let earlier = forge(&ticket, 40, &[9; 8]);
    for forged in [forge(&earlier, 48, &[9; 8]), earlier] {
        let why = importer.refused(&format!("open memory x {forged}"), "INVALID_VALUE");
        assert!(why.contains("no such ticket"), "{why}");
    }
}
