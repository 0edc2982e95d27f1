//! What all adapters have in common about memory: checks of what callers pass, registries of what is allocated,
//! reserved and mapped, and counters of pools. Nothing here calls a driver directly.
pub mod allocation;
pub mod allocations;
pub mod deferred_free;
pub mod flags;
pub mod image_layout;
pub mod maps;
pub(crate) mod newest;
pub mod objects;
pub mod of_others;
pub mod ordered;
pub mod physical;
pub mod policy;
pub mod ranges;
pub mod reservations;
pub mod totals;
pub mod usm;
mod waiting;
