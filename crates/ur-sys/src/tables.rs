//! The tables that an adapter fills and a loader calls through, and the type of every entry in them.
use crate::{functions::*, records::*, values::*};
use core::ffi::{c_char, c_void};

macro_rules! tables {
    ($($member:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident(
            $($p:ident: $t:ty),* $(,)?
        ) by $($how:ident)+;)*
    })*) => {
        $($(
            #[doc = concat!("`", stringify!($c), "`:")]
            $(#[$doc])*
            pub type $pfn = unsafe extern "C" fn($($p: $t),*) -> ur_result_t;
        )*)*
        $(
            #[doc = concat!("What `", stringify!($getter), "` fills; no entry point need be there.")]
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub struct $table {
                $($(#[$doc])* pub $slot: Option<$pfn>,)*
            }
            impl $table {
                /// No entry point at all.
                pub const EMPTY: Self = Self { $($slot: None,)* };
            }
        )*

        /// All tables: what the first word of every handle points at.
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        #[expect(missing_docs, reason = "each is the table of that name")]
        pub struct ur_dditable_t {
            $(pub $member: $table,)*
        }
        impl ur_dditable_t {
            /// No entry point at all.
            pub const EMPTY: Self = Self { $($member: $table::EMPTY,)* };
        }
    };
}
entry_points!(tables);
