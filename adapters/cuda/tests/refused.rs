//! The software driver of CUDA refuses one call; the tests that have it do so are Level Zero's too.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "../../level-zero/tests/c/calls.rs"]
mod calls;
#[path = "../../level-zero/tests/c/gate.rs"]
mod gate;
#[path = "c/refused.rs"]
mod refused;
#[path = "c/refuser.rs"]
mod refuser;
