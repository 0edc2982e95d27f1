//! Opens one adapter, gets its tables and lists its devices, step by step. It is for a program that runs
//! itself again as a child process for each adapter (`causeway doctor --adapters`), because an adapter that
//! crashes or hangs takes its process with it.
#![expect(unsafe_code, reason = "calls adapters")]
use crate::{
    discover::{self, Place},
    library::{self, Closed},
};
use std::{ffi::OsStr, ptr::null_mut};
use ur_sys::*;

/// An adapter that the loader would look for under the current environment.
#[derive(Debug)]
pub struct Candidate {
    /// Its name in the loader's log.
    pub name: String,
    /// The places where it may be, in the order in which the loader tries them: the first that opens is used.
    pub places: Vec<String>,
}
/// What is done with an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its file is opened, which runs its constructors.
    Open,
    /// Its table getters are called.
    Ask,
    /// Its platforms and devices are listed, which starts its driver.
    List,
}
/// The result of examining an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is no such file.
    Missing,
    /// A library that it depends on is missing, as where a driver is not installed.
    Needs(String),
    /// It cannot be used, for the given reason.
    Unusable(String),
    /// It has tables but lists no adapter handle and returns this code, as it does without its driver.
    Silent(ur_result_t),
    /// It works.
    Works {
        /// How many platforms it lists.
        platforms: u32,
        /// How many devices these have.
        devices: u32,
    },
}

/// Returns the adapters that a start of the loader would look for.
pub fn candidates() -> Vec<Candidate> {
    let shown = |place: &Place| match place {
        Place::File(path) => path.display().to_string(),
        Place::System(name) => name.clone(),
        Place::Builtin(_) => "linked in".to_string(),
    };
    let public = |found: discover::Candidate| Candidate {
        places: found.places.iter().map(shown).collect(),
        name: found.name,
    };
    discover::candidates(false).into_iter().map(public).collect()
}

/// Examines the adapter at index `adapter` of `candidates`, at its place with index `place`; calls `begins`
/// before each step. Returns `None` if there are fewer, because the environment changed meanwhile.
pub fn examine(adapter: usize, place: usize, begins: impl FnMut(Step)) -> Option<Outcome> {
    let found = discover::candidates(false);
    Some(match found.get(adapter)?.places.get(place)? {
        Place::Builtin(table) => list(table, begins),
        Place::File(path) => open(path.as_os_str(), begins),
        Place::System(name) => open(name.as_ref(), begins),
    })
}
fn open(file: &OsStr, mut begins: impl FnMut(Step)) -> Outcome {
    begins(Step::Open);
    let opened = match library::open(file) {
        Ok(opened) => opened,
        Err(Closed::Missing) => return Outcome::Missing,
        Err(Closed::Needs(what)) => return Outcome::Needs(what),
        Err(Closed::Wrong(why)) => return Outcome::Unusable(why),
    };
    begins(Step::Ask);
    match opened.table() {
        Ok(table) => list(table, begins),
        Err(why) => Outcome::Unusable(why),
    }
}
fn list(table: &ur_dditable_t, mut begins: impl FnMut(Step)) -> Outcome {
    begins(Step::List);
    counted(table).unwrap_or_else(|outcome| outcome)
}
/// Counts the platforms and devices of an adapter.
fn counted(table: &ur_dditable_t) -> Result<Outcome, Outcome> {
    let lacks = |what: &str| Outcome::Unusable(format!("it has no {what}"));
    let get = table.adapter.get.ok_or_else(|| lacks("urAdapterGet"))?;
    let platforms_of = table.platform.get.ok_or_else(|| lacks("urPlatformGet"))?;
    let devices_of = table.device.get.ok_or_else(|| lacks("urDeviceGet"))?;
    // SAFETY: `to` is null or has space for `room` handles, as `listed` ensures; `count` is null or writable.
    let adapters = listed(|room, to, count| unsafe { get(room, to, count) });
    let (mut platforms, mut devices) = (0_u32, 0_u32);
    for adapter in adapters.map_err(Outcome::Silent)? {
        let of = |room, to, count| {
            // SAFETY: as above; the handle is the adapter's.
            unsafe { platforms_of(adapter, room, to, count) }
        };
        let listed = listed(of).map_err(|code| refused("urPlatformGet", code))?;
        for platform in listed {
            let mut count = 0;
            let (all, to) = (ur_device_type_t::ALL, null_mut());
            // SAFETY: the handle is the adapter's; `count` is writable.
            let code = unsafe { devices_of(platform, all, 0, to, &raw mut count) };
            match code {
                ur_result_t::SUCCESS => devices = devices.saturating_add(count),
                // A platform without devices may return this code.
                ur_result_t::ERROR_DEVICE_NOT_FOUND => {}
                code => return Err(refused("urDeviceGet", code)),
            }
            platforms = platforms.saturating_add(1);
        }
    }
    Ok(Outcome::Works { platforms, devices })
}
fn refused(entry: &str, code: ur_result_t) -> Outcome {
    Outcome::Unusable(format!("its {entry} answers {code:?}"))
}
/// Lists handles through an entry that is called twice: first for their number, then for the handles.
fn listed<H: Handle>(
    ask: impl Fn(u32, *mut H, *mut u32) -> ur_result_t,
) -> Result<Vec<H>, ur_result_t> {
    let mut count = 0;
    let mut code = ask(0, null_mut(), &raw mut count);
    let mut all = vec![H::NONE; count as usize];
    if code == ur_result_t::SUCCESS && count != 0 {
        code = ask(count, all.as_mut_ptr(), null_mut());
    }
    if code == ur_result_t::SUCCESS { Ok(all) } else { Err(code) }
}
/// A handle, which may be null.
trait Handle: Copy {
    const NONE: Self;
}
impl Handle for ur_adapter_handle_t {
    const NONE: Self = Self::NULL;
}
impl Handle for ur_platform_handle_t {
    const NONE: Self = Self::NULL;
}
