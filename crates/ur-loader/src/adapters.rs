//! The adapters of this process while the loader is up: made of what `discover` names, and listed to
//! programs by `urAdapterGet`, which asks each of them. One that does not work is told of once and
//! left out; the others work.
#![expect(unsafe_code, reason = "calls adapters")]
use crate::{
    discover::{Candidate, Place},
    failure::enter,
    library::{self, Closed, Opened},
    log, probe,
};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    ptr::null_mut,
    sync::{Arc, Mutex, PoisonError, RwLock},
};
use ur_adapter::error::ErrorCode;
use ur_sys::*;

/// An adapter that works.
#[derive(Clone, Debug)]
struct Adapter {
    name: String,
    get: ur_pfnAdapterGet_t,
}
static UP: RwLock<Option<Arc<[Adapter]>>> = RwLock::new(None);

/// Sentences that were said: a program that starts the loader a thousand times reads each once.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn once(tell: impl Fn(&str), sentence: String) {
    let fresh = SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(sentence.clone());
    if fresh {
        tell(&sentence);
    }
}

/// What a candidate has come to.
enum Found {
    File(Arc<Opened>),
    Table(&'static ur_dditable_t),
}

/// Opens what can be opened of the candidates; these are the adapters from now on.
pub(crate) fn start(candidates: &[Candidate]) {
    let found = |candidate| Some((candidate, find(candidate)?));
    let found: Vec<(&Candidate, Found)> = candidates.iter().filter_map(found).collect();
    let files = found.iter().filter_map(|(_, found)| match found {
        Found::File(opened) => Some(&**opened),
        Found::Table(_) => None,
    });
    probe::examine(files);
    let mut adapters = Vec::new();
    for (Candidate { name, .. }, found) in &found {
        let get = match found {
            Found::File(opened) => opened.get(),
            Found::Table(table) => library::usable(table),
        };
        match get {
            Ok(get) => {
                log::info(format_args!("adapter {name} is loaded"));
                adapters.push(Adapter { name: name.clone(), get });
            }
            Err(wrong) => once(|s| log::error(s), format!("adapter {name} is left out: {wrong}")),
        }
    }
    *UP.write().unwrap_or_else(PoisonError::into_inner) = Some(adapters.into());
}
/// There are no adapters from now on; their files stay open.
pub(crate) fn stop() {
    *UP.write().unwrap_or_else(PoisonError::into_inner) = None;
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
        let up = UP.read().unwrap_or_else(PoisonError::into_inner).clone();
        let up = up.ok_or(ErrorCode::Uninitialized)?;
        let room = if adapters.is_null() { 0 } else { num_entries };
        let mut total: u32 = 0;
        for adapter in up.iter() {
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
