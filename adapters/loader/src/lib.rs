//! The C symbols of `libur_loader.so.0`, and nothing else: `cargo xtask dist` links it. What they do
//! is in `ur-loader`.
#![expect(unsafe_code, reason = "the symbols that programs link")]
use std::ffi::{c_char, c_void};
use ur_loader::{config, entry, life, selected};
use ur_sys::*;

mod print {
    pub use ur_loader::print::{calls::*, records::*, values::*, *};
}

/// The entries of the tables, and what fills each table.
macro_rules! entries {
    ($($group:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident(
            $($p:ident: $t:ty),* $(,)?
        ) by $($how:ident)+;)*
    })*) => { $(
        $(
            #[doc = concat!("`", stringify!($c), "`.")]
            ///
            /// # Safety
            /// As the entry says; handles are null or adapters' objects.
            #[allow(clippy::too_many_arguments, reason = "as many as C's")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $c($($p: $t),*) -> ur_result_t {
                // SAFETY: the caller's promise.
                unsafe { entry::$name($($p),*) }
            }
        )*

        #[doc = concat!("Fills the table `", stringify!($group), "` with the functions exported here.")]
        ///
        /// # Safety
        /// `table` is null or writable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $getter(
            version: ur_api_version_t,
            table: *mut $table,
        ) -> ur_result_t {
            // SAFETY: the caller's promise.
            unsafe { entry::fill(version, table, &entry::TABLE.$group) }
        }
    )* };
}
ur_sys::entry_points!(entries);

/// Functions that are only given a name for C here.
macro_rules! named {
    ($($module:ident: $c:ident = $name:ident($($p:ident: $t:ty),* $(,)?);)*) => { $(
        #[doc = concat!("`", stringify!($c), "`.")]
        ///
        /// # Safety
        #[doc = concat!("As for `", stringify!($module), "::", stringify!($name), "`.")]
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, reason = "some ask for nothing")]
        pub unsafe extern "C" fn $c($($p: $t),*) -> ur_result_t {
            // SAFETY: the caller's promise.
            unsafe { $module::$name($($p),*) }
        }
    )* };
}
named! {
    config: urLoaderConfigCreate = loader_config_create(
        loader_config: *mut ur_loader_config_handle_t,
    );
    config: urLoaderConfigRetain = loader_config_retain(loader_config: ur_loader_config_handle_t);
    config: urLoaderConfigRelease = loader_config_release(loader_config: ur_loader_config_handle_t);
    config: urLoaderConfigGetInfo = loader_config_get_info(
        loader_config: ur_loader_config_handle_t,
        prop_name: ur_loader_config_info_t,
        prop_size: usize,
        prop_value: *mut c_void,
        prop_size_ret: *mut usize,
    );
    config: urLoaderConfigEnableLayer = loader_config_enable_layer(
        loader_config: ur_loader_config_handle_t,
        layer_name: *const c_char,
    );
    config: urLoaderConfigSetCodeLocationCallback = loader_config_set_code_location_callback(
        loader_config: ur_loader_config_handle_t,
        codeloc: ur_code_location_callback_t,
        user_data: *mut c_void,
    );
    config: urLoaderConfigSetMockingEnabled = loader_config_set_mocking_enabled(
        loader_config: ur_loader_config_handle_t,
        enable: ur_bool_t,
    );
    life: urLoaderInit = loader_init(
        device_flags: ur_device_init_flags_t,
        loader_config: ur_loader_config_handle_t,
    );
    life: urLoaderTearDown = loader_tear_down();
    selected: urDeviceGetSelected = device_get_selected(
        platform: ur_platform_handle_t,
        device_type: ur_device_type_t,
        num_entries: u32,
        devices: *mut ur_device_handle_t,
        num_devices: *mut u32,
    );
}

/// The functions that print values.
macro_rules! printers {
    ($($c:ident($($p:ident: $t:ty),* $(,)?);)*) => { $(
        #[doc = concat!("`", stringify!($c), "`.")]
        ///
        /// # Safety
        /// Pointers are null or point at what the types say.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $c($($p: $t),*) -> ur_result_t {
            // SAFETY: the caller's promise.
            unsafe { print::$c($($p),*) }
        }
    )* };
}
ur_loader::print_symbols!(printers);
