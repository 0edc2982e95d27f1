//! What the Level Zero loader has besides the functions of a driver: those who link its static half
//! open `libze_loader.so.1` and ask for these before anything else.
#![expect(unsafe_code, reason = "exports symbols of the loader")]
use crate::{inject::Answer, knob, raw};
use std::{
    ffi::{c_char, c_int, c_void},
    sync::LazyLock,
};
use ze_sys::*;

/// A part of the loader and its version.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Component {
    name: [c_char; 64],
    specification: ze_api_version_t,
    version: [c_int; 3],
}
/// The loader that this library passes for.
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

/// Whether handles are the loader's, where there are several drivers (`ZE_SOFTWARE_WRAPS=1`).
fn wraps() -> bool {
    static WRAPS: LazyLock<bool> = LazyLock::new(|| knob::is("WRAPS", "1"));
    *WRAPS
}
/// The driver's own handle. Only drivers' differ.
fn translated(kind: u32, handle: *mut c_void) -> *mut c_void {
    if wraps() && kind == 0 { handle.map_addr(|at| at | 1) } else { handle }
}
/// The handle of a driver as an extension function gets it: the loader's ends the process, as it is no address that the
/// driver knows.
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
/// Ends the process where an extension function gets other handles than drivers', which are all the loader's.
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
/// Where the functions for tracers are: in this very library.
#[unsafe(no_mangle)]
pub extern "C" fn zeLoaderGetTracingHandle() -> *mut c_void {
    // SAFETY: plain data that the next call fills.
    let mut own = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: the address is of a function of this library, `own` is ours.
    if unsafe { libc::dladdr(zeLoaderInit as *const c_void, &raw mut own) } == 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: the library is loaded already: nothing runs, and the path is the dynamic linker's own.
    unsafe { libc::dlopen(own.dli_fname, libc::RTLD_NOW) }
}
/// Whether the loader is going down: it never is.
#[unsafe(no_mangle)]
pub extern "C" fn zelCheckIsLoaderInTearDown() -> bool {
    false
}

/// Tables of what this driver does not have: they stay as the caller had them.
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
