//! Queues and events, once for all drivers: a queue is a stream of the driver's, an event what a point of it stands for. What
//! both are made of, and what a backend implements for them, is in `objects.rs`; what queues are asked is in `entries.rs`, how
//! commands get into them in `submit.rs`, and what events do is in `event/`.
//!
//! What the flags of a queue come to is the driver's ([`StreamRequest`](ur_hal::StreamRequest)), but `ON_DEVICE` and
//! `ON_DEVICE_DEFAULT` are refused, and `PROFILING_ENABLE` is the core's: times are noted of commands with events.
mod counters;
mod entries;
mod objects;
mod submit;

pub(crate) use objects::{
    Context, Device, Latest, Origin, Run, Shareable, SharedEvents, SharedPart, State,
};
pub use objects::{Event, FreedInOrder, HasStreams, Queue};
pub use submit::submit_by;
pub(crate) use submit::{lent, no_point, noted};
