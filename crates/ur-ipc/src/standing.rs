//! The result of fetching a ticket, and how an importer later sees, without a request to the exporter, whether the
//! export still stands.
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

/// What a broker granted, verified as far as the kernel can tell.
pub(crate) struct Fetched {
    pub payload: ArrivedPayload,
    /// The exporter's number of the object.
    pub object: u64,
    pub standing: Standing,
    pub lease: Option<Lease>,
}

/// The data from which an importer makes its object.
#[derive(Debug)]
pub enum ArrivedPayload {
    /// Memory that contains the whole object.
    Memory {
        /// The memory, verified.
        memory: Arc<SharedMemory>,
        /// Where the object begins in it, in bytes.
        base: u64,
    },
    /// A descriptor that the driver has to judge. Only one thing was verified: that the object lies within the number
    /// of bytes that the exporter states.
    Driver {
        /// The descriptor, close-on-exec.
        fd: OwnedFd,
        /// Where the object begins in it, in bytes.
        base: u64,
        /// How many bytes it exposes, as the exporter states.
        exposes: u64,
        /// Further data that the driver needs; at most 256 bytes.
        bytes: Vec<u8>,
    },
    /// Several such descriptors, whose memories in this order together contain the object.
    DriverRun {
        /// The descriptors, close-on-exec, in the order of the addresses; at least one.
        fds: Vec<OwnedFd>,
        /// Where the object begins in their concatenated memory, in bytes.
        base: u64,
        /// How many bytes they expose together, as the exporter states.
        exposes: u64,
        /// Further data that the driver needs; at most 256 bytes.
        bytes: Vec<u8>,
    },
    /// Bytes that the driver understands.
    Bytes(Vec<u8>),
    /// An event in an arena which this process has joined.
    Event(Slot),
}

/// Where an importer sees, without a request to the exporter, whether an export stands.
#[derive(Clone)]
pub(crate) enum Standing {
    /// The exporter is at the other end of a connection.
    Connected(Arc<Host>, Ledger),
    /// Only the exporter's pidfd is known.
    Unconnected(Arc<OwnedFd>, Ledger),
}
impl Standing {
    /// Checks that the export stands: two loads, and a poll of the exporter's pidfd where the ledger does not tell that
    /// it lives.
    ///
    /// # Errors
    /// [`ErrorKind::Withdrawn`]; [`ErrorKind::Freed`], also if the exporter lost the connection over which the export
    /// was opened; [`ErrorKind::ExporterGone`].
    pub fn check(&self, line: u16, tag: u64, generation: u32) -> Result<()> {
        let (ledger, exporter) = match self {
            // The exporter's watcher thread holds the ledger's life word. When that thread ends, the kernel marks the
            // word before the end of the process shows on its pidfd. A ledger that is wrong about this is noticed by
            // this process's watcher thread.
            Self::Connected(host, ledger) if ledger.tells_of_life() => (ledger, host.check_state()),
            Self::Connected(host, ledger) => (ledger, host.check()),
            Self::Unconnected(pidfd, ledger) if is_dead(pidfd) => (ledger, Err(gone_error())),
            Self::Unconnected(_, ledger) => (ledger, Ok(())),
        };
        let state = ledger.check(line, tag, generation); // read before the exporter's end is reported
        exporter?;
        match state {
            ledger::State::Live => Ok(()),
            ledger::State::Withdrawn | ledger::State::Forgotten => Err(refusal(Verdict::Withdrawn)),
            ledger::State::Freed => Err(refusal(Verdict::Freed)),
        }
    }
    /// Whether only the exporter can tell if the export was withdrawn or freed, because its line has been reused.
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
    /// Whether the ledger states that its exporter is alive; see [`ledger::Reader::tells_of_life`].
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
