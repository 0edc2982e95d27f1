//! Device memory between processes: requirements M1 to M8.
mod common;
use common::*;

#[test]
fn role() {
    common::role();
}

/// M1, M3
#[test]
fn another_process_opens_the_memory_and_both_see_what_either_writes() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("alloc a 100000");
    exporter.must("fill a 0 100000 7");
    let ticket = exporter.must("get memory a");
    importer.must(&format!("open memory a {ticket}"));
    assert_eq!(importer.must("all a 0 100000 7"), "true");
    importer.must("write a 99996 deadbeef");
    assert_eq!(exporter.must("read a 99995 5"), "07deadbeef");
    importer.must("close memory a");
}
