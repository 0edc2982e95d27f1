//! Whether the driver may be used at all: initialised in this very process, not yet shut down, and not
//! from a host function.
#![expect(unsafe_code, reason = "exports symbols of the driver; the end of the process")]
use crate::{
    code::{
        Answer, DEINITIALIZED, INVALID_VALUE, NO_DEVICE, NOT_INITIALIZED, NOT_PERMITTED, UNKNOWN,
    },
    device,
    raw::put,
};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Once,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

/// The process that initialised the driver; 0: none did.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicBool = AtomicBool::new(false);
static NEXT: AtomicU64 = AtomicU64::new(1);
thread_local!(static CALLED_BACK: Cell<bool> = const { Cell::new(false) });

/// A number that was never a handle of this process before; `kind` makes the kinds of handles differ.
pub fn handle(kind: u64) -> u64 {
    (kind << 40) | (NEXT.fetch_add(1, Ordering::Relaxed) << 4)
}
/// Runs a function of the caller's, which may not call the driver.
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
/// One call from C.
pub fn enter(call: impl FnOnce() -> Answer) -> i32 {
    let answer =
        usable().and_then(|()| catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(UNKNOWN)));
    if let Err(code) = answer
        && std::env::var_os("SOFT_CUDA_TRACE").is_some()
    {
        eprintln!("soft-cuda: {code:?}\n{}", std::backtrace::Backtrace::force_capture());
    }
    answer.map_or_else(|code| code.0, |()| 0)
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
    // SAFETY: the function lives as long as the process: this library is never unloaded while the
    // adapter that bound it holds it, which is for ever.
    AT_EXIT.call_once(|| assert_eq!(unsafe { libc::atexit(end) }, 0, "the end is told"));
    PROCESS.store(std::process::id(), Ordering::Release);
    0
}
#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(to: *mut i32) -> i32 {
    put(to, 12020).map_or_else(|code| code.0, |()| 0)
}
