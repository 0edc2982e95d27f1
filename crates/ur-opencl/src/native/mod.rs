//! What the drivers give, as values that own it; the only unsafe code beside `driver.rs`.
pub mod device;
pub mod event;
pub mod host_task;
pub mod image;
pub mod kernel;
pub mod memory;
pub mod own;
pub mod program;
pub mod queue;
pub mod work;
