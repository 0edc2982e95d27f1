//! One function for each entry, which sends the call to its adapter: the only adapter in use, whatever the
//! handle is, or else the one that the handle names. `entry` decides whether calls take this path.
#![expect(unsafe_code, reason = "calls adapters through the tables that their objects name")]
use crate::adapters;
use std::{
    ffi::{c_char, c_void},
    ptr::null_mut,
};
use ur_sys::*;

/// Returns the table of the adapter that made the object. With a single adapter it is that adapter's table, and
/// the handle is not read, so it may have any form; otherwise the first word of the object is the table's address.
///
/// # Safety
/// `handle` is null or an adapter's object.
#[inline(always)]
unsafe fn table<'a>(handle: *mut c_void) -> Option<&'a ur_dditable_t> {
    if handle.is_null() {
        return None;
    }
    if let only @ Some(_) = adapters::only() {
        return only;
    }
    // SAFETY: the caller promises an adapter's object, whose first word is the address of its table.
    let table = unsafe { handle.cast::<*const ur_dditable_t>().read() };
    // SAFETY: adapters are never unloaded, so their tables outlive all objects.
    unsafe { table.as_ref() }
}

/// Writes a null handle, as an entry that creates an object must do when it fails.
///
/// # Safety
/// `to` is null or writable for a handle, which has the size of a pointer.
pub(crate) unsafe fn null<H>(to: *mut H) {
    if !to.is_null() {
        // SAFETY: not null, hence writable.
        unsafe { to.cast::<*mut c_void>().write(null_mut()) };
    }
}

/// The result of an entry that an adapter does not implement.
const LEFT_OUT: ur_result_t = ur_result_t::ERROR_UNINITIALIZED;

macro_rules! send {
    ($group:ident $slot:ident ($($p:ident),*) by hand) => {
        // SAFETY: the caller's promise, as in the entry's specification, is passed on unchanged.
        unsafe { adapters::get($($p),*) }
    };
    ($group:ident $slot:ident ($($p:ident),*) by handle $of:ident) => {{
        // SAFETY: the caller promises that the handle is null or an adapter's object.
        let Some(table) = (unsafe { table($of.0) }) else {
            return ur_result_t::ERROR_INVALID_NULL_HANDLE;
        };
        let Some(call) = table.$group.$slot else { return LEFT_OUT };
        // SAFETY: the caller's promise is passed on to the adapter unchanged.
        unsafe { call($($p),*) }
    }};
    ($group:ident $slot:ident ($($p:ident),*) by handle $of:ident nulls $to:ident) => {{
        let send = || send!($group $slot ($($p),*) by handle $of);
        let code = send();
        // Adapters write null themselves if the call reaches them.
        if code != ur_result_t::SUCCESS {
            // SAFETY: the caller promises that the output pointer is null or writable.
            unsafe { null($to) };
        }
        code
    }};
    ($group:ident $slot:ident ($($p:ident),*) by first $list:ident $count:ident $none:ident) => {{
        if $count == 0 {
            return ur_result_t::$none;
        }
        if $list.is_null() {
            return ur_result_t::ERROR_INVALID_NULL_POINTER;
        }
        let table = match adapters::only() {
            Some(only) => only,
            None => {
                // SAFETY: the list is neither null nor empty, so the caller promises a readable first
                // element.
                let first = unsafe { $list.read() };
                // SAFETY: the caller promises that it is null or an adapter's object.
                let Some(table) = (unsafe { table(first.0) }) else {
                    return ur_result_t::ERROR_INVALID_NULL_HANDLE;
                };
                table
            }
        };
        let Some(call) = table.$group.$slot else { return LEFT_OUT };
        // SAFETY: the caller's promise is passed on to the adapter unchanged.
        unsafe { call($($p),*) }
    }};
}

macro_rules! functions {
    ($($group:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident(
            $($p:ident: $t:ty),* $(,)?
        ) by $($how:ident)+;)*
    })*) => { $($(
        #[doc = concat!("Sends `", stringify!($c), "` to the adapter that it is for.")]
        ///
        /// # Safety
        /// As the entry's specification says; handles are null or objects of adapters.
        #[inline(always)]
        #[allow(clippy::too_many_arguments, reason = "as many as C's")]
        pub unsafe fn $name($($p: $t),*) -> ur_result_t {
            send!($group $slot ($($p),*) by $($how)+)
        }
    )*)* };
}
entry_points!(functions);
