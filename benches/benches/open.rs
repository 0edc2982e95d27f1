//! What opening costs an importer: memory for the first time, beside a bare descriptor passed and mapped; and
//! anything for the second time.
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
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};
use ur_mapping::SharedWords;

const BYTES: usize = 1 << 20;
/// Opens in one block, for what takes less than a microsecond.
const MANY: u32 = 1_000;

fn main() -> Result<()> {
    match role() {
        Some(_) => importer(),
        None => exporter(),
    }
}

/// What the importer asks for: bare descriptors from a thread, tickets from here.
fn exporter() -> Result<()> {
    let address = format!("causeway-bench-{}", std::process::id());
    let door = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
    bind(&door, &SocketAddrUnix::new_abstract_name(address.as_bytes())?)?;
    listen(&door, 1)?;
    thread::spawn(move || serve(&door));
    let context = Context::new(&Device::first()?)?;
    let queue = Queue::new(&context)?;
    let mut kept: Vec<Export<Buffer<u8>>> = Vec::new();
    let event = context.create_shared_event()?;
    let shared = event.share()?;
    let mut peer = Peer::start("importer")?;
    peer.tell(&format!("{address} {}", shared.ticket()))?;
    println!("opens of {BYTES} bytes; medians of {BLOCKS} interleaved blocks");
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
        let export = kept.last().ok_or("just pushed")?;
        peer.tell(&export.ticket().to_string())?;
        // Far more than one block ago: nobody will open it any more.
        if kept.len() > 8 {
            drop(kept.remove(0));
        }
    }
}
/// Passes one descriptor for each datagram.
fn serve(door: &OwnedFd) -> Result<()> {
    let peer = accept(door)?;
    let mut asked = [0u8; 1];
    while recv(&peer, &mut asked, RecvFlags::empty())?.0 == 1 {
        let fd = memfd_create("bare", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, BYTES as u64)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW)?;
        let fds = [fd.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&peer, &[IoSlice::new(&[1])], &mut control, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}
/// One bare round trip, and the mapping.
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

    // What comes before any other open: the directory, the socket, the exporter's ledger.
    let ticket = fresh()?;
    let start = Instant::now();
    let first_kept = context.open(&ticket)?;
    answer(&format!("the very first open of a process            {:>10.3?}", start.elapsed()))?;

    let compared = Comparison::of(
        "memory, first open of an allocation",
        BLOCKS,
        || {
            let ticket = fresh()?;
            let start = Instant::now();
            let opened = context.open(&ticket)?;
            let took = start.elapsed();
            drop(opened);
            Ok(took)
        },
        || Ok(bare(&broker)?.0),
    )?;
    // Printed by the exporter: this process's output is the pipe.
    answer(&line(&compared, 1.5))?;

    let ticket = fresh()?;
    let kept = context.open(&ticket)?;
    let again = many(|| context.open(&ticket).map(drop))?;
    answer(&under_a_microsecond("memory, second open", again))?;
    drop(kept);

    let ticket: Ticket<Event> = first[1].parse()?;
    let kept = context.open(&ticket)?;
    let again = many(|| context.open(&ticket).map(drop))?;
    answer(&under_a_microsecond("event, second open", again))?;
    drop((kept, first_kept));
    Ok(())
}
fn fresh() -> Result<Ticket<Buffer<u8>>> {
    answer("fresh")?;
    Ok(asked()?.ok_or("the exporter is gone")?[0].parse()?)
}
/// Median time of one, of blocks of many.
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
fn under_a_microsecond(what: &str, time: Duration) -> String {
    format!("{what:<44}{time:>10.3?}  (under 1 µs)")
}
