//! Events between processes. A shared event is a pair (counter, value), a signal is one store, and waiting uses a futex
//! on the counter. This module has arenas, slots, counters, pending signals, and the handling of deaths in them. The
//! transfer of an arena's descriptors is left to the broker, and the detection of deaths to `liveness`.
mod counter;
mod deferred_free;
mod futex;
mod granting;
mod joined;
pub(crate) mod layout;
mod many;
mod memory;
mod own;
mod pace;
mod pool;
#[doc(hidden)]
pub mod protocol;
#[cfg(test)]
mod sessions;
mod shared;
mod slot;
mod spin;
pub(crate) mod streams;
#[cfg(test)]
mod tests;
mod wait;

pub use counter::Counter;
pub use joined::Link;
pub(crate) use layout::EXPORTER;
pub use many::{Any, LocalWake, wait_any};
pub use own::Debtor;
pub use pool::{Line, line, slot};
pub use protocol::Progress;
pub use shared::Arena;
pub(crate) use shared::WeakArena;
pub use slot::{Captured, Slot};
pub use streams::DeviceWait;
pub use wait::PendingSignal;
