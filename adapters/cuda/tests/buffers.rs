//! Buffers and images as a C program uses them, on whatever driver of CUDA there is.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
#[path = "c/buffers.rs"]
mod buffers;
mod c;
#[path = "../../level-zero/tests/c/gate.rs"]
mod gate;
