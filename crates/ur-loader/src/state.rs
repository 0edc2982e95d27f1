//! Whether layers are between a call and its adapter. Usually none are. One byte, which every call reads.
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Calls go directly to their adapters.
const PLAIN: u8 = 0;
/// The loader is not started or has ended: calls return an error.
const DOWN: u8 = 1;
/// Calls go through layers.
const LAYERED: u8 = 2;

/// Relaxed: the byte orders no other memory. A call that races with the start or the end may see either
/// state, and adapters stay loaded in both.
static STATE: AtomicU8 = AtomicU8::new(DOWN);

/// What is between a call and its adapter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing.
    Plain,
    /// The loader has not started, or has ended.
    Down,
    /// Layers.
    Layered,
}

/// Whether calls go directly to their adapters.
#[inline(always)]
pub fn plain() -> bool {
    STATE.load(Relaxed) == PLAIN
}
/// Returns the current state.
pub fn state() -> State {
    match STATE.load(Relaxed) {
        PLAIN => State::Plain,
        LAYERED => State::Layered,
        _ => State::Down,
    }
}
/// Changes the state, for calls that begin afterwards.
pub(crate) fn set(state: State) {
    let byte = match state {
        State::Plain => PLAIN,
        State::Down => DOWN,
        State::Layered => LAYERED,
    };
    STATE.store(byte, Relaxed);
}
