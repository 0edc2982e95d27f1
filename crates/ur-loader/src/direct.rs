//! One function for each entry that sends the call where the handle says: two loads and a jump.
//! Whether it may be called so is `entry`'s question.
#![expect(unsafe_code, reason = "calls adapters through the tables that their objects name")]
use crate::adapters;
use std::ffi::{c_char, c_void};
use ur_sys::*;

/// The table of the adapter that made the object: every object begins with its address.
///
/// # Safety
/// `handle` is null or an adapter's object.
#[inline(always)]
unsafe fn table<'a>(handle: *mut c_void) -> Option<&'a ur_dditable_t> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: an object's first word is its table's address.
    let table = unsafe { handle.cast::<*const ur_dditable_t>().read() };
    // SAFETY: tables outlive objects.
    unsafe { table.as_ref() }
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
    ($group:ident $slot:ident ($($p:ident),*) by command $of:ident) => {{
        if $of.is_null() {
            return ur_result_t::ERROR_INVALID_NULL_HANDLE;
        }
        // Some adapters' commands begin with something else.
        let table = match adapters::only() {
            Some(table) => table,
            // SAFETY: the caller's promise.
            None => match unsafe { table($of.0) } {
                Some(table) => table,
                None => return ur_result_t::ERROR_INVALID_NULL_HANDLE,
            },
        };
        let Some(call) = table.$group.$slot else { return LEFT_OUT };
        // SAFETY: the caller's promise is the adapter's to use.
        unsafe { call($($p),*) }
    }};
    ($group:ident $slot:ident ($($p:ident),*) by first $list:ident $count:ident $none:ident) => {{
        if $count == 0 {
            return ur_result_t::$none;
        }
        if $list.is_null() {
            return ur_result_t::ERROR_INVALID_NULL_POINTER;
        }
        // SAFETY: not null and not empty, hence the caller's promise.
        let first = unsafe { $list.read() };
        send!($group $slot ($($p),*) by handle first)
    }};
}

macro_rules! functions {
    ($($group:ident $getter:ident $table:ident {
        $($slot:ident $c:ident $name:ident($($p:ident: $t:ty),* $(,)?) by $($how:ident)+;)*
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
crate::entry_points!(functions);
