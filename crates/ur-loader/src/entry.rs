//! The entries as programs call them, one function each, and the table of all of them. When
//! nothing is between a call and its adapter they are `direct`; else they ask what is.
#![expect(unsafe_code, reason = "the C ABI")]
use crate::{
    direct, layers,
    state::{self, State},
};
use std::ffi::{c_char, c_void};
use ur_sys::*;

macro_rules! functions {
    ($($group:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident(
            $($p:ident: $t:ty),* $(,)?
        ) by $($how:ident)+;)*
    })*) => {
        $($(
            #[doc = concat!("`", stringify!($c), "`.")]
            ///
            /// # Safety
            /// As the entry says; handles are null or adapters' objects.
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "as many as C's")]
            pub unsafe extern "C" fn $name($($p: $t),*) -> ur_result_t {
                if state::plain() {
                    // SAFETY: the caller's promise.
                    unsafe { direct::$name($($p),*) }
                } else {
                    // SAFETY: as above.
                    unsafe { indirect::$name($($p),*) }
                }
            }
        )*)*

        /// What calls do when something is between.
        mod indirect {
            use super::*;
            $($(
                #[cold]
                #[inline(never)]
                #[allow(clippy::too_many_arguments, reason = "as many as C's")]
                pub(super) unsafe extern "C" fn $name($($p: $t),*) -> ur_result_t {
                    match state::state() {
                        // SAFETY: the caller's promise.
                        State::Plain => unsafe { direct::$name($($p),*) },
                        State::Down => ur_result_t::ERROR_UNINITIALIZED,
                        // SAFETY: as above.
                        State::Layered => unsafe { layers::calls::$name($($p),*) },
                    }
                }
            )*)*
        }

        /// Every entry, as a table: what a program of ours calls when it does not link symbols.
        pub static TABLE: ur_dditable_t = ur_dditable_t {
            $($group: $table { $($slot: Some($name),)* },)*
        };
    };
}
entry_points!(functions);

/// The body of every getter of a table.
///
/// # Safety
/// `table` is null or writable.
pub unsafe fn fill<T: Copy>(version: ur_api_version_t, table: *mut T, ours: &T) -> ur_result_t {
    if table.is_null() {
        return ur_result_t::ERROR_INVALID_NULL_POINTER;
    }
    if version != ur_api_version_t::CURRENT {
        return ur_result_t::ERROR_UNSUPPORTED_VERSION;
    }
    // SAFETY: not null, hence writable.
    unsafe { table.write(*ours) };
    ur_result_t::SUCCESS
}
