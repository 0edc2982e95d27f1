//! The entries as programs call them, one function each, and the table of all of them. They call `direct`
//! while no layer is on, else they check the loader's state first.
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
            /// As the entry's specification says; handles are null or objects of adapters.
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "as many as C's")]
            pub unsafe extern "C" fn $name($($p: $t),*) -> ur_result_t {
                if state::plain() {
                    // SAFETY: the caller's promise is passed on unchanged.
                    unsafe { direct::$name($($p),*) }
                } else {
                    // SAFETY: as above.
                    unsafe { indirect::$name($($p),*) }
                }
            }
        )*)*

        /// The entries while layers are on or the loader is not started.
        mod indirect {
            use super::*;
            $($(
                #[cold]
                #[inline(never)]
                #[allow(clippy::too_many_arguments, reason = "as many as C's")]
                pub(super) unsafe extern "C" fn $name($($p: $t),*) -> ur_result_t {
                    match state::state() {
                        // SAFETY: the caller's promise is passed on unchanged.
                        State::Plain => unsafe { direct::$name($($p),*) },
                        State::Down => ur_result_t::ERROR_UNINITIALIZED,
                        // SAFETY: as above.
                        State::Layered => unsafe { layers::calls::$name($($p),*) },
                    }
                }
            )*)*
        }

        /// A table of every entry, for programs that use this crate without linking the C symbols.
        pub static TABLE: ur_dditable_t = ur_dditable_t {
            $($group: $table { $($slot: Some($name),)* },)*
        };
    };
}
entry_points!(functions);

/// Implements every getter of a table: copies `ours` to `table` if the version is the current one.
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
