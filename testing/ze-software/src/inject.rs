//! One call of an exported function: failures that the environment requests, panics, and the trace.
#![expect(unsafe_code, reason = "exports symbols for tests")]
use crate::knob;
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        LazyLock, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use ze_sys::*;

/// The result of an exported function's body.
pub type Answer<T = ()> = Result<T, ze_result_t>;

/// An exported function and the number of calls to it.
pub struct Site {
    name: &'static str,
    calls: AtomicU64,
}
impl Site {
    /// The function named `name`, without calls so far.
    pub const fn new(name: &'static str) -> Self {
        Self { name, calls: AtomicU64::new(0) }
    }
}
struct Wish {
    name: String,
    nth: u64,
    code: ze_result_t,
}
struct Plan {
    wishes: Vec<Wish>,
    hides: bool,
    trace: bool,
    errors: bool,
}
impl Plan {
    fn read() -> Self {
        let trace = knob::text("TRACE").unwrap_or_default();
        let wishes = knob::text("FAIL").unwrap_or_default();
        Self {
            wishes: wishes.split(',').filter(|wish| !wish.is_empty()).map(wish).collect(),
            hides: ["HIDE", "COUNTER_EVENTS", "LACKS"]
                .iter()
                .any(|name| knob::text(name).is_some()),
            trace: trace == "1",
            errors: trace == "1" || trace == "errors",
        }
    }
}
/// Reads `name:nth=code`. Ends the process if `text` is malformed, so that no test passes because of a typo.
fn wish(text: &str) -> Wish {
    let read = || -> Option<Wish> {
        let (site, code) = text.split_once('=')?;
        let (name, nth) = site.split_once(':').unwrap_or((site, "0"));
        let code = match code.trim().strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => code.trim().parse().ok()?,
        };
        Some(Wish { name: name.trim().to_owned(), nth: nth.trim().parse().ok()?, code })
    };
    read().unwrap_or_else(|| {
        eprintln!(
            "ze-software: ZE_SOFTWARE_FAIL: {text:?} is not like zeMemAllocDevice:3=0x70000003"
        );
        std::process::abort()
    })
}
fn plan() -> Option<&'static Plan> {
    static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
    PLAN.get_or_init(|| {
        Some(Plan::read()).filter(|plan| !plan.wishes.is_empty() || plan.errors || plan.hides)
    })
    .as_ref()
}
/// Whether calls are counted by thread, for those who ask for that below.
static IS_COUNTED: AtomicBool = AtomicBool::new(false);
thread_local! {
    /// How many calls this thread has made.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    /// How many it makes before some are refused, and how many those are.
    static FAILS: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
    static TIMES: Cell<u64> = const { Cell::new(1) };
    /// What those return.
    static FAILURE: Cell<ze_result_t> = const { Cell::new(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY) };
}
/// Not a function of Level Zero: returns how many functions the calling thread has called since the first call of this.
#[unsafe(no_mangle)]
extern "C" fn zeSoftwareCalls() -> u64 {
    IS_COUNTED.store(true, Ordering::Relaxed);
    CALLS.get()
}
/// Not a function of Level Zero: after `before` more calls of this thread, of whatever function, the next one fails: out
/// of device memory, unless `zeSoftwareFailWith` says otherwise, and once, unless `zeSoftwareFailTimes` does.
#[unsafe(no_mangle)]
extern "C" fn zeSoftwareFail(_any: *const std::ffi::c_char, before: u64) {
    IS_COUNTED.store(true, Ordering::Relaxed);
    FAILS.set(Some((before, TIMES.get())));
}
/// Not a function of Level Zero: with this code such calls of this thread fail from now on.
#[unsafe(no_mangle)]
extern "C" fn zeSoftwareFailWith(code: ze_result_t) {
    FAILURE.set(code);
}
/// Not a function of Level Zero: so many such calls of this thread fail in a row from the next `zeSoftwareFail` on.
#[unsafe(no_mangle)]
extern "C" fn zeSoftwareFailTimes(times: u64) {
    TIMES.set(times);
}
/// Counts a call of this thread; whether it is refused.
fn is_refused() -> bool {
    CALLS.set(CALLS.get() + 1);
    let fails = FAILS.get();
    FAILS.set(match fails {
        Some((before @ 1.., times)) => Some((before - 1, times)),
        Some((0, times @ 1..)) => Some((0, times - 1)),
        Some((0, 0)) | None => None,
    });
    matches!(fails, Some((0, 1..)))
}
/// Runs an exported function, or returns the code that the environment requests for this call. Turns a panic
/// into an error code.
pub fn enter(site: &'static Site, body: impl FnOnce() -> Answer) -> ze_result_t {
    if IS_COUNTED.load(Ordering::Relaxed) && is_refused() {
        return FAILURE.get();
    }
    let Some(plan) = plan() else { return run(site, body) };
    let nth = site.calls.fetch_add(1, Ordering::Relaxed) + 1;
    let wished = |wish: &&Wish| wish.name == site.name && (wish.nth == 0 || wish.nth == nth);
    let code = match plan.wishes.iter().find(wished) {
        Some(wish) => wish.code,
        None if plan.hides && hidden(site.name) => ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
        None => run(site, body),
    };
    if plan.trace || (plan.errors && code != ZE_RESULT_SUCCESS && code != ZE_RESULT_NOT_READY) {
        eprintln!("ze-software[{}]: {} #{nth} = {code:#x}", std::process::id(), site.name);
    }
    code
}
fn run(site: &'static Site, body: impl FnOnce() -> Answer) -> ze_result_t {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => ZE_RESULT_SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => {
            eprintln!("ze-software: {} panicked", site.name);
            ZE_RESULT_ERROR_UNKNOWN
        }
    }
}
/// Whether the driver pretends not to have this function: `ZE_SOFTWARE_HIDE` names it, or
/// `ZE_SOFTWARE_COUNTER_EVENTS` excludes it.
pub fn hidden(name: &str) -> bool {
    static HIDDEN: OnceLock<(Vec<String>, String)> = OnceLock::new();
    let (list, counter) = HIDDEN.get_or_init(|| {
        let text = knob::text("HIDE").unwrap_or_default();
        let list = text.split(',').map(|name| name.trim().to_owned()).collect();
        (list, knob::text("COUNTER_EVENTS").unwrap_or_default())
    });
    let core = name.starts_with("zeEventCounterBased");
    let older = name.starts_with("zexCounterBased");
    let left_out = match counter.as_str() {
        "none" => core || older,
        "zex" => core,
        "core" => older,
        _ => false,
    };
    let is_event_ipc = name.contains("CounterBased") && name.ends_with("IpcHandle");
    let is_virtual = name.starts_with("zeVirtualMem") || name.starts_with("zePhysicalMem");
    let is_lacking = is_virtual && lacks("virtual_memory") || is_event_ipc && lacks("ipc");
    left_out || is_lacking || list.iter().any(|hidden| hidden == name)
}
/// Whether `ZE_SOFTWARE_LACKS` names the feature: `ipc`, `descriptors`, `imports` or `virtual_memory`.
pub fn lacks(feature: &str) -> bool {
    static LACKS: OnceLock<Vec<String>> = OnceLock::new();
    let lacks = LACKS.get_or_init(|| {
        let names = knob::text("LACKS").unwrap_or_default();
        names.split(',').map(|name| name.trim().to_owned()).collect()
    });
    lacks.iter().any(|one| one == feature)
}
/// Whether shared events work as in Intel's older drivers (`ZE_SOFTWARE_COUNTER_EVENTS=snapshots`): a handle
/// refers to the event's state at the time when the handle was made, the process that opens it cannot signal
/// it, and an event that has no state yet cannot be shared.
pub fn shares_one_way() -> bool {
    static ONE_WAY: LazyLock<bool> = LazyLock::new(|| knob::is("COUNTER_EVENTS", "snapshots"));
    *ONE_WAY
}
/// Whether the driver has any of the functions that create counter-based events
/// (`ZE_SOFTWARE_COUNTER_EVENTS`).
pub fn counter_events() -> bool {
    !hidden("zexCounterBasedEventCreate2") || !hidden("zeEventCounterBasedCreate")
}
