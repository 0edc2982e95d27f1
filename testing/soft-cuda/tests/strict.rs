//! Uses that a GPU's driver would accept or crash on, and that are errors here; called through the C symbols.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]

mod common;

use common::{call, current, stream};

fn memory(bytes: usize) -> u64 {
    let mut at = 0;
    assert_eq!(call!("cuMemAlloc_v2", &mut at => *mut u64, bytes => usize), 0);
    at
}
/// A word of memory that is 0, and a stream that waits until it is 1.
fn gated() -> (u64, u64) {
    let (stream, gate) = (stream(), memory(8));
    let zero = call!("cuMemsetD8Async", gate => u64, 0 => u8, 8 => usize, stream => u64);
    let settled = call!("cuStreamSynchronize", stream => u64);
    let wait = call!("cuStreamWaitValue64_v2", stream => u64, gate => u64, 1 => u64, 0 => u32);
    assert_eq!((zero, settled, wait), (0, 0, 0));
    (stream, gate)
}
fn open(gate: u64) -> i32 {
    call!("cuStreamWriteValue64_v2", stream() => u64, gate => u64, 1 => u64, 0 => u32)
}

#[test]
fn memory_needs_a_current_context_and_is_freed_once() {
    let mut at = 0;
    assert_eq!(call!("cuMemAlloc_v2", &mut at => *mut u64, 64 => usize), 201);
    current();
    let at = memory(64);
    assert_eq!(call!("cuMemFree_v2", at + 1 => u64), 1);
    assert_eq!(call!("cuMemFree_v2", at => u64), 0);
    assert_eq!(call!("cuMemFree_v2", at => u64), 1);
    assert_ne!(memory(64), at);
}

#[test]
fn streams_run_in_order_and_a_destroyed_one_is_no_stream() {
    current();
    let mut word = Box::new(0_u64);
    let at = (&raw mut *word).expose_provenance() as u64;
    let (stream, gate) = gated();
    let unknown = call!("cuStreamWaitValue64_v2", stream => u64, at => u64, 1 => u64, 0 => u32);
    assert_eq!(unknown, 1, "memory of the host that is not registered");
    assert_eq!(call!("cuStreamQuery", stream => u64), 600);
    assert_eq!(open(gate), 0);
    assert_eq!(call!("cuMemcpyAsync", at => u64, gate => u64, 8 => usize, stream => u64), 0);
    assert_eq!(*word, 1, "a copy to pageable memory lasts until it is there");
    assert_eq!(call!("cuStreamDestroy_v2", stream => u64), 0);
    assert_eq!(call!("cuStreamQuery", stream => u64), 400);
}

#[test]
fn an_event_is_over_when_its_stream_has_come_to_it() {
    current();
    let ((stream, gate), mut event) = (gated(), 0_u64);
    assert_eq!(call!("cuEventCreate", &mut event => *mut u64, 0 => u32), 0);
    assert_eq!(call!("cuEventQuery", event => u64), 0, "never recorded");
    assert_eq!(call!("cuEventRecord", event => u64, stream => u64), 0);
    assert_eq!(call!("cuEventQuery", event => u64), 600);
    assert_eq!(open(gate), 0);
    assert_eq!(call!("cuEventSynchronize", event => u64), 0);
    let mut time = 1_f32;
    let elapsed = call!("cuEventElapsedTime", &mut time => *mut f32, event => u64, event => u64);
    assert_eq!((elapsed, time), (0, 0.0));
    assert_eq!(call!("cuEventDestroy_v2", event => u64), 0);
    assert_eq!(call!("cuEventRecord", event => u64, stream => u64), 400);
}

#[test]
fn physical_memory_is_mapped_whole_and_used_only_where_access_was_given() {
    current();
    let (stream, grain) = (stream(), 2_usize << 20);
    let (mut at, mut handle) = (0_u64, 0_u64);
    // Pinned memory of device 0, exportable as a descriptor.
    let wanted: [i32; 8] = [1, 1, 1, 0, 0, 0, 0, 0];
    let mut reserve = |bytes: usize| call!("cuMemAddressReserve", &mut at => *mut u64, bytes => usize, 0 => usize, 0 => u64, 0 => u64);
    let mut create = |bytes: usize| {
        let wanted = wanted.as_ptr();
        call!("cuMemCreate", &mut handle => *mut u64, bytes => usize, wanted => *const i32, 0 => u64)
    };
    assert_eq!((reserve(grain + 1), create(grain + 1)), (1, 1));
    assert_eq!((reserve(4 * grain), create(2 * grain)), (0, 0));
    let map = |at: u64, bytes: usize, offset: usize| call!("cuMemMap", at => u64, bytes => usize, offset => usize, handle => u64, 0 => u64);
    assert_eq!((map(at, grain, 0), map(at, grain, grain)), (801, 801));
    assert_eq!((map(at + 1, 2 * grain, 0), map(at, 2 * grain, 0)), (1, 0));
    assert_eq!(map(at + grain as u64, 2 * grain, 0), 1, "something is mapped there");
    let set = || call!("cuMemsetD8Async", at => u64, 1 => u8, 16 => usize, stream => u64);
    assert_eq!(set(), 1, "no access was given");
    let access = [1, 0, 3];
    let allow = |bytes: usize| {
        let access = access.as_ptr();
        call!("cuMemSetAccess", at => u64, bytes => usize, access => *const i32, 1 => usize)
    };
    assert_eq!((allow(grain), allow(2 * grain), set()), (1, 0, 0));
    assert_eq!(call!("cuStreamSynchronize", stream => u64), 0);
    let free = || call!("cuMemAddressFree", at => u64, 4 * grain => usize);
    let unmap = |bytes: usize| call!("cuMemUnmap", at => u64, bytes => usize);
    assert_eq!((free(), unmap(grain), unmap(2 * grain), free()), (1, 1, 0, 0));
    let release = || call!("cuMemRelease", handle => u64);
    assert_eq!((release(), release()), (0, 1));
}

#[test]
fn only_descriptors_of_the_driver_are_imported_and_only_what_was_asked_for_is_exported() {
    current();
    let (mut handle, mut fd) = (0_u64, -1_i32);
    let file = std::fs::File::open("/dev/null").unwrap();
    let other = std::os::fd::AsRawFd::as_raw_fd(&file) as usize;
    let import = |fd: usize, handle: &mut u64| call!("cuMemImportFromShareableHandle", handle => *mut u64, fd => usize, 1 => i32);
    assert_eq!(import(other, &mut handle), 999, "as measured on real drivers");
    for (types, answer) in [(0, 1), (1, 0)] {
        let wanted: [i32; 8] = [1, types, 1, 0, 0, 0, 0, 0];
        let (bytes, wanted) = (2_usize << 20, wanted.as_ptr());
        let made = call!("cuMemCreate", &mut handle => *mut u64, bytes => usize, wanted => *const i32, 0 => u64);
        let told = call!("cuMemExportToShareableHandle", &mut fd => *mut i32, handle => u64, 1 => i32, 0 => u64);
        assert_eq!((made, told), (0, answer), "handle types {types}");
    }
    let mut there = 0;
    assert_eq!(import(fd as usize, &mut there), 0);
    assert_ne!(there, handle);
}
/// A program's signals are for its own threads.
#[test]
fn a_streams_thread_takes_no_signals_of_the_program() {
    current();
    let (_stream, gate) = gated(); // its thread waits
    let mut blocked = vec![];
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        // A thread of another test may have ended meanwhile.
        let status = std::fs::read_to_string(thread.unwrap().path().join("status"));
        let status = status.unwrap_or_default();
        let tell = |of: &str| status.lines().find_map(|line| line.strip_prefix(of)).map(str::trim);
        if tell("Name:") == Some("soft-cuda") {
            blocked.extend(tell("SigBlk:").map(|mask| u64::from_str_radix(mask, 16).unwrap()));
        }
    }
    assert_eq!(open(gate), 0);
    let is_blocked = |mask: &u64| mask >> (libc::SIGTERM - 1) & 1 == 1;
    assert!(!blocked.is_empty() && blocked.iter().all(is_blocked), "{blocked:x?}");
}
