//! Command buffers as a C program has them, on whatever driver of Level Zero there is; without a device the tests say so
//! and are skipped.
mod c;
#[path = "../../cuda/tests/c/command_buffers.rs"]
mod command_buffers_of_any;
#[path = "c/gate.rs"]
mod gate;
