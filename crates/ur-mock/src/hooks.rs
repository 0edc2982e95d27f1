//! Functions that tests install before, after or instead of entries. Hooks apply to the whole process, so two
//! tests that hook one entry at the same time disturb each other.
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

/// A test's hook: it gets the call and returns the result code.
type Hook = Arc<dyn Fn(&Call<'_>) -> ur_result_t + Send + Sync>;

/// Runs the entry as without hooks, with the current arguments.
type Plain<'call> = &'call dyn Fn() -> ur_result_t;

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before the entry; a result other than `SUCCESS` ends the call with that code.
    Before,
    /// Instead of the entry.
    Instead,
    /// After the entry, unless an earlier hook ended the call; its result becomes the call's.
    After,
}

/// The hooks of one entry.
pub struct Slot {
    entry: &'static str,
    types: &'static [TypeId],
    /// Whether any hook is installed, which most calls check without taking the lock.
    hooked: AtomicBool,
    hooks: RwLock<[Option<Hook>; 3]>,
}

/// A call in progress.
pub struct Call<'call> {
    slot: &'static Slot,
    places: &'call [*mut c_void],
    plain: Plain<'call>,
    result: ur_result_t,
}

/// An installed hook, which is removed on drop.
#[must_use = "the hook is taken away when this is dropped"]
pub struct Hooked {
    slot: &'static Slot,
    place: Place,
    /// `None` if the hook stays installed.
    hook: Option<Hook>,
}

/// Calls `hook` before each call of the entry. A result other than `SUCCESS` ends the call with that code.
///
/// # Errors
/// As for `put`.
pub fn before(
    entry: &str,
    hook: impl Fn(&Call<'_>) -> ur_result_t + Send + Sync + 'static,
) -> Result<Hooked> {
    put(entry, Place::Before, hook)
}
/// Calls `hook` instead of the entry; the hook can still run the entry by `Call::original`.
///
/// # Errors
/// As for `put`.
pub fn replace(
    entry: &str,
    hook: impl Fn(&Call<'_>) -> ur_result_t + Send + Sync + 'static,
) -> Result<Hooked> {
    put(entry, Place::Instead, hook)
}
/// Calls `hook` after each call of the entry that was not ended before; its result becomes the call's.
/// `Call::result` returns the entry's result to the hook.
///
/// # Errors
/// As for `put`.
pub fn after(
    entry: &str,
    hook: impl Fn(&Call<'_>) -> ur_result_t + Send + Sync + 'static,
) -> Result<Hooked> {
    put(entry, Place::After, hook)
}
/// Removes the hooks of an entry, or of all entries.
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
/// Installs a hook, replacing the one at that place.
///
/// # Errors
/// Returns `INVALID_VALUE` if there is no entry of this name.
pub fn put(
    entry: &str,
    place: Place,
    hook: impl Fn(&Call<'_>) -> ur_result_t + Send + Sync + 'static,
) -> Result<Hooked> {
    let (slot, hook): (_, Hook) = (slot(entry)?, Arc::new(hook));
    slot.set(|hooks| hooks[place as usize] = Some(hook.clone()));
    Ok(Hooked { slot, place, hook: Some(hook) })
}
/// Removes the hook at that place, if any.
///
/// # Errors
/// As for `put`.
pub fn clear(entry: &str, place: Place) -> Result<()> {
    slot(entry)?.set(|hooks| hooks[place as usize] = None);
    Ok(())
}

impl Slot {
    /// Makes the slot of an entry whose parameters have these types.
    pub const fn new(entry: &'static str, types: &'static [TypeId]) -> Self {
        let hooks = RwLock::new([None, None, None]);
        Self { entry, types, hooked: AtomicBool::new(false), hooks }
    }
    fn set(&self, change: impl FnOnce(&mut [Option<Hook>; 3])) {
        let mut hooks = write_locked(&self.hooks);
        change(&mut hooks);
        self.hooked.store(hooks.iter().any(Option::is_some), Release);
    }
    /// Runs a call whose arguments are at `places`; `plain` runs the entry without hooks.
    pub fn call(&'static self, places: &[*mut c_void], plain: Plain<'_>) -> ur_result_t {
        if !self.hooked.load(Acquire) {
            return plain();
        }
        // Cloned so that no lock is held: a hook may call this entry or change its hooks.
        let hooks = read_locked(&self.hooks).clone();
        let call = Call { slot: self, places, plain, result: ur_result_t::SUCCESS };
        // The panic message was printed already; the panic must not unwind through C.
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
    /// The C name of the entry.
    pub fn entry(&self) -> &'static str {
        self.slot.entry
    }
    /// The result of the call so far.
    pub fn result(&self) -> ur_result_t {
        self.result
    }
    /// Runs the entry as without hooks, with the current arguments.
    pub fn original(&self) -> ur_result_t {
        (self.plain)()
    }
    /// The number of arguments.
    pub fn count(&self) -> usize {
        self.places.len()
    }
    /// Returns the argument at index `at`. Pointers are returned as they are.
    ///
    /// # Panics
    /// Panics if there is no such argument or its type is not `T`.
    pub fn argument<T: Copy + 'static>(&self, at: usize) -> T {
        let place = self.place::<T>(at);
        // SAFETY: `place` checked the type, and the argument lives as long as the call.
        unsafe { place.read() }
    }
    /// Changes the argument at index `at` for everything that runs after this.
    ///
    /// # Panics
    /// As for `argument`.
    pub fn set_argument<T: Copy + 'static>(&self, at: usize, value: T) {
        let place = self.place::<T>(at);
        // SAFETY: as in `argument`; only the running hook accesses the argument.
        unsafe { place.write(value) };
    }
    /// Pointers to all arguments in order, as UR's `ur_*_params_t` structs hold them.
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
    /// Leaves the hook installed.
    pub fn keep(mut self) {
        self.hook = None;
    }
}
impl Drop for Hooked {
    /// Removes this hook, but not one that replaced it meanwhile.
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
