//! Tests of the trait with a driver that has only memory and threads.
mod driver;

use driver::{InMemory as D, read, write};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
    },
    time::{Duration, Instant},
};
use ur_hal::*;
use ur_ipc::{Access as Policy, arena};

type Stream = <D as Types>::Stream;
type Allocation = <D as Types>::Allocation;

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(20))
}
fn opened() -> (Vec<u32>, u32) {
    let devices = D::devices().unwrap();
    (D::open(&devices).unwrap(), devices[0])
}
fn stream() -> Stream {
    let (context, device) = opened();
    D::stream(&context, &device, StreamRequest::default()).unwrap()
}
fn memory(bytes: usize) -> Allocation {
    let (context, device) = opened();
    let kind = MemoryKind::Device;
    let request = MemoryRequest { kind, bytes, align: 64, is_shareable: false };
    D::allocate(&context, &device, request).unwrap()
}
fn submit(stream: &Stream, command: Command<'_, D>, waits: &[Wait<'_, D>]) -> driver::Point {
    let submission =
        Submission { waits, completion: Completion::Point, ..Submission::new(&command) };
    D::submit(stream, &submission).unwrap().expect("a point is wanted")
}
fn filled(bytes: usize) -> Allocation {
    let memory = memory(bytes);
    let all: Vec<u8> = (0..bytes).map(|n| n as u8).collect();
    write(memory.range().start(), &all).unwrap();
    memory
}
/// A host call that waits until the gate is opened, and the gate, which a test opens by making it non-zero.
fn gate() -> (HostCall, &'static AtomicUsize) {
    let gate: &'static AtomicUsize = Box::leak(Box::default());
    static GATES: std::sync::Mutex<Vec<&'static AtomicUsize>> = std::sync::Mutex::new(vec![]);
    let mut gates = GATES.lock().unwrap();
    gates.push(gate);
    let call = HostCall::new(
        |[number, _]| {
            let gate = GATES.lock().unwrap()[number];
            while gate.load(Acquire) == 0 {
                std::thread::yield_now();
            }
        },
        [gates.len() - 1, 0],
    );
    (call, gate)
}

#[test]
fn copies_and_fills_do_what_they_say_in_their_order() {
    let (stream, from, to) = (stream(), filled(256), memory(256));
    let (source, target) = (from.range().start(), to.range().start());
    submit(&stream, Command::Copy { to: target, from: source, bytes: 256 }, &[]);
    let pattern = [0xa, 0xb, 0xc];
    let rows = Rows { start: target, pitch: 16 };
    let fill = Command::Fill2d {
        to: rows,
        width: 4,
        height: 3,
        pattern: Pattern::new(&pattern, 12).unwrap(),
    };
    let last = submit(&stream, fill, &[]);
    assert!(D::wait(&last, soon()).unwrap());
    let row = |n| read(rows.row(n, 5).unwrap()).unwrap();
    assert_eq!(row(0), [0xa, 0xb, 0xc, 0xa, 4], "and nothing behind the row");
    assert_eq!(row(1), [0xb, 0xc, 0xa, 0xb, 20], "the pattern runs on");
    assert_eq!(row(2), [0xc, 0xa, 0xb, 0xc, 36]);
    assert_eq!(row(3), [48, 49, 50, 51, 52]);
    assert!(D::is_idle(&stream).unwrap());
}
#[test]
fn a_box_is_copied_from_pitches_to_others() {
    let (stream, from, to) = (stream(), filled(4096), memory(4096));
    let region = [3, 2, 2];
    let out = BoxPlace::new([1, 1, 0], 8, 32).span(region).unwrap();
    let into = BoxPlace::new([0, 0, 1], 4, 16).span(region).unwrap();
    let copy =
        BoxCopy { to: (to.range().start(), into), from: (from.range().start(), out), region };
    let done = submit(&stream, Command::Copy3d(&copy), &[]);
    assert!(D::wait(&done, soon()).unwrap());
    let all = read(to.range()).unwrap();
    assert_eq!(all[16..24], [9, 10, 11, 0, 17, 18, 19, 0]);
    assert_eq!(all[32..40], [41, 42, 43, 0, 49, 50, 51, 0]);
}
#[test]
fn a_command_waits_for_points_of_other_streams() {
    let (one, other, from, to) = (stream(), stream(), filled(16), memory(16));
    let (call, gate) = gate();
    let opened = submit(&one, Command::HostCall(&call), &[]);
    let (target, source) = (to.range().start(), from.range().start());
    let copy = Command::Copy { to: target, from: source, bytes: 16 };
    let copied = submit(&other, copy, &[Wait::Point(&opened)]);
    let soon_over = Some(Instant::now() + Duration::from_millis(1));
    assert!(!D::wait(&copied, soon_over).unwrap());
    assert!(!D::is_idle(&one).unwrap() && !D::is_idle(&other).unwrap());
    gate.store(1, Release);
    assert!(D::wait(&copied, soon()).unwrap());
    assert_eq!(read(to.range()).unwrap()[15], 15);
    assert!(D::finish(&one).is_ok() && D::finish(&other).is_ok());
}
#[test]
fn what_follows_a_failure_does_not_run_and_fails_too() {
    let (one, other, memory) = (stream(), stream(), filled(16));
    let (start, nowhere) = (memory.range().start(), Address::new(64).unwrap());
    let wrong = submit(&one, Command::Copy { to: nowhere, from: start, bytes: 8 }, &[]);
    let to = Range::new(start, 8).unwrap();
    let fill = Command::Fill { to, pattern: Pattern::new(&[9], 8).unwrap() };
    let behind = submit(&other, fill, &[Wait::Point(&wrong)]);
    assert_eq!(D::wait(&behind, soon()).unwrap_err().kind(), ErrorKind::DependencyFailed);
    assert_eq!(read(to).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7], "it did not run");
    assert_eq!(D::finish(&other).unwrap_err().kind(), ErrorKind::DependencyFailed);
    assert!(D::finish(&other).is_ok(), "each failure is told once");
}
#[test]
fn a_word_that_processes_share_is_signalled_by_one_stream_and_waited_for_by_another() {
    let (one, other, memory) = (stream(), stream(), memory(4));
    let event = arena::slot(Policy::SameUser).unwrap();
    let counter = Arc::new(event.arena().take_counter().unwrap());
    let (call, gate) = gate();
    let opened = submit(&one, Command::HostCall(&call), &[]);
    let value = counter.reserve();
    submit(&one, Command::Signal(Signal::Word(&counter, value)), &[Wait::Point(&opened)]);
    assert!(event.publish(&counter, value));
    let arena::Captured::PendingSignal(debt) = event.capture().unwrap() else {
        panic!("it is pending")
    };
    let fill = Command::Fill { to: memory.range(), pattern: Pattern::new(&[1, 2], 4).unwrap() };
    let filled = submit(&other, fill, &[Wait::Word(&debt)]);
    assert_eq!(D::status(&filled).unwrap(), Status::Submitted);
    gate.store(1, Release);
    assert!(D::wait(&filled, soon()).unwrap());
    assert_eq!(read(memory.range()).unwrap(), [1, 2, 1, 2]);
}
#[test]
fn what_can_be_submitted_can_be_recorded_and_runs_as_often_as_it_is_submitted() {
    let ((context, device), stream, memory) = (opened(), stream(), memory(8));
    let start = memory.range().start();
    let mut graph = D::graph(&context, &device).unwrap();
    let first = Range::new(start, 4).unwrap();
    let fill = Command::Fill { to: first, pattern: Pattern::new(&[7, 8], 4).unwrap() };
    let copy = Command::Copy { to: start.offset(4).unwrap(), from: start, bytes: 4 };
    let commands = [fill, copy].map(|command| {
        D::check_recordable(&context, &device, &command).unwrap();
        Arc::new(Recorded::of(&command).unwrap())
    });
    commands.iter().for_each(|command| D::append(&mut graph, command).unwrap());
    D::close(&mut graph).unwrap();
    for _ in 0..2 {
        write(start, &[0; 8]).unwrap();
        let barrier = Submission::new(&Command::Barrier);
        let (done, signals) = D::execute(&mut graph, &stream, &barrier, (1, Profile::Off)).unwrap();
        assert!(done.is_none() && D::wait(&signals[0], soon()).unwrap());
        assert_eq!(read(memory.range()).unwrap(), [7, 8, 7, 8, 7, 8, 7, 8]);
    }
}
#[test]
fn times_are_noted_where_they_are_wanted() {
    let stream = stream();
    let timed = |profile| {
        let plain = Submission::new(&Command::Timestamp);
        let submission =
            Submission { completion: Completion::Done { point: true }, profile, ..plain };
        let point = D::submit(&stream, &submission).unwrap().unwrap();
        D::wait(&point, soon()).unwrap();
        D::times(&point).unwrap()
    };
    assert_eq!(timed(Profile::Off), None);
    let times = timed(Profile::End).unwrap();
    let (began, ended) = times.span.expect("it is complete");
    assert!(times.submitted <= began && began <= ended);
    assert!(ended <= D::clocks(&0).unwrap().device);
}
#[test]
fn a_native_call_is_made_behind_what_its_command_waits_for() {
    let (one, other) = (stream(), stream());
    let (call, gate) = gate();
    let opened = submit(&one, Command::HostCall(&call), &[]);
    gate.store(1, Release);
    let look = || match D::status(&opened).unwrap() {
        Status::Complete => Ok(()),
        early => Err(Error::new(ErrorKind::InvalidOperation, format!("{early:?}"))),
    };
    submit(&other, Command::Native(NativeCall::new(&look)), &[Wait::Point(&opened)]);
}
#[test]
fn memory_is_given_back_and_more_than_there_is_is_refused() {
    let (context, device) = opened();
    let range = memory(64).range();
    assert_eq!(read(range).unwrap_err().kind(), ErrorKind::InvalidValue, "it was dropped");
    let facts = D::facts(&device).unwrap();
    let bytes = D::largest_allocation(&device).unwrap() + 1;
    let request = MemoryRequest { kind: MemoryKind::Device, bytes, align: 64, is_shareable: false };
    let refused = D::allocate(&context, &device, request).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::OutOfDeviceMemory);
    assert!(facts.capabilities.require(Capability::Linker).is_err());
}
