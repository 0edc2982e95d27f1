//! The driver's functions, bound at run time: one row for each function, with its CUDA and its HIP name. What
//! the calls mean and who owns what is in `native/`; what differs between the two drivers is in [`Dialect`].
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
pub mod layout;

use super::Statics;
use layout::*;
use std::{
    ffi::{c_char, c_void},
    fmt,
    marker::PhantomData,
    ptr::NonNull,
    sync::OnceLock,
};
use ur_hal::{Error, ErrorKind, Severity, Statuses};

macro_rules! raws { ($($(#[$doc:meta])* $name:ident;)*) => { $(
    $(#[$doc])*
    #[repr(transparent)]
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub struct $name(NonNull<c_void>);
    // SAFETY: an opaque handle from the driver; both drivers allow its use from any thread.
    unsafe impl Send for $name {}
    // SAFETY: as above.
    unsafe impl Sync for $name {}
    impl $name {
        /// The handle as a number, for native handles.
        pub fn addr(self) -> usize {
            self.0.as_ptr().expose_provenance()
        }
        /// `None` for 0.
        pub fn from_addr(addr: usize) -> Option<Self> {
            NonNull::new(std::ptr::with_exposed_provenance_mut(addr)).map(Self)
        }
    }
)* } }
raws! {
    /// `CUcontext`
    RawContext;
    /// `CUstream`; the default stream is `None`.
    RawStream;
    /// `CUevent`
    RawEvent;
    /// `CUmodule`
    RawModule;
    /// `CUfunction`
    RawFunction;
    /// `CUlinkState`
    RawLink;
    /// `CUmemoryPool`
    RawPool;
    /// `CUarray`
    RawArray;
    /// `CUgraph`
    RawGraph;
    /// `CUuserObject`
    RawUserObject;
}
/// `CUipcMemHandle`, `CUmemPoolPtrExportData`.
pub type IpcBytes = [u8; 64];
/// A function that a stream calls on a thread of the driver.
pub type HostFn = unsafe extern "C" fn(*mut c_void);

/// The result of a driver call.
pub type Outcome<D> = ur_hal::Outcome<D>;

/// Whether the status is one of the stream capture errors: the call was not executed, and says nothing about
/// the state of the object.
pub fn is_of_capture(status: i32) -> bool {
    (900..=908).contains(&status)
}

/// `CUDA_ERROR_CAPTURED_EVENT`, `hipErrorCapturedEvent`: the event was last recorded in a captured stream.
pub const CAPTURED_EVENT: i32 = 907;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`
const RELAXED: i32 = 2;
/// While this lives, the calling thread's capture mode is "relaxed". In the other modes a potentially
/// blocking call is refused while any stream of the process is captured, and it also invalidates that
/// capture, which may belong to other code.
struct Relaxed<'driver, D: Dialect> {
    driver: &'driver Driver<D>,
    /// The thread's previous mode; `None` if nothing was changed.
    before: Option<i32>,
}
impl<'driver, D: Dialect> Relaxed<'driver, D> {
    fn new(driver: &'driver Driver<D>) -> Self {
        let before = driver.exchange(RELAXED).filter(|&before| before != RELAXED);
        Self { driver, before }
    }
}
impl<D: Dialect> Drop for Relaxed<'_, D> {
    fn drop(&mut self) {
        self.before.map(|before| self.driver.exchange(before));
    }
}
macro_rules! driver_table {
    ($($name:ident: $cuda:literal | $hip:literal, fn($($arg:ident: $ty:ty),*) $(in $capture:ident)?;)*) => {
        /// The functions of a driver. A function that the driver does not have is `None`; calling it gives an
        /// [`Outcome`] without a status.
        pub struct Driver<D> {
            library: Option<libloading::Library>,
            _dialect: PhantomData<fn() -> D>,
            $($name: Option<unsafe extern "C" fn($($ty),*) -> i32>,)*
        }
        /// The symbol names of a driver's functions; "" where it has none.
        pub struct Symbols { $($name: &'static str,)* }
        /// CUDA's symbols, with explicit ABI versions: in the headers the plain names are macros for these.
        pub static CUDA: Symbols = Symbols { $($name: $cuda,)* };
        /// HIP's symbols, where the prototype is the same as CUDA's.
        pub static HIP: Symbols = Symbols { $($name: $hip,)* };
        impl<D: Dialect> Driver<D> {
            fn bind(library: Option<libloading::Library>) -> Self {
                let symbols = D::SYMBOLS;
                let named = |name: &str| library.as_ref().filter(|_| !name.is_empty());
                Self {
                    // SAFETY: the symbol's prototype is the one of its row below.
                    $($name: named(symbols.$name).and_then(|l| unsafe { l.get(symbols.$name.as_bytes()) }.ok().map(|s| *s)),)*
                    library,
                    _dialect: PhantomData,
                }
            }
            /// Whether the driver has the function of the row with that name.
            pub fn has(&self, row: &str) -> bool {
                match row {
                    $(stringify!($name) => self.$name.is_some(),)*
                    _ => false,
                }
            }
            $(
                #[doc = concat!("`", $cuda, "`, `", $hip, "`")]
                /// # Safety
                /// The conditions that the driver documents for its arguments.
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's function has")]
                pub unsafe fn $name(&self, $($arg: $ty),*) -> Outcome<D> {
                    const MARKS: &[&str] = &[$(stringify!($capture))?];
                    let relaxed = MARKS.is_empty().then(|| Relaxed::new(self));
                    // SAFETY: the caller upholds the driver's conditions.
                    let status = self.$name.map(|f| unsafe { f($($arg),*) });
                    drop(relaxed);
                    Outcome::new(D::SYMBOLS.$name, status)
                }
            )*
        }
    };
}
// `in capture`: the drivers document the function as allowed while streams are captured. Such are functions that enqueue
// commands, and queries that do not access a device. All others are called under `Relaxed`, which costs two short calls more.
//
// A row has both names only where the prototypes are the same. Where they differ there are two rows, each
// with "" for the other driver, and who calls them chooses.
driver_table! {
    //                    CUDA                          HIP
    init:                "cuInit"                     | "hipInit",                      fn(flags: u32) in capture;
    driver_version:      "cuDriverGetVersion"         | "hipDriverGetVersion",          fn(to: *mut i32) in capture;
    error_string:        "cuGetErrorString"           | "hipDrvGetErrorString",         fn(code: i32, to: *mut *const c_char) in capture;
    device_count:        "cuDeviceGetCount"           | "hipGetDeviceCount",            fn(to: *mut i32) in capture;
    device_get:          "cuDeviceGet"                | "hipDeviceGet",                 fn(to: *mut i32, ordinal: i32) in capture;
    device_name:         "cuDeviceGetName"            | "hipDeviceGetName",             fn(to: *mut c_char, room: i32, device: i32) in capture;
    device_uuid:         "cuDeviceGetUuid_v2"         | "hipDeviceGetUuid",             fn(to: *mut [u8; 16], device: i32) in capture;
    device_memory:       "cuDeviceTotalMem_v2"        | "hipDeviceTotalMem",            fn(to: *mut usize, device: i32);
    device_attribute:    "cuDeviceGetAttribute"       | "hipDeviceGetAttribute",        fn(to: *mut i32, attribute: i32, device: i32) in capture;
    device_pci:          "cuDeviceGetPCIBusId"        | "hipDeviceGetPCIBusId",         fn(to: *mut c_char, room: i32, device: i32);
    primary_retain:      "cuDevicePrimaryCtxRetain"   | "hipDevicePrimaryCtxRetain",    fn(to: *mut Option<RawContext>, device: i32);
    primary_state:       "cuDevicePrimaryCtxGetState" | "hipDevicePrimaryCtxGetState",  fn(device: i32, flags: *mut u32, active: *mut i32);
    context_push:        "cuCtxPushCurrent_v2"        | "hipCtxPushCurrent",            fn(context: RawContext) in capture;
    context_pop:         "cuCtxPopCurrent_v2"         | "hipCtxPopCurrent",             fn(to: *mut Option<RawContext>) in capture;
    context_current:     "cuCtxGetCurrent"            | "hipCtxGetCurrent",             fn(to: *mut Option<RawContext>) in capture;
    context_priorities:  "cuCtxGetStreamPriorityRange" | "hipDeviceGetStreamPriorityRange", fn(least: *mut i32, greatest: *mut i32);
    memory_info:         "cuMemGetInfo_v2"            | "hipMemGetInfo",                fn(free: *mut usize, total: *mut usize);
    peer_can:            "cuDeviceCanAccessPeer"      | "hipDeviceCanAccessPeer",       fn(to: *mut i32, device: i32, peer: i32) in capture;
    peer_attribute:      "cuDeviceGetP2PAttribute"    | "hipDeviceGetP2PAttribute",     fn(to: *mut i32, attribute: i32, from: i32, peer: i32) in capture;
    peer_enable:         "cuCtxEnablePeerAccess"      | "",                             fn(peer: RawContext, flags: u32);
    peer_disable:        "cuCtxDisablePeerAccess"     | "",                             fn(peer: RawContext);
    stream_create:       "cuStreamCreateWithPriority" | "hipStreamCreateWithPriority",  fn(to: *mut Option<RawStream>, flags: u32, priority: i32);
    stream_destroy:      "cuStreamDestroy_v2"         | "hipStreamDestroy",             fn(stream: RawStream);
    stream_synchronize:  "cuStreamSynchronize"        | "hipStreamSynchronize",         fn(stream: Option<RawStream>);
    stream_query:        "cuStreamQuery"              | "hipStreamQuery",               fn(stream: Option<RawStream>);
    stream_wait_event:   "cuStreamWaitEvent"          | "hipStreamWaitEvent",           fn(stream: Option<RawStream>, event: RawEvent, flags: u32) in capture;
    stream_host_fn:      "cuLaunchHostFunc"           | "hipLaunchHostFunc",            fn(stream: Option<RawStream>, call: HostFn, data: *mut c_void) in capture;
    stream_write_value:  "cuStreamWriteValue64_v2"    | "hipStreamWriteValue64",        fn(stream: Option<RawStream>, at: u64, value: u64, flags: u32) in capture;
    stream_wait_value:   "cuStreamWaitValue64_v2"     | "",                             fn(stream: Option<RawStream>, at: u64, value: u64, flags: u32) in capture;
    stream_wait_masked:  ""                           | "hipStreamWaitValue64",         fn(stream: Option<RawStream>, at: u64, value: u64, flags: u32, mask: u64) in capture;
    stream_context:      "cuStreamGetCtx"             | "",                             fn(stream: Option<RawStream>, to: *mut Option<RawContext>) in capture;
    stream_device:       ""                           | "hipStreamGetDevice",           fn(stream: Option<RawStream>, to: *mut i32) in capture;
    stream_capturing:    "cuStreamIsCapturing"        | "hipStreamIsCapturing",         fn(stream: Option<RawStream>, to: *mut i32) in capture;
    capture_mode:        "cuThreadExchangeStreamCaptureMode" | "hipThreadExchangeStreamCaptureMode", fn(mode: *mut i32) in capture;
    stream_capture_info: "cuStreamGetCaptureInfo_v2"  | "hipStreamGetCaptureInfo_v2",   fn(stream: Option<RawStream>, status: *mut i32, number: *mut u64, graph: *mut Option<RawGraph>, before: *mut *const c_void, count: *mut usize) in capture;
    user_object_create:  "cuUserObjectCreate"         | "hipUserObjectCreate",          fn(to: *mut Option<RawUserObject>, data: *mut c_void, destroy: HostFn, count: u32, flags: u32) in capture;
    user_object_release: "cuUserObjectRelease"        | "hipUserObjectRelease",         fn(object: RawUserObject, count: u32) in capture;
    graph_retain_user_object: "cuGraphRetainUserObject" | "hipGraphRetainUserObject",   fn(graph: RawGraph, object: RawUserObject, count: u32, flags: u32) in capture;
    event_create:        "cuEventCreate"              | "hipEventCreateWithFlags",      fn(to: *mut Option<RawEvent>, flags: u32);
    event_record:        "cuEventRecord"              | "hipEventRecord",               fn(event: RawEvent, stream: Option<RawStream>) in capture;
    event_query:         "cuEventQuery"               | "hipEventQuery",                fn(event: RawEvent);
    event_synchronize:   "cuEventSynchronize"         | "hipEventSynchronize",          fn(event: RawEvent);
    event_elapsed:       "cuEventElapsedTime"         | "hipEventElapsedTime",          fn(to: *mut f32, start: RawEvent, end: RawEvent);
    event_destroy:       "cuEventDestroy_v2"          | "hipEventDestroy",              fn(event: RawEvent);
    alloc:               "cuMemAlloc_v2"              | "hipMalloc",                    fn(to: *mut u64, bytes: usize);
    free:                "cuMemFree_v2"               | "hipFree",                      fn(at: u64);
    host_alloc:          "cuMemHostAlloc"             | "hipHostMalloc",                fn(to: *mut *mut c_void, bytes: usize, flags: u32);
    host_free:           "cuMemFreeHost"              | "hipHostFree",                  fn(at: *mut c_void);
    host_register:       "cuMemHostRegister_v2"       | "hipHostRegister",              fn(at: *mut c_void, bytes: usize, flags: u32);
    host_unregister:     "cuMemHostUnregister"        | "hipHostUnregister",            fn(at: *mut c_void);
    host_pointer:        "cuMemHostGetDevicePointer_v2" | "hipHostGetDevicePointer",    fn(to: *mut u64, at: *mut c_void, flags: u32);
    managed_alloc:       "cuMemAllocManaged"          | "hipMallocManaged",             fn(to: *mut u64, bytes: usize, flags: u32);
    prefetch:            "cuMemPrefetchAsync"         | "hipMemPrefetchAsync",          fn(at: u64, bytes: usize, device: i32, stream: Option<RawStream>) in capture;
    advise:              "cuMemAdvise"                | "hipMemAdvise",                 fn(at: u64, bytes: usize, advice: i32, device: i32);
    pointer_attribute:   "cuPointerGetAttribute"      | "hipPointerGetAttribute",       fn(to: *mut c_void, attribute: i32, at: u64) in capture;
    pointer_attributes:  "cuPointerGetAttributes"     | "hipDrvPointerGetAttributes",   fn(count: u32, attributes: *const i32, to: *const *mut c_void, at: u64) in capture;
    ipc_get_memory:      "cuIpcGetMemHandle"          | "hipIpcGetMemHandle",           fn(to: *mut IpcBytes, at: u64);
    ipc_open_memory:     "cuIpcOpenMemHandle_v2"      | "",                             fn(to: *mut u64, handle: IpcBytes, flags: u32);
    ipc_open_memory_hip: ""                           | "hipIpcOpenMemHandle",          fn(to: *mut u64, handle: IpcBytes, flags: u32);
    ipc_close_memory:    "cuIpcCloseMemHandle"        | "hipIpcCloseMemHandle",         fn(at: u64);
    pool_create:         "cuMemPoolCreate"            | "hipMemPoolCreate",             fn(to: *mut Option<RawPool>, properties: *const PoolProps);
    pool_destroy:        "cuMemPoolDestroy"           | "hipMemPoolDestroy",            fn(pool: RawPool);
    pool_default:        "cuDeviceGetDefaultMemPool"  | "hipDeviceGetDefaultMemPool",   fn(to: *mut Option<RawPool>, device: i32);
    pool_set:            "cuMemPoolSetAttribute"      | "hipMemPoolSetAttribute",       fn(pool: RawPool, attribute: i32, from: *mut c_void);
    pool_access:         "cuMemPoolSetAccess"         | "hipMemPoolSetAccess",          fn(pool: RawPool, map: *const AccessDesc, count: usize);
    pool_rights:         "cuMemPoolGetAccess"         | "hipMemPoolGetAccess",          fn(to: *mut i32, pool: RawPool, location: *const Location);
    pool_alloc:          "cuMemAllocFromPoolAsync"    | "hipMallocFromPoolAsync",       fn(to: *mut u64, bytes: usize, pool: RawPool, stream: Option<RawStream>);
    free_async:          "cuMemFreeAsync"             | "hipFreeAsync",                 fn(at: u64, stream: Option<RawStream>);
    pool_export:         "cuMemPoolExportToShareableHandle" | "hipMemPoolExportToShareableHandle", fn(to: *mut c_void, pool: RawPool, kind: i32, flags: u64);
    pool_import:         "cuMemPoolImportFromShareableHandle" | "hipMemPoolImportFromShareableHandle", fn(to: *mut Option<RawPool>, handle: *mut c_void, kind: i32, flags: u64);
    pool_export_pointer: "cuMemPoolExportPointer"     | "hipMemPoolExportPointer",      fn(to: *mut IpcBytes, at: u64);
    pool_import_pointer: "cuMemPoolImportPointer"     | "hipMemPoolImportPointer",      fn(to: *mut u64, pool: RawPool, data: *mut IpcBytes);
    address_reserve:     "cuMemAddressReserve"        | "hipMemAddressReserve",         fn(to: *mut u64, bytes: usize, alignment: usize, at: u64, flags: u64);
    address_free:        "cuMemAddressFree"           | "hipMemAddressFree",            fn(at: u64, bytes: usize);
    physical_create:     "cuMemCreate"                | "hipMemCreate",                 fn(to: *mut u64, bytes: usize, properties: *const AllocationProp, flags: u64);
    physical_release:    "cuMemRelease"               | "hipMemRelease",                fn(memory: u64);
    physical_map:        "cuMemMap"                   | "hipMemMap",                    fn(at: u64, bytes: usize, offset: usize, memory: u64, flags: u64);
    physical_unmap:      "cuMemUnmap"                 | "hipMemUnmap",                  fn(at: u64, bytes: usize);
    set_access:          "cuMemSetAccess"             | "hipMemSetAccess",              fn(at: u64, bytes: usize, map: *const AccessDesc, count: usize);
    granularity:         "cuMemGetAllocationGranularity" | "hipMemGetAllocationGranularity", fn(to: *mut usize, properties: *const AllocationProp, kind: i32);
    physical_export:     "cuMemExportToShareableHandle" | "hipMemExportToShareableHandle", fn(to: *mut c_void, memory: u64, kind: i32, flags: u64);
    physical_import:     "cuMemImportFromShareableHandle" | "hipMemImportFromShareableHandle", fn(to: *mut u64, handle: *mut c_void, kind: i32);
    physical_retain:     "cuMemRetainAllocationHandle" | "hipMemRetainAllocationHandle", fn(to: *mut u64, at: *mut c_void);
    copy:                "cuMemcpyAsync"              | "",                             fn(to: u64, from: u64, bytes: usize, stream: Option<RawStream>) in capture;
    copy_kind:           ""                           | "hipMemcpyAsync",               fn(to: u64, from: u64, bytes: usize, kind: i32, stream: Option<RawStream>) in capture;
    copy_2d:             "cuMemcpy2DAsync_v2"         | "",                             fn(what: *const Copy2d, stream: Option<RawStream>) in capture;
    copy_3d:             "cuMemcpy3DAsync_v2"         | "",                             fn(what: *const Copy3d, stream: Option<RawStream>) in capture;
    // Takes the structure of `copy_3d`, with the contexts of both ends in the reserved fields.
    copy_3d_peer:        "cuMemcpy3DPeerAsync"        | "",                             fn(what: *const Copy3d, stream: Option<RawStream>) in capture;
    copy_peer:           "cuMemcpyPeerAsync"          | "",                             fn(to: u64, to_context: RawContext, from: u64, from_context: RawContext, bytes: usize, stream: Option<RawStream>) in capture;
    set_d8:              "cuMemsetD8Async"            | "hipMemsetD8Async",             fn(at: u64, value: u8, count: usize, stream: Option<RawStream>) in capture;
    set_d16:             "cuMemsetD16Async"           | "hipMemsetD16Async",            fn(at: u64, value: u16, count: usize, stream: Option<RawStream>) in capture;
    set_d32:             "cuMemsetD32Async"           | "hipMemsetD32Async",            fn(at: u64, value: u32, count: usize, stream: Option<RawStream>) in capture;
    set_2d_d8:           "cuMemsetD2D8Async"          | "hipMemsetD2D8Async",           fn(at: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Option<RawStream>) in capture;
    set_2d_d16:          "cuMemsetD2D16Async"         | "hipMemsetD2D16Async",          fn(at: u64, pitch: usize, value: u16, width: usize, height: usize, stream: Option<RawStream>) in capture;
    set_2d_d32:          "cuMemsetD2D32Async"         | "hipMemsetD2D32Async",          fn(at: u64, pitch: usize, value: u32, width: usize, height: usize, stream: Option<RawStream>) in capture;
    module_load:         "cuModuleLoadDataEx"         | "hipModuleLoadDataEx",          fn(to: *mut Option<RawModule>, image: *const c_void, count: u32, options: *mut i32, values: *mut *mut c_void);
    module_unload:       "cuModuleUnload"             | "hipModuleUnload",              fn(module: RawModule);
    module_function:     "cuModuleGetFunction"        | "hipModuleGetFunction",         fn(to: *mut Option<RawFunction>, module: RawModule, name: *const c_char);
    module_global:       "cuModuleGetGlobal_v2"       | "hipModuleGetGlobal",           fn(to: *mut u64, bytes: *mut usize, module: RawModule, name: *const c_char);
    module_count:        "cuModuleGetFunctionCount"   | "",                             fn(to: *mut u32, module: RawModule);
    module_functions:    "cuModuleEnumerateFunctions" | "",                             fn(to: *mut Option<RawFunction>, count: u32, module: RawModule);
    function_name:       "cuFuncGetName"              | "",                             fn(to: *mut *const c_char, function: RawFunction);
    link_create:         "cuLinkCreate_v2"            | "",                             fn(count: u32, options: *mut i32, values: *mut *mut c_void, to: *mut Option<RawLink>);
    link_add:            "cuLinkAddData_v2"           | "",                             fn(link: RawLink, kind: i32, data: *mut c_void, bytes: usize, name: *const c_char, count: u32, options: *mut i32, values: *mut *mut c_void);
    link_complete:       "cuLinkComplete"             | "",                             fn(link: RawLink, image: *mut *mut c_void, bytes: *mut usize);
    link_destroy:        "cuLinkDestroy"              | "",                             fn(link: RawLink);
    function_attribute:  "cuFuncGetAttribute"         | "hipFuncGetAttribute",          fn(to: *mut i32, attribute: i32, function: RawFunction);
    function_set:        "cuFuncSetAttribute"         | "",                             fn(function: RawFunction, attribute: i32, value: i32);
    function_cache:      "cuFuncSetCacheConfig"       | "",                             fn(function: RawFunction, config: i32);
    function_parameter:  "cuFuncGetParamInfo"         | "",                             fn(function: RawFunction, index: usize, offset: *mut usize, bytes: *mut usize);
    occupancy_groups:    "cuOccupancyMaxActiveBlocksPerMultiprocessor" | "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", fn(to: *mut i32, function: RawFunction, items: i32, shared: usize);
    occupancy_size:      "cuOccupancyMaxPotentialBlockSize" | "",                       fn(groups: *mut i32, items: *mut i32, function: RawFunction, shared_of: Option<unsafe extern "C" fn(i32) -> usize>, shared: usize, most: i32);
    launch:              "cuLaunchKernel"             | "hipModuleLaunchKernel",        fn(function: RawFunction, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Option<RawStream>, arguments: *mut *mut c_void, extra: *mut *mut c_void) in capture;
    launch_ex:           "cuLaunchKernelEx"           | "",                             fn(config: *const LaunchConfig, function: RawFunction, arguments: *mut *mut c_void, extra: *mut *mut c_void) in capture;
    array_create:        "cuArray3DCreate_v2"         | "",                             fn(to: *mut Option<RawArray>, what: *const ArrayDesc);
    array_describe:      "cuArray3DGetDescriptor_v2"  | "",                             fn(to: *mut ArrayDesc, array: RawArray);
    array_destroy:       "cuArrayDestroy"             | "hipArrayDestroy",              fn(array: RawArray);
    surface_create:      "cuSurfObjectCreate"         | "",                             fn(to: *mut u64, resource: *const ArrayResource);
    surface_destroy:     "cuSurfObjectDestroy"        | "",                             fn(surface: u64);
}

/// The two drivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Api {
    /// NVIDIA's.
    Cuda,
    /// AMD's.
    Hip,
}
/// What differs between the two drivers, beside the few functions of which only one has each.
pub trait Dialect: Statuses<Status = i32> + Copy + Default + Send + Sync + fmt::Debug {
    /// Which driver it is, for what only one of them has.
    const API: Api;
    /// The name of the platform, for messages and environment variables.
    const NAME: &'static str;
    /// File names of the driver library, newest version first.
    const LIBRARIES: &'static [&'static str];
    /// The names of the driver's functions.
    const SYMBOLS: &'static Symbols;
    /// The environment variable that selects the devices visible to a process.
    const VISIBLE: &'static str;
    /// The driver's functions; the library is loaded at first use. Without a library all functions are
    /// missing.
    fn driver() -> &'static Driver<Self>;
    /// The state that the process has once for this dialect.
    fn statics() -> &'static Statics<Self>;
}
/// The status "not ready".
pub const NOT_READY: i32 = 600;
/// The error for a failed call: name of the call, the driver's description, and the status.
fn failure<D: Dialect>(call: &'static str, status: i32) -> Error {
    let words = D::driver().words(status);
    let code = match status {
        OPERATING_SYSTEM => ur_hal::what_ran_out().unwrap_or(ErrorKind::DriverSpecific),
        _ => code::<D>(status),
    };
    let hint = if status == ILLEGAL_ADDRESS { FAULT } else { "" };
    Error::new(code, format!("{call}: {words} ({status}){hint}")).with_status(status)
}
impl<D: Dialect> Driver<D> {
    /// Whether the driver's library was found.
    pub fn is_there(&self) -> bool {
        self.library.is_some()
    }
    /// Whether copies between devices take the contexts of both ends. HIP has no such functions: it copies by
    /// addresses alone.
    pub fn has_peer_copies(&self) -> bool {
        self.copy_peer.is_some() && self.copy_3d_peer.is_some()
    }
    /// Sets this thread's stream capture mode and returns the previous one; `None` if the driver has no
    /// capture modes.
    fn exchange(&self, mode: i32) -> Option<i32> {
        let mut mode = mode;
        // SAFETY: `mode` is readable and writable.
        let outcome = unsafe { self.capture_mode(&raw mut mode) };
        (outcome.status() == Some(0)).then_some(mode)
    }
    /// The driver's description of a status.
    fn words(&self, status: i32) -> String {
        let mut text = std::ptr::null();
        // SAFETY: `text` is writable.
        let told = unsafe { self.error_string(status, &raw mut text) };
        if told.status() != Some(0) || text.is_null() {
            return "the driver has no words for it".into();
        }
        // SAFETY: the driver's strings are static and end with a NUL.
        unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

macro_rules! dialect {
    ($t:ident, $name:literal, $visible:literal, $libraries:expr, $symbols:expr) => {
        #[doc = concat!("The dialect of ", $name, ".")]
        #[derive(Clone, Copy, Default, Debug)]
        pub struct $t;
        impl Statuses for $t {
            type Status = i32;
            const SUCCESS: i32 = 0;
            /// The status "the driver has shut down".
            const ENDED: i32 = 4;
            /// So is a status that says that a capture forbids the query: the state is unknown then, and must not
            /// be taken for complete.
            fn is_pending(status: i32) -> bool {
                status == NOT_READY || is_of_capture(status)
            }
            fn failure(call: &'static str, status: i32) -> Error {
                failure::<Self>(call, status)
            }
            fn missing(call: &'static str) -> Error {
                let why = format!("this driver has no {call}: a newer one may");
                Error::new(ErrorKind::Unsupported, why)
            }
            fn report(error: &Error) {
                crate::notice::<Self>(Severity::Warning, error);
            }
        }
        impl Dialect for $t {
            const API: Api = Api::$t;
            const NAME: &'static str = $name;
            const VISIBLE: &'static str = $visible;
            const LIBRARIES: &'static [&'static str] = &$libraries;
            const SYMBOLS: &'static Symbols = &$symbols;
            fn driver() -> &'static Driver<Self> {
                static DRIVER: OnceLock<Driver<$t>> = OnceLock::new();
                DRIVER.get_or_init(|| {
                    // SAFETY: loading runs the initialisers of the driver's library, which loading this
                    // adapter implies.
                    let open = |name| unsafe { libloading::Library::new(name) }.ok();
                    Driver::bind(Self::LIBRARIES.iter().find_map(open))
                })
            }
            fn statics() -> &'static Statics<Self> {
                static STATICS: Statics<$t> = Statics::new(&super::tables::$t);
                &STATICS
            }
        }
    };
}
/// The status "an operating system call failed". The driver tells neither which call nor why.
const OPERATING_SYSTEM: i32 = 304;
/// The status "illegal memory access".
const ILLEGAL_ADDRESS: i32 = 700;
const FAULT: &str = ": a kernel used an address that its device does not reach, such as freed memory, or that of \
                     another device (copy it, or call urUsmP2PEnablePeerAccessExp where there is a link)";
/// The specification's error code for a status. Both drivers number them alike.
fn code<D: Dialect>(status: i32) -> ErrorKind {
    match status {
        // No compiler for PTX, PTX of a version that the driver does not support, or its compilation is switched off.
        221..=223 if D::API == Api::Cuda => ErrorKind::InvalidBinary,
        1 => ErrorKind::InvalidValue,
        2 => ErrorKind::OutOfDeviceMemory,
        3 | 4 => ErrorKind::Uninitialized, // 3: not initialized; 4: already shut down
        100 | 101 => ErrorKind::InvalidDevice,
        200 | 209 | 218 => ErrorKind::InvalidBinary,
        201 | 709 => ErrorKind::InvalidContext,
        // Peer access is not enabled or enabled already; memory is mapped or registered already; not
        // permitted.
        208 | 217 | 704 | 705 | 712 | 800 => ErrorKind::InvalidOperation,
        301 | 500 => ErrorKind::NotFound,
        400 | 713 => ErrorKind::InvalidValue,
        701 | 720 => ErrorKind::OutOfResources, // also more groups than can be resident in a cooperative launch
        801 => ErrorKind::Unsupported,
        n if is_of_capture(n) => ErrorKind::InvalidOperation, // a stream or an event is being captured
        // An NVLink error, a fault that the device has contained, a leak of tensor memory; MPS has failed or ended the client.
        220 | 226 | 721 | 806 | 810 if D::API == Api::Cuda => ErrorKind::DeviceLost,
        // These leave the context unusable: memory errors, faults, asserts, timeouts.
        214 | 700 | 702 | 710 | 714..=719 => ErrorKind::DeviceLost,
        _ => ErrorKind::DriverSpecific,
    }
}
dialect! { Cuda, "CUDA", "CUDA_VISIBLE_DEVICES", ["libcuda.so.1"], CUDA }
dialect! { Hip, "HIP", "ROCR_VISIBLE_DEVICES", ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"], HIP }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_refuses_for_other_reasons_is_never_called_lack_of_memory() {
        for (status, code) in [
            (2, ErrorKind::OutOfDeviceMemory),
            (208, ErrorKind::InvalidOperation),
            (220, ErrorKind::DeviceLost),
            (221, ErrorKind::InvalidBinary),
            (304, ErrorKind::DriverSpecific), // the test process is not out of descriptors
            (712, ErrorKind::InvalidOperation),
            (713, ErrorKind::InvalidValue),
            (800, ErrorKind::InvalidOperation),
            (900, ErrorKind::InvalidOperation),
            (908, ErrorKind::InvalidOperation),
        ] {
            let error = Cuda::failure("cuSomething", status);
            assert_eq!((error.kind(), error.status()), (code, Some(status)));
        }
    }
}
