//! The table of the mock: every entry runs the hooks of its slot; without hooks it runs `answers.rs`.
#![expect(unsafe_code, reason = "passes on arguments that hooks may have changed")]
use super::{Mock, hooks::Slot};
use std::{
    any::TypeId,
    ffi::{c_char, c_void},
};
use ur_adapter::entry;
use ur_sys::*;

/// The adapter without hooks.
static PLAIN: ur_dditable_t = entry::table::<Mock>();

macro_rules! hooked {
    ($($group:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident(
            $($p:ident: $t:ty),* $(,)?
        ) by $($how:ident)+;)*
    })*) => {
        /// The hooks, one slot for each entry.
        mod slots {
            use super::*;
            $($(pub static $name: Slot =
                Slot::new(stringify!($c), &[$(TypeId::of::<$t>()),*]);)*)*
        }
        /// All slots, in the order of the table.
        pub static SLOTS: &[&Slot] = &[$($(&slots::$name,)*)*];

        /// The table that the loader and C callers use.
        pub static MOCK_TABLE: ur_dditable_t = ur_dditable_t {
            $($group: $table { $($slot: Some($name),)* },)*
        };
        $($(unsafe extern "C" fn $name($(mut $p: $t),*) -> ur_result_t {
            $(let $p = &raw mut $p;)*
            slots::$name.call(&[$($p.cast::<c_void>()),*], &|| {
                // SAFETY: each pointer is to this call's own argument, of this type; `set_argument` keeps the
                // type.
                $(let $p = unsafe { $p.read() };)*
                let plain = PLAIN.$group.$slot.expect("no slot is empty");
                // SAFETY: the caller's promise, which hooks that change arguments must keep.
                unsafe { plain($($p),*) }
            })
        })*)*
    };
}
ur_sys::entry_points!(hooked);
