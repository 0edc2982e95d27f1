//! Safe methods over the driver's functions: types that own what the driver gave and give it back
//! once, on drop. One file for each kind of thing; together with `driver.rs` the only ones with
//! unsafe code. What C asks for, and when, is the families' files' business.
pub mod arguments;
pub mod context;
pub mod counter;
pub mod device;
pub mod driver;
pub mod event;
pub mod execute;
mod fill;
pub mod image;
mod import_fd;
pub mod ipc;
pub mod kernel;
pub mod list;
pub mod memory;
pub mod module;
pub mod mutable;
pub mod physical_memory;
pub mod queue;
pub mod sampler;
pub mod sysman;
pub mod utility_list;
pub mod virtual_memory;
