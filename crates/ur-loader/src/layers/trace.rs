//! Records of calls: the arguments, the thread, the duration and the result. `sink` writes the records.
//!
//! `UR_LOG_TRACING` gives lines of text as the reference loader does; `CAUSEWAY_TRACE` gives any form, in a
//! file of each process's own. Both may be set. Without either, nothing is recorded.
#![expect(unsafe_code, reason = "prints arguments, and asks the program where it is")]
use super::{operands::Operands, sink};
use crate::{config::CodeLocation, log, print::kind::Call, print::printer};
use std::{
    ffi::{CStr, OsStr, c_char},
    sync::{Arc, RwLock},
};
use ur_adapter::log::Sink as Log;
use ur_lock::{read_locked, write_locked};
use ur_sys::*;

/// A call that has returned.
pub struct Record {
    /// The C name of the entry.
    pub call: &'static str,
    /// The kernel's id of the thread.
    pub thread: u64,
    /// When it began, by the monotonic clock, which all processes of a machine share.
    pub begin_ns: u64,
    /// How long it took, layers included.
    pub duration_ns: u64,
    /// Its result.
    pub result: ur_result_t,
    /// The names and values of the arguments, read after the call.
    pub arguments: Vec<(&'static str, String)>,
    /// The source location that the program reported.
    pub place: Option<String>,
}
impl Record {
    /// The record as a line of text.
    pub fn text(&self) -> String {
        let arguments: Vec<_> =
            self.arguments.iter().map(|(name, text)| format!(".{name} = {text}")).collect();
        let place = self.place.as_ref().map(|p| format!(" at {p}")).unwrap_or_default();
        format!(
            "   <--- {}({}) -> {:?}; {} ns, thread {}{place}\n",
            self.call,
            arguments.join(", "),
            self.result,
            self.duration_ns,
            self.thread
        )
    }
}

struct Trace {
    lines: Option<Log>,
    sink: Option<&'static sink::Sink>,
    location: Option<CodeLocation>,
}
static TRACE: RwLock<Option<Arc<Trace>>> = RwLock::new(None);
/// The environment variables that request a trace.
const VARIABLES: [&str; 2] = ["CAUSEWAY_TRACE", "UR_LOG_TRACING"];

/// The nanoseconds of the monotonic clock.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let whole = |number: i64| u64::try_from(number).unwrap_or(0);
    whole(time.tv_sec) * 1_000_000_000 + whole(time.tv_nsec)
}
/// Returns the environment variable that requests a trace, if one is set.
pub fn asked() -> Option<&'static str> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    VARIABLES.into_iter().find(is_set)
}

fn current() -> Option<Arc<Trace>> {
    read_locked(&TRACE).clone()
}

/// Opens the outputs that the environment names; returns whether there is one.
pub fn start(location: Option<CodeLocation>) -> bool {
    let (lines, wrong) = Log::of_environment("TRACING", ur_logger_level_t::QUIET);
    if let Some(wrong) = wrong {
        log::warn(wrong);
    }
    let lines = lines.hears(ur_logger_level_t::INFO).then_some(lines);
    let asked = std::env::var_os("CAUSEWAY_TRACE").filter(|value| !value.is_empty());
    let sink = asked.and_then(|value| open(&value));
    let any = lines.is_some() || sink.is_some();
    let trace = any.then(|| Arc::new(Trace { lines, sink, location }));
    *write_locked(&TRACE) = trace;
    any
}
fn open(value: &OsStr) -> Option<&'static sink::Sink> {
    let text = value.to_str().ok_or_else(|| "it is not UTF-8".to_string());
    let opened = text.and_then(sink::of_process);
    opened.map_err(|why| log::warn(format_args!("CAUSEWAY_TRACE is ignored: {why}"))).ok()
}
/// Finishes the outputs.
pub fn stop() {
    let trace = write_locked(&TRACE).take();
    if let Some(sink) = trace.as_ref().and_then(|t| t.sink) {
        sink.finish();
    }
}

/// A call that has begun.
pub struct Begun {
    trace: Option<Arc<Trace>>,
    at: u64,
}
/// Records that a call begins.
pub fn begin(call: &Call) -> Begun {
    let trace = current();
    if let Some(lines) = trace.as_ref().and_then(|t| t.lines.as_ref()) {
        lines.lines(&format!("   ---> {}\n", call.name));
    }
    Begun { trace, at: now() }
}
/// Writes the record of a call.
pub fn end(begun: Begun, call: &'static Call, operands: Operands<'_>, result: ur_result_t) {
    let duration_ns = now().saturating_sub(begun.at);
    let Some(trace) = begun.trace else { return };
    let mut arguments = Vec::with_capacity(call.params.len());
    let failed = result != ur_result_t::SUCCESS;
    // SAFETY: these are the arguments of this call.
    unsafe {
        printer::each_parameter(call, operands.as_ptr(), failed, |name, text| {
            arguments.push((name, text.to_string()));
        });
    }
    let record = Record {
        call: call.name,
        thread: thread(),
        begin_ns: begun.at,
        duration_ns,
        result,
        arguments,
        place: trace.location.as_ref().and_then(place),
    };
    if let Some(lines) = &trace.lines {
        lines.lines(&record.text());
    }
    if let Some(sink) = trace.sink {
        sink.write(&record);
    }
}
/// Returns the kernel's id of this thread.
fn thread() -> u64 {
    thread_local! {
        // SAFETY: `gettid` has no preconditions.
        static NUMBER: u64 = unsafe { libc::gettid() }.unsigned_abs().into();
    }
    NUMBER.with(|n| *n)
}
/// Asks the program for the source location of the call.
fn place(location: &CodeLocation) -> Option<String> {
    let ask = location.callback?;
    // SAFETY: when the callback was set, the program promised that any thread may call it with this argument.
    let at = unsafe { ask(location.user_data.as_ptr()) };
    let text = |text: *const c_char| {
        if text.is_null() {
            return None;
        }
        // SAFETY: the text ends with a NUL and is valid during this call.
        Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    let (file, function) = (text(at.sourceFile), text(at.functionName));
    (file.is_some() || function.is_some()).then(|| {
        format!(
            "{}:{}:{} {}",
            file.unwrap_or_default(),
            at.lineNumber,
            at.columnNumber,
            function.unwrap_or_default()
        )
    })
}
