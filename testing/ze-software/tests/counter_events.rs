//! Counter-based events: each append that signals an event replaces its state, each wait captures the current
//! state, and shared events behave the same in all processes.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod driver;
use driver::{IN_ORDER, NONE, SHARED, World};
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Command, Stdio},
    ptr::null_mut,
};
use ze_sys::*;

const HOST: u32 = ZE_EVENT_POOL_FLAG_HOST_VISIBLE;

#[test]
fn an_event_that_nobody_signalled_yet_is_over() {
    let w = World::new();
    let event = w.counter(SHARED);
    assert!(w.is_over(event));
    let list = w.immediate(IN_ORDER);
    w.barrier(list, NONE, &mut [event]);
    w.finish(list);
}
#[test]
fn a_wait_is_for_the_state_at_its_append() {
    let w = World::new();
    let pool = w.pool(HOST, 2);
    let (first, second) = (w.event(pool, 0), w.event(pool, 1));
    let event = w.counter(SHARED);
    let (one, two, waiting) = (w.immediate(IN_ORDER), w.immediate(IN_ORDER), w.immediate(IN_ORDER));
    w.barrier(one, event, &mut [first]);
    // Captures the first state; afterwards the event gets a second one.
    w.barrier(waiting, NONE, &mut [event]);
    w.barrier(two, event, &mut [second]);
    ok!(w.ze, event.pfnHostSignal(first));
    w.finish(waiting);
    assert!(!w.is_over(event), "its state is the second one");
    ok!(w.ze, event.pfnHostSignal(second));
    w.wait(event);
}
#[test]
fn a_later_signal_that_is_done_first_releases_no_earlier_wait() {
    let w = World::new();
    let pool = w.pool(HOST, 1);
    let gate = w.event(pool, 0);
    let event = w.counter(SHARED);
    let (one, two, waiting) = (w.immediate(IN_ORDER), w.immediate(IN_ORDER), w.immediate(IN_ORDER));
    w.barrier(one, event, &mut [gate]);
    w.barrier(waiting, NONE, &mut [event]);
    w.barrier(two, event, &mut []);
    w.wait(event);
    assert_eq!(ze!(w.ze, list.pfnHostSynchronize(waiting, 20_000_000)), ZE_RESULT_NOT_READY);
    ok!(w.ze, event.pfnHostSignal(gate));
    w.finish(waiting);
}
#[test]
fn a_captured_wait_is_for_its_signal_however_often_the_event_is_used_later() {
    let w = World::new();
    let pool = w.pool(HOST, 1);
    let gate = w.event(pool, 0);
    let event = w.counter(SHARED);
    let (first, waiting) = (w.immediate(IN_ORDER), w.immediate(IN_ORDER));
    w.barrier(first, event, &mut [gate]);
    w.barrier(waiting, NONE, &mut [event]);
    let others = [w.immediate(IN_ORDER), w.immediate(IN_ORDER)];
    for used in 0..1000 {
        w.barrier(others[used % 2], event, &mut []);
        w.wait(event);
        assert_eq!(ze!(w.ze, list.pfnHostSynchronize(waiting, 0)), ZE_RESULT_NOT_READY, "{used}");
    }
    // More of the list that is held up: its signals come in order.
    for _ in 0..1000 {
        w.barrier(first, event, &mut []);
    }
    let second = w.immediate(IN_ORDER);
    w.barrier(second, NONE, &mut [event]);
    assert_eq!(ze!(w.ze, list.pfnHostSynchronize(second, 20_000_000)), ZE_RESULT_NOT_READY);
    ok!(w.ze, event.pfnHostSignal(gate));
    w.finish(waiting);
    w.finish(second);
    w.wait(event);
}
#[test]
fn a_signal_that_no_place_is_left_for_is_refused_and_nothing_else_changes() {
    let w = World::new();
    let pool = w.pool(HOST, 1);
    let gate = w.event(pool, 0);
    let event = w.counter(SHARED);
    let lists: Vec<_> = (0..50).map(|_| w.immediate(IN_ORDER)).collect();
    lists.iter().for_each(|list| w.barrier(*list, event, &mut [gate]));
    let one_more = w.immediate(IN_ORDER);
    let refused = ze!(w.ze, list.pfnAppendBarrier(one_more, event, 0, null_mut()));
    assert_eq!(refused, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    lists.iter().for_each(|list| w.barrier(*list, event, &mut []));
    assert!(!w.is_over(event));
    ok!(w.ze, event.pfnHostSignal(gate));
    lists.iter().for_each(|list| w.finish(*list));
    w.wait(event);
    w.barrier(one_more, event, &mut []);
    w.wait(event);
}
#[test]
fn a_recorded_list_signals_anew_with_each_run() {
    let w = World::new();
    let pool = w.pool(HOST, 1);
    let gate = w.event(pool, 0);
    let event = w.counter(ZE_EVENT_COUNTER_BASED_FLAG_NON_IMMEDIATE | 4);
    let (queue, list) = (w.queue(), w.recorded(ZE_COMMAND_LIST_FLAG_IN_ORDER));
    w.barrier(list, event, &mut [gate]);
    ok!(w.ze, list.pfnClose(list));
    for _ in 0..3 {
        ok!(w.ze, event.pfnHostReset(gate));
        w.execute(queue, list);
        assert!(!w.is_over(event));
        ok!(w.ze, event.pfnHostSignal(gate));
        w.wait(event);
    }
}
#[test]
fn what_a_counter_cannot_do_is_refused() {
    let w = World::new();
    let event = w.counter(SHARED);
    let refused = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    assert_eq!(ze!(w.ze, event.pfnHostSignal(event)), refused);
    assert_eq!(ze!(w.ze, event.pfnHostReset(event)), refused);
    assert_eq!(ze!(w.ze, event.pfnCounterBasedCloseIpcHandle(event)), refused);
    let list = w.immediate(0);
    assert_eq!(ze!(w.ze, list.pfnAppendBarrier(list, event, 0, null_mut())), refused);
    let private = w.counter(ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE);
    let mut handle = ze_ipc_event_counter_based_handle_t::default();
    assert_eq!(ze!(w.ze, event.pfnCounterBasedGetIpcHandle(private, &mut handle)), refused);
    let mut opened = null_mut();
    let junk = ze!(w.ze, event.pfnCounterBasedOpenIpcHandle(w.context, handle, &mut opened));
    assert_eq!(junk, refused);
    ok!(w.ze, event.pfnCounterBasedGetIpcHandle(event, &mut handle));
    ok!(w.ze, event.pfnDestroy(event));
    let late = ze!(w.ze, event.pfnCounterBasedOpenIpcHandle(w.context, handle, &mut opened));
    assert_eq!(late, refused, "the event is gone");
}

fn hex(data: [std::ffi::c_char; 64]) -> String {
    hex::encode(data.map(i8::cast_unsigned))
}
fn unhex(text: &str) -> [std::ffi::c_char; 64] {
    let bytes: [u8; 64] = hex::decode(text).unwrap().try_into().unwrap();
    bytes.map(u8::cast_signed)
}
/// The other process: runs the commands on the lines of its input, and answers each with a line.
#[test]
#[ignore = "the other process of the tests below"]
fn other_process() {
    let w = World::new();
    let (mut event, mut pool) = (null_mut(), null_mut());
    let list = w.immediate(IN_ORDER);
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("open", text) => {
                let handle = ze_ipc_event_counter_based_handle_t { data: unhex(text) };
                ok!(w.ze, event.pfnCounterBasedOpenIpcHandle(w.context, handle, &mut event));
            }
            ("pool", text) => {
                let handle = ze_ipc_event_pool_handle_t { data: unhex(text) };
                ok!(w.ze, pool.pfnOpenIpcHandle(w.context, handle, &mut pool));
                event = w.event(pool, 0);
            }
            ("capture", _) => w.barrier(list, NONE, &mut [event]),
            ("finish", _) => w.finish(list),
            ("wait", _) => w.wait(event),
            ("signal", _) => w.barrier(list, event, &mut []),
            ("raise", _) => ok!(w.ze, event.pfnHostSignal(event)),
            ("over", wanted) => assert_eq!(w.is_over(event).to_string(), wanted),
            ("close", _) => ok!(w.ze, event.pfnCounterBasedCloseIpcHandle(event)),
            other => panic!("{other:?}"),
        }
        eprintln!("done");
    }
}
struct Other(std::process::Child, BufReader<std::process::ChildStderr>);
impl Other {
    fn new() -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--ignored", "--exact", "other_process", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let answers = BufReader::new(child.stderr.take().expect("piped"));
        Self(child, answers)
    }
    fn ask(&mut self, line: &str) {
        writeln!(self.0.stdin.as_mut().expect("piped"), "{line}").expect("it reads");
    }
    fn tell(&mut self, line: &str) {
        self.ask(line);
        self.answer(line);
    }
    fn answer(&mut self, line: &str) {
        let mut answer = String::new();
        self.1.read_line(&mut answer).expect("it writes");
        if answer != "done\n" {
            self.1.read_to_string(&mut answer).expect("it writes");
            panic!("{line}: {answer}");
        }
    }
    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("it ends").success());
    }
}
#[test]
fn two_processes_share_the_state_both_ways() {
    let w = World::new();
    let pool = w.pool(HOST, 1);
    let gate = w.event(pool, 0);
    let event = w.counter(SHARED);
    let mut handle = ze_ipc_event_counter_based_handle_t::default();
    ok!(w.ze, event.pfnCounterBasedGetIpcHandle(event, &mut handle));
    let mut other = Other::new();
    // The event is shared before it is first signalled.
    other.tell(&format!("open {}", hex(handle.data)));
    other.tell("over true");
    let list = w.immediate(IN_ORDER);
    w.barrier(list, event, &mut [gate]);
    other.tell("over false");
    other.tell("capture");
    other.ask("finish");
    ok!(w.ze, event.pfnHostSignal(gate));
    other.answer("finish");
    other.tell("over true");
    // The same in the other direction.
    ok!(w.ze, event.pfnHostReset(gate));
    w.barrier(list, event, &mut [gate]);
    assert!(!w.is_over(event));
    other.tell("signal");
    w.wait(event);
    ok!(w.ze, event.pfnHostSignal(gate));
    w.finish(list);
    // The process that made the event may destroy it first.
    ok!(w.ze, event.pfnDestroy(event));
    other.tell("wait");
    other.tell("signal");
    other.tell("wait");
    other.tell("close");
    other.end();
}
#[test]
fn two_processes_share_a_pool() {
    let w = World::new();
    let pool = w.pool(HOST | ZE_EVENT_POOL_FLAG_IPC, 1);
    let event = w.event(pool, 0);
    let mut handle = ze_ipc_event_pool_handle_t::default();
    ok!(w.ze, pool.pfnGetIpcHandle(pool, &mut handle));
    let mut other = Other::new();
    other.tell(&format!("pool {}", hex(handle.data)));
    other.tell("over false");
    let list = w.immediate(IN_ORDER);
    w.barrier(list, NONE, &mut [event]);
    other.tell("raise");
    w.finish(list);
    ok!(w.ze, event.pfnHostReset(event));
    other.tell("over false");
    other.end();
}

#[test]
fn an_event_that_is_shared_one_way_is_a_snapshot_that_is_not_signalled() {
    let name = "an_event_that_is_shared_one_way_is_a_snapshot_that_is_not_signalled";
    if std::env::var_os("ZE_SOFTWARE_COUNTER_EVENTS").is_none() {
        let mut again = Command::new(std::env::current_exe().expect("this test"));
        again.args(["--exact", name]).env("ZE_SOFTWARE_COUNTER_EVENTS", "snapshots");
        let out = again.output().expect("a process");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
        return;
    }
    let w = World::new();
    let (event, list) = (w.counter(SHARED), w.immediate(IN_ORDER));
    let (mut handle, mut opened) = (ze_ipc_event_counter_based_handle_t::default(), null_mut());
    let refused = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    assert_eq!(ze!(w.ze, event.pfnCounterBasedGetIpcHandle(event, &mut handle)), refused);
    w.barrier(list, event, &mut []);
    ok!(w.ze, event.pfnCounterBasedGetIpcHandle(event, &mut handle));
    ok!(w.ze, event.pfnCounterBasedOpenIpcHandle(w.context, handle, &mut opened));
    w.wait(opened);
    let gate = w.event(w.pool(HOST, 1), 0);
    w.barrier(list, event, &mut [gate]);
    assert_eq!((w.is_over(event), w.is_over(opened)), (false, true));
    assert_eq!(ze!(w.ze, list.pfnAppendBarrier(list, opened, 0, null_mut())), refused);
    ok!(w.ze, event.pfnHostSignal(gate));
    w.finish(list);
}
