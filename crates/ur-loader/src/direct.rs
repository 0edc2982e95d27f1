//! One function for each entry that sends the call to its adapter: the only one there is, whatever the
//! handle is, or the one that the handle says. Whether it may be called so is `entry`'s question.
#![expect(unsafe_code, reason = "calls adapters through the tables that their objects name")]
use crate::adapters;
use std::{
    ffi::{c_char, c_void},
    ptr::null_mut,
};
use ur_sys::*;

/// The table of the adapter that made the object: the only one there is, whose handles may be
/// anything and are not read; of several, that at whose address the object begins.
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
    // SAFETY: an object's first word is its table's address.
    let table = unsafe { handle.cast::<*const ur_dditable_t>().read() };
    // SAFETY: tables outlive objects.
    unsafe { table.as_ref() }
}

/// Says that nothing was made, where a call that failed has to.
///
/// # Safety
/// `to` is null or a place for a handle, which is a pointer.
pub(crate) unsafe fn null<H>(to: *mut H) {
    if !to.is_null() {
        // SAFETY: not null, hence writable.
        unsafe { to.cast::<*mut c_void>().write(null_mut()) };
    }
}

/// What stands for an entry that an adapter leaves out.
const LEFT_OUT: ur_result_t = ur_result_t::ERROR_UNINITIALIZED;

macro_rules! send {
    ($group:ident $slot:ident ($($p:ident),*) by hand) => {
        // SAFETY: the caller's promise.
        unsafe { adapters::get($($p),*) }
    };
    ($group:ident $slot:ident ($($p:ident),*) by handle $of:ident) => {{
        // SAFETY: the caller's promise.
        let Some(table) = (unsafe { table($of.0) }) else {
            return ur_result_t::ERROR_INVALID_NULL_HANDLE;
        };
        let Some(call) = table.$group.$slot else { return LEFT_OUT };
        // SAFETY: the caller's promise is the adapter's to use.
        unsafe { call($($p),*) }
    }};
    ($group:ident $slot:ident ($($p:ident),*) by handle $of:ident nulls $to:ident) => {{
        let send = || send!($group $slot ($($p),*) by handle $of);
        let code = send();
        // The adapter does so itself, if it is asked.
        if code != ur_result_t::SUCCESS {
            // SAFETY: the caller's promise.
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
                // SAFETY: not null and not empty, hence the caller's promise.
                let first = unsafe { $list.read() };
                // SAFETY: as above.
                let Some(table) = (unsafe { table(first.0) }) else {
                    return ur_result_t::ERROR_INVALID_NULL_HANDLE;
                };
                table
            }
        };
        let Some(call) = table.$group.$slot else { return LEFT_OUT };
        // SAFETY: the caller's promise is the adapter's to use.
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
        /// As the entry says; handles are null or adapters' objects.
        #[inline(always)]
        #[allow(clippy::too_many_arguments, reason = "as many as C's")]
        pub unsafe fn $name($($p: $t),*) -> ur_result_t {
            send!($group $slot ($($p),*) by $($how)+)
        }
    )*)* };
}
entry_points!(functions);
