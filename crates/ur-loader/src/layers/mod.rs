//! Layers between a call and its adapter: `check` (parameters, in the words of `rules`), `lifetime`
//! (handles and leaks), `holdings` (what leaks that is no handle), `bounds` (memory), `trace` (records).
//! What an entry does to its objects is in generated `rows`.
//! Whether calls come here at all is the loader's state: when no layer is on, none does.
//!
//! A child of a fork has no layers: what they know is the parent's, and so may be their locks.
#![expect(unsafe_code, reason = "passes calls on")]

mod bounds;
pub mod calls;
mod check;
pub mod effect;
mod holdings;
mod lifetime;
mod moment;
mod names;
mod operands;
mod rows;
mod rules;
mod sink;
mod trace;

use crate::{config::CodeLocation, log};
pub use names::{available, known};
use rules::Wrong;
use std::{
    fmt::Display,
    sync::{
        Once, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};
use ur_adapter::log::Sink;
use ur_sys::*;

/// The layers that are on. Relaxed: a call that races with the loader's start or end may or may not
/// be seen by a layer.
static ON: AtomicU32 = AtomicU32::new(0);
/// Whether this is a child of a process that had layers: locks may be held by threads that it does
/// not have. Relaxed: it is set before the child's own code runs.
static CHILD: AtomicBool = AtomicBool::new(false);

/// Turns on what the environment and `enabled` ask for; says whether anything is on.
pub fn start(enabled: &[String], location: Option<CodeLocation>) -> bool {
    let value = std::env::var_os("UR_ENABLE_LAYERS").unwrap_or_default();
    let mut asked = names::asked(&value.to_string_lossy(), enabled);
    for warning in asked.warnings.drain(..) {
        log::warn(warning);
    }
    if asked.on != 0 && CHILD.load(Ordering::Relaxed) {
        log::warn("a child of a process that had layers has none; start it by exec instead");
        return false;
    }
    if asked.on & names::TRACING != 0 && !trace::start(location) {
        // Nobody would see what is recorded. Why a trace that was asked for is not written has been said.
        if trace::asked() != Some("CAUSEWAY_TRACE") {
            say_once(
                "UR_LAYER_TRACING is on, but no trace is written: set CAUSEWAY_TRACE=chrome:FILE or \
                 UR_LOG_TRACING=level:info;output:stderr as well"
                    .into(),
            );
        }
        asked.on &= !names::TRACING;
    } else if asked.on & names::TRACING == 0
        && let Some(variable) = trace::asked()
    {
        say_once(format!(
            "{variable} is set, but no trace is written: add UR_LAYER_TRACING to UR_ENABLE_LAYERS"
        ));
    }
    if asked.on != 0 {
        notice_forks();
        validation();
    }
    ON.store(asked.on, Ordering::Relaxed);
    asked.on != 0
}
/// Tells of a trace that will not come, once in a process that starts the loader many times.
fn say_once(sentence: String) {
    static SAID: Once = Once::new();
    SAID.call_once(|| log::warn(sentence));
}
/// Turns all off: tells of what was never released, and finishes the traces.
pub fn stop() {
    let on = ON.swap(0, Ordering::Relaxed);
    if on == 0 {
        return; // as in a child, where the parent's threads may have the locks
    }
    lifetime::end(on & names::LEAKS != 0);
    holdings::end(on & names::LEAKS != 0);
    trace::stop();
}

/// Has a child of a fork begin without layers.
fn notice_forks() {
    static NOTICED: Once = Once::new();
    extern "C" fn child() {
        ON.store(0, Ordering::Relaxed);
        CHILD.store(true, Ordering::Relaxed);
    }
    NOTICED.call_once(|| {
        // SAFETY: what is called in the child stores to atomics alone.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(child)) };
        if refused != 0 {
            log::warn("layers: no memory to be told of forks; children may report falsely");
        }
    });
}

/// Where the reports of the validation layers go: `UR_LOG_VALIDATION`, or the standard error.
fn validation() -> &'static Sink {
    static SINK: OnceLock<Sink> = OnceLock::new();
    SINK.get_or_init(|| {
        let (sink, wrong) = Sink::of_environment("VALIDATION", ur_logger_level_t::WARN);
        if let Some(wrong) = wrong {
            log::warn(wrong);
        }
        sink
    })
}
/// Tells of a fault of the program's.
fn report(sentence: impl Display) {
    validation().hear(ur_logger_level_t::ERROR, &sentence);
}
/// Tells of a call that is refused.
#[cold]
fn refused(entry: &str, Wrong { code, what, why }: Wrong<'_>) -> ur_result_t {
    report(format_args!("{entry} is refused with {code:?}: {what}{why}"));
    code
}
