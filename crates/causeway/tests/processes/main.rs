//! The behaviour of the crate between processes. If a role is set in the environment, this program is the other
//! process: it takes orders, one per line, and answers in lines.
mod peer;

use causeway::{
    Buffer, Code, Context, Device, Error, ErrorKind, Event, HandOver, PhysicalMemory, Queue,
    Rights, Status, Ticket,
};
use libtest_mimic::{Arguments, Failed, Trial};
use peer::Peer;
use std::{
    process::ExitCode,
    sync::mpsc,
    time::{Duration, Instant},
};

fn main() -> ExitCode {
    if peer::is_role() {
        return peer::serve();
    }
    let tests: Vec<Trial> = [
        ("memory_is_the_same_in_both", memory_is_the_same_in_both as fn()),
        ("a_shared_slice_opens_as_that_slice", a_shared_slice_opens_as_that_slice),
        ("a_withdrawn_ticket_opens_nothing", a_withdrawn_ticket_opens_nothing),
        ("an_allocation_knows_whether_another_process_has_it_open", is_open_elsewhere),
        ("what_is_open_outlives_the_sharers_death", what_is_open_outlives_the_sharers_death),
        ("a_dead_sharers_ticket_opens_nothing", a_dead_sharers_ticket_opens_nothing),
        ("physical_memory_is_the_same_in_both", physical_memory_is_the_same_in_both),
        ("work_waits_for_a_signal_of_the_other", work_waits_for_a_signal_of_the_other),
        ("death_of_the_debtor_ends_the_wait", death_of_the_debtor_ends_the_wait),
        ("a_debtor_that_never_pays_is_waited_for_until_the_deadline", deadline),
        ("a_process_that_ends_after_its_last_signal_does_not_lose_it", last_signals),
        ("values_of_another_type_are_refused_and_bytes_are_not", values_of_another_type),
        ("a_hundred_hand_overs_need_nothing_but_the_ticket", hand_overs),
        ("a_side_of_a_hand_over_that_ends_is_an_error_in_time_for_the_other", death_of_a_side),
        ("a_turn_that_was_given_before_its_side_ended_is_taken", last_turn),
        ("the_side_that_opened_a_hand_over_hears_of_the_creators_kill", death_of_the_creator),
        ("a_side_of_a_hand_over_that_is_stopped_is_waited_for", stopped_side),
        ("of_processes_that_open_a_hand_over_at_once_one_has_it_at_most", several_openers),
        ("a_wrong_kind_is_refused_by_name", a_wrong_kind_is_refused_by_name),
    ]
    .into_iter()
    .map(|(name, test)| Trial::test(name, move || passed(test)))
    .collect();
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// Runs a test, which panics if it fails.
fn passed(test: fn()) -> Result<(), Failed> {
    test();
    Ok(())
}

fn start() -> (Context, Queue, Peer) {
    let peer = Peer::start(); // before the runtime has started threads in this process
    let context = Context::new(&Device::first().unwrap()).unwrap();
    let queue = Queue::new(&context).unwrap();
    (context, queue, peer)
}

/// A command that holds `queue` until the sender is used or dropped.
fn hold(queue: &Queue) -> mpsc::Sender<()> {
    let (open, opened) = mpsc::channel();
    queue
        .host_task(move || {
            let _ = opened.recv();
        })
        .unwrap();
    open
}

fn memory_is_the_same_in_both() {
    let (context, queue, mut peer) = start();
    for len in [1, 5000, 3 << 20] {
        let buffer = Buffer::<u8>::new(&context, len).unwrap();
        buffer.fill(&queue, 3).unwrap();
        let export = buffer.share().unwrap();
        peer.must(&format!("open {}", export.ticket()));
        assert_eq!(peer.must("sum"), (3 * len).to_string());
        peer.must("fill 7");
        assert!(buffer.to_vec(&queue).unwrap().iter().all(|&byte| byte == 7));
    }
}

fn a_shared_slice_opens_as_that_slice() {
    let (_, queue, mut peer) = start();
    let values: Vec<u8> = (0..=255).collect();
    let buffer = Buffer::from_slice(&queue, &values).unwrap();
    let export = buffer.slice(10..20).unwrap().share().unwrap();
    peer.must(&format!("open {}", export.ticket()));
    assert_eq!(peer.must("sum"), (10..20).sum::<u32>().to_string());
    assert!(peer.ask("reshare").is_err(), "an opened pointer is not its opener's to share");
    peer.must("fill 0");
    let now = buffer.to_vec(&queue).unwrap();
    assert_eq!(
        (&now[..10], &now[10..20], &now[20..]),
        (&values[..10], &[0; 10][..], &values[20..])
    );
}

fn a_withdrawn_ticket_opens_nothing() {
    let (_, queue, mut peer) = start();
    let export = Buffer::from_slice(&queue, &[1_u8; 100]).unwrap().share().unwrap();
    let order = format!("open {}", export.ticket());
    peer.must(&order);
    drop(export);
    let sentence = peer.ask(&order).unwrap_err(); // opening it again must fail too
    assert!(!sentence.is_empty());
    assert_eq!(peer.kind(), "Withdrawn");
    assert_eq!(peer.must("sum"), "100"); // what is open stays open
}

fn is_open_elsewhere() {
    let (context, queue, mut peer) = start();
    for len in [1, 5000, 3 << 20] {
        let buffer = Buffer::<u8>::new(&context, len).unwrap();
        buffer.fill(&queue, 3).unwrap();
        let export = buffer.share().unwrap();
        assert!(!buffer.is_open_elsewhere().unwrap(), "an export is no open");
        let local = context.open(export.ticket()).unwrap();
        assert!(!buffer.is_open_elsewhere().unwrap(), "nor is one of this process");
        drop(local);
        peer.must(&format!("open {}", export.ticket()));
        drop(export);
        assert!(buffer.is_open_elsewhere().unwrap(), "also after its ticket was withdrawn");
        assert!(buffer.slice(..1).unwrap().is_open_elsewhere().unwrap());
    }
    let buffer = Buffer::<u8>::new(&context, 5000).unwrap();
    let export = buffer.share().unwrap();
    peer.must(&format!("open {}", export.ticket()));
    assert!(buffer.is_open_elsewhere().unwrap());
    peer.kill();
    let deadline = Instant::now() + Duration::from_secs(20);
    while buffer.is_open_elsewhere().unwrap() {
        assert!(Instant::now() < deadline, "a dead process has nothing open");
        std::thread::yield_now();
    }
}

fn what_is_open_outlives_the_sharers_death() {
    let (context, queue, mut peer) = start();
    let ticket: Ticket<Buffer<u8>> = peer.must("share 5000 9").parse().unwrap();
    let opened = context.open(&ticket).unwrap();
    peer.kill();
    assert_eq!(opened.to_vec(&queue).unwrap(), [9; 5000]);
    let error = context.open(&ticket).unwrap_err();
    assert_eq!(error.code(), Some(Code::ERROR_INVALID_VALUE));
    assert_eq!(error.kind(), ErrorKind::PeerGone);
}

fn a_dead_sharers_ticket_opens_nothing() {
    let (context, _, mut peer) = start();
    let ticket: Ticket<Buffer<u8>> = peer.must("share 10 9").parse().unwrap();
    peer.kill();
    let error = context.open(&ticket).unwrap_err();
    assert_eq!(error.code(), Some(Code::ERROR_INVALID_VALUE));
    assert!(error.to_string().contains(' '), "no sentence: {error}");
}

fn physical_memory_is_the_same_in_both() {
    let (context, queue, mut peer) = start();
    let memory = PhysicalMemory::shareable(&context, 1 << 20).unwrap();
    let mapping = memory.map(Rights::ReadWrite).unwrap();
    let buffer = mapping.buffer::<u8>().unwrap();
    buffer.fill(&queue, 2).unwrap();
    let export = memory.share().unwrap();
    peer.must(&format!("map {}", export.ticket()));
    assert_eq!(peer.must("sum"), (2 * memory.size()).to_string());
    peer.must("fill 8");
    assert!(buffer.to_vec(&queue).unwrap().iter().all(|&byte| byte == 8));
}

fn work_waits_for_a_signal_of_the_other() {
    let (context, queue, mut peer) = start();
    let buffer = Buffer::<u8>::new(&context, 1000).unwrap();
    buffer.fill(&queue, 1).unwrap();
    let event = context.create_shared_event().unwrap();
    let (memory, signal) = (buffer.share().unwrap(), event.share().unwrap());
    peer.must(&format!("open {}", memory.ticket()));
    peer.must(&format!("event {}", signal.ticket()));
    assert_eq!(peer.must("status"), "Complete"); // a new event is complete

    let gate = hold(&queue);
    queue.fill(&buffer, 2).unwrap();
    queue.signal(&event).unwrap();
    assert_eq!(peer.must("status"), "Submitted"); // at once, in every process
    peer.must("wait-then-double"); // it is submitted there, and waits for this process
    assert_eq!(event.status().unwrap(), Status::Submitted); // it stands for the peer's work by now
    gate.send(()).unwrap();
    event.wait().unwrap();
    assert_eq!(buffer.to_vec(&queue).unwrap(), [[2; 500], [3; 500]].concat());
}

fn death_of_the_debtor_ends_the_wait() {
    let (context, queue, mut peer) = start();
    let ticket: Ticket<Event> = peer.must("owe").parse().unwrap();
    let event = context.open(&ticket).unwrap();
    assert_eq!(event.status().unwrap(), Status::Submitted);
    queue.wait_for(&[&event]).unwrap();
    let behind = queue.marker().unwrap();
    peer.kill();
    let begun = Instant::now();
    let failed: [Error; 3] =
        [event.wait().unwrap_err(), behind.wait().unwrap_err(), queue.finish().unwrap_err()];
    assert!(begun.elapsed() < Duration::from_secs(1), "after {:?}", begun.elapsed());
    for error in failed {
        assert_eq!(error.code(), Some(Code::ERROR_IN_EVENT_LIST_EXEC_STATUS), "{error}");
        assert_eq!(error.kind(), ErrorKind::PeerGone, "{error}");
    }
    assert_eq!(event.status().unwrap(), Status::Failed);
}

fn deadline() {
    let (context, queue, mut peer) = start();
    let ticket: Ticket<Event> = peer.must("owe").parse().unwrap();
    let event = context.open(&ticket).unwrap();
    let timeout = Duration::from_millis(30);
    assert_eq!(event.wait_timeout(timeout).unwrap_err().kind(), ErrorKind::TimedOut);
    queue.wait_for(&[&event]).unwrap();
    assert_eq!(queue.finish_timeout(timeout).unwrap_err().kind(), ErrorKind::TimedOut);
    peer.must("pay");
    event.wait().unwrap();
    queue.finish().unwrap();
}

/// Both sides of a hand-over, and the buffer that they work on.
fn sides() -> (Context, Queue, Peer, Buffer<u8>, HandOver) {
    let (context, queue, mut peer) = start();
    let buffer = Buffer::<u8>::new(&context, 1000).unwrap();
    let hand_over = HandOver::new(&queue).unwrap();
    let (memory, turns) = (buffer.share().unwrap(), hand_over.share().unwrap());
    peer.must(&format!("open {}", memory.ticket()));
    peer.must(&format!("hand-over {}", turns.ticket()));
    assert!(context.open(turns.ticket()).is_err(), "a third side");
    (context, queue, peer, buffer, hand_over)
}

fn hand_overs() {
    let (_context, queue, mut peer, buffer, mut hand_over) = sides();
    peer.order("turns 100");
    for turn in 0..100 {
        queue.fill(&buffer.slice(..500).unwrap(), turn).unwrap();
        hand_over.give(&queue).unwrap();
        assert_eq!(hand_over.give(&queue).unwrap_err().kind(), ErrorKind::Unsuitable);
        hand_over.take(&queue).unwrap();
        let behind = queue.download(&buffer.slice(500..).unwrap()).unwrap();
        assert_eq!(behind.wait().unwrap(), [turn; 500], "turn {turn}");
    }
    peer.answer().unwrap();
}

fn death_of_a_side() {
    let (_context, queue, mut peer, _buffer, mut hand_over) = sides();
    hand_over.give(&queue).unwrap();
    let begun = Instant::now();
    peer.kill();
    assert_eq!(hand_over.take(&queue).unwrap_err().kind(), ErrorKind::PeerGone);
    assert!(begun.elapsed() < Duration::from_secs(5), "after {:?}", begun.elapsed());

    // The side that opened the hand-over, after the side that made it is gone.
    let (_context, _queue, mut peer, _buffer, hand_over) = sides();
    peer.order("turns 1");
    drop(hand_over);
    let begun = Instant::now();
    peer.answer().unwrap_err();
    assert_eq!(peer.kind(), "Withdrawn");
    assert!(begun.elapsed() < Duration::from_secs(5), "after {:?}", begun.elapsed());
}

fn stopped_side() {
    let (_context, queue, mut peer, _buffer, mut hand_over) = sides();
    let signal = peer.signals();
    signal("STOP");
    hand_over.give(&queue).unwrap();
    peer.order("turns 1");
    let early = hand_over.take_timeout(&queue, Duration::from_millis(300)).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::TimedOut, "{early}");
    std::thread::scope(|threads| {
        threads.spawn(move || {
            std::thread::sleep(Duration::from_secs(3)); // long enough for an open to give up before
            signal("CONT");
        });
        hand_over.take(&queue).unwrap();
    });
    peer.answer().unwrap();
}

/// The other process takes its one turn, gives it back and ends before this side checks.
fn last_turn() {
    let (_context, queue, mut peer, buffer, mut hand_over) = sides();
    queue.fill(&buffer, 4).unwrap();
    hand_over.give(&queue).unwrap();
    peer.must("turns 1");
    peer.must("end");
    peer.wait();
    hand_over.take(&queue).unwrap();
    assert_eq!(buffer.to_vec(&queue).unwrap(), [4; 1000]);
    hand_over.give(&queue).unwrap();
    let kind = hand_over.take(&queue).unwrap_err().kind();
    assert!([ErrorKind::PeerGone, ErrorKind::Withdrawn].contains(&kind), "{kind:?}");
}

fn death_of_the_creator() {
    let (context, queue, mut creator) = start();
    let ticket: Ticket<HandOver> = creator.must("create-hand-over").parse().unwrap();
    let mut hand_over = context.open(&ticket).unwrap();
    let begun = Instant::now();
    creator.kill();
    assert_eq!(hand_over.take(&queue).unwrap_err().kind(), ErrorKind::PeerGone);
    assert!(begun.elapsed() < Duration::from_secs(5), "after {:?}", begun.elapsed());
}

fn several_openers() {
    let mut peers = [(); 3].map(|()| Peer::start());
    let (_context, queue, mut alone) = start();
    for round in 0..200 {
        let hand_over = HandOver::new(&queue).unwrap();
        let export = hand_over.share().unwrap();
        let order = format!("hand-over {}", export.ticket());
        peers.iter_mut().for_each(|peer| peer.order(&order));
        let mut have_it = 0;
        for peer in &mut peers {
            match peer.answer() {
                Ok(_) => have_it += 1,
                Err(_) => assert_eq!(peer.kind(), "Denied", "round {round}"),
            }
        }
        assert!(have_it <= 1, "round {round}: {have_it} processes are the second side");
        alone.ask(&order).unwrap_err(); // a process that comes after the race is refused
        assert_eq!(alone.kind(), "Denied");
    }
}

/// The pattern of the crate's tour, with the gate held until the other process only has to end.
fn last_signals() {
    for round in 0..200 {
        let (context, queue, mut peer) = start();
        let buffer = Buffer::<u8>::new(&context, 1000).unwrap();
        let event = context.create_shared_event().unwrap();
        let (memory, signal) = (buffer.share().unwrap(), event.share().unwrap());
        peer.must(&format!("open {}", memory.ticket()));
        peer.must(&format!("event {}", signal.ticket()));
        let gate = hold(&queue);
        queue.fill(&buffer, 1).unwrap();
        queue.signal(&event).unwrap();
        peer.must("last-signal");
        gate.send(()).unwrap();
        event.wait().unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(buffer.to_vec(&queue).unwrap(), [3; 1000], "round {round}");
    }
}

fn values_of_another_type() {
    let (_, queue, mut peer) = start();
    let export = Buffer::from_slice(&queue, &[1_u32; 100]).unwrap().share().unwrap();
    let sentence = peer.ask(&format!("open-floats {}", export.ticket())).unwrap_err();
    assert_eq!(peer.kind(), "WrongType");
    assert!(sentence.contains("u32 (size 4, alignment 4), and f32"), "{sentence}");
    peer.must(&format!("open {}", export.ticket())); // as bytes
    assert_eq!(peer.must("sum"), "100");
}

fn a_wrong_kind_is_refused_by_name() {
    let (context, _, mut peer) = start();
    let event = context.create_shared_event().unwrap().share().unwrap();
    let sentence = peer.ask(&format!("open {}", event.ticket())).unwrap_err();
    assert_eq!(sentence, "this ticket is an event; memory was asked for");
    let memory = PhysicalMemory::shareable(&context, 1).unwrap().share().unwrap();
    let sentence = peer.ask(&format!("event {}", memory.ticket())).unwrap_err();
    assert_eq!(sentence, "this ticket is physical memory; an event was asked for");
}
