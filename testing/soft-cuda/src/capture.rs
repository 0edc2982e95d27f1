//! Stream capture: which streams are captured, which calls that forbids to which threads, and what
//! invalidates a capture. Captured commands are not kept, so graphs of this driver cannot be launched.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    code::{
        Answer, CAPTURE_INVALIDATED, CAPTURE_UNSUPPORTED, CAPTURE_WRONG_THREAD, ILLEGAL_STATE,
        IMPLICIT, INVALID_VALUE,
    },
    raw::{get, put},
    state, stream,
};
use std::{
    cell::Cell,
    sync::{Mutex, MutexGuard},
    thread::{self, ThreadId},
};
use ur_lock::locked;

const GLOBAL: u32 = 0;
const RELAXED: u32 = 2;

/// A capture in progress.
struct Capture {
    stream: u64,
    context: u64,
    /// Whether the stream is ordered with the legacy default stream.
    is_blocking: bool,
    mode: u32,
    thread: ThreadId,
    is_valid: bool,
}
static CAPTURES: Mutex<Vec<Capture>> = Mutex::new(Vec::new());
thread_local!(static MODE: Cell<u32> = const { Cell::new(GLOBAL) });

fn captures() -> MutexGuard<'static, Vec<Capture>> {
    locked(&CAPTURES)
}
/// Invalidates the matching captures; returns whether there were any.
fn invalidate(is_meant: impl Fn(&Capture) -> bool) -> bool {
    let mut captures = captures();
    let mut meant = captures.iter_mut().filter(|one| is_meant(one)).peekable();
    let any = meant.peek().is_some();
    meant.for_each(|one| one.is_valid = false);
    any
}
/// Whether a call is allowed during a capture: calls that submit commands to streams, and simple queries. All
/// other calls are considered unsafe, which is the driver manual's term for calls that may wait for other
/// streams.
fn is_safe(name: &str) -> bool {
    const SAFE: &[&str] = &[
        "cuCtxGetCurrent",
        "cuCtxGetDevice",
        "cuCtxGetStreamPriorityRange",
        "cuCtxPopCurrent_v2",
        "cuCtxPushCurrent_v2",
        "cuCtxSetCurrent",
        "cuEventRecord",
        "cuGraphDestroy",
        "cuLaunchHostFunc",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuMemPrefetchAsync",
        "cuThreadExchangeStreamCaptureMode",
    ];
    const SAFE_KINDS: &[&str] = &[
        "cuDeviceGet",
        "cuDeviceCanAccess",
        "cuMemcpy",
        "cuMemset",
        "cuPointerGet",
        "cuStreamBeginCapture",
        "cuStreamEndCapture",
        "cuStreamGet",
        "cuStreamIsCapturing",
        "cuStreamWait",
        "cuStreamWrite",
    ];
    SAFE.contains(&name) || SAFE_KINDS.iter().any(|kind| name.starts_with(kind))
}
/// Checks whether this thread may make the call now; if not, invalidates the captures that forbid it.
pub fn permit(name: &str) -> Answer {
    let (mode, here) = (MODE.get(), thread::current().id());
    if mode == RELAXED || is_safe(name) {
        return Ok(());
    }
    let forbids = |one: &Capture| match one.thread == here {
        true => one.mode != RELAXED,
        false => mode == GLOBAL && one.mode == GLOBAL,
    };
    if invalidate(forbids) { Err(CAPTURE_UNSUPPORTED) } else { Ok(()) }
}
/// Whether the stream is being captured.
pub fn is_captured(stream: u64) -> bool {
    captures().iter().any(|one| one.stream == stream)
}
/// Whether a command submitted to the stream is captured and does not run. A command on the legacy default
/// stream would order the captured streams, which invalidates their captures.
pub fn takes(stream: u64, context: u64, is_legacy: bool) -> Answer<bool> {
    if let Some(one) = captures().iter().find(|one| one.stream == stream) {
        return if one.is_valid { Ok(true) } else { Err(CAPTURE_INVALIDATED) };
    }
    match is_legacy && invalidate(|one| one.context == context && one.is_blocking) {
        true => Err(IMPLICIT),
        false => Ok(false),
    }
}
/// Querying or waiting for a captured stream invalidates the capture.
pub fn forbid_query(stream: u64) -> Answer {
    if invalidate(|one| one.stream == stream) { Err(CAPTURE_UNSUPPORTED) } else { Ok(()) }
}
/// The same for a context that has a captured stream.
pub fn forbid_synchronize(context: u64) -> Answer {
    if invalidate(|one| one.context == context) { Err(CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

entries! {
    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) {
        let wanted = get(mode)?;
        if wanted > RELAXED {
            return Err(INVALID_VALUE);
        }
        put(mode, MODE.replace(wanted))
    }
    fn cuStreamBeginCapture_v2(stream: u64, mode: u32) {
        if mode > RELAXED {
            return Err(INVALID_VALUE);
        }
        if stream < 3 {
            return Err(CAPTURE_UNSUPPORTED); // default streams cannot be captured
        }
        let of = stream::any(stream)?;
        let mut captures = captures();
        if captures.iter().any(|one| one.stream == stream) {
            return Err(ILLEGAL_STATE);
        }
        let (context, is_blocking, thread) = (of.context, of.flags == 0, thread::current().id());
        captures.push(Capture { stream, context, is_blocking, mode, thread, is_valid: true });
        Ok(())
    }
    fn cuStreamEndCapture(stream: u64, graph: *mut u64) {
        let mut captures = captures();
        let place = captures.iter().position(|one| one.stream == stream).ok_or(ILLEGAL_STATE)?;
        let one = &captures[place];
        if one.mode != RELAXED && one.thread != thread::current().id() {
            return Err(CAPTURE_WRONG_THREAD);
        }
        let one = captures.swap_remove(place);
        put(graph, 0)?;
        if one.is_valid { put(graph, state::handle(0x0f)) } else { Err(CAPTURE_INVALIDATED) }
    }
    fn cuGraphDestroy(graph: u64) {
        if graph == 0 { Err(INVALID_VALUE) } else { Ok(()) }
    }
    fn cuStreamIsCapturing(stream: u64, to: *mut i32) {
        let of = stream::any(stream)?;
        let captures = captures();
        if stream < 2 && captures.iter().any(|one| one.context == of.context && one.is_blocking) {
            return Err(IMPLICIT); // does not invalidate the captures here
        }
        let one = captures.iter().find(|one| one.stream == stream);
        put(to, one.map_or(0, |one| if one.is_valid { 1 } else { 2 }))
    }
}
