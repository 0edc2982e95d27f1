//! Whether the driver can be used: initialised in this process, not shut down, and not called from a host
//! function.
#![expect(unsafe_code, reason = "exports symbols of the driver; the end of the process")]
use crate::{
    capture,
    code::{
        Answer, Code, DEINITIALIZED, INVALID_VALUE, NO_DEVICE, NOT_INITIALIZED, NOT_PERMITTED,
        OUT_OF_MEMORY, UNKNOWN,
    },
    device,
    raw::put,
};
use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::{CStr, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, Once,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};
use ur_lock::locked;

/// The process that initialised the driver, or 0.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicBool = AtomicBool::new(false);
static NEXT: AtomicU64 = AtomicU64::new(1);
thread_local! {
    static CALLED_BACK: Cell<bool> = const { Cell::new(false) };
    /// The number of calls that this thread has made.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Returns a number that was never a handle in this process; `kind` distinguishes the kinds of handles.
pub fn handle(kind: u64) -> u64 {
    (kind << 40) | (NEXT.fetch_add(1, Ordering::Relaxed) << 4)
}
/// Runs a host function of the caller, which must not call the driver.
pub fn calling_back(call: impl FnOnce()) {
    CALLED_BACK.set(true);
    call();
    CALLED_BACK.set(false);
}
fn usable() -> Answer {
    match PROCESS.load(Ordering::Acquire) {
        _ if ENDED.load(Ordering::Acquire) => Err(DEINITIALIZED),
        pid if pid != std::process::id() => Err(NOT_INITIALIZED),
        _ if CALLED_BACK.get() => Err(NOT_PERMITTED),
        _ => Ok(()),
    }
}
/// How many times each function was called, counted once a count was requested.
static BY_NAME: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
static COUNTS: AtomicBool = AtomicBool::new(false);
/// Not a function of the driver's API: returns how many times the function of this name was called since the
/// first call of this.
#[unsafe(no_mangle)]
extern "C" fn softCudaCallsOf(name: *const c_char) -> u64 {
    COUNTS.store(true, Ordering::Release);
    // SAFETY: the caller passes a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let calls = locked(&BY_NAME);
    calls.get(&*name).copied().unwrap_or(0)
}
fn count(name: &str) {
    if COUNTS.load(Ordering::Acquire) {
        let mut calls = locked(&BY_NAME);
        *calls.entry(name.to_owned()).or_default() += 1;
    }
}
thread_local! {
    /// The calls of this thread that are made to fail: the function, or any, how many successful calls come first, and how
    /// many fail.
    /// The type needs no destructor, because programs call the driver while thread-local values are
    /// destroyed.
    static FAILS: Cell<Option<(Option<&'static str>, u64, u64)>> = const { Cell::new(None) };
    /// What they fail with, and how many.
    static FAILURE: Cell<Code> = const { Cell::new(OUT_OF_MEMORY) };
    static TIMES: Cell<u64> = const { Cell::new(1) };
}
/// Not a function of the driver's API: after `before` more calls of the function of this name, or of any if it is NULL, on
/// this thread, the next one fails: out of memory, unless `softCudaFailWith` says otherwise, and once, unless
/// `softCudaFailTimes` does.
#[unsafe(no_mangle)]
extern "C" fn softCudaFail(name: *const c_char, before: u64) {
    // SAFETY: the caller passes NULL or a C string.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy());
    FAILS.set(Some((name.map(|name| &*name.into_owned().leak()), before, TIMES.get())));
}
/// Not a function of the driver's API: with this code such calls of this thread fail from now on.
#[unsafe(no_mangle)]
extern "C" fn softCudaFailWith(code: i32) {
    FAILURE.set(Code(code));
}
/// Not a function of the driver's API: so many such calls of this thread fail in a row from the next `softCudaFail` on.
#[unsafe(no_mangle)]
extern "C" fn softCudaFailTimes(times: u64) {
    TIMES.set(times);
}
fn refuse(name: &str) -> Answer {
    match FAILS.get() {
        Some((which, ..)) if which.is_some_and(|which| which != name) => {}
        Some((which, before @ 1.., times)) => FAILS.set(Some((which, before - 1, times))),
        Some((_, 0, 0)) => FAILS.set(None),
        Some((which, 0, times)) => {
            FAILS.set(Some((which, 0, times - 1)));
            return Err(FAILURE.get());
        }
        None => {}
    }
    Ok(())
}
/// Runs one call of the C API.
pub fn enter(name: &str, call: impl FnOnce() -> Answer) -> i32 {
    CALLS.set(CALLS.get() + 1);
    count(name);
    let answer = usable()
        .and_then(|()| capture::permit(name))
        .and_then(|()| refuse(name))
        .and_then(|()| catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(UNKNOWN)));
    if let Err(code) = answer
        && std::env::var_os("SOFT_CUDA_TRACE").is_some()
    {
        eprintln!("soft-cuda: {name}: {code:?}\n{}", std::backtrace::Backtrace::force_capture());
    }
    answer.map_or_else(|code| code.0, |()| 0)
}
/// Not a function of the driver's API: returns how many functions of the driver the calling thread has
/// called.
#[unsafe(no_mangle)]
extern "C" fn softCudaCalls() -> u64 {
    CALLS.get()
}
extern "C" fn end() {
    ENDED.store(true, Ordering::Release);
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: u32) -> i32 {
    let pid = PROCESS.load(Ordering::Acquire);
    if ENDED.load(Ordering::Acquire) {
        return DEINITIALIZED.0;
    }
    if pid != 0 && pid != std::process::id() {
        return NOT_INITIALIZED.0; // a forked child
    }
    if flags != 0 {
        return INVALID_VALUE.0;
    }
    if device::all().is_empty() {
        return NO_DEVICE.0;
    }
    static AT_EXIT: Once = Once::new();
    // SAFETY: the function is valid until the process ends, because the adapter that loads this library never
    // unloads it.
    AT_EXIT.call_once(|| assert_eq!(unsafe { libc::atexit(end) }, 0, "the end is told"));
    PROCESS.store(std::process::id(), Ordering::Release);
    0
}
#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(to: *mut i32) -> i32 {
    put(to, 12020).map_or_else(|code| code.0, |()| 0)
}
