//! The functions that the Level Zero loader has in addition to those of a driver. Programs that link the
//! loader's static half open `libze_loader.so.1` and look these up first.
#![expect(unsafe_code, reason = "exports symbols of the loader")]
use crate::{inject::Answer, knob, raw};
use std::{
    ffi::{c_char, c_int, c_void},
    sync::LazyLock,
};
use ze_sys::*;

/// A component of the loader and its version.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Component {
    name: [c_char; 64],
    specification: ze_api_version_t,
    version: [c_int; 3],
}
/// The version of the loader that this library pretends to be.
const LOADER: [c_int; 3] = [1, 32, 0];

fn versions(count: *mut usize, to: *mut Component) -> Answer {
    if to.is_null() {
        return raw::put(count, 1);
    }
    if raw::get(count)? == 0 {
        return Err(ZE_RESULT_ERROR_INVALID_SIZE);
    }
    let (name, specification) = (raw::name("loader"), ZE_API_VERSION_CURRENT);
    raw::put(to, Component { name, specification, version: LOADER })?;
    raw::put(count, 1)
}

/// Whether driver handles are the loader's own, as they are if there are several drivers
/// (`ZE_SOFTWARE_WRAPS=1`).
fn wraps() -> bool {
    static WRAPS: LazyLock<bool> = LazyLock::new(|| knob::is("WRAPS", "1"));
    *WRAPS
}
/// The loader's translation of a handle: only a driver's handle changes.
fn translated(kind: u32, handle: *mut c_void) -> *mut c_void {
    if wraps() && kind == 0 { handle.map_addr(|at| at | 1) } else { handle }
}
/// The driver behind a handle that an extension function gets. The loader's own handle ends the process,
/// because for the driver it is not a valid address.
pub fn unwrapped(driver: ze_driver_handle_t) -> ze_driver_handle_t {
    if !wraps() {
        return driver;
    }
    if driver.addr() & 1 == 0 {
        eprintln!("ze-software: an extension function got a handle of the loader's");
        std::process::abort();
    }
    driver.map_addr(|at| at & !1)
}
/// Ends the process if an extension function gets any handle other than a driver's while handles are the
/// loader's own.
pub fn check_extension() {
    if wraps() {
        eprintln!("ze-software: an extension function got a handle of the loader's");
        std::process::abort();
    }
}

entries! {
    fn zeLoaderInit() { Ok(()) }
    fn zelLoaderGetVersions(count: *mut usize, to: *mut Component) { versions(count, to) }
    fn zelLoaderGetVersionsInternal(count: *mut usize, to: *mut Component) { versions(count, to) }
    fn zelLoaderDriverCheck(
        _flags: ze_init_flags_t,
        _desc: *mut c_void,
        _global: *mut c_void,
        _system: *mut c_void,
        again: *mut bool,
        _system_only: bool,
    ) {
        raw::put_maybe(again, false);
        Ok(())
    }
    fn zelGetTracerApiProcAddrTable(_version: ze_api_version_t, _to: *mut c_void) { Ok(()) }
    fn zelLoaderTranslateHandle(kind: u32, from: *mut c_void, to: *mut *mut c_void) {
        raw::put(to, translated(kind, from))
    }
    fn zelLoaderTranslateHandleInternal(kind: u32, from: *mut c_void, to: *mut *mut c_void) {
        raw::put(to, translated(kind, from))
    }
    fn zelLoaderContextTeardown() { Ok(()) }
}
/// The library with the functions for tracers, which is this one.
#[unsafe(no_mangle)]
pub extern "C" fn zeLoaderGetTracingHandle() -> *mut c_void {
    // SAFETY: zeros are a valid `Dl_info`: pointers only.
    let mut own = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: the address is that of a function of this library, and `own` is a local variable.
    if unsafe { libc::dladdr(zeLoaderInit as *const c_void, &raw mut own) } == 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: the library is already loaded, so no initializers run; the path comes from the dynamic linker.
    unsafe { libc::dlopen(own.dli_fname, libc::RTLD_NOW) }
}
/// Whether the loader is shutting down, which it never does.
#[unsafe(no_mangle)]
pub extern "C" fn zelCheckIsLoaderInTearDown() -> bool {
    false
}

/// Function tables of what this driver does not have. They keep what the caller put in.
macro_rules! empty_tables {
    ($($getter:ident)*) => { entries! { $(
        fn $getter(_version: ze_api_version_t, _to: *mut c_void) { Ok(()) }
    )* } };
}
empty_tables! {
    zeGetDeviceExpProcAddrTable
    zeGetDriverExpProcAddrTable
    zeGetExecutableGraphProcAddrTable
    zeGetFabricEdgeExpProcAddrTable
    zeGetFabricVertexExpProcAddrTable
    zeGetGraphProcAddrTable
    zeGetRTASBuilderExpProcAddrTable
    zeGetRTASBuilderProcAddrTable
    zeGetRTASParallelOperationExpProcAddrTable
    zeGetRTASParallelOperationProcAddrTable
    zerGetGlobalProcAddrTable
    zesGetDeviceExpProcAddrTable
    zesGetDeviceProcAddrTable
    zesGetDiagnosticsProcAddrTable
    zesGetDriverExpProcAddrTable
    zesGetDriverProcAddrTable
    zesGetEngineProcAddrTable
    zesGetFabricPortProcAddrTable
    zesGetFanProcAddrTable
    zesGetFirmwareExpProcAddrTable
    zesGetFirmwareProcAddrTable
    zesGetFrequencyProcAddrTable
    zesGetGlobalProcAddrTable
    zesGetLedProcAddrTable
    zesGetMemoryProcAddrTable
    zesGetOverclockProcAddrTable
    zesGetPerformanceFactorProcAddrTable
    zesGetPowerProcAddrTable
    zesGetPsuProcAddrTable
    zesGetRasExpProcAddrTable
    zesGetRasProcAddrTable
    zesGetSchedulerProcAddrTable
    zesGetStandbyProcAddrTable
    zesGetTemperatureProcAddrTable
    zesGetVFManagementExpProcAddrTable
    zetGetCommandListExpProcAddrTable
    zetGetCommandListProcAddrTable
    zetGetContextProcAddrTable
    zetGetDebugProcAddrTable
    zetGetDeviceExpProcAddrTable
    zetGetDeviceProcAddrTable
    zetGetKernelProcAddrTable
    zetGetMetricDecoderExpProcAddrTable
    zetGetMetricExpProcAddrTable
    zetGetMetricGroupExpProcAddrTable
    zetGetMetricGroupProcAddrTable
    zetGetMetricProcAddrTable
    zetGetMetricProgrammableExpProcAddrTable
    zetGetMetricQueryPoolProcAddrTable
    zetGetMetricQueryProcAddrTable
    zetGetMetricStreamerProcAddrTable
    zetGetMetricTracerExpProcAddrTable
    zetGetModuleProcAddrTable
    zetGetTracerExpProcAddrTable
}
