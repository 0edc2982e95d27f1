//! Measures a hand-over between two processes: a chain of waits and signals behind one gate, beside two bare
//! words.
//!
//! A plain ping-pong of events would not measure this: a new event is complete, and a wait refers to the
//! latest signal that was submitted. So the processes submit a wait and a signal in turn and tell each other;
//! then the gate is opened and the chain is timed.
use causeway::{Context, Device, Event, Queue, Status, Ticket};
use causeway_benches::*;
use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

/// The length of a chain with spinning sides: long enough that its start, when three sleeping threads are
/// woken, is a small part of its time. The bare words spin from the beginning.
const SPINNING: u32 = 5_000;
/// Here every hop sleeps and wakes anyway.
const BLOCKED: u32 = 1_000;

fn main() -> Result<()> {
    match role() {
        Some(how) => second(&how),
        None => {
            println!("one hop of a chain; medians of {BLOCKS} interleaved blocks");
            spinning()?;
            blocked()
        }
    }
}

fn spinning() -> Result<()> {
    if processors() < 2 {
        println!("spinning: skipped, it takes two processors");
        return Ok(());
    }
    pin(0)?;
    compare("spinning", Waiting::Spinning, SPINNING, 1.5)
}
fn blocked() -> Result<()> {
    // On one processor no side spins: each hop sleeps and wakes, in both measurements.
    pin(0)?;
    compare("blocked", Waiting::Blocked, BLOCKED, 1.3)
}

fn compare(name: &str, how: Waiting, hops: u32, at_most: f64) -> Result<()> {
    let mut peer = Peer::start(name)?;
    let bare = Bare::new()?;
    let context = Context::new(&Device::first()?)?;
    let queue = Queue::new(&context)?;
    let ping = context.create_shared_event()?;
    let export = ping.share()?;
    peer.tell(&format!("{} {}", bare.path(), export.ticket()))?;
    let pong: Event = context.open(&peer.hear()?.parse::<Ticket<Event>>()?)?;
    let peer = std::cell::RefCell::new(peer);
    let mut turn = 0;
    Comparison::of(
        format!("a hop, {name}"),
        BLOCKS,
        || chain(&mut peer.borrow_mut(), &queue, &ping, &pong, hops),
        || {
            peer.borrow_mut().ask(&format!("bare {turn} {hops}"))?;
            let start = Instant::now();
            bare.play(true, turn, hops, how)?;
            let took = start.elapsed();
            turn += hops / 2;
            peer.borrow_mut().hear()?;
            Ok(took)
        },
    )?
    .report(hops, "bare", at_most);
    Ok(())
}

/// Times one chain: submitted hop by hop behind a gate, then timed from the opening of the gate to the last
/// signal.
fn chain(
    peer: &mut Peer,
    queue: &Queue,
    ping: &Event,
    pong: &Event,
    hops: u32,
) -> Result<Duration> {
    // The queues' threads take the times themselves, so that this thread can sleep and does not use their
    // processor.
    let gates = Queue::new(queue.context())?;
    let (open, opened) = mpsc::channel::<()>();
    let (note, noted) = mpsc::channel::<Instant>();
    let begun = note.clone();
    gates.host_task(move || {
        let _ = opened.recv();
        let _ = begun.send(Instant::now());
    })?;
    let gate = queue.context().create_event()?;
    gates.signal(&gate)?;
    for hop in 0..hops / 2 {
        queue.wait_for(&[if hop == 0 { &gate } else { pong }])?;
        queue.signal(ping)?;
        if peer.ask("hop")? != "submitted" {
            return Err("the second process did not submit its hop".into());
        }
    }
    queue.wait_for(&[pong])?;
    queue.host_task(move || {
        let _ = note.send(Instant::now());
    })?;
    if pong.status()? == Status::Complete {
        return Err("the chain ended before its gate was opened".into());
    }
    open.send(())?;
    let (start, end) = (noted.recv()?, noted.recv()?);
    queue.finish()?;
    gates.finish()?;
    Ok(end.duration_since(start))
}

/// The other side, which executes requests.
fn second(name: &str) -> Result<()> {
    let how = match name {
        "spinning" => Waiting::Spinning,
        _ => Waiting::Blocked,
    };
    pin(if how == Waiting::Spinning { 1 } else { 0 })?;
    let first = asked()?.ok_or("the first process is gone")?;
    let bare = Bare::at(&first[0])?;
    let context = Context::new(&Device::first()?)?;
    let queue = Queue::new(&context)?;
    let ping: Event = context.open(&first[1].parse::<Ticket<Event>>()?)?;
    let pong = context.create_shared_event()?;
    let export = pong.share()?;
    answer(&export.ticket().to_string())?;
    while let Some(words) = asked()? {
        match words[0].as_str() {
            "bare" => {
                answer("ready")?;
                bare.play(false, words[1].parse()?, words[2].parse()?, how)?;
                answer("done")?;
            }
            _ => {
                queue.wait_for(&[&ping])?;
                queue.signal(&pong)?;
                answer("submitted")?;
            }
        }
    }
    Ok(())
}
