//! Events between processes: a shared event is a pair (counter, value), a signal is one store, and waiting is a futex
//! on the counter. Here: arenas, slots, counters, debts, and what a death does to them. How an arena's descriptors
//! travel, and how one hears of a death, is left to the broker and to `liveness`.
mod counter;
mod futex;
mod granting;
mod joined;
pub(crate) mod layout;
mod limbo;
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
pub use wait::Debt;
