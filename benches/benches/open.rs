//! Measures opens by an importer. First opens of memory are compared with passing and mapping a bare
//! descriptor, with both sides unpinned and with each pinned to its own processor, and with and without other
//! work in between. Many small allocations are compared with UMF. Second opens are measured alone.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "plays the C caller of another library"
)]
#[path = "open/umf.rs"]
mod umf;

use causeway::{Buffer, Context, Device, Event, Export, Queue, Ticket};
use causeway_benches::*;
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType, accept, bind, connect, listen,
        recv, recvmsg, send, sendmsg, socket,
    },
};
use std::{
    cell::RefCell,
    hint::black_box,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};
use ur_mapping::SharedWords;

const BYTES: usize = 1 << 20;
/// Opens in one block, for opens that take less than a microsecond.
const MANY: u32 = 1_000;
/// Small allocations that are opened one after the other, by processes of their own.
const SMALL: (usize, usize) = (1_000, 4096);
/// Blocks of these.
const PROCESSES: usize = 15;
/// The memory that is touched between two opens to simulate other work: more than the inner caches hold.
const OTHER_WORK: usize = 8 << 20;

fn main() -> Result<()> {
    match role().as_deref() {
        Some("free") => importer(),
        Some("pinned") => {
            pin(1)?;
            importer()
        }
        Some("small") => small_importer(),
        Some("umf pooled") => umf_importer(umf::Shape::Pooled),
        Some(_) => umf_importer(umf::Shape::Alone),
        None => {
            exporter("free")?;
            small()?;
            if processors() < 2 {
                println!("pinned: skipped, it takes two processors");
                return Ok(());
            }
            pin(0)?;
            exporter("pinned")
        }
    }
}

/// Serves the importer: a thread sends bare descriptors, this thread sends tickets.
fn exporter(how: &str) -> Result<()> {
    let address = format!("causeway-bench-{}-{how}", std::process::id());
    let door = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
    bind(&door, &SocketAddrUnix::new_abstract_name(address.as_bytes())?)?;
    listen(&door, 1)?;
    thread::spawn(move || serve(&door));
    let context = Context::new(&Device::first()?)?;
    let queue = Queue::new(&context)?;
    let mut kept: Vec<Export<Buffer<u8>>> = Vec::new();
    let event = context.create_shared_event()?;
    let shared = event.share()?;
    let mut peer = Peer::start(how)?;
    peer.tell(&format!("{address} {}", shared.ticket()))?;
    println!("opens of {BYTES} bytes, {how}; medians of {BLOCKS} interleaved blocks");
    loop {
        let asked = peer.hear()?;
        if asked != "fresh" {
            println!("{asked}");
            if asked.starts_with("event") {
                return Ok(());
            }
            continue;
        }
        let buffer = Buffer::<u8>::new(&context, BYTES)?;
        buffer.fill(&queue, 7)?;
        kept.push(buffer.share()?);
        // More than a block ago, so it is not opened any more. It is dropped before the time is taken.
        if kept.len() > 8 {
            drop(kept.remove(0));
        }
        let export = kept.last().ok_or("just pushed")?;
        peer.tell(&export.ticket().to_string())?;
    }
}
/// Sends one descriptor for each datagram. Another thread prepares the next one, which is not timed.
fn serve(door: &OwnedFd) -> Result<()> {
    let (give, made) = mpsc::sync_channel(4);
    thread::spawn(move || -> Result<()> {
        loop {
            let fd = memfd_create("bare", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            ftruncate(&fd, BYTES as u64)?;
            fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW)?;
            give.send(fd)?;
        }
    });
    let peer = accept(door)?;
    let mut asked = [0u8; 1];
    let mut ready = made.recv()?;
    while recv(&peer, &mut asked, RecvFlags::empty())?.0 == 1 {
        let fds = [ready.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&peer, &[IoSlice::new(&[1])], &mut control, SendFlags::NOSIGNAL)?;
        ready = made.recv()?;
    }
    Ok(())
}
/// Times one bare round trip with the mapping.
fn bare(broker: &OwnedFd) -> Result<(Duration, SharedWords)> {
    let start = Instant::now();
    send(broker, &[1], SendFlags::NOSIGNAL)?;
    let mut answer = [0u8; 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(broker, &mut [IoSliceMut::new(&mut answer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let words = SharedWords::map(fd.ok_or("no descriptor came")?.as_fd(), BYTES)?;
    Ok((start.elapsed(), words))
}

fn importer() -> Result<()> {
    let first = asked()?.ok_or("the exporter is gone")?;
    let broker = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
    connect(&broker, &SocketAddrUnix::new_abstract_name(first[0].as_bytes())?)?;
    let context = Context::new(&Device::first()?)?;

    // Includes what precedes any other open: the directory, the socket, the exporter's ledger.
    let ticket = fresh()?;
    let start = Instant::now();
    let first_kept = context.open(&ticket)?;
    answer(&format!("the very first open of a process            {:>10.3?}", start.elapsed()))?;

    let work = RefCell::new(vec![0u64; OTHER_WORK / 8]);
    for is_busy in [false, true] {
        let between = || {
            if is_busy {
                let mut work = work.borrow_mut();
                work.iter_mut().for_each(|word| *word = word.wrapping_add(1));
                black_box(&*work);
            }
        };
        let compared = Comparison::of(
            if is_busy { "memory, first open, after other work" } else { "memory, first open" },
            BLOCKS,
            || {
                let ticket = fresh()?;
                between();
                let start = Instant::now();
                let opened = context.open(&ticket)?;
                let took = start.elapsed();
                drop(opened);
                Ok(took)
            },
            || {
                between();
                Ok(bare(&broker)?.0)
            },
        )?;
        // The exporter prints it, because this process's output is the pipe.
        answer(&line(&compared, 1.2))?;
    }

    let ticket = fresh()?;
    let kept = context.open(&ticket)?;
    let again = many(|| context.open(&ticket).map(drop))?;
    answer(&within("memory, second open", again))?;
    drop(kept);

    let ticket: Ticket<Event> = first[1].parse()?;
    let kept = context.open(&ticket)?;
    let again = many(|| context.open(&ticket).map(drop))?;
    answer(&within("event, second open", again))?;
    drop((kept, first_kept));
    Ok(())
}
fn fresh() -> Result<Ticket<Buffer<u8>>> {
    answer("fresh")?;
    Ok(asked()?.ok_or("the exporter is gone")?[0].parse()?)
}
/// Returns the median time of one open, from blocks of many.
fn many(mut one: impl FnMut() -> causeway::Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..BLOCKS {
        let start = Instant::now();
        for _ in 0..MANY {
            one()?;
        }
        times.push(start.elapsed());
    }
    Ok(median(&mut times) / MANY)
}
fn line(c: &Comparison, at_most: f64) -> String {
    format!(
        "{:<44}{:>10.3?}  bare {:>10.3?}  ratio {:.2} (at most {at_most}), control {:.2}",
        c.what,
        c.ours,
        c.bare,
        c.ratio(),
        c.control
    )
}
fn within(what: &str, time: Duration) -> String {
    format!("{what:<44}{time:>10.3?}  (at most 0.3 µs)")
}

/// Measures many small allocations, each opened for the first time, by new processes; alternately with new
/// processes that use UMF.
fn small() -> Result<()> {
    let (count, bytes) = SMALL;
    let context = Context::new(&Device::first()?)?;
    let buffers: Vec<_> =
        (0..count).map(|_| Buffer::<u8>::new(&context, bytes)).collect::<causeway::Result<_>>()?;
    let exports: Vec<_> = buffers.iter().map(Buffer::share).collect::<causeway::Result<_>>()?;
    let tickets: Vec<_> = exports.iter().map(|export| export.ticket().to_string()).collect();
    let tickets = tickets.join(" ");
    if !umf::is_there() {
        let ours = (0..PROCESSES).map(|_| by_another("small", &tickets));
        let ours = median(&mut ours.collect::<Result<Vec<_>>>()?);
        let variable = umf::VARIABLE;
        println!(
            "{count} opens of {bytes} bytes {ours:>10.3?}  (UMF: skipped, {variable} names no library)"
        );
        return Ok(());
    }
    for (shape, role) in [(umf::Shape::Alone, "umf alone"), (umf::Shape::Pooled, "umf pooled")] {
        let pool = umf::Pool::new(shape)?;
        let handles =
            (0..count).map(|_| pool.share(bytes).map(hex::encode)).collect::<Result<Vec<_>>>()?;
        let handles = handles.join(" ");
        Comparison::of(
            format!("{count} opens of {bytes} bytes"),
            PROCESSES,
            || by_another("small", &tickets),
            || by_another(role, &handles),
        )?
        .report(1, role, 1.0);
    }
    Ok(())
}
fn by_another(role: &str, tickets: &str) -> Result<Duration> {
    let mut peer = Peer::start(role)?;
    peer.tell(tickets)?;
    Ok(Duration::from_nanos(peer.hear()?.parse()?))
}
fn small_importer() -> Result<()> {
    let tickets = asked()?.ok_or("the exporter is gone")?;
    let tickets: Vec<Ticket<Buffer<u8>>> =
        tickets.iter().map(|ticket| ticket.parse()).collect::<causeway::Result<_>>()?;
    let context = Context::new(&Device::first()?)?;
    let mut opened = Vec::with_capacity(tickets.len());
    let start = Instant::now();
    for ticket in &tickets {
        opened.push(context.open(ticket)?);
    }
    answer(&start.elapsed().as_nanos().to_string())
}
fn umf_importer(shape: umf::Shape) -> Result<()> {
    let handles = asked()?.ok_or("the exporter is gone")?;
    let mut handles =
        handles.iter().map(hex::decode).collect::<std::result::Result<Vec<_>, _>>()?;
    let pool = umf::Pool::new(shape)?;
    answer(&pool.open(&mut handles)?.as_nanos().to_string())
}
