//! The software driver of Level Zero refuses one call; the tests that have it do so are CUDA's too.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "c/calls.rs"]
mod calls;
#[path = "c/gate.rs"]
mod gate;
#[path = "../../cuda/tests/c/refused.rs"]
mod refused;
#[path = "../../cuda/tests/c/refuser.rs"]
mod refuser;
