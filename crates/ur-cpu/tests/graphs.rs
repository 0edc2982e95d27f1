//! Graphs: what queues record, how it runs, other queues that are drawn in, and all that cannot be
//! recorded.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod common;
use common::{commands::*, mems, ur::*};
use std::{
    ffi::{CString, c_void},
    ptr::{null, null_mut},
    sync::atomic::{AtomicU64, Ordering::*},
    thread,
    time::Instant,
};
use ur_result_t as R;

type Queue = ur_queue_handle_t;
type Graph = ur_exp_graph_handle_t;
type Executable = ur_exp_executable_graph_handle_t;

#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Outcome<T>) -> R {
    outcome.expect_err("a refusal").code
}
unsafe extern "C" fn count(counter: *mut c_void) {
    unsafe { &*counter.cast::<AtomicU64>() }.fetch_add(1, AcqRel);
}
/// Waits until as many as its second number are here.
unsafe extern "C" fn meet(meeting: *mut c_void) {
    let [here, all] = unsafe { &*meeting.cast::<[AtomicU64; 2]>() };
    here.fetch_add(1, AcqRel);
    let start = Instant::now();
    while here.load(Acquire) < all.load(Acquire) && start.elapsed() < common::PATIENCE {
        thread::yield_now();
    }
}
fn at<T>(value: &T) -> *mut c_void {
    (&raw const *value).cast_mut().cast()
}

#[derive(Clone, Copy)]
struct Scene(Commands);
impl Scene {
    fn new() -> Self {
        Self(Commands::new())
    }
    fn begin(&self, queue: Queue) -> Outcome<()> {
        self.0.ur.check(call!(queue_exp.begin_graph_capture_exp(queue)))
    }
    fn begin_into(&self, queue: Queue, graph: Graph) -> Outcome<()> {
        self.0.ur.check(call!(queue_exp.begin_capture_into_graph_exp(queue, graph)))
    }
    fn end(&self, queue: Queue) -> Outcome<Graph> {
        let mut graph = Graph::NULL;
        self.0.ur.check(call!(queue_exp.end_graph_capture_exp(queue, &mut graph)))?;
        Ok(graph)
    }
    fn records(&self, queue: Queue) -> bool {
        let mut yes = false;
        assert_eq!(call!(queue_exp.is_graph_capture_enabled_exp(queue, &mut yes)), R::SUCCESS);
        yes
    }
    fn graph_of(&self, queue: Queue) -> Outcome<Graph> {
        let mut graph = Graph::NULL;
        self.0.ur.check(call!(queue_exp.get_graph_exp(queue, &mut graph)))?;
        Ok(graph)
    }
    fn instantiate(&self, graph: Graph) -> Outcome<Executable> {
        let mut executable = Executable::NULL;
        self.0.ur.check(call!(graph_exp.instantiate_graph_exp(graph, &mut executable)))?;
        Ok(executable)
    }
    fn destroy(&self, graph: Graph) -> Outcome<()> {
        self.0.ur.check(call!(graph_exp.destroy_exp(graph)))
    }
    fn drop_executable(&self, graph: Executable) {
        assert_eq!(call!(graph_exp.executable_graph_destroy_exp(graph)), R::SUCCESS);
    }
    fn is_empty(&self, graph: Graph) -> Outcome<bool> {
        let mut yes = false;
        self.0.ur.check(call!(graph_exp.is_empty_exp(graph, &mut yes))).map(|()| yes)
    }
    fn enqueue(&self, queue: Queue, graph: Executable, events: &[Event]) -> Outcome<Event> {
        let mut event = Event::NULL;
        let (count, events) = (events.len() as u32, list(events));
        let code = call!(enqueue_exp.graph_exp(queue, graph, count, events, &mut event));
        self.0.ur.check(code).map(|()| event)
    }
    fn run(&self, graph: Executable) {
        let event = self.enqueue(self.0.queue, graph, &[]).unwrap();
        self.0.codes.wait(event);
    }
    /// What is recorded between, ready to run.
    fn record(&self, queue: Queue, record: impl FnOnce()) -> Executable {
        self.begin(queue).unwrap();
        record();
        let graph = self.end(queue).unwrap();
        let executable = self.instantiate(graph).unwrap();
        self.destroy(graph).unwrap();
        executable
    }
    fn barrier(&self, queue: Queue, events: &[Event]) -> Outcome<Event> {
        let mut event = Event::NULL;
        let (count, events) = (events.len() as u32, list(events));
        let code = call!(enqueue.events_wait_with_barrier(queue, count, events, &mut event));
        self.0.ur.check(code).map(|()| event)
    }
    /// Its commands and what they follow, as text.
    fn dump(&self, graph: Graph) -> String {
        let name = format!("graph-{}-{:?}.dot", std::process::id(), graph.0);
        let path = std::env::temp_dir().join(name);
        let c_path = CString::new(path.to_str().unwrap()).unwrap();
        assert_eq!(call!(graph_exp.dump_contents_exp(graph, c_path.as_ptr())), R::SUCCESS);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        text
    }
    fn in_order(&self) -> Queue {
        self.0.ur.new_queue(Default::default())
    }
}

#[test]
fn an_in_order_queue_records_a_chain_that_runs_as_often_as_it_is_enqueued() {
    let s = Scene::new();
    let (mut rows, hits) = ([[0_u8; 32]; 3], AtomicU64::new(0));
    let rows = (&raw mut rows).cast::<[u8; 32]>();
    let queue = s.0.queue;
    assert!(!s.records(queue));
    let graph = s.record(queue, || {
        assert!(s.records(queue));
        s.0.memcpy(queue, (rows.wrapping_add(1), rows, 32), &[]).unwrap();
        s.0.memcpy(queue, (rows.wrapping_add(2), rows.wrapping_add(1), 32), &[]).unwrap();
        s.0.host_task(queue, count, at(&hits), &[]).unwrap();
    });
    assert!(!s.records(queue));
    assert_eq!(unsafe { rows.add(2).read_volatile() }, [0; 32], "recording runs nothing");
    for value in 1..=3_u8 {
        unsafe { rows.write_volatile([value; 32]) };
        s.run(graph);
        assert_eq!(unsafe { rows.add(2).read_volatile() }, [value; 32]);
    }
    for _ in 0..1000 {
        let event = s.enqueue(queue, graph, &[]).unwrap();
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
    s.0.finish(queue).unwrap();
    assert_eq!(hits.load(Acquire), 1003);
    s.drop_executable(graph);
}
#[test]
fn what_an_out_of_order_queue_recorded_overlaps_unless_events_or_barriers_order_it() {
    let s = Scene::new();
    let queue = s.0.out_of_order();
    let (meeting, seen) = ([AtomicU64::new(0), AtomicU64::new(2)], AtomicU64::new(0));
    let mut first_seen = 0_u64;
    let first_seen = &raw mut first_seen;
    let graph = s.record(queue, || {
        let one = s.0.host_task(queue, meet, at(&meeting), &[]).unwrap();
        let two = s.0.host_task(queue, meet, at(&meeting), &[]).unwrap();
        let behind = s.0.host_task(queue, count, at(&seen), &[one, two]).unwrap();
        s.barrier(queue, &[]).unwrap();
        s.0.memcpy(queue, (first_seen, at(&seen).cast::<u64>(), 8), &[]).unwrap();
        assert_eq!(code(s.0.status(behind)), R::ERROR_GRAPH_INTERNAL_EVENT);
    });
    for round in 1..=5 {
        meeting[0].store(0, Release);
        let start = Instant::now();
        s.run(graph);
        assert!(start.elapsed() < common::PATIENCE, "they waited for each other in vain");
        assert_eq!(unsafe { first_seen.read_volatile() }, round);
    }
    s.drop_executable(graph);
}
#[test]
fn queues_that_wait_for_recorded_events_are_drawn_in_and_must_be_waited_for() {
    let s = Scene::new();
    let (leader, other) = (s.0.queue, s.in_order());
    let (mut cells, one) = ([0_u64; 3], 41_u64);
    let cells = (&raw mut cells).cast::<u64>();
    let graph = s.record(leader, || {
        let fork = s.0.memcpy(leader, (cells, &raw const one, 8), &[]).unwrap();
        let moved = s.0.memcpy(other, (cells.wrapping_add(1), cells, 8), &[fork]).unwrap();
        assert!(s.records(other));
        let same = s.graph_of(other).unwrap();
        assert_eq!(same, s.graph_of(leader).unwrap());
        assert_eq!(code(s.end(other)), R::ERROR_INVALID_OPERATION);
        s.0.memcpy(leader, (cells.wrapping_add(2), cells.wrapping_add(1), 8), &[moved]).unwrap();
    });
    assert!(!s.records(other));
    assert_eq!(unsafe { cells.cast::<[u64; 3]>().read_volatile() }, [0; 3]);
    s.run(graph);
    assert_eq!(unsafe { cells.cast::<[u64; 3]>().read_volatile() }, [41; 3]);
    s.drop_executable(graph);
    // The same without the last wait.
    let kept = s.empty_graph();
    s.begin_into(leader, kept).unwrap();
    let fork = s.0.memcpy(leader, (cells, &raw const one, 8), &[]).unwrap();
    s.0.memcpy(other, (cells.wrapping_add(1), cells, 8), &[fork]).unwrap();
    assert_eq!(code(s.end(leader)), R::ERROR_GRAPH_UNJOINED_FORKS);
    assert!(!s.records(leader) && !s.records(other));
    assert_eq!(code(s.instantiate(kept)), R::ERROR_INVALID_ARGUMENT);
    assert_eq!(code(s.begin_into(leader, kept)), R::ERROR_INVALID_ARGUMENT);
    s.destroy(kept).unwrap();
}
impl Scene {
    fn empty_graph(&self) -> Graph {
        let mut graph = Graph::NULL;
        assert_eq!(call!(graph_exp.create_exp(self.0.ur.context, &mut graph)), R::SUCCESS);
        graph
    }
}
#[test]
fn a_graph_waits_for_events_of_others_and_signals_reusable_ones() {
    let s = Scene::new();
    let (queue, closed) = (s.0.out_of_order(), mems::Gate::lasting());
    let gate = closed.close(s.in_order());
    let desc = ur_exp_event_desc_t {
        stype: ur_structure_type_t::EXP_EVENT_DESC,
        pNext: null(),
        flags: Default::default(),
    };
    let (mut signalled, mut to) = (Event::NULL, 0_u64);
    let (context, device) = (s.0.ur.context, s.0.ur.device);
    assert_eq!(call!(event_exp.create_exp(context, device, &desc, &mut signalled)), R::SUCCESS);
    let (to, one) = (&raw mut to, 5_u64);
    let graph = s.record(queue, || {
        s.0.memcpy(queue, (to, &raw const one, 8), &[gate]).unwrap();
        let mut event = signalled;
        let code =
            call!(enqueue.events_wait_with_barrier_ext(queue, null(), 0, null(), &mut event));
        assert_eq!(code, R::SUCCESS);
    });
    let (submitted, complete) = (ur_event_status_t::SUBMITTED.0, ur_event_status_t::COMPLETE.0);
    assert_eq!(s.0.status(signalled), Ok(complete), "nothing has run yet");
    let whole = s.enqueue(s.0.queue, graph, &[]).unwrap();
    assert_eq!(s.0.status(signalled), Ok(submitted));
    closed.open();
    assert_eq!(call!(event.wait(1, &signalled)), R::SUCCESS);
    assert_eq!(unsafe { to.read_volatile() }, 5);
    s.0.codes.wait(whole);
    s.drop_executable(graph);
    assert_eq!(call!(event.release(signalled)), R::SUCCESS);
}
#[test]
fn command_buffers_and_graphs_are_recorded_as_they_are() {
    let s = Scene::new();
    let (mut to, queue, hits) = ([0_u8; 8], s.0.queue, AtomicU64::new(0));
    let to = &raw mut to;
    let buffer = s.0.loose();
    s.0.fill(buffer, (to, &6_u8, 8), after(&[])).unwrap();
    s.0.finalize(buffer).unwrap();
    let inner = s.record(queue, || {
        s.0.host_task(queue, count, at(&hits), &[]).unwrap();
    });
    let outer = s.record(queue, || {
        s.0.enqueue_on(queue, buffer, &[]).unwrap();
        s.enqueue(queue, inner, &[]).unwrap();
        s.enqueue(queue, inner, &[]).unwrap();
        s.0.memcpy(queue, (to.cast::<u8>(), to.cast::<u8>().wrapping_add(4), 4), &[]).unwrap();
    });
    s.0.release(buffer);
    s.drop_executable(inner);
    s.run(outer);
    assert_eq!((unsafe { to.read_volatile() }, hits.load(Acquire)), ([6; 8], 2));
    s.drop_executable(outer);
}
#[test]
fn what_cannot_be_recorded_is_refused_and_the_capture_goes_on() {
    let s = Scene::new();
    let (queue, other) = (s.0.queue, s.in_order());
    let at = s.0.ur.alloc(Usm::Shared, 64).unwrap();
    let unsupported = R::ERROR_GRAPH_CAPTURE_UNSUPPORTED;
    s.begin(queue).unwrap();
    assert_eq!(code(s.begin(queue)), R::ERROR_INVALID_OPERATION);
    assert_eq!(code(s.0.finish(queue)), unsupported);
    let from = at.wrapping_byte_add(32);
    let blocking = call!(enqueue.usm_memcpy(queue, true, at, from, 8, 0, null(), null_mut()));
    assert_eq!(blocking, unsupported);
    let mut event = Event::NULL;
    let stamp = call!(enqueue_exp.timestamp_recording_exp(queue, false, 0, null(), &mut event));
    assert_eq!(stamp, unsupported);
    let mut all = null_mut();
    let freed = call!(enqueue_exp.usm_free_exp(
        queue,
        ur_usm_pool_handle_t::NULL,
        at,
        0,
        null(),
        null_mut()
    ));
    assert_eq!(freed, unsupported);
    unsafe extern "C" fn never(_: Queue, _: *mut c_void) {
        panic!("a native command was called");
    }
    let native = call!(enqueue_exp.native_command_exp(
        queue,
        Some(never as unsafe extern "C" fn(Queue, *mut c_void)),
        null_mut(),
        0,
        null(),
        null(),
        0,
        null(),
        &mut event
    ));
    assert_eq!(native, unsupported);
    // Events of it are for it alone.
    let inside = s.0.memcpy(queue, (at, from, 8), &[]).unwrap();
    let internal = R::ERROR_GRAPH_INTERNAL_EVENT;
    assert_eq!(call!(event.wait(1, &inside)), internal);
    assert_eq!(code(s.0.status(inside)), internal);
    unsafe extern "C" fn hear(_: Event, _: ur_execution_info_t, _: *mut c_void) {}
    let heard = ur_execution_info_t::COMPLETE;
    let call: unsafe extern "C" fn(Event, ur_execution_info_t, *mut c_void) = hear;
    assert_eq!(call!(event.set_callback(inside, heard, Some(call), null_mut())), internal);
    s.begin(other).unwrap();
    let merged = s.0.memcpy(other, (at, from, 8), &[inside]);
    assert_eq!(code(merged), R::ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT);
    let second = s.end(other).unwrap();
    assert_eq!(s.is_empty(second), Ok(true));
    let graph = s.end(queue).unwrap();
    assert_eq!(s.is_empty(graph), Ok(false));
    assert_eq!(code(s.0.memcpy(other, (at, from, 8), &[inside])), internal);
    assert!(!s.records(other));
    assert_eq!(call!(event.release(inside)), R::SUCCESS);
    let executable = s.instantiate(graph).unwrap();
    s.run(executable);
    s.drop_executable(executable);
    [graph, second].into_iter().for_each(|graph| s.destroy(graph).unwrap());
    all = at.max(all);
    s.0.ur.free(all).unwrap();
}
#[test]
fn begins_and_ends_that_do_not_fit_are_refused() {
    let s = Scene::new();
    let (queue, other) = (s.0.queue, s.in_order());
    assert_eq!(code(s.end(queue)), R::ERROR_COMMAND_LIST_NOT_CAPTURING);
    assert_eq!(code(s.graph_of(queue)), R::ERROR_INVALID_OPERATION);
    assert_eq!(code(s.begin_into(queue, Graph::NULL)), R::ERROR_INVALID_NULL_HANDLE);
    assert_eq!(code(s.begin(Queue::NULL)), R::ERROR_INVALID_NULL_HANDLE);
    assert_eq!(code(s.begin_into(queue, ur_exp_graph_handle_t(queue.0))), R::ERROR_INVALID_GRAPH);
    let stranger = Scene::new().empty_graph();
    assert_eq!(code(s.begin_into(queue, stranger)), R::ERROR_INVALID_GRAPH);
    let graph = s.empty_graph();
    s.begin_into(queue, graph).unwrap();
    assert_eq!(code(s.begin_into(other, graph)), R::ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT);
    assert_eq!(code(s.instantiate(graph)), R::ERROR_INVALID_ARGUMENT);
    assert_eq!(code(s.destroy(graph)), R::ERROR_INVALID_ARGUMENT);
    assert_eq!(s.end(queue), Ok(graph));
    let executable = s.instantiate(graph).unwrap();
    s.run(executable); // of nothing
    let wrong = ur_exp_executable_graph_handle_t(graph.0);
    assert_eq!(code(s.enqueue(queue, wrong, &[])), R::ERROR_INVALID_GRAPH);
    assert_eq!(code(s.enqueue(queue, Executable::NULL, &[])), R::ERROR_INVALID_NULL_HANDLE);
    s.drop_executable(executable);
    assert_eq!(code(s.enqueue(queue, executable, &[])), R::ERROR_INVALID_GRAPH);
    s.destroy(graph).unwrap();
    assert_eq!(code(s.destroy(graph)), R::ERROR_INVALID_GRAPH);
    assert_eq!(code(s.is_empty(graph)), R::ERROR_INVALID_GRAPH);
}
#[test]
fn graphs_tell_who_and_what_they_are_and_when_they_go() {
    let s = Scene::new();
    let (queue, gone) = (s.0.out_of_order(), AtomicU64::new(0));
    let [graph, other] = [s.empty_graph(), s.empty_graph()];
    let id = |graph| {
        let mut id = 0;
        assert_eq!(call!(graph_exp.get_id_exp(graph, &mut id)), R::SUCCESS);
        id
    };
    assert_ne!(id(graph), id(other));
    let mut native = 0;
    assert_eq!(call!(graph_exp.get_native_handle_exp(graph, &mut native)), R::SUCCESS);
    assert_eq!(native, graph.0.addr());
    let call: unsafe extern "C" fn(*mut c_void) = count;
    let told = call!(graph_exp.set_destruction_callback_exp(graph, Some(call), at(&gone)));
    assert_eq!(told, R::SUCCESS);
    s.begin_into(queue, graph).unwrap();
    let mut bytes = [0_u8; 4];
    let to = &raw mut bytes;
    let one =
        s.0.memcpy(queue, (to.cast::<u8>(), to.cast::<u8>().wrapping_add(2), 2), &[]).unwrap();
    s.barrier(queue, &[one]).unwrap();
    s.end(queue).unwrap();
    assert_eq!(code(s.begin_into(queue, graph)), R::ERROR_INVALID_ARGUMENT, "it holds commands");
    let text = s.dump(graph);
    assert!(text.starts_with("digraph") && text.contains("n0 -> n1;"), "{text}");
    assert!(text.contains("MEMCPY") && text.contains("BARRIER"), "{text}");
    let nowhere = call!(graph_exp.dump_contents_exp(graph, c"/nowhere/at/all".as_ptr()));
    assert_eq!(nowhere, R::ERROR_INVALID_ARGUMENT);
    assert_eq!(gone.load(Acquire), 0);
    s.destroy(graph).unwrap();
    assert_eq!(gone.load(Acquire), 1);
    s.destroy(other).unwrap();
}
#[test]
fn a_queue_released_while_it_records_spoils_the_graph_and_lets_others_go() {
    let s = Scene::new();
    let (queue, other, graph) = (s.in_order(), s.in_order(), s.empty_graph());
    s.begin_into(queue, graph).unwrap();
    let fork = s.barrier(queue, &[]).unwrap();
    let drawn_in = s.barrier(other, &[fork]).unwrap();
    assert!(s.records(other));
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    for event in [fork, drawn_in] {
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
    assert!(!s.records(other));
    assert_eq!(code(s.begin_into(other, graph)), R::ERROR_INVALID_ARGUMENT);
    assert_eq!(code(s.instantiate(graph)), R::ERROR_INVALID_ARGUMENT);
    s.destroy(graph).unwrap();
}
/// The leader is not released while an event of its commands exists, but the application can no longer end its capture.
#[test]
fn a_capture_ends_when_its_queue_is_released_though_an_event_of_it_is_held() {
    let s = Scene::new();
    let (queue, other, graph) = (s.in_order(), s.in_order(), s.empty_graph());
    s.begin_into(queue, graph).unwrap();
    let fork = s.barrier(queue, &[]).unwrap();
    let drawn_in = s.barrier(other, &[fork]).unwrap();
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    assert!(!s.records(other));
    assert_eq!(code(s.barrier(other, &[fork])), R::ERROR_GRAPH_INTERNAL_EVENT);
    assert_eq!(code(s.barrier(other, &[drawn_in])), R::ERROR_GRAPH_INTERNAL_EVENT);
    let after = s.barrier(other, &[]).unwrap();
    s.0.codes.wait(after); // the other queue executes its commands again
    assert_eq!(code(s.instantiate(graph)), R::ERROR_INVALID_ARGUMENT);
    s.destroy(graph).unwrap();
    for event in [fork, drawn_in] {
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
}
#[test]
fn commands_of_a_queue_that_was_released_while_it_recorded_must_be_waited_for_too() {
    let s = Scene::new();
    for is_joined in [true, false] {
        let (leader, other, graph) = (s.in_order(), s.in_order(), s.empty_graph());
        s.begin_into(leader, graph).unwrap();
        let fork = s.barrier(leader, &[]).unwrap();
        let forked = s.barrier(other, &[fork]).unwrap();
        if is_joined {
            s.barrier(leader, &[forked]).unwrap();
        }
        assert_eq!(call!(event.release(forked)), R::SUCCESS);
        assert_eq!(call!(queue.release(other)), R::SUCCESS);
        match is_joined {
            true => assert_eq!(s.end(leader).unwrap(), graph),
            false => assert_eq!(code(s.end(leader)), R::ERROR_GRAPH_UNJOINED_FORKS),
        }
        s.destroy(graph).unwrap();
    }
}
#[test]
fn a_command_follows_few_others_however_long_the_recording() {
    const MANY: usize = 100;
    let s = Scene::new();
    let queue = s.0.out_of_order();
    // Waits for everything before: each command needs to follow only the one before.
    s.begin(queue).unwrap();
    for _ in 0..MANY {
        let code = call!(enqueue.events_wait(queue, 0, null(), null_mut()));
        assert_eq!(code, R::SUCCESS);
    }
    let graph = s.end(queue).unwrap();
    assert_eq!(s.dump(graph).matches("->").count(), MANY - 1);
    s.destroy(graph).unwrap();
    // Commands after a child with many ends.
    let (mut byte, buffer) = (0_u8, s.0.loose());
    let mut append = |before: &[u32]| {
        let mut point = 0;
        let function: unsafe extern "C" fn(*mut c_void) = add_many;
        let mut native = (&s, s.0.loose(), &raw mut byte, MANY);
        let (count, points) = (before.len() as u32, list(before));
        assert_eq!(
            call!(command_buffer_exp.append_native_command_exp(
                buffer,
                Some(function),
                (&raw mut native).cast(),
                native.1,
                count,
                points,
                &mut point
            )),
            R::SUCCESS
        );
        s.0.release(native.1);
        point
    };
    let first = append(&[]);
    append(&[first]);
    s.0.finalize(buffer).unwrap();
    s.begin(queue).unwrap();
    s.0.enqueue_on(queue, buffer, &[]).unwrap();
    let graph = s.end(queue).unwrap();
    assert!(s.dump(graph).matches("->").count() < 5 * MANY, "{}", s.dump(graph));
    s.destroy(graph).unwrap();
    s.0.release(buffer);
}
unsafe extern "C" fn add_many(native: *mut c_void) {
    let (s, child, byte, many) = unsafe { *native.cast::<(&Scene, Buffer, *mut u8, usize)>() };
    for _ in 0..many {
        s.0.fill(child, (byte, &7_u8, 1), after(&[])).unwrap();
    }
}
