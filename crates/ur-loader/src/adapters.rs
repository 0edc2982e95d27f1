//! The adapters that are in use while the loader is started. They are opened from the candidates that
//! `discover` lists, and `urAdapterGet` lists their handles to programs by calling each adapter. An adapter
//! that cannot be used is logged once and left out; the others are used.
#![expect(unsafe_code, reason = "calls adapters")]
use crate::{
    discover::{Candidate, Place},
    failure::enter,
    held::Held,
    library::{self, Closed, Opened},
    log,
};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    ptr::{from_ref, null_mut},
    sync::atomic::{AtomicPtr, Ordering},
};
use ur_adapter::error::ErrorCode;
use ur_sys::*;

/// An adapter that works.
#[derive(Clone, Debug)]
struct Adapter {
    name: String,
    table: &'static ur_dditable_t,
    get: ur_pfnAdapterGet_t,
}
impl Adapter {
    fn new(name: &str, table: &'static ur_dditable_t) -> Result<Self, String> {
        let get = table.adapter.get.ok_or("it has no urAdapterGet")?;
        Ok(Self { name: name.to_string(), table, get })
    }
    fn is(&self, other: &Self) -> bool {
        self.name == other.name && std::ptr::eq(self.table, other.table)
    }
}
/// The adapters of one start of the loader.
struct Adapters(Vec<Adapter>);

/// The adapters in use now, or null while the loader is not started. Calls read it without a lock.
static UP: AtomicPtr<Adapters> = AtomicPtr::new(null_mut());
/// Every list of adapters that was ever in use. A list is never freed, because a call may still read it; a
/// later start that finds the same adapters uses the same list again.
static ALL: Held<Vec<&'static Adapters>> = Held::new(Vec::new());

fn up() -> Option<&'static Adapters> {
    // SAFETY: `now` stores only null or a reference from `ALL`, whose lists are never freed.
    unsafe { UP.load(Ordering::Acquire).as_ref() }
}
/// The table of the adapter if exactly one is in use, else null. Each call on an object reads it.
static ONLY: AtomicPtr<ur_dditable_t> = AtomicPtr::new(null_mut());

/// Returns the table of the adapter if exactly one is in use.
#[inline(always)]
pub(crate) fn only() -> Option<&'static ur_dditable_t> {
    // SAFETY: `now` stores only null or the `'static` table of an adapter. Acquire pairs with the Release
    // store in `now`.
    unsafe { ONLY.load(Ordering::Acquire).as_ref() }
}
/// Makes `adapters` the adapters in use from now on.
fn now(adapters: Option<&'static Adapters>) {
    let only = match adapters.map(|all| all.0.as_slice()) {
        Some([one]) => from_ref(one.table).cast_mut(),
        _ => null_mut(),
    };
    ONLY.store(only, Ordering::Release);
    UP.store(adapters.map_or(null_mut(), |all| from_ref(all).cast_mut()), Ordering::Release);
}

/// Sentences that were logged already: a program that starts the loader many times sees each of them once.
static SAID: Held<BTreeSet<String>> = Held::new(BTreeSet::new());

fn once(tell: impl Fn(&str), sentence: String) {
    if SAID.lock().insert(sentence.clone()) {
        tell(&sentence);
    }
}

/// What was opened for a candidate.
enum Found {
    File(&'static Opened),
    Table(&'static ur_dditable_t),
}

/// Opens each candidate that can be opened and makes these the adapters in use.
pub(crate) fn start(candidates: &[Candidate]) {
    let mut adapters = Vec::new();
    for candidate in candidates {
        let name = &candidate.name;
        let table = match find(candidate) {
            Some(Found::File(opened)) => opened.table(),
            Some(Found::Table(table)) => Ok(table),
            None => continue,
        };
        match table.and_then(|table| Adapter::new(name, table)) {
            Ok(adapter) => {
                log::info(format_args!("adapter {name} is loaded"));
                adapters.push(adapter);
            }
            Err(wrong) => once(|s| log::error(s), format!("adapter {name} is left out: {wrong}")),
        }
    }
    let mut all = ALL.lock();
    let same = |one: &&&Adapters| {
        one.0.len() == adapters.len() && one.0.iter().zip(&adapters).all(|(a, b)| a.is(b))
    };
    let up = all.iter().find(same).copied();
    let up = up.unwrap_or_else(|| {
        let fresh: &_ = Box::leak(Box::new(Adapters(adapters)));
        all.push(fresh);
        fresh
    });
    now(Some(up));
}
/// Ends the use of all adapters; their files stay open.
pub(crate) fn stop() {
    now(None);
}

/// Opens the candidate at the first place where that succeeds.
fn find(candidate: &Candidate) -> Option<Found> {
    let name = &candidate.name;
    for place in &candidate.places {
        let file: &OsStr = match place {
            Place::Builtin(table) => return Some(Found::Table(table)),
            Place::File(path) => path.as_os_str(),
            Place::System(name) => name.as_ref(),
        };
        let shown = file.display();
        match library::open(file) {
            Ok(opened) => {
                log::info(format_args!("adapter {name} is {shown}"));
                return Some(Found::File(opened));
            }
            Err(Closed::Missing) => log::info(format_args!("adapter {name}: there is no {shown}")),
            Err(Closed::Needs(what)) => {
                log::info(format_args!("adapter {name}: {shown} does not open: {what}"));
            }
            Err(Closed::Wrong(what)) => {
                let sentence = format!("adapter {name}: {shown} cannot be opened: {what}");
                once(|s| log::warn(s), sentence);
            }
        }
    }
    None
}
/// Writes the handles of all adapters, up to `num_entries` of them, and how many there are in total.
///
/// # Safety
/// `adapters` is null or has room for `num_entries`; `num_adapters` is null or writable.
pub(crate) unsafe fn get(
    num_entries: u32,
    adapters: *mut ur_adapter_handle_t,
    num_adapters: *mut u32,
) -> ur_result_t {
    enter("urAdapterGet", || {
        if num_entries == 0 && !adapters.is_null() {
            return Err(ErrorCode::InvalidSize.into());
        }
        let up = up().ok_or(ErrorCode::Uninitialized)?;
        let room = if adapters.is_null() { 0 } else { num_entries };
        let mut total: u32 = 0;
        for adapter in &up.0 {
            let left = room.saturating_sub(total);
            // SAFETY: the caller promises space for `num_entries` handles, and `total` is less than that if
            // `left` is not 0.
            let to = if left == 0 { null_mut() } else { unsafe { adapters.add(total as usize) } };
            match list(adapter, left, to) {
                Ok(count) => total = total.checked_add(count).ok_or(ErrorCode::OutOfResources)?,
                Err(code) => {
                    // Adapters answer with an error where their driver is not installed.
                    let name = &adapter.name;
                    log::info(format_args!("adapter {name} lists none: it answers {code:?}"));
                }
            }
        }
        if !num_adapters.is_null() {
            // SAFETY: not null, hence writable.
            unsafe { num_adapters.write(total) };
        }
        Ok(())
    })
}
/// Has one adapter write up to `room` of its handles to `to`, which may be null; returns how many it has.
fn list(
    adapter: &Adapter,
    room: u32,
    to: *mut ur_adapter_handle_t,
) -> std::result::Result<u32, ur_result_t> {
    let mut count = 0;
    // SAFETY: `to` is null or has space for `room` handles, as `get` computed; `count` is writable.
    let code = unsafe { (adapter.get)(room, to, &raw mut count) };
    if code == ur_result_t::SUCCESS { Ok(count) } else { Err(code) }
}
