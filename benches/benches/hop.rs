//! What a hand-over between two processes costs: a chain of waits and signals behind one gate, beside two bare words.
//!
//! Naive ping-pong of events measures nothing: a fresh event is complete, and a wait is for what was submitted. So
//! each process in turn submits a wait and a signal, and says so; then the gate is opened and the chain is timed.
use causeway::{Context, Device, Event, Queue, Status, Ticket};
use causeway_benches::*;
use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

/// What a chain of spinning sides is long: as long as its start, where three threads are asleep and are woken, costs
/// little of it. Bare words spin from the beginning.
const SPINNING: u32 = 5_000;
/// Here each hop is a sleep and a wake-up anyway.
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
    // On one processor nobody spins: each hop is a sleep and a wake, on both sides of the comparison.
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

/// One chain: submitted hop by hop behind a gate, then timed from the gate's opening to the last signal.
fn chain(
    peer: &mut Peer,
    queue: &Queue,
    ping: &Event,
    pong: &Event,
    hops: u32,
) -> Result<Duration> {
    // Threads of queues note the times themselves: this one sleeps, or it would take their processor.
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

/// The other side: does what it is asked.
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
