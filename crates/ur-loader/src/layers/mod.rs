//! Layers between a call and its adapter: `check` (parameters, by the macros of `rules`), `lifetime` (handles
//! and their leaks), `holdings` (leaks of resources that are no handles), `bounds` (memory ranges), `trace`
//! (records of calls). The generated `rows` describe what each entry does to its objects. The loader's state
//! decides whether calls pass through here: while no layer is on, none does.
//!
//! A forked child has no layers: their records describe the parent, and threads of the parent may have held
//! their locks.
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

/// The layers that are on, as bits. Relaxed: a call that races with the start or end of the loader may or may
/// not be seen by a layer.
static ON: AtomicU32 = AtomicU32::new(0);
/// Whether this process is a forked child of a process that had layers; threads that it does not have may
/// then hold the locks. Relaxed: it is set before the child's own code runs.
static CHILD: AtomicBool = AtomicBool::new(false);

/// Turns on the layers that the environment and `enabled` name; returns whether any layer is on.
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
        // There is no output. If `CAUSEWAY_TRACE` is set, `trace::start` has already logged why it cannot be
        // used.
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
/// Warns that no trace will be written, once in a process even if it starts the loader many times.
fn say_once(sentence: String) {
    static SAID: Once = Once::new();
    SAID.call_once(|| log::warn(sentence));
}
/// Turns all layers off: reports what was never released, and finishes the traces.
pub fn stop() {
    let on = ON.swap(0, Ordering::Relaxed);
    if on == 0 {
        return; // as in a forked child, where threads of the parent may have held the locks
    }
    lifetime::end(on & names::LEAKS != 0);
    holdings::end(on & names::LEAKS != 0);
    trace::stop();
}

/// Makes forked children start without layers.
fn notice_forks() {
    static NOTICED: Once = Once::new();
    extern "C" fn child() {
        ON.store(0, Ordering::Relaxed);
        CHILD.store(true, Ordering::Relaxed);
    }
    NOTICED.call_once(|| {
        // SAFETY: the handler only stores to atomics, which is allowed after a fork.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(child)) };
        if refused != 0 {
            log::warn("layers: no memory to be told of forks; children may report falsely");
        }
    });
}

/// Returns where the validation layers report: as `UR_LOG_VALIDATION` says, else the standard error.
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
/// Reports an error of the program.
fn report(sentence: impl Display) {
    validation().hear(ur_logger_level_t::ERROR, &sentence);
}
/// Reports that a call is refused, and returns its code.
#[cold]
fn refused(entry: &str, Wrong { code, what, why }: Wrong<'_>) -> ur_result_t {
    report(format_args!("{entry} is refused with {code:?}: {what}{why}"));
    code
}
