//! Commands, once for all drivers. A request of an entry is checked here and becomes a [`Command`](ur_hal::Command),
//! which is submitted to a queue or appended to a command buffer: whatever can be enqueued can be recorded.
mod buffers;
mod entries;
mod images;
pub(crate) mod launch;
mod ready;
mod resolve;
mod usm_async;

pub(crate) use ready::check_same_context;
pub use ready::{InOrder, Place, Ready, Recorder, TakesCommands, Usage, Used};
