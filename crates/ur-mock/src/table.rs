//! The table that C calls through: every entry runs the hooks of its slot, and without hooks does what `answers.rs`
//! says.
#![expect(unsafe_code, reason = "passes on arguments that hooks may have changed")]
use super::{Mock, hooks::Slot};
use std::{
    any::TypeId,
    ffi::{c_char, c_void},
};
use ur_adapter::entry;
use ur_sys::*;

/// The adapter without its hooks.
static PLAIN: ur_dditable_t = entry::table::<Mock>();

macro_rules! hooked {
    ($($group:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident(
            $($p:ident: $t:ty),* $(,)?
        ) by $($how:ident)+;)*
    })*) => {
        /// Where hooks are put, one slot for each entry.
        mod slots {
            use super::*;
            $($(pub static $name: Slot =
                Slot::new(stringify!($c), &[$(TypeId::of::<$t>()),*]);)*)*
        }
        /// All slots, in the order of the table.
        pub static SLOTS: &[&Slot] = &[$($(&slots::$name,)*)*];

        /// The whole of this adapter, as C sees it.
        pub static MOCK_TABLE: ur_dditable_t = ur_dditable_t {
            $($group: $table { $($slot: Some($name),)* },)*
        };
        $($(unsafe extern "C" fn $name($(mut $p: $t),*) -> ur_result_t {
            $(let $p = &raw mut $p;)*
            slots::$name.call(&[$($p.cast::<c_void>()),*], &|| {
                // SAFETY: each is this call's own argument, of this type; hooks keep it so.
                $(let $p = unsafe { $p.read() };)*
                let plain = PLAIN.$group.$slot.expect("no slot is empty");
                // SAFETY: the caller's promise, which a hook that changes arguments keeps.
                unsafe { plain($($p),*) }
            })
        })*)*
    };
}
ur_sys::entry_points!(hooked);
