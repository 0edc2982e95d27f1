//! Queues, once for all drivers: a queue is a stream of the driver, and the event of a command is a point of that
//! stream. `objects.rs` defines queues and events, and what a backend implements for them; the entries of queues are in
//! `entries.rs`, submission is in `submit.rs`, memory in queue order in `ordered.rs`, and the behaviour of events in `event/`.
//!
//! The driver interprets the queue flags ([`StreamRequest`](ur_hal::StreamRequest)), with two exceptions: `ON_DEVICE`
//! and `ON_DEVICE_DEFAULT` are refused here, and `PROFILING_ENABLE` is handled here, by requesting times of the
//! commands that have events; the driver is told of it, because recording times may make commands slower.
mod counters;
mod entries;
mod newest;
mod objects;
mod ordered;
mod submit;

pub(crate) use newest::{end_behind, submit_with_newest};
pub(crate) use objects::{
    Context, Device, Latest, LatestSignal, Origin, Run, Shareable, SharedEvents, SharedPart, State,
    no_point,
};
pub use objects::{Event, HasStreams, Queue};
pub(crate) use submit::{Lent, lend, noted, submit_by};
