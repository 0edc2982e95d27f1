//! A chain of waits and signals between queues of two processes, all submitted behind one gate: our shared
//! events beside bare words in shared memory that streams write and wait for.
use crate::{api::Ur, raw};
use causeway_benches::*;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::{
    fs::File,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::*},
    time::{Duration, Instant},
};
use ur_mapping::SharedWords;

const HOPS: u64 = 1_000;
const WORDS: usize = 8192;
/// The indices of the words: the gate, and the counter of each side.
const GATE: usize = 0;
const SIDE: [usize; 2] = [8, 16];

/// Words that both processes map and register with the driver.
struct Shared {
    words: SharedWords,
    device: u64,
    stream: ur_cuda::driver::RawStream,
}
impl Shared {
    fn of(fd: &OwnedFd) -> Result<Self> {
        let words = SharedWords::map(fd.as_fd(), WORDS * 8)?;
        let device = raw::register(words.words())?;
        Ok(Self { words, device, stream: raw::stream()? })
    }
    fn at(&self, word: usize) -> u64 {
        self.device + 8 * word as u64
    }
    fn word(&self, word: usize) -> &AtomicU64 {
        self.words.word(word)
    }
    /// Submits one side's half of the chain whose values start at `base`.
    fn submit(&self, side: usize, base: u64, gate: u64) -> Result<()> {
        for hop in 1..=HOPS / 2 {
            match (side, hop) {
                (0, 1) => raw::wait(self.stream, self.at(GATE), gate)?,
                (0, _) => raw::wait(self.stream, self.at(SIDE[1]), base + hop - 1)?,
                _ => raw::wait(self.stream, self.at(SIDE[0]), base + hop)?,
            }
            raw::write(self.stream, self.at(SIDE[side]), base + hop)?;
        }
        Ok(())
    }
}

pub fn first() -> Result<()> {
    let fd = memfd_create("chain", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&fd, WORDS as u64 * 8)?;
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW)?;
    let (shared, ur) = (Shared::of(&fd)?, Ur::start()?);
    let ours = ur.shared_event()?;
    let mut peer = Peer::start("chain")?;
    let words = format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
    let theirs =
        hex::decode(&peer.ask(&format!("{words} {}", hex::encode(&ur.event_bytes(ours)?)))?)?;
    let theirs = ur.open_event(&theirs)?;
    let mut round = 0;
    let mut bare = |peer: &mut Peer| -> Result<Duration> {
        let base = round * HOPS;
        round += 1;
        peer.ask(&format!("bare {base} {round}"))?;
        shared.submit(0, base, round)?;
        let (end, last) = (shared.word(SIDE[1]), base + HOPS / 2);
        if end.load(Acquire) >= last {
            return Err("the chain ended before its gate was opened".into());
        }
        let start = Instant::now();
        shared.word(GATE).store(round, Release);
        while end.load(Acquire) < last {
            std::hint::spin_loop();
        }
        Ok(start.elapsed())
    };
    let ours_too = |peer: &mut Peer| -> Result<Duration> {
        let gate: &'static AtomicBool = Box::leak(Box::default());
        ur.gate(gate)?;
        for hop in 1..=HOPS / 2 {
            if hop > 1 {
                ur.wait(theirs)?;
            }
            ur.signal(ours)?;
            peer.ask("hop")?;
        }
        let start = Instant::now();
        gate.store(true, Release);
        ur.host_wait(theirs)?;
        let took = start.elapsed();
        ur.finish()?;
        Ok(took)
    };
    let peer = std::cell::RefCell::new(&mut peer);
    let compared = Comparison::of(
        "hop from process to process, gated chain",
        21,
        || ours_too(&mut peer.borrow_mut()),
        || bare(&mut peer.borrow_mut()),
    )?;
    compared.report(HOPS as u32, "bare words", 1.1);
    Ok(())
}

pub fn second() -> Result<()> {
    let first = asked()?.ok_or("the first process is gone")?;
    let fd = File::options().read(true).write(true).open(&first[0])?.into();
    raw::start()?;
    let (shared, ur) = (Shared::of(&fd)?, Ur::start()?);
    let theirs = ur.open_event(&hex::decode(&first[1])?)?;
    let ours = ur.shared_event()?;
    answer(&hex::encode(&ur.event_bytes(ours)?))?;
    while let Some(words) = asked()? {
        match &words[..] {
            [bare, base, gate] if bare == "bare" => {
                shared.submit(1, base.parse()?, gate.parse()?)?;
                answer("submitted")?;
            }
            _ => {
                ur.wait(theirs)?;
                ur.signal(ours)?;
                answer("submitted")?;
            }
        }
    }
    Ok(())
}
