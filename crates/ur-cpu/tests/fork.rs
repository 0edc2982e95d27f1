//! What becomes of shared objects when a process that has them forks, or becomes another program. In a forked child,
//! entries on what it inherited are errors with a sentence; the parent never notices.
mod common;
use common::*;

#[test]
fn role() {
    common::role();
}
const WORDS: [&str; 3] = ["memory", "physical", "event"];

/// Both have an object of each kind, under its kind's name; these are the tickets.
fn shared() -> (Place, Peer, Peer, [String; 3]) {
    let (place, mut exporter, mut importer) = Place::pair();
    exporter.must("alloc memory 3000");
    exporter.must("fill memory 0 3000 8");
    exporter.must("physical physical 1048576");
    exporter.must("event event");
    let tickets = WORDS.map(|kind| exporter.must(&format!("get {kind} {kind}")));
    for (kind, ticket) in WORDS.iter().zip(&tickets) {
        importer.must(&format!("open {kind} {kind} {ticket}"));
    }
    (place, exporter, importer, tickets)
}
/// Everything still works, in both.
fn works(exporter: &mut Peer, importer: &mut Peer, tickets: &[String; 3]) {
    for (kind, ticket) in WORDS.iter().zip(tickets) {
        importer.must(&format!("cycle {kind} {ticket} 2"));
    }
    exporter.must("fill memory 0 3000 9");
    assert_eq!(importer.must("all memory 0 3000 9"), "true");
    for peer in [&mut *exporter, &mut *importer] {
        peer.must("map m physical 1048576");
    }
    exporter.must("write m 77 4455");
    assert_eq!(importer.must("read m 77 2"), "4455");
    for peer in [&mut *exporter, &mut *importer] {
        peer.must("unmap m");
    }
    exporter.must("gate q g");
    exporter.must("signal q event");
    importer.begin("wait event");
    exporter.must("ungate g");
    assert_eq!(importer.hear(), "ok");
    importer.must("signal q event");
    exporter.must("wait event");
    exporter.must("finish q");
}
/// What a child asks of inherited objects, and the codes that refuse it.
const REFUSED: [(&str, &str); 15] = [
    ("get memory memory", "INVALID_VALUE"),
    ("close memory memory", "INVALID_VALUE"),
    ("free memory", "INVALID_MEM_OBJECT"),
    ("usm memory", "INVALID_MEM_OBJECT"),
    ("read memory 0 16", "UNINITIALIZED"),
    ("map m physical 1048576", "UNINITIALIZED"),
    ("get physical physical", "UNINITIALIZED"),
    ("fresh map m physical 1048576", "INVALID_CONTEXT"),
    ("status event", "UNINITIALIZED"),
    ("wait event", "UNINITIALIZED"),
    ("signal q event", "UNINITIALIZED"),
    ("fresh signal q event", "UNINITIALIZED"),
    ("fresh follow q x event", "UNINITIALIZED"),
    ("follow q x", "UNINITIALIZED"),
    ("finish q", "UNINITIALIZED"),
];

#[test]
fn in_a_forked_child_of_either_side_entries_on_inherited_objects_are_errors() {
    let (_place, mut exporter, mut importer, tickets) = shared();
    for is_exporter in [true, false] {
        let child_of = if is_exporter { &mut exporter } else { &mut importer };
        for (line, code) in REFUSED {
            child_of.refused(&format!("fork {line}"), code);
        }
        if is_exporter {
            child_of.refused("fork get event event", "UNINITIALIZED");
            for (kind, ticket) in WORDS.iter().zip(&tickets) {
                child_of.refused(&format!("fork put {kind} {ticket}"), "INVALID_VALUE");
            }
        }
        // A release in the child is the child's: it ends nothing for the parent.
        child_of.must("fork release event");
        child_of.must("fork drop-physical physical");
        works(&mut exporter, &mut importer, &tickets);
    }
}
/// What a command's own event says in a child that was forked while the command was pending, also to queues that the child
/// makes; what had ended by then is over in both.
#[test]
fn what_was_under_way_at_a_fork_ends_in_the_parent_alone() {
    let place = Place::new();
    let mut parent = place.peer();
    parent.must("follow q done");
    parent.must("wait done");
    parent.must("gate q g");
    parent.must("follow q inorder");
    parent.must("follow ooo free inorder");
    for event in ["inorder", "free"] {
        for line in ["wait", "wait done", "status", "fresh follow q x", "fresh follow ooo x"] {
            let why = parent.refused(&format!("fork {line} {event}"), "UNINITIALIZED");
            assert!(why.contains("fork"), "{why}");
        }
    }
    parent.must("fork wait done");
    parent.must("fork fresh follow q x done");
    parent.must("fork then fresh~follow~q~x wait~x finish~q");
    parent.must("ungate g");
    parent.must("wait inorder free");
    parent.must("finish q");
}
#[test]
fn a_forked_child_opens_and_shares_in_its_own_name() {
    let (_place, mut exporter, mut importer, tickets) = shared();
    for is_exporter in [true, false] {
        let child_of = if is_exporter { &mut exporter } else { &mut importer };
        for (kind, ticket) in WORDS.iter().zip(&tickets) {
            child_of.must(&format!("fork open {kind} x {ticket}"));
            child_of.must(&format!("fork cycle {kind} {ticket} 3"));
        }
        let [memory, _, event] = &tickets;
        let read = child_of.must(&format!("fork then open~memory~x~{memory} fresh~read~x~0~4"));
        assert_eq!(read.len(), 8);
        let line = format!("fork then open~event~x~{event} fresh~signal~q~x");
        child_of.must(&line);
        child_of.must("fork then alloc~x~100 get~memory~x");
        works(&mut exporter, &mut importer, &tickets);
    }
}
/// The child has copies of all descriptors, and yet the death of the exporter is seen at once.
#[test]
fn an_exporter_that_dies_while_its_forked_child_lives_is_dead() {
    let (_place, mut exporter, mut importer, tickets) = shared();
    let child = exporter.must("fork-hold");
    works(&mut exporter, &mut importer, &tickets);
    exporter.must("gate q g");
    exporter.must("signal q event");
    importer.begin("wait event");
    exporter.kill();
    let answer = importer.hear();
    assert!(answer.starts_with("!UR_RESULT_ERROR_IN_EVENT_LIST_EXEC_STATUS "), "{answer}");
    for (kind, ticket) in WORDS.iter().zip(&tickets) {
        let why = importer.refused(&format!("open {kind} x {ticket}"), "INVALID_VALUE");
        assert!(why.contains("gone"), "{why}");
    }
    assert_eq!(importer.must("all memory 0 3000 9"), "true");
    kill(&child);
}
/// And so are the leases of an importer.
#[test]
fn an_importer_that_dies_while_its_forked_child_lives_holds_nothing() {
    let (place, mut exporter, mut importer, tickets) = shared();
    let mut probe = place.peer();
    works(&mut exporter, &mut importer, &tickets);
    let child = importer.must("fork-hold");
    let before = exporter.number("descriptors");
    importer.must("gate q g");
    importer.must("signal q event");
    exporter.begin("wait event");
    importer.kill();
    let answer = exporter.hear();
    assert!(answer.starts_with("!UR_RESULT_ERROR_IN_EVENT_LIST_EXEC_STATUS "), "{answer}");
    eventually("its connection is gone", || exporter.number("descriptors") < before);
    probe.must(&format!("open memory memory {}", tickets[0]));
    kill(&child);
}
#[test]
fn an_exporter_that_becomes_another_program_is_gone_for_its_importers() {
    let (_place, mut exporter, mut importer, tickets) = shared();
    exporter.must("gate q g");
    exporter.must("signal q event");
    importer.begin("wait event");
    exporter.tell("exec");
    let answer = importer.hear();
    assert!(answer.starts_with("!UR_RESULT_ERROR_IN_EVENT_LIST_EXEC_STATUS "), "{answer}");
    for (kind, ticket) in WORDS.iter().zip(&tickets) {
        importer.refused(&format!("open {kind} x {ticket}"), "INVALID_VALUE");
    }
    assert_eq!(importer.must("all memory 0 3000 8"), "true");
    // The same process shares anew.
    exporter.must("alloc memory 3000");
    let ticket = exporter.must("get memory memory");
    importer.must(&format!("open memory x {ticket}"));
}
#[test]
fn an_importer_that_becomes_another_program_opens_anew() {
    let (_place, mut exporter, mut importer, tickets) = shared();
    importer.must("gate q g");
    importer.must("signal q event");
    exporter.begin("wait event");
    importer.tell("exec");
    let answer = exporter.hear();
    assert!(answer.starts_with("!UR_RESULT_ERROR_IN_EVENT_LIST_EXEC_STATUS "), "{answer}");
    assert!(importer.number("descriptors") < 30);
    for (kind, ticket) in WORDS.iter().zip(&tickets) {
        importer.must(&format!("open {kind} {kind} {ticket}"));
    }
    works(&mut exporter, &mut importer, &tickets);
}
/// A fork in the midst of use, again and again: nothing that other threads hold stops the child.
#[test]
fn children_forked_while_the_adapters_threads_work_never_hang() {
    let (_place, mut exporter, mut importer, tickets) = shared();
    for round in 0..30 {
        exporter.must("signal q event");
        importer.must("signal ooo event");
        for (peer, name) in [(&mut exporter, "e"), (&mut importer, "i")] {
            peer.must(&format!("fork fresh alloc {name}{round} 100"));
            peer.must(&format!("fork cycle memory {} 1", tickets[0]));
        }
    }
    works(&mut exporter, &mut importer, &tickets);
}
