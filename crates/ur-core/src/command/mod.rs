//! Commands, once for all drivers. An entry's request becomes a [`Command`](ur_hal::Command) here, of which everything was
//! judged, and goes to a queue or into a command buffer: what can be enqueued can be recorded.
mod buffers;
mod entries;
mod images;
pub(crate) mod launch;
mod ready;
mod resolve;
mod usm_async;

pub use ready::{Exists, InOrder, Place, Ready, Recorder, TakesCommands, Used};
