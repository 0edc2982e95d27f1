//! Safe wrappers of the driver's functions: types that own what the driver returned and release it once, on
//! drop. One file for each kind of object. Apart from `driver.rs` and `variant.rs` only these files contain
//! unsafe code. When they are called is decided in the files of the API's families.
pub mod arguments;
pub mod call;
pub mod context;
pub mod counter;
pub mod device;
pub mod driver;
pub mod event;
pub mod execute;
mod fill;
pub mod fork;
pub mod image;
mod import_fd;
pub mod ipc;
pub mod kernel;
pub mod list;
pub mod memory;
pub mod module;
pub mod mutable;
pub mod owned;
pub mod physical_memory;
pub mod sampler;
pub mod sysman;
pub mod virtual_memory;
