//! What came of fetching a ticket, and how it is seen later, without asking anybody, whether the export stands.
use crate::{
    Result,
    access::is_dead,
    arena::{Arena, Slot},
    exports::refusal,
    fetch::{Host, gone_error, lease::Lease},
    ledger,
    protocol::Verdict,
    shared_memory::SharedMemory,
};
use std::{os::fd::OwnedFd, sync::Arc};

/// What a broker granted, checked as far as the kernel can say.
pub(crate) struct Fetched {
    pub payload: ArrivedPayload,
    /// The exporter's id of the object.
    pub object: u64,
    pub standing: Standing,
    pub lease: Option<Lease>,
}

/// What an importer makes its object of.
#[derive(Debug)]
pub enum ArrivedPayload {
    /// Memory, in which the object is whole.
    Memory {
        /// The memory, verified.
        memory: Arc<SharedMemory>,
        /// Where the object begins in it, in bytes.
        base: u64,
    },
    /// A descriptor that the driver has to judge: nothing of it was verified but that the object is inside of what
    /// the exporter says it opens.
    Driver {
        /// The descriptor, close-on-exec.
        fd: OwnedFd,
        /// Where the object begins in it, in bytes.
        base: u64,
        /// How many bytes it opens, in the exporter's words.
        exposes: u64,
        /// What the driver needs beside it; at most 256 bytes.
        bytes: Vec<u8>,
    },
    /// Several such descriptors: one behind the other they are what holds the object.
    DriverRun {
        /// The descriptors, close-on-exec, in the order of the addresses; at least one.
        fds: Vec<OwnedFd>,
        /// Where the object begins in what they open, in bytes.
        base: u64,
        /// How many bytes they open together, in the exporter's words.
        exposes: u64,
        /// What the driver needs beside them; at most 256 bytes.
        bytes: Vec<u8>,
    },
    /// Bytes that the driver understands.
    Bytes(Vec<u8>),
    /// An event in an arena which this process has joined.
    Event(Slot),
}

/// Where an importer can see, without asking, whether an export stands.
#[derive(Clone)]
pub(crate) enum Standing {
    /// The exporter is at the other end of a connection.
    Connected(Arc<Host>, Ledger),
    /// There is only its pidfd.
    Unconnected(Arc<OwnedFd>, Ledger),
}
impl Standing {
    /// Whether the export stands: two loads; and a look at the exporter's pidfd where the ledger does not tell of its life.
    ///
    /// # Errors
    /// [`ErrorKind::Withdrawn`]; [`ErrorKind::Freed`], also if the exporter lost the connection over which it was opened;
    /// [`ErrorKind::ExporterGone`].
    pub fn check(&self, line: u16, tag: u64, generation: u32) -> Result<()> {
        let (ledger, exporter) = match self {
            // Its watcher thread holds the ledger's word, and the kernel writes there that it ended, before anybody can
            // see the process's end by its pidfd. What a ledger says falsely is found out by our own watcher thread.
            Self::Connected(host, ledger) if ledger.tells_of_life() => (ledger, host.check_state()),
            Self::Connected(host, ledger) => (ledger, host.check()),
            Self::Unconnected(pidfd, ledger) if is_dead(pidfd) => (ledger, Err(gone_error())),
            Self::Unconnected(_, ledger) => (ledger, Ok(())),
        };
        let state = ledger.check(line, tag, generation); // before the end of its exporter is told
        exporter?;
        match state {
            ledger::State::Live => Ok(()),
            ledger::State::Withdrawn | ledger::State::Forgotten => Err(refusal(Verdict::Withdrawn)),
            ledger::State::Freed => Err(refusal(Verdict::Freed)),
        }
    }
    /// Whether only the exporter can say what became of it: put or freed, and its line is another's.
    pub fn is_forgotten(&self, line: u16, tag: u64, generation: u32) -> bool {
        let (Self::Connected(_, ledger) | Self::Unconnected(_, ledger)) = self;
        ledger.check(line, tag, generation) == ledger::State::Forgotten
    }
}

/// The ledger that tells of an export: mapped by itself, or as part of an arena.
#[derive(Clone)]
pub(crate) enum Ledger {
    Reader(Arc<ledger::Reader>),
    Arena(Arena),
}
impl Ledger {
    /// Whether the ledger tells that its exporter lives; see [`ledger::Reader::tells_of_life`].
    #[inline]
    pub fn tells_of_life(&self) -> bool {
        match self {
            Self::Reader(reader) => reader.tells_of_life(),
            Self::Arena(arena) => arena.tells_of_life(),
        }
    }
    #[inline]
    pub fn check(&self, line: u16, tag: u64, generation: u32) -> ledger::State {
        match self {
            Self::Reader(reader) => reader.check(line, tag, generation),
            Self::Arena(arena) => arena.check(line, tag, generation),
        }
    }
}
