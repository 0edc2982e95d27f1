//! Device memory between processes: requirements M1 to M8.
mod common;
use common::{ur::*, *};

#[test]
fn role() {
    common::role();
}

/// M1
#[test]
fn the_device_says_that_it_shares_all_three_kinds() {
    alone(|| {
        let ur = Ur::new();
        for info in [0x2023, 0x2024, 0x2025, 0x2026].map(ur_device_info_t) {
            let device = ur.device;
            let answer: u8 =
                ur.value(|size, to, n| call!(device.get_info(device, info, size, to, n))).unwrap();
            assert_eq!(answer, 1, "{info:?}");
        }
    });
}
/// M1, M3
#[test]
fn another_process_opens_the_memory_and_both_see_what_either_writes() {
    for bytes in [1000, 100_000, 5 << 20] {
        let (_place, mut exporter, mut importer) = Place::pair();
        exporter.must(&format!("alloc a {bytes}"));
        exporter.must(&format!("fill a 0 {bytes} 7"));
        let ticket = exporter.must("get memory a");
        importer.must(&format!("open memory a {ticket}"));
        assert_eq!(importer.must(&format!("all a 0 {bytes} 7")), "true");
        importer.must(&format!("write a {} deadbeef", bytes - 4));
        assert_eq!(exporter.must(&format!("read a {} 5", bytes - 5)), "07deadbeef");
        importer.must("close memory a");
    }
}
/// M2
#[test]
fn handles_of_all_memory_have_one_size_and_no_two_are_the_same() {
    let (_place, mut exporter, _) = Place::pair();
    let mut seen = Vec::new();
    for bytes in [1, 64, 4096, 3 << 20] {
        exporter.must(&format!("alloc m{bytes} {bytes}"));
        for _ in 0..2 {
            let ticket = exporter.must(&format!("get memory m{bytes}"));
            assert!(!seen.contains(&ticket));
            seen.push(ticket);
        }
    }
    assert!(seen.iter().all(|ticket| ticket.len() == seen[0].len()));
}
/// M2: the bytes are the implementation's, and Put takes them back, once.
#[test]
fn put_takes_the_pointer_that_get_gave_once_and_nothing_else() {
    let (_place, mut exporter, _) = Place::pair();
    exporter.must("alloc a 4096");
    let ticket = exporter.must("get memory a");
    exporter.refused(&format!("put-copy memory {ticket}"), "INVALID_VALUE");
    exporter.refused(&format!("put physical {ticket}"), "INVALID_VALUE");
    exporter.refused(&format!("put event {ticket}"), "INVALID_VALUE");
    exporter.must(&format!("put memory {ticket}"));
    exporter.refused(&format!("put memory {ticket}"), "INVALID_VALUE");
}
/// M3
#[test]
fn one_handle_is_opened_by_many_processes_many_times_and_each_open_has_its_close() {
    let (place, mut exporter, mut one) = Place::pair();
    let mut other = place.peer();
    exporter.must("alloc a 4096");
    exporter.must("fill a 0 4096 9");
    let ticket = exporter.must("get memory a");
    for name in ["a", "b", "c"] {
        one.must(&format!("open memory {name} {ticket}"));
        other.must(&format!("open memory {name} {ticket}"));
    }
    one.must("close memory a");
    one.must("close memory c");
    assert_eq!(one.must("all b 0 4096 9"), "true", "the last open keeps it");
    one.must("alias gone b 0");
    one.must("close memory b");
    one.refused("close memory gone", "INVALID_VALUE");
    assert_eq!(other.must("all c 0 4096 9"), "true", "another process's opens are its own");
}
/// M4
#[test]
fn opened_memory_outlives_put_free_and_the_exporter_itself() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("alloc a 2000000");
    exporter.must("fill a 0 2000000 5");
    let ticket = exporter.must("get memory a");
    importer.must(&format!("open memory a {ticket}"));
    exporter.must(&format!("put memory {ticket}"));
    assert_eq!(importer.must("all a 0 2000000 5"), "true");
    exporter.must("free a");
    assert_eq!(importer.must("all a 0 2000000 5"), "true");
    exporter.kill();
    assert_eq!(importer.must("all a 0 2000000 5"), "true");
    importer.must("close memory a");
}
/// M4: what an importer still has open is nobody else's memory, also where blocks are small and reused.
#[test]
fn freed_memory_that_is_still_open_elsewhere_is_not_given_to_anybody_else() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("alloc a 256");
    exporter.must("fill a 0 256 1");
    let ticket = exporter.must("get memory a");
    importer.must(&format!("open memory a {ticket}"));
    exporter.must(&format!("put memory {ticket}"));
    exporter.must("free a");
    for n in 0..200 {
        exporter.must(&format!("alloc n{n} 256"));
        exporter.must(&format!("fill n{n} 0 256 2"));
    }
    assert_eq!(importer.must("all a 0 256 1"), "true");
    importer.must("fill a 0 256 3");
    for n in 0..200 {
        assert_eq!(exporter.must(&format!("all n{n} 0 256 2")), "true");
    }
}
/// M5
#[test]
fn a_pointer_inside_an_allocation_is_opened_as_that_very_place() {
    for bytes in [4096, 3_000_000] {
        let (_place, mut exporter, mut importer) = Place::pair();
        exporter.must(&format!("alloc a {bytes}"));
        exporter.must(&format!("fill a 0 {bytes} 1"));
        exporter.must("write a 1001 c0ffee");
        exporter.must("alias inside a 1001");
        let ticket = exporter.must("get memory inside");
        importer.must(&format!("open memory a {ticket}"));
        assert_eq!(importer.must("read a 0 4"), "c0ffee01");
        let facts = importer.must("usm a");
        assert_eq!(facts, format!("2 1001 {bytes}"), "device memory, and where in it");
        importer.must("close memory a");
    }
}
/// M5
#[test]
fn neighbours_in_one_slab_are_opened_as_what_they_are() {
    let (_place, mut exporter, mut importer) = Place::pair();
    for n in 0..100 {
        exporter.must(&format!("alloc a{n} 100"));
        exporter.must(&format!("fill a{n} 0 100 {n}"));
    }
    for n in (0..100).rev() {
        let ticket = exporter.must(&format!("get memory a{n}"));
        importer.must(&format!("open memory a{n} {ticket}"));
        assert_eq!(importer.must(&format!("all a{n} 0 100 {n}")), "true");
        assert_eq!(importer.must(&format!("usm a{n}")), "2 0 100");
    }
    assert!(importer.number("memfds") <= 100);
}
/// M6
#[test]
fn put_and_free_end_a_handle_at_once_also_where_the_memory_is_open() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("alloc a 4096");
    let (first, second) = (exporter.must("get memory a"), exporter.must("get memory a"));
    importer.must(&format!("open memory a {first}"));
    exporter.must(&format!("put memory {first}"));
    let why = importer.refused(&format!("open memory b {first}"), "INVALID_VALUE");
    assert!(why.contains("put") || why.contains("withdrawn"), "{why}");
    importer.must(&format!("open memory b {second}"));
    exporter.must("free a");
    let why = importer.refused(&format!("open memory c {second}"), "INVALID_VALUE");
    assert!(why.contains("freed"), "{why}");
    importer.must("close memory a");
    importer.must("close memory b");
    importer.refused(&format!("open memory c {second}"), "INVALID_VALUE");
    exporter.must(&format!("put memory {second}"));
}
/// M7
#[test]
fn opening_in_the_exporting_process_gives_the_very_address_counted() {
    let (_place, mut exporter, _) = Place::pair();
    exporter.must("alloc a 4096");
    exporter.must("alias inside a 100");
    let ticket = exporter.must("get memory inside");
    exporter.must(&format!("open memory b {ticket}"));
    exporter.must(&format!("open memory c {ticket}"));
    let at = exporter.must("at inside");
    assert_eq!((exporter.must("at b"), exporter.must("at c")), (at.clone(), at));
    exporter.must("close memory b");
    exporter.must("close memory c");
    exporter.refused("close memory inside", "INVALID_VALUE");
}
/// M7
#[test]
fn a_free_while_this_process_has_it_open_keeps_the_pages_until_the_last_close() {
    let (_place, mut exporter, _) = Place::pair();
    exporter.must("alloc a 3000000");
    exporter.must("fill a 0 3000000 6");
    let ticket = exporter.must("get memory a");
    let before = exporter.number("memfds");
    exporter.must(&format!("open memory b {ticket}"));
    exporter.must(&format!("put memory {ticket}"));
    exporter.must("free a");
    assert_eq!(exporter.must("all b 0 3000000 6"), "true");
    exporter.refused("get memory b", "INVALID_VALUE");
    exporter.must("close memory b");
    eventually("the pages go", || exporter.number("memfds") < before);
}
/// M8
#[test]
fn only_device_memory_of_ones_own_is_shared_and_the_reason_is_said() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("alloc-host host 4096");
    exporter.must("alloc-shared shared 4096");
    exporter.must("alloc a 4096");
    exporter.must("alias nobodys a 1099511627776");
    let mut why = |name| exporter.refused(&format!("get memory {name}"), "INVALID_VALUE");
    assert!(why("host").contains("host memory"));
    assert!(why("shared").contains("shared USM"));
    assert!(why("nobodys").contains("no USM allocation"));
    let ticket = exporter.must("get memory a");
    importer.must(&format!("open memory a {ticket}"));
    let why = importer.refused("get memory a", "INVALID_VALUE");
    assert!(why.contains("opened"), "{why}");
    exporter.must("alias freed a 0");
    exporter.must("free a");
    exporter.refused("get memory freed", "INVALID_VALUE");
}
/// M8
#[test]
fn opened_memory_is_closed_and_not_freed_and_only_what_was_opened_is_closed() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("alloc a 4096");
    exporter.refused("close memory a", "INVALID_VALUE");
    let ticket = exporter.must("get memory a");
    importer.must(&format!("open memory a {ticket}"));
    importer.refused("free a", "INVALID_MEM_OBJECT");
    importer.must("alias inside a 8");
    importer.refused("close memory inside", "INVALID_VALUE");
    importer.refused("free inside", "INVALID_MEM_OBJECT");
    importer.must("close memory a");
    importer.refused("free inside", "INVALID_MEM_OBJECT");
}
