//! What all adapters share: handles, entry shims, errors, info answers, memory addresses, pools, and the sharing
//! entries. The backends are in their own crates: `ur-cpu`, `ur-cuda`, `ur-level-zero`, for example.
pub mod api;
pub mod callback;
pub mod chain;
pub mod command;
pub mod default_answers;
pub mod entry;
pub mod error;
mod error_code;
mod hal;
pub mod info;
pub mod leaf;
pub mod log;
pub mod memory;
pub mod object;
pub mod partition;
pub mod pool;
pub mod region;
pub mod share;
pub mod shim;
pub mod statics;
