//! What stands between a call and its adapter: nothing, as a rule. One byte, read by every call.
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Calls go to their adapters.
const PLAIN: u8 = 0;
/// There is no loader yet, or no more: calls answer so.
const DOWN: u8 = 1;
/// Calls go through layers.
const LAYERED: u8 = 2;

/// Relaxed: the byte orders nothing. A caller that races with start or end may see either state,
/// and adapters stay loaded in both.
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

/// Whether nothing is between.
#[inline(always)]
pub fn plain() -> bool {
    STATE.load(Relaxed) == PLAIN
}
/// What is between.
pub fn state() -> State {
    match STATE.load(Relaxed) {
        PLAIN => State::Plain,
        LAYERED => State::Layered,
        _ => State::Down,
    }
}
/// Changes it, for calls that begin from now on.
pub(crate) fn set(state: State) {
    let byte = match state {
        State::Plain => PLAIN,
        State::Down => DOWN,
        State::Layered => LAYERED,
    };
    STATE.store(byte, Relaxed);
}
