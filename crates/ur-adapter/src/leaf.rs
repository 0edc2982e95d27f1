//! The C symbols of an adapter's shared object, of which a leaf crate consists.
#![allow(unsafe_code, reason = "the macro exports symbols, in the crate that uses it")]

#[doc(hidden)]
pub use ur_sys;

/// Exports the getters of all tables. The arguments are the variant of `Backend` that the adapter's objects carry, the
/// name of the adapter in logs and in its environment variable, and the path of its table.
#[macro_export]
macro_rules! leaf {
    ($backend:ident, $name:literal, $table:path) => {
        /// The adapter whose log is used.
        const BACKEND: $crate::object::Backend = $crate::object::Backend::$backend;
        /// The name of the adapter in logs and in its environment variable.
        const NAME: &str = $name;
        use $table as TABLE;

        $crate::leaf::ur_sys::entry_points!($crate::getters);
    };
}

/// The getters, which use the constants of `leaf`.
#[doc(hidden)]
#[macro_export]
macro_rules! getters {
    ($($member:ident $getter:ident $table:ident { $($entries:tt)* })*) => { $(
        #[doc = concat!("Fills the table `", stringify!($member), "`.")]
        ///
        /// # Safety
        /// `table` is null or writable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $getter(
            version: $crate::leaf::ur_sys::ur_api_version_t,
            table: *mut $crate::leaf::ur_sys::$table,
        ) -> $crate::leaf::ur_sys::ur_result_t {
            // SAFETY: the caller promised what `fill` requires.
            unsafe { $crate::shim::fill(BACKEND, NAME, version, table, &TABLE.$member) }
        }
    )* };
}
