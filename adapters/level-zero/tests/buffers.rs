//! Buffers and images as a C program uses them, on whatever driver of Level Zero there is.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
#[path = "../../cuda/tests/c/buffers.rs"]
mod buffers;
mod c;
#[path = "c/gate.rs"]
mod gate;
