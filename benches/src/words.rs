//! The yardsticks of a hand-over: two bare words that two processes share.
use crate::Result;
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create},
    thread::futex,
};
use std::{
    fs::File,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::atomic::Ordering::{Acquire, Release},
};
use ur_mapping::SharedWords;

/// How a side waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It reads the word in a loop.
    Spinning,
    /// It sleeps on the word with a futex and is woken.
    Blocked,
}

const BYTES: usize = 4096;
/// The distance of the words, a cache line.
const LINE: usize = 8;

/// One side of a bare ping-pong.
pub struct Bare {
    fd: OwnedFd,
    words: SharedWords,
}
impl Bare {
    /// Creates the shared memory.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn new() -> Result<Self> {
        let fd = memfd_create("bare", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, BYTES as u64)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW)?;
        let words = SharedWords::map(fd.as_fd(), BYTES)?;
        Ok(Self { fd, words })
    }
    /// The path by which a child process can open the memory.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd())
    }
    /// Opens the memory at a path that the parent sent.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn at(path: &str) -> Result<Self> {
        let fd = OwnedFd::from(File::options().read(true).write(true).open(path)?);
        let words = SharedWords::map(fd.as_fd(), BYTES)?;
        Ok(Self { fd, words })
    }
    /// Plays `hops` hand-overs, every other one from this side; the first process begins.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn play(&self, first: bool, from: u32, hops: u32, how: Waiting) -> Result<()> {
        let (mine, theirs) = if first { (0, LINE) } else { (LINE, 0) };
        for hop in 1..=hops / 2 {
            let turn = from + hop;
            if !first {
                self.until(theirs, turn, how)?;
            }
            self.words.low_half(mine).store(turn, Release); // pairs with `until`
            if how == Waiting::Blocked {
                futex::wake(self.words.low_half(mine), futex::Flags::empty(), 1)?;
            }
            if first {
                self.until(theirs, turn, how)?;
            }
        }
        Ok(())
    }
    fn until(&self, index: usize, turn: u32, how: Waiting) -> Result<()> {
        let word = self.words.low_half(index);
        loop {
            let now = word.load(Acquire);
            match how {
                _ if now == turn => return Ok(()),
                Waiting::Spinning => std::hint::spin_loop(),
                Waiting::Blocked => match futex::wait(word, futex::Flags::empty(), now, None) {
                    Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
    }
}
