//! Pending messages of one connection, and what its requests asked for.
use crate::{Kind, Object, protocol::Request};

/// Pending messages that need no answer.
#[derive(Default)]
pub(super) struct Pending {
    pub requests: Vec<Request>,
    /// The objects of which an open has ended.
    pub ends: Vec<Object>,
    /// Whether any open has ended since `later` last checked.
    pub has_ended: bool,
}

/// What a request asked for. If its answer grants it and no thread takes it, it is given back with this information.
#[derive(Clone, Copy)]
pub(super) enum GrantClaim {
    Open {
        kind: Kind,
        /// Whether it is an event in an arena; a driver's own events have no slot.
        is_slot: bool,
        /// For slots: the arena, and the participant number under which this process has joined it; 0 if it has not
        /// yet.
        arena: u32,
        participant: u32,
        slot: u16,
        generation: u32,
    },
    /// A counter in an arena that this process has joined under this participant number.
    Counter { arena: u32, participant: u32 },
}
