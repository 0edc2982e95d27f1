//! What adapters have in common about memory: what C says of it is judged here, what is reserved and
//! mapped is noted, and what pools hold is counted, with no driver in sight.
pub mod allocation;
pub mod allocations;
pub mod deferred_free;
pub mod flags;
pub mod image_layout;
pub mod maps;
pub mod objects;
pub mod of_others;
pub mod physical;
pub mod policy;
pub mod pools;
pub mod ranges;
pub mod reservations;
pub mod totals;
pub mod usm;
mod waiting;
