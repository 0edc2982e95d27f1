//! Stream capture: which streams are captured, which calls that forbids to which threads, and what
//! invalidates a capture; and the graphs that captures make, which run the captured commands one after the other.
#![expect(unsafe_code, reason = "exports symbols of the driver; the caller's functions")]
use crate::{
    code::{
        Answer, CAPTURE_INVALIDATED, CAPTURE_UNSUPPORTED, CAPTURE_WRONG_THREAD, ILLEGAL_STATE,
        IMPLICIT, INVALID_HANDLE, INVALID_VALUE,
    },
    raw::{get, put, put_maybe},
    state::{calling_back, handle},
    stream,
};
use std::{
    cell::Cell,
    collections::HashMap,
    ffi::c_void,
    sync::{Arc, LazyLock, Mutex, MutexGuard},
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
    /// What becomes of it, with its handle.
    graph: (u64, Arc<Graph>),
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
        "cuLaunchHostFunc",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuMemPrefetchAsync",
        "cuThreadExchangeStreamCaptureMode",
    ];
    const SAFE_KINDS: &[&str] = &[
        "cuDeviceGet",
        "cuDeviceCanAccess",
        "cuGraph",
        "cuMemcpy",
        "cuMemset",
        "cuPointerGet",
        "cuStreamBeginCapture",
        "cuStreamEndCapture",
        "cuStreamGet",
        "cuStreamIsCapturing",
        "cuStreamWait",
        "cuStreamWrite",
        "cuUserObject",
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
    number(stream) != 0
}
/// The number of the capture that the stream is in; 0: none.
pub fn number(stream: u64) -> u64 {
    captures().iter().find(|one| one.stream == stream).map_or(0, |one| one.graph.0)
}
/// Querying an event that was recorded in the capture with this number invalidates it.
pub fn forbid_query_in(number: u64) {
    invalidate(|one| one.graph.0 == number);
}
/// Whether a command submitted to the stream is captured and does not run. A command on the legacy default
/// stream would order the captured streams, which invalidates their captures.
pub fn takes(stream: u64, context: u64, is_legacy: bool, job: &Job) -> Answer<bool> {
    if let Some(one) = captures().iter().find(|one| one.stream == stream) {
        if !one.is_valid {
            return Err(CAPTURE_INVALIDATED);
        }
        one.graph.1.push(Arc::clone(job));
        return Ok(true);
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

/// A command, which runs in stream order: once, or at each launch of a graph. A failure breaks the context.
pub type Job = Arc<dyn Fn() -> Answer + Send + Sync>;

/// A graph; what was made of it, and each launch that has not ended, keeps it.
#[derive(Default)]
pub struct Graph {
    nodes: Mutex<Vec<Job>>,
    kept: Mutex<Vec<Arc<UserObject>>>,
}
impl Graph {
    pub fn push(&self, node: Job) {
        locked(&self.nodes).push(node);
    }
    pub fn run(&self) -> Answer {
        let nodes = locked(&self.nodes).clone();
        nodes.iter().try_for_each(|node| node())
    }
}
/// What the caller gives to graphs: its function is called when nobody refers to it any more.
struct UserObject {
    data: *mut c_void,
    destroy: extern "C" fn(*mut c_void),
}
// SAFETY: by the driver's contract the function may be called on any thread.
unsafe impl Send for UserObject {}
// SAFETY: as above; nothing else is done with it.
unsafe impl Sync for UserObject {}
impl Drop for UserObject {
    fn drop(&mut self) {
        calling_back(|| (self.destroy)(self.data));
    }
}
/// What has handles: graphs, what they were made into, and the references of the caller's to objects.
#[derive(Default)]
struct All {
    graphs: HashMap<u64, Arc<Graph>>,
    executable: HashMap<u64, Arc<Graph>>,
    objects: HashMap<u64, (Arc<UserObject>, u32)>,
}
fn all() -> MutexGuard<'static, All> {
    static ALL: LazyLock<Mutex<All>> = LazyLock::new(Mutex::default);
    locked(&ALL)
}
/// A new graph, without nodes, and its handle.
pub fn add() -> (u64, Arc<Graph>) {
    let (id, graph) = (handle(0x0f), Arc::<Graph>::default());
    all().graphs.insert(id, Arc::clone(&graph));
    (id, graph)
}
/// Ends a graph's handle.
pub fn remove(id: u64) -> Answer {
    let gone = all().graphs.remove(&id);
    gone.map(drop).ok_or(INVALID_VALUE) // outside the lock
}
/// What a graph was made into.
pub fn executable(id: u64) -> Answer<Arc<Graph>> {
    all().executable.get(&id).cloned().ok_or(INVALID_HANDLE)
}
/// Gives up references of the caller's.
fn release(object: u64, count: u32) -> Answer<Arc<UserObject>> {
    let mut all = all();
    let (kept, left) = all.objects.get_mut(&object).ok_or(INVALID_VALUE)?;
    *left = left.checked_sub(count).filter(|_| count != 0).ok_or(INVALID_VALUE)?;
    let kept = Arc::clone(kept);
    let gone = if *left == 0 { all.objects.remove(&object) } else { None };
    drop(all);
    drop(gone);
    Ok(kept)
}

entries! {
    fn cuGraphDestroy(graph: u64) {
        remove(graph)
    }
    fn cuGraphInstantiateWithFlags(to: *mut u64, graph: u64, flags: u64) {
        let graph = all().graphs.get(&graph).cloned().ok_or(INVALID_VALUE)?;
        if flags != 0 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let id = handle(0x10);
        all().executable.insert(id, graph);
        put(to, id)
    }
    fn cuGraphExecDestroy(graph: u64) {
        let gone = all().executable.remove(&graph);
        gone.map(drop).ok_or(INVALID_VALUE)
    }
    fn cuUserObjectCreate(
        to: *mut u64, data: *mut c_void, destroy: Option<extern "C" fn(*mut c_void)>, count: u32, flags: u32,
    ) {
        let destroy = destroy.ok_or(INVALID_VALUE)?;
        if count == 0 || flags != 1 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let id = handle(0x11);
        all().objects.insert(id, (Arc::new(UserObject { data, destroy }), count));
        put(to, id)
    }
    fn cuUserObjectRelease(object: u64, count: u32) {
        release(object, count).map(drop)
    }
    fn cuGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32) {
        let graph = all().graphs.get(&graph).cloned().ok_or(INVALID_VALUE)?;
        if count != 1 || flags > 1 {
            return Err(INVALID_VALUE);
        }
        let kept = match flags {
            1 => release(object, 1)?,
            _ => all().objects.get(&object).map(|(kept, _)| Arc::clone(kept)).ok_or(INVALID_VALUE)?,
        };
        locked(&graph.kept).push(kept);
        Ok(())
    }
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
        let graph = add();
        captures.push(Capture { stream, context, is_blocking, mode, thread, is_valid: true, graph });
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
        drop(captures);
        put(graph, 0)?;
        if one.is_valid {
            return put(graph, one.graph.0);
        }
        remove(one.graph.0)?;
        Err(CAPTURE_INVALIDATED)
    }
    fn cuStreamGetCaptureInfo_v2(
        stream: u64, status: *mut i32, number: *mut u64, graph: *mut u64, before: *mut usize, count: *mut usize,
    ) {
        let of = stream::any(stream)?;
        if !before.is_null() || !count.is_null() {
            return Err(INVALID_VALUE); // this driver has no lists of nodes
        }
        let captures = captures();
        let one = captures.iter().find(|one| one.stream == of.id);
        if let Some(one) = one.filter(|one| one.is_valid) {
            put_maybe(number, one.graph.0);
            put_maybe(graph, one.graph.0);
        }
        put(status, one.map_or(0, |one| if one.is_valid { 1 } else { 2 }))
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
