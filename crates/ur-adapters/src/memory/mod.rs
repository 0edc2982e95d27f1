//! What adapters of GPUs have in common about memory: what C says of it is judged here, and what pools
//! hold is counted, with no driver in sight.
pub(crate) mod flags;
pub(crate) mod maps;
pub(crate) mod pictures;
pub(crate) mod totals;
