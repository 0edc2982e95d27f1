//! What one connection keeps of what was asked over it and what is still to be said.
use crate::{Kind, Object, protocol::Request};

/// What is still to be said, and needs no answer.
#[derive(Default)]
pub(super) struct Unsaid {
    pub requests: Vec<Request>,
    /// The objects of which an open was closed.
    pub ends: Vec<Object>,
    /// Whether any was closed since `later` looked.
    pub has_ended: bool,
}

/// What a question is for: what its answer granted is given back by this if nobody takes it.
#[derive(Clone, Copy)]
pub(super) enum Claim {
    Open {
        kind: Kind,
        /// Whether it is an event in an arena; those of a driver's own are nobody's slots.
        is_slot: bool,
        /// For slots: where they are, and under which number this process has joined that arena; 0 for not yet.
        arena: u32,
        participant: u32,
        slot: u16,
        generation: u32,
    },
    /// A counter in an arena which this process has joined under that number.
    Counter { arena: u32, participant: u32 },
}
