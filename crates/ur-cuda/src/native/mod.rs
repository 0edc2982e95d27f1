//! Safe wrappers of the driver's functions: types that own what the driver returned and release it once, on
//! drop. One file for each kind of object. Apart from `driver.rs` only these files contain unsafe code. When
//! they are called is decided in the files of the API's families.
pub mod array;
mod calls;
pub mod context;
pub mod device;
pub mod event;
pub mod execute;
mod graph;
pub mod ipc;
pub mod launch;
pub mod memory;
pub mod module;
pub mod own_streams;
pub mod pool;
pub mod staging;
pub mod stream;
pub mod virtual_memory;
