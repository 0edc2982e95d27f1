//! Driver extensions: the list of a driver, and the addresses of functions that the loader does not export by
//! name. Both are looked up once for each driver.
use super::{
    driver::{self, RawDriver},
    native::driver as native,
};
use std::{
    collections::HashMap,
    ffi::{CStr, c_void},
    ptr::NonNull,
    sync::{Mutex, OnceLock},
};
use ur_lock::locked;

/// The extensions of one driver.
#[derive(Debug)]
pub struct Extensions {
    raw: RawDriver,
    listed: OnceLock<Vec<(String, u32)>>,
    looked_up: Mutex<HashMap<&'static CStr, Option<usize>>>,
}
impl Extensions {
    /// Registers host memory with the driver.
    pub const IMPORT: &'static CStr = c"zexDriverImportExternalPointer";
    pub(super) fn new(raw: RawDriver) -> Self {
        Self { raw, listed: OnceLock::new(), looked_up: Mutex::default() }
    }
    /// The version of an extension, by the specification's name for it; `None` if the driver does not have
    /// it.
    pub fn version(&self, name: &str) -> Option<u32> {
        // A driver that cannot list its extensions is treated as having none.
        let listed = self.listed.get_or_init(|| native::extensions(self.raw).unwrap_or_default());
        listed.iter().find(|(one, _)| one == name).map(|(_, version)| *version)
    }
    /// Whether the driver has the extension.
    pub fn has(&self, name: &str) -> bool {
        self.version(name).is_some()
    }
    /// The address of a function by its name; `None` if the driver does not have it.
    pub fn function(&self, name: &'static CStr) -> Option<NonNull<c_void>> {
        let lock = || locked(&self.looked_up);
        let known = lock().get(name).copied();
        let found = known.unwrap_or_else(|| {
            let at = driver::extension(self.raw, name).map(|at| at.as_ptr().expose_provenance());
            lock().insert(name, at);
            at
        });
        found.and_then(|at| NonNull::new(std::ptr::with_exposed_provenance_mut(at)))
    }
}
