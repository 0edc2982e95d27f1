//! Primary contexts: retained and released, current per thread, and broken by errors in them.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    capture,
    code::{
        Answer, CONTEXT_DESTROYED, Code, INVALID_CONTEXT, INVALID_DEVICE, INVALID_VALUE,
        OUT_OF_MEMORY, PEER_ENABLED, PEER_NOT_ENABLED, PEER_UNSUPPORTED,
    },
    device, memory, module,
    raw::{put, put_maybe},
    state::handle,
    stream::{self, Stream},
};
use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard,
        atomic::{AtomicI32, Ordering},
    },
};
use ur_lock::locked;

/// A primary context, from its first retain to its last release.
pub struct Context {
    pub id: u64,
    pub device: i32,
    /// The devices whose memory it can access.
    peers: Mutex<HashSet<i32>>,
    /// The default streams: the legacy one and the per-thread one.
    pub default: [Arc<Stream>; 2],
}
#[derive(Default)]
struct Contexts {
    live: HashMap<u64, Arc<Context>>,
    /// For each device, the context and its reference count.
    primary: HashMap<i32, (u64, usize)>,
}
static CONTEXTS: LazyLock<Mutex<Contexts>> = LazyLock::new(Mutex::default);
/// A thread's stack of contexts, and its height. The type needs no destructor, because the driver is also
/// called after a thread's local variables are destroyed.
type Stack = ([u64; 64], usize);
thread_local!(static STACK: Cell<Stack> = const { Cell::new(([0; 64], 0)) });

fn contexts() -> MutexGuard<'static, Contexts> {
    locked(&CONTEXTS)
}
impl Context {
    /// Waits for everything that was submitted to its streams.
    pub fn synchronize(&self) -> Answer {
        stream::of_context(self.id).iter().chain(&self.default).for_each(|s| s.tail().wait());
        health()
    }
}
/// The error that broke the contexts of this process, or 0.
static POISON: AtomicI32 = AtomicI32::new(0);
/// Returns the error that broke the contexts of this process, if any.
pub fn health() -> Answer {
    match POISON.load(Ordering::Acquire) {
        0 => Ok(()),
        code => Err(Code(code)),
    }
}
/// Marks all contexts of this process as broken from now on, as a real driver does (580, on two H200s).
pub fn poison(code: Code) {
    POISON.store(code.0, Ordering::Release);
}
/// Returns the context on top of this thread's stack.
fn top() -> Option<u64> {
    let (stack, count) = STACK.get();
    count.checked_sub(1).map(|last| stack[last])
}
fn push(context: u64) -> Answer {
    let (mut stack, count) = STACK.get();
    *stack.get_mut(count).ok_or(OUT_OF_MEMORY)? = context;
    STACK.set((stack, count + 1));
    Ok(())
}
fn pop() -> Option<u64> {
    let top = top()?;
    let (stack, count) = STACK.get();
    STACK.set((stack, count - 1));
    Some(top)
}
/// Returns a context that exists.
pub fn of(id: u64) -> Answer<Arc<Context>> {
    contexts().live.get(&id).cloned().ok_or(INVALID_CONTEXT)
}
/// Returns the current context, if it exists and is not broken.
pub fn current() -> Answer<Arc<Context>> {
    let id = top().ok_or(INVALID_CONTEXT)?;
    let context = of(id).map_err(|_| CONTEXT_DESTROYED)?;
    health()?;
    Ok(context)
}
/// Whether `context` is the primary context of `device`.
pub fn primary_is(context: u64, device: i32) -> bool {
    contexts().primary.get(&device).is_some_and(|(id, _)| *id == context)
}
/// Returns the primary context of a device, or 0 if it has none.
pub fn primary(device: i32) -> u64 {
    contexts().primary.get(&device).map_or(0, |(id, _)| *id)
}
/// Whether peer access from the primary context of `device` to the memory of `peer` is enabled.
pub fn peer_is_on(device: i32, peer: i32) -> bool {
    let context = of(primary(device));
    context.is_ok_and(|c| locked(&c.peers).contains(&peer))
}
fn retain(device: i32) -> u64 {
    let mut contexts = contexts();
    if let Some((id, count)) = contexts.primary.get_mut(&device) {
        *count += 1;
        return *id;
    }
    let id = handle(0x0c);
    let default = [0, 1].map(|flags| Stream::new(id, device, flags, 0));
    let peers = Mutex::default();
    contexts.live.insert(id, Arc::new(Context { id, device, peers, default }));
    contexts.primary.insert(device, (id, 1));
    id
}
fn release(device: i32) -> Answer {
    let context = {
        let mut contexts = contexts();
        let (id, count) = contexts.primary.get_mut(&device).ok_or(INVALID_CONTEXT)?;
        *count -= 1;
        if *count != 0 {
            return Ok(());
        }
        let id = *id;
        contexts.primary.remove(&device);
        contexts.live.get(&id).cloned().ok_or(INVALID_CONTEXT)?
    };
    let _why = context.synchronize();
    contexts().live.remove(&context.id);
    stream::end_of(context.id);
    context.default.iter().for_each(|s| s.close());
    module::end_of(context.id);
    memory::end_of(context.id);
    Ok(())
}

entries! {
    fn cuDevicePrimaryCtxRetain(to: *mut u64, device: i32) {
        device::of(device)?;
        put(to, 0)?;
        put(to, retain(device))
    }
    fn cuDevicePrimaryCtxRelease_v2(device: i32) {
        device::of(device)?;
        release(device)
    }
    fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) {
        device::of(device)?;
        put(flags, 0)?;
        put(active, i32::from(primary(device) != 0))
    }
    fn cuCtxPushCurrent_v2(context: u64) {
        of(context)?;
        push(context)
    }
    fn cuCtxPopCurrent_v2(to: *mut u64) {
        let popped = pop().ok_or(INVALID_CONTEXT)?;
        put_maybe(to, popped);
        Ok(())
    }
    fn cuCtxSetCurrent(context: u64) {
        if context != 0 {
            of(context)?;
        }
        pop();
        if context == 0 { Ok(()) } else { push(context) }
    }
    fn cuCtxGetCurrent(to: *mut u64) {
        put(to, top().unwrap_or(0))
    }
    fn cuCtxGetDevice(to: *mut i32) {
        put(to, current()?.device)
    }
    fn cuCtxSynchronize() {
        let context = current()?;
        capture::forbid_synchronize(context.id)?;
        context.synchronize()
    }
    fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) {
        current()?;
        put_maybe(least, 0);
        put_maybe(greatest, -5);
        Ok(())
    }
    fn cuCtxEnablePeerAccess(peer: u64, flags: u32) {
        let (context, peer) = (current()?, of(peer)?);
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        if peer.device == context.device {
            return Err(INVALID_DEVICE);
        }
        if !device::reaches(context.device, peer.device) {
            return Err(PEER_UNSUPPORTED);
        }
        let new = locked(&context.peers).insert(peer.device);
        if new { Ok(()) } else { Err(PEER_ENABLED) }
    }
    fn cuCtxDisablePeerAccess(peer: u64) {
        let (context, peer) = (current()?, of(peer)?);
        let was = locked(&context.peers).remove(&peer.device);
        if was { Ok(()) } else { Err(PEER_NOT_ENABLED) }
    }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let device = device::of(current()?.device)?;
        put(free, device.free() as usize)?;
        put(total, device::total() as usize)
    }
    fn cuProfilerStart() {
        current().map(drop)
    }
}
