//! Functions that tests put before, after or in the place of entries. Hooks are the process's: two
//! tests that hook one entry at the same time are in each other's way.
#![expect(unsafe_code, reason = "reads and writes the arguments of a call that is under way")]
use super::table::SLOTS;
use std::{
    any::TypeId,
    ffi::c_void,
    fmt,
    sync::{
        Arc, RwLock,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_lock::{read_locked, write_locked};
use ur_sys::ur_result_t;

/// What a test puts somewhere: it is given the call and says what comes of it.
type Hook = Arc<dyn Fn(&Call<'_>) -> ur_result_t + Send + Sync>;

/// Does what the entry does without hooks, with the arguments as they are then.
type Plain<'call> = &'call dyn Fn() -> ur_result_t;

/// Where a hook is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before the entry: what is not `SUCCESS` ends the call with that code.
    Before,
    /// In the place of the entry.
    Instead,
    /// After the entry, where nothing before it ended the call: the call ends with what it gives.
    After,
}

/// Where the hooks of one entry are put.
pub struct Slot {
    entry: &'static str,
    types: &'static [TypeId],
    /// Whether there is any: most calls need to know no more.
    hooked: AtomicBool,
    hooks: RwLock<[Option<Hook>; 3]>,
}

/// A call of an entry that is under way.
pub struct Call<'call> {
    slot: &'static Slot,
    places: &'call [*mut c_void],
    plain: Plain<'call>,
    result: ur_result_t,
}

/// A hook that is in place, until this is dropped.
#[must_use = "the hook is taken away when this is dropped"]
pub struct Hooked {
    slot: &'static Slot,
    place: Place,
    /// `None`: it is left where it is.
    hook: Option<Hook>,
}

/// Calls `hook` before each call of the entry. What is not `SUCCESS` ends the call with that code.
///
/// # Errors
/// As for `put`.
pub fn before(
    entry: &str,
    hook: impl Fn(&Call<'_>) -> ur_result_t + Send + Sync + 'static,
) -> Result<Hooked> {
    put(entry, Place::Before, hook)
}
/// Calls `hook` in the place of the entry, which `Call::original` calls all the same.
///
/// # Errors
/// As for `put`.
pub fn replace(
    entry: &str,
    hook: impl Fn(&Call<'_>) -> ur_result_t + Send + Sync + 'static,
) -> Result<Hooked> {
    put(entry, Place::Instead, hook)
}
/// Calls `hook` after each call of the entry that was not ended before it; the call ends with the
/// code that it gives, and `Call::result` is the code so far.
///
/// # Errors
/// As for `put`.
pub fn after(
    entry: &str,
    hook: impl Fn(&Call<'_>) -> ur_result_t + Send + Sync + 'static,
) -> Result<Hooked> {
    put(entry, Place::After, hook)
}
/// Takes away the hooks of an entry, or of all.
///
/// # Errors
/// As for `put`.
pub fn reset(entry: Option<&str>) -> Result<()> {
    match entry {
        Some(entry) => slot(entry)?.set(|hooks| *hooks = [None, None, None]),
        None => SLOTS.iter().for_each(|slot| slot.set(|hooks| *hooks = [None, None, None])),
    }
    Ok(())
}

fn slot(entry: &str) -> Result<&'static Slot> {
    SLOTS.iter().copied().find(|slot| slot.entry == entry).ok_or_else(|| {
        Error::new(ErrorCode::InvalidValue, format!("there is no entry {entry} to put a hook on"))
    })
}
/// Puts a hook somewhere; one that was there goes.
///
/// # Errors
/// `INVALID_VALUE`: there is no entry of this name.
pub fn put(
    entry: &str,
    place: Place,
    hook: impl Fn(&Call<'_>) -> ur_result_t + Send + Sync + 'static,
) -> Result<Hooked> {
    let (slot, hook): (_, Hook) = (slot(entry)?, Arc::new(hook));
    slot.set(|hooks| hooks[place as usize] = Some(hook.clone()));
    Ok(Hooked { slot, place, hook: Some(hook) })
}
/// Takes away the hook that is there, if any.
///
/// # Errors
/// As for `put`.
pub fn clear(entry: &str, place: Place) -> Result<()> {
    slot(entry)?.set(|hooks| hooks[place as usize] = None);
    Ok(())
}

impl Slot {
    /// The slot of an entry whose parameters have these types.
    pub const fn new(entry: &'static str, types: &'static [TypeId]) -> Self {
        let hooks = RwLock::new([None, None, None]);
        Self { entry, types, hooked: AtomicBool::new(false), hooks }
    }
    fn set(&self, change: impl FnOnce(&mut [Option<Hook>; 3])) {
        let mut hooks = write_locked(&self.hooks);
        change(&mut hooks);
        self.hooked.store(hooks.iter().any(Option::is_some), Release);
    }
    /// One call, whose arguments are at `places`; `plain` is what the entry does without hooks.
    pub fn call(&'static self, places: &[*mut c_void], plain: Plain<'_>) -> ur_result_t {
        if !self.hooked.load(Acquire) {
            return plain();
        }
        // Taken out of the lock: a hook may call this very entry, or change its hooks.
        let hooks = read_locked(&self.hooks).clone();
        let call = Call { slot: self, places, plain, result: ur_result_t::SUCCESS };
        // The test's harness has printed why; no panic may pass through C.
        ur_lock::caught(|| call.run(hooks)).unwrap_or(ur_result_t::ERROR_UNKNOWN)
    }
}
impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({})", self.entry)
    }
}

impl Call<'_> {
    fn run(mut self, [before, instead, after]: [Option<Hook>; 3]) -> ur_result_t {
        if let Some(before) = before {
            self.result = before(&self);
            if self.result != ur_result_t::SUCCESS {
                return self.result;
            }
        }
        self.result = match instead {
            Some(instead) => instead(&self),
            None => self.original(),
        };
        if let Some(after) = after {
            self.result = after(&self);
        }
        self.result
    }
    /// C's name of the entry.
    pub fn entry(&self) -> &'static str {
        self.slot.entry
    }
    /// What has come of the call so far.
    pub fn result(&self) -> ur_result_t {
        self.result
    }
    /// Does what the entry does without hooks, with the arguments as they are now.
    pub fn original(&self) -> ur_result_t {
        (self.plain)()
    }
    /// How many arguments there are.
    pub fn count(&self) -> usize {
        self.places.len()
    }
    /// The argument at this place, counted from 0. Pointers come as they are.
    ///
    /// # Panics
    /// There is none there, or it is of another type.
    pub fn argument<T: Copy + 'static>(&self, at: usize) -> T {
        let place = self.place::<T>(at);
        // SAFETY: it is of this type, and the call's own for as long as the call is under way.
        unsafe { place.read() }
    }
    /// Changes the argument at this place for all that comes after.
    ///
    /// # Panics
    /// As for `argument`.
    pub fn set_argument<T: Copy + 'static>(&self, at: usize, value: T) {
        let place = self.place::<T>(at);
        // SAFETY: as above; a hook is the only one to look at it while it runs.
        unsafe { place.write(value) };
    }
    /// Pointers to all arguments, in order: what UR's `ur_*_params_t` hold.
    pub fn places(&self) -> *mut c_void {
        self.places.as_ptr().cast_mut().cast()
    }
    fn place<T: 'static>(&self, at: usize) -> *mut T {
        let Some(known) = self.slot.types.get(at) else {
            panic!("{} has {} arguments, and no argument {at}", self.entry(), self.count());
        };
        let name = std::any::type_name::<T>();
        assert!(*known == TypeId::of::<T>(), "argument {at} of {} is no {name}", self.entry());
        self.places[at].cast()
    }
}
impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({}, {:?} so far)", self.entry(), self.result)
    }
}

impl Hooked {
    /// Leaves the hook where it is.
    pub fn keep(mut self) {
        self.hook = None;
    }
}
impl Drop for Hooked {
    /// One that was put in its place since stays there.
    fn drop(&mut self) {
        let (Some(hook), place) = (self.hook.take(), self.place as usize) else { return };
        self.slot.set(|hooks| {
            if hooks[place].as_ref().is_some_and(|known| Arc::ptr_eq(known, &hook)) {
                hooks[place] = None;
            }
        });
    }
}
impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hooked({}, {:?})", self.slot.entry, self.place)
    }
}
