//! Sharing between processes: tickets and their wire protocol, the transfer of file descriptors, access policies, and
//! the shared memory in which one process sees that another withdrew or freed an export, or died. This crate knows
//! nothing of UR or of GPUs; the adapters interpret the payloads.
#![forbid(unsafe_code)]

mod access;
mod ahead;
pub mod arena;
mod broker;
mod connection;
mod deadline;
mod directory;
pub mod doctor;
mod entrance;
mod envelope;
mod error;
mod export;
mod exports;
mod fetch;
pub mod file_size;
mod fork;
#[cfg(fuzzing)]
pub mod fuzzing;
mod hosts;
mod identity;
mod joining;
#[doc(hidden)]
pub mod killpoint;
mod leases;
pub mod ledger;
mod limits;
mod liveness;
mod notice;
mod obtain;
mod pidfd;
mod protocol;
mod receipt;
mod registry;
mod request_lock;
mod shared_memory;
mod standing;
mod token;
mod waiting;
mod watcher;

pub use access::{Access, Process};
pub use ahead::Ahead;
pub use envelope::{ENVELOPE_LEN, length_named_by};
pub use error::{Error, ErrorKind, Result};
pub use export::{Export, FreedExport, export, freed};
pub use exports::{MOST_DESCRIPTORS, Offer, Payload, leased};
pub use hosts::object_stands;
pub use identity::{InstanceId, instance};
pub use leases::on_leases_gone;
pub use notice::on_notice;
pub use registry::{Arrived, Importer, Opened, Remote, same_device};
pub use shared_memory::{SharedMemory, memfd};
pub use standing::ArrivedPayload;

pub use ur_lock::locked;

/// What a ticket names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A range of device memory.
    Memory = 1,
    /// A physical memory object.
    PhysicalMemory = 2,
    /// A reusable event.
    Event = 3,
}
impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Memory, Self::PhysicalMemory, Self::Event].into_iter().find(|k| *k as u8 == byte)
    }
    /// The kind with its article, for use in sentences.
    fn named(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::PhysicalMemory => "physical memory",
            Self::Event => "an event",
        }
    }
}

/// An object of an exporter: its kind and the exporter's number for it.
pub(crate) type Object = (Kind, u64);
