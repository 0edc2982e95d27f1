//! Physical memory between processes: requirements P1 to P6.
mod common;
use common::*;
use std::time::{Duration, Instant};

#[test]
fn role() {
    common::role();
}
/// `UR_PHYSICAL_MEM_FLAG_ENABLE_IPC` as a number.
const SHAREABLE: u32 = 2;
/// A multiple of every granularity that there is.
const BYTES: usize = 1 << 20;

fn shared() -> (Place, Peer, Peer, String) {
    let (place, mut exporter, importer) = Place::pair();
    exporter.must(&format!("physical p {BYTES}"));
    let ticket = exporter.must("get physical p");
    (place, exporter, importer, ticket)
}

/// P1
#[test]
fn physical_memory_answers_what_it_is() {
    let (_place, mut exporter, mut importer, ticket) = shared();
    exporter.must(&format!("physical plain {BYTES} not-shareable"));
    assert_eq!(exporter.must("facts p"), format!("{BYTES} {SHAREABLE} 1 true"));
    assert_eq!(exporter.must("facts plain"), format!("{BYTES} 0 1 true"));
    importer.must(&format!("open physical p {ticket}"));
    assert_eq!(
        importer.must("facts p"),
        format!("{BYTES} {SHAREABLE} 1 true"),
        "opened is shareable"
    );
}
/// P1
#[test]
fn each_open_is_a_new_handle_also_in_the_exporting_process() {
    let (_place, mut exporter, mut importer, ticket) = shared();
    for peer in [&mut exporter, &mut importer] {
        peer.must(&format!("open physical one {ticket}"));
        peer.must(&format!("open physical two {ticket}"));
        assert_ne!(peer.must("at one"), peer.must("at two"));
        peer.must("close physical one");
        assert_eq!(peer.must("facts two"), format!("{BYTES} {SHAREABLE} 1 true"));
        peer.must("close physical two");
    }
    exporter.refused("close physical p", "INVALID_VALUE");
    assert_eq!(
        exporter.must("facts p"),
        format!("{BYTES} {SHAREABLE} 1 true"),
        "it was not closed"
    );
}
/// P1
#[test]
fn what_was_opened_is_shared_again_and_a_third_process_sees_the_same_bytes() {
    let (place, mut exporter, mut importer, ticket) = shared();
    let mut third = place.peer();
    importer.must(&format!("open physical p {ticket}"));
    let again = importer.must("get physical p");
    assert_ne!(again, ticket);
    third.must(&format!("open physical p {again}"));
    for peer in [&mut exporter, &mut importer, &mut third] {
        peer.must(&format!("map m p {BYTES}"));
    }
    exporter.must("write m 4096 0badcafe");
    assert_eq!(third.must("read m 4096 4"), "0badcafe");
    third.must("write m 9000 1234");
    assert_eq!(exporter.must("read m 9000 2"), "1234");
}
/// P2
#[test]
fn put_ends_the_handle_and_what_is_open_stays() {
    let (_place, mut exporter, mut importer, ticket) = shared();
    importer.must(&format!("open physical p {ticket}"));
    importer.must(&format!("map m p {BYTES}"));
    exporter.refused(&format!("put memory {ticket}"), "INVALID_VALUE");
    exporter.must(&format!("put physical {ticket}"));
    exporter.refused(&format!("put physical {ticket}"), "INVALID_VALUE");
    importer.refused(&format!("open physical again {ticket}"), "INVALID_VALUE");
    importer.must("write m 0 77");
    exporter.must(&format!("map m p {BYTES}"));
    assert_eq!(exporter.must("read m 0 1"), "77");
}
/// P3: a process of the same user that may not be traced is still served, for it hands the descriptor out itself.
#[test]
fn it_works_where_ptrace_is_denied() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("untraceable");
    importer.must("untraceable");
    exporter.must(&format!("physical p {BYTES}"));
    exporter.must(&format!("map m p {BYTES}"));
    exporter.must("write m 100 abcd");
    let ticket = exporter.must("get physical p");
    importer.must(&format!("open physical p {ticket}"));
    importer.must(&format!("map m p {BYTES}"));
    assert_eq!(importer.must("read m 100 2"), "abcd");
}
/// P3, the second way: who cannot be asked is not waited for, and the kernel hands the descriptor out if it may.
#[test]
fn a_stopped_exporter_is_opened_past_it_or_refused_in_time_but_never_waited_for() {
    for may_be_traced in [true, false] {
        let (_place, mut exporter, mut importer, ticket) = shared();
        exporter.must(&format!("map m p {BYTES}"));
        exporter.must("write m 0 77");
        if !may_be_traced {
            // Root may trace whom it likes; another user would be kept out by this.
            exporter.must("untraceable");
        }
        exporter.stop(true);
        let asked = Instant::now();
        let answer = importer.ask(&format!("open physical p {ticket}"));
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        if answer == "ok" {
            importer.must(&format!("map m p {BYTES}"));
            assert_eq!(importer.must("read m 0 1"), "77");
            importer.must("unmap m");
            importer.must("close physical p");
        } else {
            let refused = answer.starts_with("!UR_RESULT_ERROR_INVALID_");
            assert!(refused && answer.len() > 60, "{answer}");
        }
        exporter.stop(false);
        importer.must(&format!("open physical p {ticket}"));
    }
}
/// P4
#[test]
fn what_was_not_made_to_be_shared_is_an_invalid_argument() {
    let (_place, mut exporter, _) = Place::pair();
    exporter.must(&format!("physical plain {BYTES} not-shareable"));
    let why = exporter.refused("get physical plain", "INVALID_ARGUMENT");
    assert!(why.contains("ENABLE_IPC"), "{why}");
}
/// P4
#[test]
fn an_open_without_descriptors_left_is_out_of_resources_and_names_the_limit() {
    let (_place, _exporter, mut importer, ticket) = shared();
    importer.must("exhaust 0");
    for _ in 0..3 {
        let why = importer.refused(&format!("open physical p {ticket}"), "OUT_OF_RESOURCES");
        assert!(why.contains("ulimit -n") && why.contains("24"), "{why}");
    }
    importer.must("recover");
    importer.must(&format!("open physical p {ticket}"));
}
#[test]
fn large_memory_takes_one_descriptor_and_none_to_look_whether_there_is_as_much() {
    let (_place, mut exporter, ..) = shared();
    exporter.must("exhaust 1");
    exporter.must(&format!("alloc large {}", 64 << 20));
}
/// P4
#[test]
fn an_exporter_without_descriptors_left_still_serves() {
    let (_place, mut exporter, mut importer, ticket) = shared();
    importer.must(&format!("open physical warm {ticket}"));
    exporter.must("exhaust 0");
    importer.must(&format!("open physical p {ticket}"));
    importer.must(&format!("map m p {BYTES}"));
    exporter.must("recover");
    exporter.must(&format!("map m p {BYTES}"));
    importer.must("write m 5 99");
    assert_eq!(exporter.must("read m 5 1"), "99");
}
/// P4: everything else.
#[test]
fn a_handle_of_a_process_that_is_gone_is_an_invalid_value() {
    let (_place, mut exporter, mut importer, ticket) = shared();
    exporter.kill();
    let why = importer.refused(&format!("open physical p {ticket}"), "INVALID_VALUE");
    assert!(why.contains("gone") || why.contains("ended"), "{why}");
}
/// P6
#[test]
fn mapping_what_was_opened_shows_the_exporters_bytes_both_ways() {
    let (_place, mut exporter, mut importer, ticket) = shared();
    exporter.must(&format!("map m p {BYTES}"));
    exporter.must(&format!("fill m 0 {BYTES} 65"));
    importer.must(&format!("open physical p {ticket}"));
    importer.must(&format!("map m p {BYTES}"));
    importer.must(&format!("map n p {BYTES}"));
    assert_eq!(importer.must(&format!("all m 0 {BYTES} 65")), "true");
    importer.must(&format!("fill m 0 {BYTES} 66"));
    assert_eq!(exporter.must(&format!("all m 0 {BYTES} 66")), "true");
    assert_eq!(importer.must(&format!("all n 0 {BYTES} 66")), "true", "a second mapping");
    importer.must("close physical p");
    exporter.must("write m 1 4321");
    assert_eq!(importer.must("read m 1 2"), "4321", "a mapping outlives the handle");
    importer.must("unmap m");
    importer.must("unmap n");
}
/// P6, and no leak: whatever an open, a mapping, an unmapping and a close took is given back.
#[test]
fn rounds_of_open_map_unmap_close_cost_nothing() {
    let (_place, mut exporter, mut importer, ticket) = shared();
    let round = |importer: &mut Peer| {
        importer.must(&format!("open physical p {ticket}"));
        importer.must(&format!("map m p {BYTES}"));
        importer.must("unmap m");
        importer.must("close physical p");
        (importer.number("descriptors"), importer.number("memfds"))
    };
    let first = round(&mut importer);
    let here = exporter.number("descriptors");
    for _ in 0..50 {
        round(&mut importer);
    }
    eventually("nothing is left", || round(&mut importer) <= first);
    eventually("nothing is left there", || exporter.number("descriptors") <= here);
}
