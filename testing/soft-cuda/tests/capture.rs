//! Stream capture, called through the C symbols: what it forbids, and what invalidates a capture. It is one
//! test, because captures affect the whole process.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]

mod common;

use common::{call, current, stream};

/// Begins a capture in this mode on a new stream.
fn captured(mode: u32) -> u64 {
    let stream = stream();
    assert_eq!(call!("cuStreamBeginCapture_v2", stream => u64, mode => u32), 0);
    stream
}
fn end(stream: u64) -> i32 {
    let mut graph = 0_u64;
    call!("cuStreamEndCapture", stream => u64, &mut graph => *mut u64)
}
fn exchange(mode: u32) -> u32 {
    let mut mode = mode;
    assert_eq!(call!("cuThreadExchangeStreamCaptureMode", &mut mode => *mut u32), 0);
    mode
}
#[test]
fn a_capture_forbids_unsafe_calls_by_its_mode_and_theirs_and_is_broken_by_them() {
    current();
    let mut event = 0_u64;
    assert_eq!(call!("cuEventCreate", &mut event => *mut u64, 0 => u32), 0);
    let query = || call!("cuEventQuery", event => u64);
    // The results on the capturing thread and on another thread.
    for (mode, own, others) in [(0, 900, 900), (1, 900, 0), (2, 0, 0)] {
        let broken = |answer| if answer == 0 { 0 } else { 901 };
        let stream = captured(mode);
        assert_eq!(query(), own, "mode {mode}");
        assert_eq!(end(stream), broken(own));
        let stream = captured(mode);
        let there = || std::thread::scope(|scope| scope.spawn(query).join().unwrap());
        assert_eq!(there(), others, "mode {mode}");
        assert_eq!(end(stream), broken(others));
        let stream = captured(mode);
        let relaxed = || {
            let before = exchange(2);
            (query(), before, exchange(before))
        };
        let there = std::thread::scope(|scope| scope.spawn(relaxed).join().unwrap());
        assert_eq!(there, (0, 0, 2), "mode {mode}");
        assert_eq!(end(stream), 0);
    }
    // Captured commands do not run, and the captured stream and its events cannot be queried.
    let (stream, before, mut is) = (captured(2), exchange(2), 0);
    assert_eq!(call!("cuEventRecord", event => u64, stream => u64), 0);
    assert_eq!(query(), 907);
    assert_eq!(call!("cuStreamIsCapturing", stream => u64, &mut is => *mut i32), 0);
    assert_eq!(is, 2, "the question broke it");
    assert_eq!(call!("cuStreamQuery", stream => u64), 900);
    assert_eq!(end(stream), 901);
    let stream = captured(2);
    assert_eq!(call!("cuCtxSynchronize"), 900, "a stream of the context is captured");
    assert_eq!(end(stream), 901);
    exchange(before);
}
