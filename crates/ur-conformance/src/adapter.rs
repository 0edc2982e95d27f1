//! An adapter's shared object: its tables, filled through its exported getters. Nothing else of it is used.
#![expect(unsafe_code, reason = "loads a shared object of somebody else's and calls its getters")]
use crate::{
    entry_path::EntryPath,
    raw::{self, Word},
};
use std::path::Path;
use ur_sys::*;

type Getter<T> = unsafe extern "C" fn(ur_api_version_t, *mut T) -> ur_result_t;

/// A loaded adapter. It is never unloaded, because it may have threads.
pub struct Adapter {
    pub tables: ur_dditable_t,
    /// The result of each table's getter; `None` if the object has no such getter.
    pub getters: Vec<(&'static str, Option<ur_result_t>)>,
    library: &'static libloading::Library,
}

/// Fills one table; returns the getter's result, or `None` if there is no getter.
fn fill<T>(
    library: &libloading::Library,
    getter: &str,
    version: ur_api_version_t,
    table: *mut T,
) -> Option<ur_result_t> {
    // SAFETY: the interface defines the symbol of that name as a getter of this table.
    let get = unsafe { library.get::<Getter<T>>(getter.as_bytes()) }.ok()?;
    // SAFETY: `table` is null or points to a complete table.
    Some(unsafe { get(version, table) })
}

macro_rules! tables {
    ($($member:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident($($params:tt)*)
            by $($how:ident)+;)*
    })*) => {
        /// Fills every table that has a getter; returns the results by the getters' names.
        pub fn fill_all(library: &libloading::Library, tables: &mut ur_dditable_t)
            -> Vec<(&'static str, Option<ur_result_t>)> {
            vec![$({
                let getter = stringify!($getter);
                (getter, fill(library, getter, ur_sys::VERSION, &raw mut tables.$member))
            }),*]
        }
        /// Calls one getter with a version and with a table of its own or null; returns the result, and
        /// whether a slot was filled.
        fn ask(library: &libloading::Library, getter: &str, version: ur_api_version_t, is_null: bool)
            -> Option<(ur_result_t, bool)> {
            match getter {
                $(stringify!($getter) => {
                    let mut table = $table::EMPTY;
                    let to = if is_null { std::ptr::null_mut() } else { &raw mut table };
                    let code = fill(library, getter, version, to)?;
                    Some((code, format!("{table:?}").contains("Some(")))
                })*
                _ => None,
            }
        }
        /// The address of an entry's slot.
        fn slot(tables: &ur_dditable_t, entry: &str) -> Option<*const Option<raw::Entry>> {
            match entry {
                $($(stringify!($c) => Some((&raw const tables.$member.$slot).cast()),)*)*
                _ => None,
            }
        }
    };
}
ur_sys::entry_points!(tables);

/// Replaces every function that the adapter has by the loader's.
fn through(own: &mut ur_dditable_t, outer: &ur_dditable_t) {
    const SLOTS: usize = size_of::<ur_dditable_t>() / size_of::<Option<raw::Entry>>();
    type Slots = [Option<raw::Entry>; SLOTS];
    // SAFETY: `ur_dditable_t` consists of slots only, each null or a function.
    let outer = unsafe { &*std::ptr::from_ref(outer).cast::<Slots>() };
    // SAFETY: as above; the exclusive reference is not used otherwise meanwhile.
    let own = unsafe { &mut *std::ptr::from_mut(own).cast::<Slots>() };
    for (own, outer) in own.iter_mut().zip(outer) {
        if own.is_some() {
            *own = *outer;
        }
    }
}

impl Adapter {
    /// Loads a shared object and fills every table that it has a getter for. Calls go through `door`, except
    /// for entries that the adapter does not implement.
    ///
    /// # Errors
    /// Returns a sentence if the file cannot be loaded or is no adapter, which means that it has no getter at
    /// all.
    pub fn load(path: &Path, entry_path: &EntryPath) -> Result<Self, String> {
        // SAFETY: loading runs the object's constructors, which the user requested.
        let library = unsafe { libloading::Library::new(path) }
            .map_err(|e| format!("{} cannot be loaded: {e}", path.display()))?;
        let library: &'static _ = Box::leak(Box::new(library));
        let mut tables = ur_dditable_t::EMPTY;
        if entry_path.is(path) {
            // A started loader behaves like an adapter.
            let tables = entry_path.tables(path)?.unwrap_or(tables);
            let getters = fill_all(library, &mut { tables });
            return Ok(Self { tables, getters, library });
        }
        let getters = fill_all(library, &mut tables);
        if getters.iter().all(|(_, answer)| answer.is_none()) {
            return Err(format!(
                "{} exports no urGet…ProcAddrTable: it is no adapter",
                path.display()
            ));
        }
        if let Some(outer) = entry_path.tables(path)? {
            through(&mut tables, &outer);
        }
        Ok(Self { tables, getters, library })
    }
    /// Calls the getter of a table again; returns its result and whether it filled a slot.
    pub fn ask(
        &self,
        getter: &str,
        version: ur_api_version_t,
        is_null: bool,
    ) -> Option<(ur_result_t, bool)> {
        ask(self.library, getter, version, is_null)
    }
    /// Returns the function of an entry; `None` if the adapter leaves its slot null.
    pub fn slot(&self, entry: &str) -> Option<raw::Entry> {
        // SAFETY: a slot of our own table is null or a function, which is an `Option` of a function.
        unsafe { *slot(&self.tables, entry)? }
    }
    /// Calls an entry by name with its arguments as words; `None` if the slot is null.
    pub fn call(&self, entry: &str, words: &[Word]) -> Option<ur_result_t> {
        Some(ur_result_t(raw::call(self.slot(entry)?, words)))
    }
}
