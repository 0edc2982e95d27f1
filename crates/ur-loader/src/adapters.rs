//! The adapters of this process while the loader is up: made of what `discover` names, and listed to
//! programs by `urAdapterGet`, which asks each of them. One that does not work is told of once and
//! left out; the others work.
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
/// All that there are at a time.
struct Adapters(Vec<Adapter>);

/// Those that there are now, or null: calls read it without a lock.
static UP: AtomicPtr<Adapters> = AtomicPtr::new(null_mut());
/// What has ever been up. A call may still read it, so it stays; the next start that finds the same
/// takes it again.
static ALL: Held<Vec<&'static Adapters>> = Held::new(Vec::new());

fn up() -> Option<&'static Adapters> {
    // SAFETY: null, or one of `ALL`, which stay.
    unsafe { UP.load(Ordering::Acquire).as_ref() }
}
/// The table of the only adapter there is, or null: each call of an object reads it.
static ONLY: AtomicPtr<ur_dditable_t> = AtomicPtr::new(null_mut());

/// The table of the only adapter there is.
#[inline(always)]
pub(crate) fn only() -> Option<&'static ur_dditable_t> {
    // SAFETY: null, or a table of one of `ALL`, which stay. Acquire: with the store in `now`.
    unsafe { ONLY.load(Ordering::Acquire).as_ref() }
}
/// These are the adapters from now on.
fn now(adapters: Option<&'static Adapters>) {
    let only = match adapters.map(|all| all.0.as_slice()) {
        Some([one]) => from_ref(one.table).cast_mut(),
        _ => null_mut(),
    };
    ONLY.store(only, Ordering::Release);
    UP.store(adapters.map_or(null_mut(), |all| from_ref(all).cast_mut()), Ordering::Release);
}

/// Sentences that were said: a program that starts the loader a thousand times reads each once.
static SAID: Held<BTreeSet<String>> = Held::new(BTreeSet::new());

fn once(tell: impl Fn(&str), sentence: String) {
    if SAID.lock().insert(sentence.clone()) {
        tell(&sentence);
    }
}

/// What a candidate has come to.
enum Found {
    File(&'static Opened),
    Table(&'static ur_dditable_t),
}

/// Opens what can be opened of the candidates; these are the adapters from now on.
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
/// There are no adapters from now on; their files stay open.
pub(crate) fn stop() {
    now(None);
}

/// The first place where the candidate is.
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
/// Lists the adapters: as many as there is room for, and how many there are.
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
            // SAFETY: there is room for `room` of them, of which `total` are taken.
            let to = if left == 0 { null_mut() } else { unsafe { adapters.add(total as usize) } };
            match list(adapter, left, to) {
                Ok(count) => total = total.checked_add(count).ok_or(ErrorCode::OutOfResources)?,
                Err(code) => {
                    // What adapters answer where their driver is not installed.
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
/// Has an adapter list its handles, of which there may be none, into `to`; gives how many it has.
fn list(
    adapter: &Adapter,
    room: u32,
    to: *mut ur_adapter_handle_t,
) -> std::result::Result<u32, ur_result_t> {
    let mut count = 0;
    // SAFETY: there is room for `room`, or a null pointer; a place for the count.
    let code = unsafe { (adapter.get)(room, to, &raw mut count) };
    if code == ur_result_t::SUCCESS { Ok(count) } else { Err(code) }
}
