//! What came of fetching a ticket, and how it is seen later, without asking anybody, whether the export stands.
use crate::{
    Result,
    access::is_dead,
    arena::{Arena, Slot},
    exports::refusal,
    fetch::{Host, Lease, gone_error},
    ledger,
    protocol::Verdict,
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
    /// A descriptor; it opens `exposes` bytes, of which the object begins at `base`.
    Fd {
        /// The descriptor, close-on-exec.
        fd: OwnedFd,
        /// Where the object begins in it, in bytes.
        base: u64,
        /// How many bytes it opens.
        exposes: u64,
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
    /// Whether the export stands: one load, and a look at the exporter's pidfd.
    ///
    /// # Errors
    /// [`ErrorKind::Withdrawn`], [`ErrorKind::Freed`], [`ErrorKind::ExporterGone`].
    pub fn check(&self, line: u16, tag: u64, generation: u32) -> Result<()> {
        let (ledger, gone) = match self {
            Self::Connected(host, ledger) => (ledger, host.is_gone()),
            Self::Unconnected(pidfd, ledger) => (ledger, is_dead(pidfd)),
        };
        match ledger.check(line, tag, generation) {
            _ if gone => Err(gone_error()),
            ledger::State::Live => Ok(()),
            ledger::State::Withdrawn => Err(refusal(Verdict::Withdrawn)),
            ledger::State::Freed => Err(refusal(Verdict::Freed)),
        }
    }
}

/// The ledger that tells of an export: mapped by itself, or as part of an arena.
#[derive(Clone)]
pub(crate) enum Ledger {
    Reader(Arc<ledger::Reader>),
    Arena(Arena),
}
impl Ledger {
    #[inline]
    pub fn check(&self, line: u16, tag: u64, generation: u32) -> ledger::State {
        match self {
            Self::Reader(reader) => reader.check(line, tag, generation),
            Self::Arena(arena) => arena.check(line, tag, generation),
        }
    }
}
