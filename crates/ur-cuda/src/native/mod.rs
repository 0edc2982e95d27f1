//! Safe methods over the driver's functions: types that own what the driver gave and give it back
//! once, on drop. One file for each kind of thing; together with `driver.rs` the only ones with
//! unsafe code. What C asks for, and when, is the families' files' business.
pub mod array;
pub mod context;
pub mod device;
pub mod event;
pub mod execute;
pub mod ipc;
pub mod launch;
pub mod memory;
pub mod module;
pub mod own_streams;
pub mod pool;
pub mod staging;
pub mod stream;
pub mod virtual_memory;
pub mod words;
