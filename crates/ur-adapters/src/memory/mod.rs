//! What adapters have in common about memory: what C says of it is judged here, what is reserved and
//! mapped is noted, and what pools hold is counted, with no driver in sight.
pub(crate) mod allocations;
pub(crate) mod flags;
pub(crate) mod limbo;
pub(crate) mod maps;
pub(crate) mod physical;
pub(crate) mod pictures;
pub(crate) mod pools;
pub(crate) mod ranges;
pub(crate) mod reservations;
pub(crate) mod totals;
pub(crate) mod usm;
