//! The driver: initialisation, its properties and extensions, and functions by name.
#![expect(unsafe_code, reason = "exports symbols of the driver; looks its own symbols up")]
use crate::{
    context::{self, Context},
    device,
    handle::{self, Object, raw},
    inject::{self, Answer},
    knob, raw,
};
use libloading::os::unix::{Library, RTLD_NOW};
use std::{
    ffi::{CStr, OsStr, c_char, c_void},
    os::unix::ffi::OsStrExt,
    sync::{LazyLock, OnceLock},
};
use ze_sys::*;

/// Major, minor and build of the driver's version, as its clients interpret it: new enough for clients to use
/// counter-based events.
const VERSION: u32 = (1 << 24) | (17 << 16) | 39_000;
const VERSION_TEXT: &CStr = c"1.17.39000";
const ONE: u32 = 1 << 16;

/// The extensions and their versions.
const EXTENSIONS: &[(&str, u32)] = &[
    ("ZE_experimental_event_pool_counter_based", ONE),
    ("ZE_experimental_event_query_timestamps", ONE),
    ("ZE_experimental_global_offset", ONE),
    ("ZE_experimental_image_memory_properties", ONE),
    ("ZE_experimental_image_view", ONE),
    ("ZE_experimental_immediate_command_list_append", ONE),
    ("ZE_experimental_module_program", ONE),
    ("ZE_experimental_mutable_command_list", ONE + 1),
    ("ZE_experimental_relaxed_allocation_limits", ONE),
    ("ZE_experimental_scheduling_hints", ONE),
    ("ZE_extension_device_cache_line_size", ONE),
    ("ZE_extension_device_ip_version", ONE),
    ("ZE_extension_device_luid", ONE),
    ("ZE_extension_device_memory_properties", ONE),
    ("ZE_extension_device_usablemem_size_properties", ONE),
    ("ZE_extension_device_vector_sizes", ONE),
    ("ZE_extension_eu_count", ONE),
    ("ZE_extension_external_memmap_sysmem", ONE),
    ("ZE_extension_float_atomics", ONE),
    ("ZE_extension_image_copy", ONE),
    ("ZE_extension_ipc_mem_handle_type", ONE),
    ("ZE_extension_memory_free_policies", ONE),
    ("ZE_extension_pci_properties", ONE),
    ("ZE_extension_subgroups", ONE),
    ("ZE_intel_get_driver_version_string", ONE),
];

/// A driver of this process: the working one, or a broken one.
pub struct Driver {
    is_broken: bool,
}
impl Object for Driver {
    const TAG: u64 = 0x7a65_6472_6976_6572;
}
/// The driver's handle, which never changes.
pub fn handle() -> ze_driver_handle_t {
    static DRIVER: OnceLock<usize> = OnceLock::new();
    let address =
        *DRIVER.get_or_init(|| handle::make(Driver { is_broken: false }).expose_provenance());
    std::ptr::with_exposed_provenance_mut(address)
}
/// All drivers: with `ZE_SOFTWARE_BROKEN_DRIVER` a broken one comes first.
fn all() -> Vec<ze_driver_handle_t> {
    static BROKEN: LazyLock<usize> =
        LazyLock::new(|| handle::make(Driver { is_broken: true }).expose_provenance());
    match knob::number("BROKEN_DRIVER", 0) {
        0 => vec![handle()],
        _ => vec![std::ptr::with_exposed_provenance_mut(*BROKEN), handle()],
    }
}
/// Checks a driver's handle.
///
/// # Errors
/// As for [`handle::get`]; `ZE_RESULT_ERROR_UNINITIALIZED` for the broken driver.
pub fn check(raw: ze_driver_handle_t) -> Answer {
    let driver = handle::get::<Driver>(raw!(raw))?;
    if driver.is_broken { Err(ZE_RESULT_ERROR_UNINITIALIZED) } else { Ok(()) }
}
/// This library, for lookups of its own symbols; `None` if it is linked into a program.
fn own() -> Option<&'static Library> {
    static OWN: OnceLock<Option<Library>> = OnceLock::new();
    OWN.get_or_init(|| {
        // SAFETY: plain data that the next call fills.
        let mut info = unsafe { std::mem::zeroed::<libc::Dl_info>() };
        // SAFETY: the address is of a function of this library, `info` is writable.
        if unsafe { libc::dladdr(zeInit as *const c_void, &raw mut info) } == 0 {
            return None;
        }
        // SAFETY: a string of the dynamic linker, which lives as long as the library.
        let path = unsafe { CStr::from_ptr(info.dli_fname) };
        // SAFETY: the library is already loaded, so no initialiser runs.
        unsafe { Library::open(Some(OsStr::from_bytes(path.to_bytes())), RTLD_NOW) }.ok()
    })
    .as_ref()
}
/// The address of an exported function, by its name.
fn function(name: &str) -> Option<*mut c_void> {
    if !name.starts_with("ze") || inject::hidden(name) {
        return None;
    }
    // SAFETY: only the address is taken.
    let symbol = unsafe { own()?.get::<*mut c_void>(name.as_bytes()) }.ok()?;
    Some(symbol.as_raw_ptr())
}
fn extensions() -> Vec<ze_driver_extension_properties_t> {
    let offered = |name: &str| match name {
        "ZE_experimental_event_pool_counter_based" => inject::counter_events(),
        _ => !inject::hidden(name),
    };
    let all = EXTENSIONS.iter().filter(|(name, _)| offered(name));
    all.map(|(name, version)| ze_driver_extension_properties_t {
        name: raw::name(name),
        version: *version,
    })
    .collect()
}

entries! {
    fn zeInit(flags: ze_init_flags_t) {
        // A driver of GPUs only: it does not initialise for programs that only want NPUs.
        let other = flags & ZE_INIT_FLAG_GPU_ONLY == 0 && flags & ZE_INIT_FLAG_VPU_ONLY != 0;
        if other || device::roots().is_empty() { Err(ZE_RESULT_ERROR_UNINITIALIZED) } else { Ok(()) }
    }
    fn zeDriverGet(count: *mut u32, to: *mut ze_driver_handle_t) {
        raw::put_list(count, to, &all())
    }
    fn zeInitDrivers(
        count: *mut u32,
        to: *mut ze_driver_handle_t,
        desc: *mut ze_init_driver_type_desc_t,
    ) {
        let wanted = raw::get(desc)?.flags;
        if wanted == 0 {
            return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
        }
        if wanted & ZE_INIT_DRIVER_TYPE_FLAG_GPU == 0 || device::roots().is_empty() {
            return raw::put(count, 0);
        }
        raw::put_list(count, to, &all())
    }
    fn zeDriverGetApiVersion(driver: ze_driver_handle_t, to: *mut ze_api_version_t) {
        check(driver)?;
        raw::put(to, ZE_API_VERSION_CURRENT)
    }
    fn zeDriverGetProperties(driver: ze_driver_handle_t, to: *mut ze_driver_properties_t) {
        check(driver)?;
        raw::amend(to, |properties| {
            properties.uuid.id = *b"ze-software-drvr";
            properties.driverVersion = VERSION;
            Ok(())
        })
    }
    fn zeDriverGetIpcProperties(driver: ze_driver_handle_t, to: *mut ze_driver_ipc_properties_t) {
        check(driver)?;
        raw::amend(to, |properties| {
            properties.flags = match inject::lacks("ipc") {
                true => 0,
                false => ZE_IPC_PROPERTY_FLAG_MEMORY | ZE_IPC_PROPERTY_FLAG_EVENT_POOL,
            };
            Ok(())
        })
    }
    fn zeDriverGetExtensionProperties(
        driver: ze_driver_handle_t,
        count: *mut u32,
        to: *mut ze_driver_extension_properties_t,
    ) {
        check(driver)?;
        raw::put_list(count, to, &extensions())
    }
    fn zeDriverGetExtensionFunctionAddress(
        driver: ze_driver_handle_t,
        name: *const c_char,
        to: *mut *mut c_void,
    ) {
        check(driver)?;
        match function(&raw::text(name)?) {
            Some(address) => raw::put(to, address),
            None => {
                raw::put(to, std::ptr::null_mut())?;
                Err(ZE_RESULT_ERROR_INVALID_ARGUMENT)
            }
        }
    }
    fn zeDriverGetLastErrorDescription(driver: ze_driver_handle_t, to: *mut *const c_char) {
        check(driver)?;
        raw::put(to, c"".as_ptr())
    }
    fn zeIntelGetDriverVersionString(
        driver: ze_driver_handle_t,
        to: *mut c_char,
        size: *mut usize,
    ) {
        check(driver)?;
        // Without a buffer only the length is returned, without the NUL.
        let room = raw::get(size)?;
        if room == 0 || to.is_null() {
            return raw::put(size, VERSION_TEXT.count_bytes());
        }
        raw::put_bytes(to.cast(), room, VERSION_TEXT.to_bytes_with_nul());
        Ok(())
    }
}

/// The default context, of all devices; it is never destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn zeDriverGetDefaultContext(driver: ze_driver_handle_t) -> ze_context_handle_t {
    static DEFAULT: OnceLock<usize> = OnceLock::new();
    if check(driver).is_err() {
        return std::ptr::null_mut();
    }
    let made = || handle::make(Context::new(device::roots().to_vec())).expose_provenance();
    context::from_address(*DEFAULT.get_or_init(made))
}
