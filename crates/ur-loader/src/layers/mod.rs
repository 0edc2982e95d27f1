//! Layers between a call and its adapter.
#![expect(unsafe_code, reason = "passes calls on")]

pub mod calls {
    //! The entries as they are called when layers are on.
    use crate::direct;
    use std::ffi::{c_char, c_void};
    use ur_sys::*;
    macro_rules! functions {
        ($($group:ident $getter:ident $table:ident {
            $($slot:ident $c:ident $name:ident($($p:ident: $t:ty),* $(,)?) by $($how:ident)+;)*
        })*) => { $($(
            #[doc = concat!("`", stringify!($c), "` through the layers that are on.")]
            ///
            /// # Safety
            /// As the entry says.
            #[allow(clippy::too_many_arguments, reason = "as many as C's")]
            pub unsafe fn $name($($p: $t),*) -> ur_result_t {
                // SAFETY: the caller's promise.
                unsafe { direct::$name($($p),*) }
            }
        )*)* };
    }
    crate::entry_points!(functions);
}

/// The names that `UR_ENABLE_LAYERS` may have.
pub const NAMES: &[&str] = &[];
/// The layers there are, as a program is told them.
pub fn available() -> String {
    NAMES.join(";")
}
/// Whether there is a layer of that name.
pub fn known(name: &str) -> bool {
    NAMES.contains(&name)
}
/// Turns on what the environment and `enabled` ask for; says whether anything is on.
pub fn start(_enabled: &[String], _codeloc: Option<crate::config::CodeLocation>) -> bool {
    false
}
/// Turns all off.
pub fn stop() {}
