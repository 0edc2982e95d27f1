//! Streams: each has a thread that runs the submitted commands in order, and that ends when there have been none
//! for a while. The legacy default stream and the blocking streams wait for each other.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    capture::{self, Job},
    code::{Answer, INVALID_HANDLE, INVALID_VALUE, NOT_READY, OPERATING_SYSTEM},
    context::{self, Context},
    raw::put,
    state::handle,
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Condvar, LazyLock, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use ur_lock::{locked, unpoisoned};

/// The time without commands after which a stream's thread ends.
const IDLE: Duration = Duration::from_millis(100);
/// How often a thread is asked for again if the system has none.
const TRIES: u32 = 5;

/// A stream.
pub struct Stream {
    pub id: u64,
    pub context: u64,
    pub device: i32,
    /// 0: blocking, 1: non-blocking.
    pub flags: u32,
    pub priority: i32,
    line: Mutex<Line>,
    changed: Condvar,
}
#[derive(Default)]
struct Line {
    waiting: VecDeque<Box<dyn FnOnce() -> Answer + Send>>,
    submitted: u64,
    done: u64,
    has_thread: bool,
    closed: bool,
}
/// A position in a stream: everything that had been submitted at one moment.
#[derive(Clone)]
pub struct Ticket {
    stream: Arc<Stream>,
    number: u64,
}
impl Ticket {
    pub fn is_over(&self) -> bool {
        self.stream.line().done >= self.number
    }
    /// Waits by spinning, which is the driver's default for waits of the host.
    pub fn spin(&self) {
        while !self.is_over() {
            thread::yield_now();
        }
    }
    pub fn wait(&self) {
        let mut line = self.stream.line();
        while line.done < self.number {
            line = unpoisoned(self.stream.changed.wait(line));
        }
    }
}
static STREAMS: LazyLock<Mutex<HashMap<u64, Arc<Stream>>>> = LazyLock::new(Mutex::default);
fn streams() -> MutexGuard<'static, HashMap<u64, Arc<Stream>>> {
    locked(&STREAMS)
}

impl Stream {
    pub fn new(context: u64, device: i32, flags: u32, priority: i32) -> Arc<Self> {
        let (line, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { id: handle(0x05), context, device, flags, priority, line, changed })
    }
    fn line(&self) -> MutexGuard<'_, Line> {
        locked(&self.line)
    }
    pub fn tail(self: &Arc<Self>) -> Ticket {
        Ticket { stream: self.clone(), number: self.line().submitted }
    }
    /// Ends its thread after all commands have run.
    pub fn close(&self) {
        self.line().closed = true;
        self.changed.notify_all();
    }
    /// Returns the positions that a new command waits for: a blocking stream waits for the legacy stream, and
    /// the legacy stream for all blocking ones.
    fn before(self: &Arc<Self>, context: &Context) -> Vec<Ticket> {
        let legacy = &context.default[0];
        let others = match self.flags {
            0 if self.id == legacy.id => {
                of_context(context.id).into_iter().filter(|s| s.flags == 0).collect()
            }
            0 => vec![legacy.clone()],
            _ => Vec::new(),
        };
        others.iter().map(Self::tail).filter(|t| !t.is_over()).collect()
    }
    /// Appends a command to the stream.
    pub fn submit(
        self: &Arc<Self>,
        job: impl Fn() -> Answer + Send + Sync + 'static,
    ) -> Answer<Ticket> {
        let context = context::of(self.context)?;
        let is_legacy = self.id == context.default[0].id;
        let job: Job = Arc::new(job);
        if capture::takes(self.id, context.id, is_legacy, &job)? {
            return Ok(self.tail());
        }
        let before = self.before(&context);
        let whole = move || {
            before.iter().for_each(Ticket::wait);
            // Commands after the one that broke the context do not run.
            if context::health().is_ok()
                && let Err(code) = job()
            {
                context::poison(code);
            }
            Ok(())
        };
        let mut line = self.line();
        if !line.has_thread {
            self.start().map_err(|_| OPERATING_SYSTEM)?;
            line.has_thread = true;
        }
        line.waiting.push_back(Box::new(whole));
        line.submitted += 1;
        let number = line.submitted;
        drop(line);
        self.changed.notify_all();
        Ok(Ticket { stream: self.clone(), number })
    }
    /// Starts its thread. A device always has room for a stream, so a system that has no thread left now is asked
    /// again until threads of other streams have ended.
    fn start(self: &Arc<Self>) -> std::io::Result<()> {
        use std::io::ErrorKind::{OutOfMemory, WouldBlock};
        let start = || {
            let stream = self.clone();
            ur_mapping::start_thread("soft-cuda", move || stream.work()).map(drop)
        };
        for _ in 0..TRIES {
            match start() {
                Err(e) if matches!(e.kind(), WouldBlock | OutOfMemory) => thread::sleep(IDLE),
                done => return done,
            }
        }
        start()
    }
    fn work(&self) {
        let (mut line, mut is_idle) = (self.line(), false);
        loop {
            if let Some(job) = line.waiting.pop_front() {
                drop(line);
                let _poisoned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                (line, is_idle) = (self.line(), false);
                line.done += 1;
                self.changed.notify_all();
            } else if line.closed || is_idle {
                line.has_thread = false;
                return;
            } else {
                let waited = unpoisoned(self.changed.wait_timeout(line, IDLE));
                (line, is_idle) = (waited.0, waited.1.timed_out());
            }
        }
    }
}
/// Returns the streams of a context, without the default ones.
pub fn of_context(context: u64) -> Vec<Arc<Stream>> {
    streams().values().filter(|s| s.context == context).cloned().collect()
}
/// Closes the streams of a context that was destroyed.
pub fn end_of(context: u64) {
    streams().retain(|_, s| {
        let stays = s.context != context;
        if !stays {
            s.close();
        }
        stays
    });
}
/// Returns a stream by its handle, of any context; default streams are those of the current context.
pub fn any(id: u64) -> Answer<Arc<Stream>> {
    match id {
        0 | 1 => Ok(context::current()?.default[0].clone()),
        2 => Ok(context::current()?.default[1].clone()),
        _ => streams().get(&id).cloned().ok_or_else(|| {
            UNKNOWN.fetch_add(1, Relaxed);
            INVALID_HANDLE
        }),
    }
}
static UNKNOWN: AtomicU64 = AtomicU64::new(0);
/// Not a function of the driver's API: how often a handle was used as a stream that is none, as one that was destroyed is. A
/// real driver may crash then.
#[unsafe(no_mangle)]
extern "C" fn softCudaUnknownStreams() -> u64 {
    UNKNOWN.load(Relaxed)
}
/// Returns a stream of the current context, to submit to.
pub fn of(id: u64) -> Answer<Arc<Stream>> {
    let stream = any(id)?;
    if stream.context == context::current()?.id { Ok(stream) } else { Err(INVALID_HANDLE) }
}

entries! {
    fn cuStreamCreateWithPriority(to: *mut u64, flags: u32, priority: i32) {
        let context = context::current()?;
        if flags > 1 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let stream = Stream::new(context.id, context.device, flags, priority.clamp(-5, 0));
        put(to, stream.id)?;
        streams().insert(stream.id, stream);
        Ok(())
    }
    fn cuStreamCreate(to: *mut u64, flags: u32) {
        let context = context::current()?;
        if flags > 1 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let stream = Stream::new(context.id, context.device, flags, 0);
        put(to, stream.id)?;
        streams().insert(stream.id, stream);
        Ok(())
    }
    fn cuStreamDestroy_v2(stream: u64) {
        let gone = streams().remove(&stream).ok_or(INVALID_HANDLE)?;
        gone.close();
        Ok(())
    }
    fn cuStreamSynchronize(stream: u64) {
        let stream = any(stream)?;
        capture::forbid_query(stream.id)?;
        // An empty command on the legacy stream waits for the blocking streams.
        let tail = if stream.flags == 0 { stream.submit(|| Ok(()))? } else { stream.tail() };
        tail.spin();
        context::of(stream.context).and_then(|_| context::health())
    }
    fn cuStreamQuery(stream: u64) {
        let stream = any(stream)?;
        capture::forbid_query(stream.id)?;
        let context = context::of(stream.context)?;
        let idle = stream.tail().is_over() && stream.before(&context).is_empty();
        context::health()?; // last: what was lost is over, too
        if idle { Ok(()) } else { Err(NOT_READY) }
    }
    fn cuGraphLaunch(graph: u64, stream: u64) {
        let graph = capture::executable(graph)?;
        of(stream)?.submit(move || graph.run())?;
        Ok(())
    }
    fn cuStreamGetCtx(stream: u64, to: *mut u64) {
        put(to, any(stream)?.context)
    }
    fn cuStreamGetFlags(stream: u64, to: *mut u32) {
        put(to, any(stream)?.flags)
    }
    fn cuStreamGetPriority(stream: u64, to: *mut i32) {
        put(to, any(stream)?.priority)
    }
}
