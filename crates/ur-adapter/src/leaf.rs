//! The C symbols of an adapter's shared object: all that a leaf crate consists of.
#![allow(unsafe_code, reason = "the macro exports symbols, in the crate that uses it")]

#[doc(hidden)]
pub use ur_sys;

/// Exports the getters of all tables: the variant of `Backend` that the adapter's objects carry, what logs
/// call it (and the environment variable that asks for them), and where its table is.
#[macro_export]
macro_rules! leaf {
    ($backend:ident, $name:literal, $table:path) => {
        /// Whose log it is.
        const BACKEND: $crate::object::Backend = $crate::object::Backend::$backend;
        /// What logs call this adapter, and the environment variable that asks for them.
        const NAME: &str = $name;
        use $table as TABLE;

        $crate::leaf::ur_sys::entry_points!($crate::getters);
    };
}

/// The getters, for the constants of `leaf`.
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
            // SAFETY: the caller's promise.
            unsafe { $crate::shim::fill(BACKEND, NAME, version, table, &TABLE.$member) }
        }
    )* };
}
