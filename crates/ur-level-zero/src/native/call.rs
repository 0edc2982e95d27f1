//! Functions of the driver's that are found by name, and answers that are asked for once.
#![expect(unsafe_code, reason = "calls functions that the vendor's driver gave the address of")]
use super::super::driver::{RawDriver, extension};
use std::{
    collections::BTreeMap,
    ffi::{CStr, c_void},
    mem::transmute_copy,
    ptr::NonNull,
    sync::{Mutex, OnceLock},
};
use ur_hal::Result;
use ur_lock::locked;

/// A driver's extension function; `None` if the driver does not have it.
///
/// # Safety
/// `F` is the type of a pointer to a function with that prototype.
pub unsafe fn function<F: Copy>(of: RawDriver, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) };
    // SAFETY: a function's address, of the size of `F`; the caller names the prototype.
    extension(of, name).map(|at| unsafe { transmute_copy(&at) })
}

/// Answers that do not change, each asked once. The first is read without a lock: usually there is only one driver.
#[derive(Debug)]
pub struct Known<K, T> {
    first: OnceLock<(K, T)>,
    others: Mutex<BTreeMap<K, T>>,
}
impl<K: Ord + Copy, T: Copy> Known<K, T> {
    /// Nothing is known.
    pub const fn new() -> Self {
        Self { first: OnceLock::new(), others: Mutex::new(BTreeMap::new()) }
    }
    /// The answer for `key`, which is asked for if it is not known. No lock is held meanwhile.
    ///
    /// # Errors
    /// Returns the errors of `ask`, which are not remembered.
    pub fn get(&self, key: K, ask: impl FnOnce() -> Result<T>) -> Result<T> {
        let first = self.first.get().filter(|first| first.0 == key).map(|first| first.1);
        if let Some(known) = first.or_else(|| locked(&self.others).get(&key).copied()) {
            return Ok(known);
        }
        let told = ask()?;
        if self.first.get_or_init(|| (key, told)).0 != key {
            locked(&self.others).insert(key, told);
        }
        Ok(told)
    }
}
