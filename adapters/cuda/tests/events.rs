//! Events and order as a C program has them, and events that processes share: between two processes on CUDA, and
//! between one on CUDA and one on the CPU. This very binary, run again, is the other process. On whatever driver of CUDA
//! there is; without a device the tests say so and are skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;

use c::TABLE as CUDA_TABLE;
use std::{
    ffi::c_void,
    io::{BufRead, BufReader, Write},
    mem::ManuallyDrop,
    process::{Child, Command, Stdio},
    ptr::{null, null_mut},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*},
    },
    time::{Duration, Instant},
};
use ur_cpu::TABLE as CPU_TABLE;
use ur_ipc::{
    Access, ArrivedPayload, Export, Importer, Kind, Offer, Opened, Payload,
    arena::{self, Captured, PendingSignal, Progress, Slot, protocol},
};
use ur_lock::locked;
use ur_sys::{ur_event_status_t as Status, ur_result_t as R, *};

/// An adapter with one context and one queue.
struct Side {
    table: &'static ur_dditable_t,
    device: ur_device_handle_t,
    context: ur_context_handle_t,
    queue: ur_queue_handle_t,
}
macro_rules! of {
    ($side:expr, $table:ident . $slot:ident ( $($argument:expr),* $(,)? )) => {
        unsafe { ($side.table.$table.$slot.expect("no slot is empty"))($($argument),*) }
    };
}
macro_rules! must {
    ($($call:tt)*) => { assert_eq!(of!($($call)*), R::SUCCESS) };
}
const NONE: ur_event_handle_t = ur_event_handle_t::NULL;
type Event = ur_event_handle_t;

fn list(events: &[Event]) -> (u32, *const Event) {
    (events.len() as u32, if events.is_empty() { null() } else { events.as_ptr() })
}
/// Waits until it is so; far longer than anything takes.
fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}
/// Holds a queue up until it is opened.
struct Gate(Arc<AtomicBool>);
impl Gate {
    fn open(&self) {
        self.0.store(true, Release);
    }
}
impl Drop for Gate {
    fn drop(&mut self) {
        self.open(); // a test that fails must not leave a driver's thread behind
    }
}
unsafe extern "C" fn pass(data: *mut c_void) {
    let gate = unsafe { Arc::from_raw(data.cast_const().cast::<AtomicBool>()) };
    while !gate.load(Acquire) {
        std::thread::sleep(Duration::from_micros(100));
    }
}

impl Side {
    /// `None`, with a word, where there is no device.
    fn new(table: &'static ur_dditable_t, flags: ur_queue_flags_t) -> Option<Self> {
        let mut side = Self {
            table,
            device: ur_device_handle_t::NULL,
            context: ur_context_handle_t::NULL,
            queue: ur_queue_handle_t::NULL,
        };
        let (mut adapter, mut platform, mut n) =
            (ur_adapter_handle_t::NULL, ur_platform_handle_t::NULL, 0);
        must!(side, adapter.get(1, &mut adapter, null_mut()));
        must!(side, platform.get(adapter, 1, &mut platform, &mut n));
        let all = ur_device_type_t::ALL;
        if n == 0
            || of!(side, device.get(platform, all, 1, &mut side.device, null_mut())) != R::SUCCESS
        {
            assert!(std::env::var_os("CAUSEWAY_CUDA").is_none(), "there is no device of CUDA");
            println!("skipped: there is no device of CUDA");
            return None;
        }
        must!(side, context.create(1, &side.device, null(), &mut side.context));
        side.queue = side.another_queue(flags);
        Some(side)
    }
    fn cuda() -> Option<Self> {
        Self::new(&CUDA_TABLE, ur_queue_flags_t::default())
    }
    fn another_queue(&self, flags: ur_queue_flags_t) -> ur_queue_handle_t {
        let stype = ur_structure_type_t::QUEUE_PROPERTIES;
        let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
        let mut queue = ur_queue_handle_t::NULL;
        must!(self, queue.create(self.context, self.device, &properties, &mut queue));
        queue
    }
    fn gate(&self, queue: ur_queue_handle_t) -> Gate {
        let gate = Gate(Arc::default());
        let data = Arc::into_raw(gate.0.clone()).cast_mut().cast();
        must!(
            self,
            enqueue_exp.host_task_exp(queue, Some(pass), data, null(), 0, null(), null_mut())
        );
        gate
    }
    fn made(&self, flags: ur_exp_event_flags_t) -> Event {
        let stype = ur_structure_type_t::EXP_EVENT_DESC;
        let desc = ur_exp_event_desc_t { stype, pNext: null(), flags };
        let mut event = NONE;
        must!(self, event_exp.create_exp(self.context, self.device, &desc, &mut event));
        event
    }
    /// A barrier in `queue` that signals `event`.
    fn signal(&self, queue: ur_queue_handle_t, mut event: Event) {
        must!(self, enqueue.events_wait_with_barrier_ext(queue, null(), 0, null(), &mut event));
    }
    /// A command of `queue` that waits for `event`.
    fn follow(&self, queue: ur_queue_handle_t, event: Event) -> Event {
        let (events, mut made) = ([event], NONE);
        let (count, first) = list(&events);
        must!(self, enqueue.events_wait(queue, count, first, &mut made));
        made
    }
    fn wait(&self, event: Event) -> R {
        of!(self, event.wait(1, &event))
    }
    fn status(&self, event: Event) -> Status {
        let (name, mut status) = (ur_event_info_t::COMMAND_EXECUTION_STATUS, 0_u32);
        must!(self, event.get_info(event, name, 4, (&raw mut status).cast(), null_mut()));
        Status(status as _)
    }
    fn release(&self, event: Event) {
        must!(self, event.release(event));
    }
    fn ticket(&self, event: Event) -> String {
        let (mut data, mut bytes) = (null_mut(), 0);
        must!(self, ipc_exp.get_event_handle_exp(event, &mut data, &mut bytes));
        hex::encode(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) })
    }
    fn opened(&self, ticket: &str) -> Event {
        let bytes = hex::decode(ticket).unwrap();
        let (at, mut event) = (bytes.as_ptr().cast(), NONE);
        must!(self, ipc_exp.open_event_handle_exp(self.context, at, bytes.len(), &mut event));
        event
    }
}

/// The other process, on the CPU or on CUDA.
struct Other(Child, BufReader<std::process::ChildStdout>);
impl Other {
    fn new(backend: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "role", "--nocapture"]).env("CAUSEWAY_ROLE", backend);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self(child, out)
    }
    fn ask(&mut self, what: &str) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "{what}").unwrap();
        let answer = |line: String| line.split_once("answer ").map(|(_, text)| text.to_owned());
        let lines = (&mut self.1).lines().map(Result::unwrap);
        lines.into_iter().find_map(answer).expect("the other process answers")
    }
    fn kill(mut self) {
        self.0.kill().unwrap();
    }
}
impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}
#[test]
fn role() {
    let Some(backend) = std::env::var_os("CAUSEWAY_ROLE") else {
        return; // nobody's other process
    };
    let table = if backend == "cpu" { &CPU_TABLE } else { &CUDA_TABLE };
    let side = Side::new(table, ur_queue_flags_t::default()).expect("the other process has one");
    let (mut event, mut follower, mut gate) = (NONE, NONE, None);
    let (mut bare, mut place) = (None, None);
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<_> = line.split(' ').collect();
        match *words {
            ["make"] => {
                event = side.made(ur_exp_event_flags_t::IPC_EXP);
                println!("answer {}", side.ticket(event));
                continue;
            }
            ["make-bare"] => {
                let made = bare.insert(make_bare());
                println!("answer {}", hex::encode(made.1.bytes()));
                continue;
            }
            ["forget-importers"] => place = Some(reuse(bare.take().expect("it was made"))),
            ["place"] => {
                let now = place.as_ref().expect("it was reused").capture().unwrap();
                println!("answer {now:?}");
                continue;
            }
            ["open", ticket] => event = side.opened(ticket),
            ["gated-signal"] => {
                gate = Some(side.gate(side.queue));
                side.signal(side.queue, event);
            }
            ["lost-signal"] => {
                let Side { device, context, queue, .. } = side;
                let one = ManuallyDrop::new(c::One { device, context, queue }); // the side releases them
                let lose = one.ready_to_lose();
                gate = Some(side.gate(side.queue));
                lose();
                side.signal(side.queue, event);
            }
            ["own-status"] => {
                println!("answer {:?}", side.status(event));
                continue;
            }
            ["signal"] => side.signal(side.queue, event),
            ["let-through"] => drop(gate.take()),
            ["follow"] => follower = side.follow(side.queue, event),
            ["status"] => {
                println!("answer {:?}", side.status(follower));
                continue;
            }
            ["finish"] => {
                println!("answer {:?}", of!(side, queue.finish(side.queue)));
                continue;
            }
            _ => panic!("{line:?} is nothing that is done here"),
        }
        println!("answer done");
    }
}

/// An event without any adapter, and its export.
fn make_bare() -> (Slot, Export) {
    let slot = arena::slot(Access::SameUser).unwrap();
    let export = ur_ipc::export(Offer {
        kind: Kind::Event,
        backend: 0x7ffd,
        device: [0; 16],
        object: 1 << 40,
        offset: 0,
        length: 0,
        size: 0,
        payload: Payload::Event(slot.clone()),
        access: Access::SameUser,
    });
    (slot, export.unwrap())
}
/// Takes every importer for gone and lets go of the event; the next event in its place.
fn reuse((slot, export): (Slot, Export)) -> Slot {
    let (arena, index) = (slot.arena().clone(), slot.index());
    (1..64).for_each(|participant| arena.participant_died(participant));
    drop((slot, export));
    let mut others = vec![];
    loop {
        let next = arena::slot(Access::SameUser).expect("there are places left");
        if next.index() == index {
            return next;
        }
        others.push(next);
    }
}

/// Both have the event, `here` and the other process; whoever made it.
fn both(here: &Side, backend: &str, made_here: bool) -> (Other, Event) {
    let mut other = Other::new(backend);
    if made_here {
        let event = here.made(ur_exp_event_flags_t::IPC_EXP);
        other.ask(&format!("open {}", here.ticket(event)));
        return (other, event);
    }
    let event = here.opened(&other.ask("make"));
    (other, event)
}

#[test]
fn a_queue_waits_for_the_signal_of_another_process_and_the_other_way_round() {
    let Some(here) = Side::cuda() else { return };
    for (backend, made_here) in [("cuda", true), ("cuda", false), ("cpu", true), ("cpu", false)] {
        let (mut other, event) = both(&here, backend, made_here);
        assert_eq!(here.status(event), Status::COMPLETE, "never signalled");
        // Theirs, here waited for, again and again.
        for _ in 0..3 {
            other.ask("gated-signal");
            let follower = here.follow(here.queue, event);
            assert_eq!(here.status(event), Status::SUBMITTED);
            assert_eq!(here.status(follower), Status::SUBMITTED);
            other.ask("let-through");
            assert_eq!(here.wait(follower), R::SUCCESS);
            assert_eq!(here.status(event), Status::COMPLETE);
            here.release(follower);
        }
        // Ours, there waited for.
        let gate = here.gate(here.queue);
        here.signal(here.queue, event);
        other.ask("follow");
        assert_eq!(other.ask("status"), format!("{:?}", Status::SUBMITTED));
        gate.open();
        assert_eq!(other.ask("finish"), format!("{:?}", R::SUCCESS));
        assert_eq!(other.ask("status"), format!("{:?}", Status::COMPLETE));
        // A thread that waits, here.
        other.ask("gated-signal");
        std::thread::scope(|scope| {
            let event = event.0.addr();
            let waiter = scope.spawn(move || {
                let event = ur_event_handle_t(std::ptr::with_exposed_provenance_mut(event));
                // The side's handles are of this thread's table too.
                unsafe { (CUDA_TABLE.event.wait.unwrap())(1, &event) }
            });
            other.ask("let-through");
            assert_eq!(waiter.join().unwrap(), R::SUCCESS);
        });
        here.release(event);
    }
}
/// The other process uses nothing that would tell it that its device is lost.
#[test]
fn a_signal_of_a_lost_device_fails_for_those_who_wait_and_for_its_own_process() {
    let Some(here) = Side::cuda() else { return };
    let (mut other, event) = both(&here, "cuda", false);
    other.ask("lost-signal");
    let follower = here.follow(here.queue, event);
    assert_eq!(here.status(event), Status::SUBMITTED);
    other.ask("let-through");
    eventually("it has failed", || here.status(event) == Status::ERROR);
    assert_eq!(here.wait(event), R::ERROR_IN_EVENT_LIST_EXEC_STATUS);
    assert_eq!(here.wait(follower), R::ERROR_IN_EVENT_LIST_EXEC_STATUS);
    assert_eq!(other.ask("own-status"), format!("{:?}", Status::ERROR));
    [event, follower].into_iter().for_each(|event| here.release(event));
}
/// A driver that is asked to (`SOFT_CUDA_NAP`) has its streams look at words seldom.
#[test]
fn a_stream_may_notice_a_signal_later_than_the_host_does() {
    let Some(here) = Side::cuda() else { return };
    for backend in ["cuda", "cpu"] {
        let (mut other, event) = both(&here, backend, false);
        for _ in 0..3 {
            other.ask("gated-signal");
            let follower = here.follow(here.queue, event);
            other.ask("let-through");
            eventually("the signal comes", || here.status(event) == Status::COMPLETE);
            // It finds that nothing is owed any more; the stream does not know it yet.
            must!(here, enqueue.events_wait_with_barrier(here.queue, 0, null(), null_mut()));
            assert_eq!(here.wait(follower), R::SUCCESS);
            must!(here, queue.finish(here.queue));
            here.release(follower);
        }
        here.release(event);
    }
}
#[test]
fn a_queue_behind_a_dead_process_goes_on_and_says_what_was_lost() {
    let Some(here) = Side::cuda() else { return };
    for (backend, made_here) in [("cuda", true), ("cuda", false), ("cpu", true), ("cpu", false)] {
        let (mut other, event) = both(&here, backend, made_here);
        other.ask("gated-signal");
        let first = here.follow(here.queue, event);
        let second = here.follow(here.queue, first);
        let elsewhere = here.another_queue(ur_queue_flags_t::default());
        let third = here.follow(elsewhere, second);
        let died = Instant::now();
        other.kill();
        let lost = R::ERROR_IN_EVENT_LIST_EXEC_STATUS;
        assert_eq!(of!(here, queue.finish(here.queue)), lost, "{backend} {made_here}");
        assert_eq!(of!(here, queue.finish(elsewhere)), lost);
        for event in [event, first, second, third] {
            assert_eq!(here.status(event), Status::ERROR);
            assert_eq!(here.wait(event), lost);
        }
        println!("{backend} {made_here}: told {:?} after the kill", died.elapsed());
        // Said once; the queue is as good as before.
        assert_eq!(of!(here, queue.finish(here.queue)), R::SUCCESS);
        [event, first, second, third].into_iter().for_each(|event| here.release(event));
        must!(here, queue.release(elsewhere));
    }
}
#[test]
fn a_signal_of_an_event_whose_place_is_another_events_by_now_is_refused_and_changes_nothing_there()
{
    let Some(here) = Side::cuda() else { return };
    let mut other = Other::new("cuda");
    let mut event = here.opened(&other.ask("make-bare"));
    here.signal(here.queue, event);
    assert_eq!(here.wait(event), R::SUCCESS);
    other.ask("forget-importers");
    let mut signal = || {
        let queue = here.queue;
        of!(here, enqueue.events_wait_with_barrier_ext(queue, null(), 0, null(), &mut event))
    };
    assert_eq!(signal(), R::ERROR_INVALID_EVENT, "in an idle queue");
    let gate = here.gate(here.queue);
    assert_eq!(signal(), R::ERROR_INVALID_EVENT, "behind something");
    assert_eq!(other.ask("place"), "Complete", "never signalled");
    gate.open();
    must!(here, queue.finish(here.queue)); // the barriers are in the stream, and disturb nobody
    assert_eq!(other.ask("place"), "Complete", "never signalled");
    here.release(event);
}
/// What is owed by the latest signal of the event behind a ticket, as this process sees it without any adapter.
fn owed(ticket: &str) -> PendingSignal {
    static EVENTS: Importer<Slot> = Importer::of_any_backend(Kind::Event, u16::MAX);
    let bytes = hex::decode(ticket).unwrap();
    let opened = EVENTS.open(
        &bytes,
        |_| Ok(()),
        |arrived, ()| match arrived.payload {
            ArrivedPayload::Event(slot) => Ok::<_, ur_ipc::Error>(slot),
            other => panic!("{other:?}"),
        },
    );
    let Ok((Opened::Remote(slot), ())) = opened else { panic!("another process's event") };
    match slot.capture().unwrap() {
        Captured::PendingSignal(debt) => debt,
        Captured::Complete => panic!("it is signalled and not complete"),
    }
}
/// A driver's device may go on after the process that gave it work. The software driver's ends with its process: this one
/// writes in its place, into the same memory, what it was told to.
#[test]
fn a_late_write_of_a_dead_process_device_completes_what_it_reached_and_hangs_nobody() {
    let Some(here) = Side::cuda() else { return };
    let mut other = Other::new("cuda");
    let tickets = ["gated-signal", "signal"].map(|signal| {
        let ticket = other.ask("make");
        other.ask(signal);
        ticket
    });
    let [first, second] = tickets.each_ref().map(|ticket| owed(ticket.as_str()));
    assert_eq!(first.word_address(), second.word_address(), "one queue has one counter");
    assert!(first.value() < second.value());
    let [one, two] = tickets.each_ref().map(|ticket| here.opened(ticket));
    // A stream that does not look at the word before all is over, and one that has looked at it from the beginning.
    let (behind, waiting) = (here.another_queue(ur_queue_flags_t::default()), here.queue);
    let gate = here.gate(behind);
    let followers = [here.follow(behind, two), here.follow(waiting, two)];
    assert_eq!(here.status(followers[1]), Status::SUBMITTED);
    other.kill();
    eventually("its death is known", || second.progress() == Progress::Failed);
    let word = std::ptr::with_exposed_provenance::<AtomicU64>(first.word_address());
    let late = protocol::word_of(first.value());
    unsafe { &*word }.store(late, Release); // all that is said in the word goes with it
    assert_eq!(first.progress(), Progress::Complete, "it was reached after all");
    assert_eq!(second.progress(), Progress::Failed, "the death is not forgotten");
    assert_eq!(second.wait(Some(Instant::now() + Duration::from_secs(20))), Progress::Failed);
    assert_eq!(here.wait(two), R::ERROR_IN_EVENT_LIST_EXEC_STATUS);
    assert_eq!(here.wait(one), R::SUCCESS);
    gate.open();
    for follower in followers {
        eventually("the stream goes on", || here.status(follower) == Status::ERROR);
        here.release(follower);
    }
    for queue in [behind, waiting] {
        assert_eq!(of!(here, queue.finish(queue)), R::ERROR_IN_EVENT_LIST_EXEC_STATUS);
    }
    [one, two].into_iter().for_each(|event| here.release(event));
    must!(here, queue.release(behind));
}
#[test]
fn copies_of_memory_that_the_driver_does_not_know_never_have_the_caller_wait() {
    let Some(here) = Side::cuda() else { return };
    let (mut on_device, bytes) = (null_mut(), (9 << 20) + 3);
    let pool = ur_usm_pool_handle_t::NULL;
    must!(here, usm.device_alloc(here.context, here.device, null(), pool, bytes, &mut on_device));
    let from: Vec<u8> = (0..bytes).map(|n| (n * 7 % 251) as u8).collect();
    let (mut to, mut aside) = (vec![0_u8; bytes], vec![0_u8; bytes]);
    let gate = here.gate(here.queue);
    let (queue, up, down) = (here.queue, from.as_ptr().cast(), to.as_mut_ptr().cast());
    must!(here, enqueue.usm_memcpy(queue, false, on_device, up, bytes, 0, null(), null_mut()));
    must!(here, enqueue.usm_memcpy(queue, false, down, on_device, bytes, 0, null(), null_mut()));
    // From there to there, which no device has to do with; and rows, of which every other byte is left out.
    let beside = aside.as_mut_ptr().cast();
    must!(
        here,
        enqueue.usm_memcpy(queue, false, beside, down.cast_const(), 4096, 0, null(), null_mut())
    );
    let (rows, at) = (bytes / 2000, aside[4096..].as_mut_ptr().cast());
    let copied = of!(
        here,
        enqueue.usm_memcpy_2d(
            queue,
            false,
            at,
            1000,
            on_device,
            2000,
            1000,
            rows,
            0,
            null(),
            null_mut()
        )
    );
    assert_eq!(copied, R::SUCCESS);
    assert!(to.iter().all(|byte| *byte == 0), "nothing is done before the gate is open");
    gate.open();
    must!(here, queue.finish(queue));
    assert!(to == from);
    assert!(aside[..4096] == from[..4096]);
    for row in 0..rows {
        assert!(aside[4096 + row * 1000..][..1000] == from[row * 2000..][..1000], "row {row}");
    }
    must!(here, usm.free(here.context, on_device));
}
/// The driver registers the words' memory once: the first queue that uses it has it registered, and with the last one that
/// goes it is registered no more.
#[test]
fn queues_of_many_threads_signal_shared_events_as_others_come_and_go() {
    const THREADS: usize = 8;
    let (turn, refused) = (std::sync::Barrier::new(THREADS), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let Some(here) = Side::cuda() else { return };
                for _ in 0..40 {
                    let queue = here.another_queue(ur_queue_flags_t::default());
                    let mut event = here.made(ur_exp_event_flags_t::IPC_EXP);
                    turn.wait(); // no panic until all have ended: the others would wait for ever
                    let enqueue = here.table.enqueue.events_wait_with_barrier_ext.unwrap();
                    let done = unsafe { enqueue(queue, null(), 0, null(), &mut event) };
                    refused.fetch_add(u32::from(done != R::SUCCESS), Relaxed); // read after the threads
                    of!(here, queue.finish(queue));
                    of!(here, queue.release(queue));
                    of!(here, event.release(event));
                }
            });
        }
    });
    assert_eq!(refused.into_inner(), 0);
}
#[test]
fn memory_is_filled_with_patterns_of_any_length() {
    let Some(here) = Side::cuda() else { return };
    let (mut at, pool) = (null_mut(), ur_usm_pool_handle_t::NULL);
    let room = 1 << 20;
    must!(here, usm.device_alloc(here.context, here.device, null(), pool, room, &mut at));
    for length in [1, 2, 3, 4, 5, 8, 12, 16, 63, 64, 65, 1000, 70_000] {
        for offset in [0, 1, 2, 4] {
            let pattern: Vec<u8> = (0..length).map(|n| (n * 5 + length) as u8).collect();
            let (count, start) = (3.max(600 / length), at.wrapping_byte_add(offset));
            let bytes = length * count;
            let (queue, mut back) = (here.queue, vec![0_u8; bytes]);
            let first = pattern.as_ptr().cast();
            must!(
                here,
                enqueue.usm_fill(queue, start, length, first, bytes, 0, null(), null_mut())
            );
            let to = back.as_mut_ptr().cast();
            must!(here, enqueue.usm_memcpy(queue, true, to, start, bytes, 0, null(), null_mut()));
            assert!(back.chunks(length).all(|part| part == pattern), "{length} at {offset}");
        }
    }
    must!(here, usm.free(here.context, at));
}
#[test]
fn the_times_of_a_command_are_in_order_and_of_the_devices_clock() {
    let Some(here) = Side::new(&CUDA_TABLE, ur_queue_flags_t::PROFILING_ENABLE) else { return };
    let clock = || {
        let mut now = 0_u64;
        must!(here, device.get_global_timestamps(here.device, &mut now, null_mut()));
        now
    };
    let before = clock();
    let mut made = NONE;
    must!(here, enqueue.events_wait(here.queue, 0, null(), &mut made));
    assert_eq!(here.wait(made), R::SUCCESS);
    let after = clock();
    let time = |event, name| {
        let (mut time, to) = (0_u64, null_mut());
        let at = (&raw mut time).cast();
        must!(here, event.get_profiling_info(event, name, 8, at, to));
        time
    };
    use ur_profiling_info_t as P;
    let times = [P::COMMAND_QUEUED, P::COMMAND_SUBMIT, P::COMMAND_START, P::COMMAND_END];
    let times = times.map(|name| time(made, name));
    assert!(times.is_sorted(), "{times:?}");
    assert!(before <= times[2] && times[3] <= after, "{before} {times:?} {after}");
    // A timed signal is one moment.
    let moment = here.made(ur_exp_event_flags_t::ENABLE_PROFILING);
    here.signal(here.queue, moment);
    assert_eq!(here.wait(moment), R::SUCCESS);
    let times = [P::COMMAND_SUBMIT, P::COMMAND_START, P::COMMAND_END].map(|n| time(moment, n));
    assert!(times[0] == times[1] && times[1] == times[2], "{times:?}");
    [made, moment].into_iter().for_each(|event| here.release(event));
}
/// The software driver's clock, which can be put forward so that no test waits for hours. It is the whole process's:
/// one test at a time has it.
struct Clock {
    driver: libloading::Library,
    _turn: std::sync::MutexGuard<'static, ()>,
}
impl Clock {
    /// With a queue that takes times; none without a device, or with a driver whose clock stays as it is.
    fn with_queue() -> Option<(Self, Side)> {
        static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = locked(&TURN);
        let here = Side::new(&CUDA_TABLE, ur_queue_flags_t::PROFILING_ENABLE)?;
        let driver = unsafe { libloading::Library::new("libcuda.so.1") }.unwrap();
        if unsafe { driver.get::<unsafe extern "C" fn(u64)>(b"softCudaAdvance") }.is_err() {
            println!("skipped: this driver's clock cannot be put forward by hours");
            return None;
        }
        Some((Self { driver, _turn }, here))
    }
    /// Puts it forward once a base that was taken before is old, which takes a second.
    fn advance(&self, nanoseconds: u64) {
        std::thread::sleep(Duration::from_millis(1100));
        let call = unsafe { self.driver.get::<unsafe extern "C" fn(u64)>(b"softCudaAdvance") };
        unsafe { call.unwrap()(nanoseconds) };
    }
}
#[test]
fn the_first_times_after_a_pause_of_hours_are_as_exact_as_any() {
    let Some((clock, here)) = Clock::with_queue() else { return };
    let timed = || {
        let (begun, mut task) = (Instant::now(), NONE);
        let (queue, none) = (here.queue, null_mut());
        must!(
            here,
            enqueue_exp.host_task_exp(queue, Some(rest), none, null(), 0, null(), &mut task)
        );
        assert_eq!(here.wait(task), R::SUCCESS);
        let most = begun.elapsed().as_nanos() as u64;
        let time = |name| {
            let (mut time, to) = (0_u64, null_mut());
            let at = (&raw mut time).cast();
            must!(here, event.get_profiling_info(task, name, 8, at, to));
            time
        };
        use ur_profiling_info_t as P;
        let (start, end) = (time(P::COMMAND_START), time(P::COMMAND_END));
        here.release(task);
        (end - start, most, start)
    };
    let (.., before) = timed();
    let pause = 3 * 3600 * 1_000_000_000_u64;
    clock.advance(pause);
    let mut all = [0; 3];
    for one in &mut all {
        let (took, most, start) = timed();
        assert!(took >= REST.as_nanos() as u64 - 2000 && took <= most + 2000, "{took} of {most}");
        assert!(start > before + pause, "{before} {start}");
        *one = took;
    }
    // Told from before the pause, times would be multiples of a millisecond; one may be by chance.
    assert!(all.iter().filter(|took| *took % 250_000 == 0).count() < 2, "{all:?}");
}
/// The device's clock and the host's, read together.
fn clocks(here: &Side) -> (u64, u64) {
    let (mut device, mut host) = (0, 0);
    must!(here, device.get_global_timestamps(here.device, &mut device, &mut host));
    (device, host)
}
#[test]
fn a_pause_of_hours_is_told_far_more_exactly_than_the_driver_tells_it() {
    let Some((clock, here)) = Clock::with_queue() else { return };
    // The driver tells such a pause in steps of 4 ms: one time of two hundred it would be as near by chance. On a busy
    // machine this thread is put off between the two clocks far more often than not.
    let (pause, allowed) = (10 * 3600 * 1_000_000_000_u64, 10_000);
    let mut seen = vec![];
    while seen.iter().filter(|off| **off <= allowed).count() < 3 {
        assert!(seen.len() < 192, "{seen:?} ns off");
        let before = clocks(&here);
        clock.advance(pause);
        let after = clocks(&here);
        seen.push((after.0 - before.0).abs_diff(pause + after.1 - before.1));
    }
}
/// How long [`rest`] takes at least; no multiple of what a far base would be exact to.
const REST: Duration = Duration::from_micros(321);
unsafe extern "C" fn rest(_data: *mut c_void) {
    let begun = Instant::now();
    while begun.elapsed() < REST {
        std::hint::spin_loop();
    }
}
unsafe extern "C" fn count(_event: Event, _status: ur_execution_info_t, data: *mut c_void) {
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, AcqRel);
}
#[test]
fn callbacks_come_once_each_when_the_event_is_over() {
    let Some(here) = Side::cuda() else { return };
    let (calls, gate) = (AtomicU32::new(0), here.gate(here.queue));
    let mut made = NONE;
    must!(here, enqueue.events_wait(here.queue, 0, null(), &mut made));
    let data = || (&raw const calls).cast_mut().cast();
    use ur_execution_info_t as E;
    must!(here, event.set_callback(made, E::SUBMITTED, Some(count), data()));
    eventually("it is submitted", || calls.load(Acquire) == 1);
    must!(here, event.set_callback(made, E::COMPLETE, Some(count), data()));
    must!(here, event.set_callback(made, E::RUNNING, Some(count), data()));
    assert_eq!(here.status(made), Status::SUBMITTED);
    assert_eq!(calls.load(Acquire), 1);
    gate.open();
    eventually("both are called", || calls.load(Acquire) == 3);
    here.release(made);
}
#[test]
fn barriers_order_all_lanes_of_a_queue_that_has_several() {
    let flags = ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let Some(here) = Side::new(&CUDA_TABLE, flags) else { return };
    let queue = here.queue;
    let gate = here.gate(queue);
    let (mut before, mut barrier, mut free) = (NONE, NONE, NONE);
    let (count, first) = list(&[]);
    // A wait without a list is behind everything, the gate too; a barrier as well, and before what follows.
    must!(here, enqueue.events_wait(queue, count, first, &mut before));
    must!(here, enqueue.events_wait_with_barrier(queue, count, first, &mut barrier));
    let behind = here.follow(queue, barrier);
    must!(here, enqueue.events_wait_with_barrier(queue, count, first, &mut free));
    for event in [before, barrier, behind, free] {
        assert_eq!(here.status(event), Status::SUBMITTED);
    }
    gate.open();
    must!(here, queue.finish(queue));
    for event in [before, barrier, behind, free] {
        assert_eq!(here.status(event), Status::COMPLETE);
        here.release(event);
    }
}
#[test]
fn a_queue_over_a_stream_of_c_leaves_the_stream_to_c() {
    let Some(here) = Side::cuda() else { return };
    let (mut native, mut over) = (0 as ur_native_handle_t, ur_queue_handle_t::NULL);
    must!(here, queue.get_native_handle(here.queue, null_mut(), &mut native));
    for _ in 0..3 {
        must!(
            here,
            queue.create_with_native_handle(native, here.context, here.device, null(), &mut over)
        );
        let gate = here.gate(over);
        let mut made = NONE;
        must!(here, enqueue.events_wait(over, 0, null(), &mut made));
        assert_eq!(here.status(made), Status::SUBMITTED);
        must!(here, queue.release(over));
        gate.open();
        assert_eq!(here.wait(made), R::SUCCESS);
        here.release(made);
        must!(here, queue.finish(here.queue));
    }
}
