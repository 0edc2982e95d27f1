//! The functions of OpenCL, bound at run time by their names from the ICD loader, and those of extensions, which each
//! platform has its own of. What a call means and who owns what is `native/`'s.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::cl::*;
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    fmt,
    ptr::{NonNull, null_mut, with_exposed_provenance_mut},
    sync::{
        OnceLock,
        atomic::{
            AtomicI32, AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
};
use ur_hal::{Error, Result, Severity};

macro_rules! raws { ($($(#[$doc:meta])* $name:ident;)*) => { $(
    $(#[$doc])*
    #[repr(transparent)]
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub struct $name(NonNull<c_void>);
    // SAFETY: a name that the driver gave; OpenCL's objects may be used from any thread but for kernels' arguments, which
    // `native/kernel.rs` guards.
    unsafe impl Send for $name {}
    // SAFETY: as above.
    unsafe impl Sync for $name {}
    impl $name {
        /// The handle as a number, as native handles are given to C.
        pub fn addr(self) -> usize {
            self.0.as_ptr().expose_provenance()
        }
        /// `None` for 0.
        pub fn from_addr(addr: usize) -> Option<Self> {
            NonNull::new(with_exposed_provenance_mut(addr)).map(Self)
        }
    }
    impl From<NonNull<c_void>> for $name {
        fn from(raw: NonNull<c_void>) -> Self {
            Self(raw)
        }
    }
)* } }
raws! {
    /// `cl_platform_id`
    RawPlatform;
    /// `cl_device_id`
    RawDevice;
    /// `cl_context`
    RawContext;
    /// `cl_command_queue`
    RawQueue;
    /// `cl_mem`
    RawMem;
    /// `cl_sampler`
    RawSampler;
    /// `cl_program`
    RawProgram;
    /// `cl_kernel`
    RawKernel;
    /// `cl_event`
    RawEvent;
}

/// The call that a test has the driver refuse.
#[cfg(test)]
pub(super) mod refusal {
    use std::cell::Cell;
    thread_local! {
        /// How many more calls of this thread the driver takes before it refuses one; `None`: it takes all.
        pub static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }
    /// Whether it is this one.
    pub fn is_now() -> bool {
        let left = LEFT.get();
        LEFT.set(left.and_then(|left| left.checked_sub(1)));
        left == Some(0)
    }
}
/// What a driver call came to.
#[must_use]
#[derive(Clone, Copy)]
pub struct Outcome {
    call: &'static str,
    /// `None`: there is no such function.
    status: Option<cl_int>,
}
impl Outcome {
    /// Of a call that gives something also where it fails.
    pub fn of(call: &'static str, status: Option<cl_int>) -> Self {
        Self { call, status }
    }
    /// # Errors
    /// The kind of what the driver said, with the call's name and what it means.
    #[inline]
    pub fn ok(self) -> Result<()> {
        if self.status == Some(CL_SUCCESS) { Ok(()) } else { Err(self.failure()) }
    }
    #[cold]
    fn failure(self) -> Error {
        match self.status {
            Some(status) => super::error::failure(self.call, status),
            None => super::error::missing(self.call),
        }
    }
    /// What the driver said, untranslated; `None` where there is no such function.
    pub fn status(self) -> Option<cl_int> {
        self.status
    }
    /// For releases in destructors: a failure is logged, since nobody can be told.
    pub fn let_go(self) {
        if let Err(error) = self.ok() {
            super::log::notice(Severity::Warning, &error);
        }
    }
    /// What a call has given beside its status.
    ///
    /// # Errors
    /// As for [`ok`](Self::ok); `Unknown` where there is nothing all the same.
    pub fn given<T>(self, made: Option<T>) -> Result<T> {
        self.ok()?;
        made.ok_or_else(|| {
            super::error::broken(&format!("{} succeeded and gave nothing", self.call))
        })
    }
}
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.call, self.status)
    }
}

/// A function that the driver calls when an event is over: the event, its status, and a word.
pub type EventCallback = unsafe extern "C" fn(*mut c_void, cl_int, *mut c_void);
/// A function that the driver runs in a queue's order, on a copy of its arguments.
pub type NativeFunction = unsafe extern "C" fn(*mut c_void);
/// Three sizes.
type Sizes = *const usize;
/// As many events as are counted before.
type Events = *const RawEvent;
/// Where the event of a command is put; null where none is wanted.
type NewEvent = *mut Option<RawEvent>;

/// A symbol as a function.
///
/// # Safety
/// It is a function of that type.
unsafe fn bound<F>(symbol: Option<NonNull<c_void>>) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) };
    // SAFETY: as said above; both are of one size.
    symbol.map(|at| unsafe { std::mem::transmute_copy(&at) })
}
/// A version of OpenCL: ten times the first number, and the second.
pub type Version = u32;
/// The oldest version that a platform may be of: all functions of [`Functions`] are in it.
pub const OLDEST: Version = 12;
/// A table of functions, each with the version that it is `since`, where that is asked about, and with the name of another one that does the same where there is no such function: `status` are those that return one, `given` those that return something and put a status behind
/// their last argument, `plain` those that return neither.
macro_rules! functions {
    (
        $(#[$doc:meta])* $table:ident ($find:ident);
        status { $($name:ident: $symbol:literal $(since $version:literal)? $(or $second:literal since $later:literal)?, fn($($arg:ident: $ty:ty),*);)* }
        given { $($make:ident: $makes:literal $(since $age:literal)? $(or $or:literal since $or_age:literal)?, fn($($its:ident: $of:ty),*) -> $what:ty;)* }
        plain { $($other:ident: $others:literal $(since $plain_age:literal)?, fn($($own:ident: $is:ty),*) -> $back:ty;)* }
    ) => {
        $(#[$doc])*
        pub struct $table {
            $($name: Option<unsafe extern "C" fn($($ty),*) -> cl_int>,)*
            $($make: Option<unsafe extern "C" fn($($of,)* *mut cl_int) -> *mut c_void>,)*
            $($other: Option<unsafe extern "C" fn($($is),*) -> $back>,)*
        }
        impl $table {
            fn bind($find: impl Fn(&CStr, Option<Version>) -> Option<NonNull<c_void>>) -> Self {
                let name = |symbol: &str, since| $find(&std::ffi::CString::new(symbol).ok()?, since);
                // SAFETY: each symbol's prototype is the one in the table below.
                unsafe {
                    Self {
                        $($name: bound(name($symbol, None$(.or(Some($version)))?)$(.or_else(|| name($second, Some($later))))?),)*
                        $($make: bound(name($makes, None$(.or(Some($age)))?)$(.or_else(|| name($or, Some($or_age))))?),)*
                        $($other: bound(name($others, None$(.or(Some($plain_age)))?)),)*
                    }
                }
            }
            /// Whether there is the function of that row; nothing but a look where the row is a constant.
            #[allow(dead_code, reason = "of what every platform has nothing is asked")]
            #[inline(always)]
            pub fn has(&self, row: &str) -> bool {
                match row {
                    $(stringify!($name) => self.$name.is_some(),)*
                    $(stringify!($make) => self.$make.is_some(),)*
                    $(stringify!($other) => self.$other.is_some(),)*
                    _ => false,
                }
            }
            $(
                #[doc = concat!("`", $symbol, "`")]
                ///
                /// # Safety
                /// The driver's own conditions on its arguments.
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's function has")]
                #[inline]
                pub unsafe fn $name(&self, $($arg: $ty),*) -> Outcome {
                    let call = concat!($symbol $(, " or ", $second)?);
                    #[cfg(test)]
                    if refusal::is_now() {
                        return Outcome::of(call, Some(CL_OUT_OF_RESOURCES));
                    }
                    // SAFETY: forwarded to the caller.
                    let status = self.$name.map(|f| unsafe { f($($arg),*) });
                    Outcome { call, status }
                }
            )*
            $(
                #[doc = concat!("`", $makes, "`")]
                ///
                /// # Errors
                /// The driver's own.
                ///
                /// # Safety
                /// The driver's own conditions on its arguments.
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's function has")]
                pub unsafe fn $make(&self, $($its: $of),*) -> Result<$what> {
                    let mut status = CL_SUCCESS;
                    // SAFETY: forwarded to the caller; the status is writable.
                    let made = self.$make.map(|f| unsafe { f($($its,)* &raw mut status) });
                    let call = concat!($makes $(, " or ", $or)?);
                    let outcome = Outcome { call, status: made.map(|_| status) };
                    outcome.given(made.and_then(NonNull::new)).map(Into::into)
                }
            )*
            $(
                #[doc = concat!("`", $others, "`")]
                ///
                /// # Safety
                /// The driver's own conditions on its arguments.
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's function has")]
                pub unsafe fn $other(&self, $($own: $is),*) -> Option<$back> {
                    // SAFETY: forwarded to the caller.
                    self.$other.map(|f| unsafe { f($($own),*) })
                }
            )*
        }
        impl fmt::Debug for $table {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($table)).finish_non_exhaustive()
            }
        }
    };
}
functions! {
    /// The functions of OpenCL that every platform has; those that the loader lacks are `None` and answer so.
    Functions(find);
    status {
        get_platform_ids: "clGetPlatformIDs", fn(room: cl_uint, platforms: *mut Option<RawPlatform>, count: *mut cl_uint);
        get_platform_info: "clGetPlatformInfo", fn(platform: RawPlatform, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        get_device_ids: "clGetDeviceIDs", fn(platform: RawPlatform, kind: u64, room: cl_uint, devices: *mut Option<RawDevice>, count: *mut cl_uint);
        get_device_info: "clGetDeviceInfo", fn(device: RawDevice, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        create_sub_devices: "clCreateSubDevices", fn(device: RawDevice, rule: *const isize, room: cl_uint, parts: *mut Option<RawDevice>, count: *mut cl_uint);
        retain_device: "clRetainDevice", fn(device: RawDevice);
        release_device: "clReleaseDevice", fn(device: RawDevice);
        get_context_info: "clGetContextInfo", fn(context: RawContext, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        retain_context: "clRetainContext", fn(context: RawContext);
        release_context: "clReleaseContext", fn(context: RawContext);
        get_queue_info: "clGetCommandQueueInfo", fn(queue: RawQueue, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        retain_queue: "clRetainCommandQueue", fn(queue: RawQueue);
        release_queue: "clReleaseCommandQueue", fn(queue: RawQueue);
        flush: "clFlush", fn(queue: RawQueue);
        finish: "clFinish", fn(queue: RawQueue);
        get_mem_info: "clGetMemObjectInfo", fn(mem: RawMem, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        retain_mem: "clRetainMemObject", fn(mem: RawMem);
        release_mem: "clReleaseMemObject", fn(mem: RawMem);
        retain_sampler: "clRetainSampler", fn(sampler: RawSampler);
        release_sampler: "clReleaseSampler", fn(sampler: RawSampler);
        get_sampler_info: "clGetSamplerInfo", fn(sampler: RawSampler, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        retain_program: "clRetainProgram", fn(program: RawProgram);
        release_program: "clReleaseProgram", fn(program: RawProgram);
        build_program: "clBuildProgram", fn(program: RawProgram, count: cl_uint, devices: *const RawDevice, options: *const c_char, callback: *const c_void, data: *mut c_void);
        compile_program: "clCompileProgram", fn(program: RawProgram, count: cl_uint, devices: *const RawDevice, options: *const c_char, headers: cl_uint, inputs: *const RawProgram, names: *const *const c_char, callback: *const c_void, data: *mut c_void);
        get_program_info: "clGetProgramInfo", fn(program: RawProgram, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        get_program_build_info: "clGetProgramBuildInfo", fn(program: RawProgram, device: RawDevice, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        retain_kernel: "clRetainKernel", fn(kernel: RawKernel);
        release_kernel: "clReleaseKernel", fn(kernel: RawKernel);
        set_kernel_arg: "clSetKernelArg", fn(kernel: RawKernel, index: cl_uint, size: usize, value: *const c_void);
        get_kernel_arg_info: "clGetKernelArgInfo", fn(kernel: RawKernel, index: cl_uint, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        get_kernel_info: "clGetKernelInfo", fn(kernel: RawKernel, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        get_kernel_work_group_info: "clGetKernelWorkGroupInfo", fn(kernel: RawKernel, device: RawDevice, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        wait_for_events: "clWaitForEvents", fn(count: cl_uint, events: Events);
        get_event_info: "clGetEventInfo", fn(event: RawEvent, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        get_event_profiling_info: "clGetEventProfilingInfo", fn(event: RawEvent, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        retain_event: "clRetainEvent", fn(event: RawEvent);
        release_event: "clReleaseEvent", fn(event: RawEvent);
        set_user_event_status: "clSetUserEventStatus", fn(event: RawEvent, status: cl_int);
        set_event_callback: "clSetEventCallback", fn(event: RawEvent, status: cl_int, callback: EventCallback, word: *mut c_void);
        enqueue_marker: "clEnqueueMarkerWithWaitList", fn(queue: RawQueue, count: cl_uint, waits: Events, event: NewEvent);
        enqueue_barrier: "clEnqueueBarrierWithWaitList", fn(queue: RawQueue, count: cl_uint, waits: Events, event: NewEvent);
        enqueue_nd_range: "clEnqueueNDRangeKernel", fn(queue: RawQueue, kernel: RawKernel, dimensions: cl_uint, offset: Sizes, global: Sizes, local: Sizes, count: cl_uint, waits: Events, event: NewEvent);
        enqueue_native: "clEnqueueNativeKernel", fn(queue: RawQueue, function: NativeFunction, args: *mut c_void, bytes: usize, mems: cl_uint, list: *const RawMem, places: *const *const c_void, count: cl_uint, waits: Events, event: NewEvent);
        enqueue_read_image: "clEnqueueReadImage", fn(queue: RawQueue, image: RawMem, blocking: cl_uint, origin: Sizes, region: Sizes, row: usize, slice: usize, to: *mut c_void, count: cl_uint, waits: Events, event: NewEvent);
        enqueue_write_image: "clEnqueueWriteImage", fn(queue: RawQueue, image: RawMem, blocking: cl_uint, origin: Sizes, region: Sizes, row: usize, slice: usize, from: *mut c_void, count: cl_uint, waits: Events, event: NewEvent);
        enqueue_copy_image: "clEnqueueCopyImage", fn(queue: RawQueue, from: RawMem, to: RawMem, out: Sizes, into: Sizes, region: Sizes, count: cl_uint, waits: Events, event: NewEvent);
    }
    given {
        create_context: "clCreateContext", fn(properties: *const isize, count: cl_uint, devices: *const RawDevice, callback: *const c_void, data: *mut c_void) -> RawContext;
        create_queue_of_1_2: "clCreateCommandQueue", fn(context: RawContext, device: RawDevice, properties: u64) -> RawQueue;
        create_buffer: "clCreateBuffer", fn(context: RawContext, flags: u64, bytes: usize, host: *mut c_void) -> RawMem;
        create_sub_buffer: "clCreateSubBuffer", fn(buffer: RawMem, flags: u64, kind: cl_uint, region: *const [usize; 2]) -> RawMem;
        create_image: "clCreateImage", fn(context: RawContext, flags: u64, format: *const [cl_uint; 2], desc: *const cl_image_desc, host: *mut c_void) -> RawMem;
        create_sampler: "clCreateSampler", fn(context: RawContext, normalized: cl_uint, addressing: cl_uint, filter: cl_uint) -> RawSampler;
        create_program_with_source: "clCreateProgramWithSource", fn(context: RawContext, count: cl_uint, texts: *const *const c_char, lengths: Sizes) -> RawProgram;
        create_program_with_binary: "clCreateProgramWithBinary", fn(context: RawContext, count: cl_uint, devices: *const RawDevice, lengths: Sizes, binaries: *const *const u8, statuses: *mut cl_int) -> RawProgram;
        create_kernel: "clCreateKernel", fn(program: RawProgram, name: *const c_char) -> RawKernel;
        create_user_event: "clCreateUserEvent", fn(context: RawContext) -> RawEvent;
    }
    plain {
        link_program: "clLinkProgram", fn(context: RawContext, count: cl_uint, devices: *const RawDevice, options: *const c_char, inputs: cl_uint, programs: *const RawProgram, callback: *const c_void, data: *mut c_void, status: *mut cl_int) -> Option<RawProgram>;
        extension: "clGetExtensionFunctionAddressForPlatform", fn(platform: RawPlatform, name: *const c_char) -> *mut c_void;
    }
}
functions! {
    /// The functions that not every platform has: those of extensions, of which each has its own, and those of later versions of OpenCL. An
    /// ICD loader calls the latter also where the platform has none, at no address.
    Extensions(find);
    status {
        free: "clMemBlockingFreeINTEL", fn(context: RawContext, at: *mut c_void);
        get_mem_alloc_info: "clGetMemAllocInfoINTEL", fn(context: RawContext, at: *const c_void, name: cl_uint, size: usize, to: *mut c_void, length: *mut usize);
        set_kernel_arg_pointer: "clSetKernelArgMemPointerINTEL" or "clSetKernelArgSVMPointer" since 20, fn(kernel: RawKernel, index: cl_uint, at: *const c_void);
        enqueue_memcpy: "clEnqueueMemcpyINTEL" or "clEnqueueSVMMemcpy" since 20, fn(queue: RawQueue, blocking: cl_uint, to: *mut c_void, from: *const c_void, bytes: usize, count: cl_uint, waits: Events, event: NewEvent);
        enqueue_mem_fill: "clEnqueueMemFillINTEL" or "clEnqueueSVMMemFill" since 20, fn(queue: RawQueue, to: *mut c_void, pattern: *const c_void, length: usize, bytes: usize, count: cl_uint, waits: Events, event: NewEvent);
        get_variable: "clGetDeviceGlobalVariablePointerINTEL", fn(device: RawDevice, program: RawProgram, name: *const c_char, bytes: *mut usize, at: *mut *mut c_void);
        get_function: "clGetDeviceFunctionPointerINTEL", fn(device: RawDevice, program: RawProgram, name: *const c_char, at: *mut u64);
        get_device_and_host_timer: "clGetDeviceAndHostTimer" since 21, fn(device: RawDevice, device_time: *mut u64, host_time: *mut u64);
        set_program_specialization_constant: "clSetProgramSpecializationConstant" since 22, fn(program: RawProgram, number: cl_uint, size: usize, value: *const c_void);
        set_kernel_exec_info: "clSetKernelExecInfo" since 20, fn(kernel: RawKernel, name: cl_uint, size: usize, value: *const c_void);
        get_kernel_sub_group_info: "clGetKernelSubGroupInfo" since 21, fn(kernel: RawKernel, device: RawDevice, name: cl_uint, given: usize, from: *const c_void, size: usize, to: *mut c_void, length: *mut usize);
    }
    given {
        host_alloc: "clHostMemAllocINTEL", fn(context: RawContext, properties: *const u64, bytes: usize, align: cl_uint) -> NonNull<c_void>;
        device_alloc: "clDeviceMemAllocINTEL", fn(context: RawContext, device: RawDevice, properties: *const u64, bytes: usize, align: cl_uint) -> NonNull<c_void>;
        shared_alloc: "clSharedMemAllocINTEL", fn(context: RawContext, device: RawDevice, properties: *const u64, bytes: usize, align: cl_uint) -> NonNull<c_void>;
        create_program_with_il: "clCreateProgramWithILKHR" or "clCreateProgramWithIL" since 21, fn(context: RawContext, code: *const c_void, bytes: usize) -> RawProgram;
        create_queue: "clCreateCommandQueueWithProperties" since 20, fn(context: RawContext, device: RawDevice, properties: *const u64) -> RawQueue;
    }
    plain {
        svm_alloc: "clSVMAlloc" since 20, fn(context: RawContext, flags: u64, bytes: usize, align: cl_uint) -> *mut c_void;
        svm_free: "clSVMFree" since 20, fn(context: RawContext, at: *mut c_void) -> ();
    }
}

/// What the ICD loader is called, newest first.
const LIBRARIES: [&str; 2] = ["libOpenCL.so.1", "libOpenCL.so"];

/// The ICD loader, if there is one, its functions, and in which of a line of forked processes it was loaded.
struct Found {
    library: Option<libloading::Library>,
    functions: Functions,
    /// 0 once the process exits, which no process has.
    fork: AtomicU64,
    /// The thread that ends the process; 0 while there is none.
    leaver: AtomicI32,
}
impl Found {
    fn symbol_of(library: Option<&libloading::Library>, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a pointer to whatever is there, which is called by its prototype alone.
        let symbol = unsafe { library?.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
        NonNull::new(*symbol)
    }
    fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        Self::symbol_of(self.library.as_ref(), name)
    }
}
fn found() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| {
        // SAFETY: runs the library's initialisers; asking for this adapter is asking for that.
        let open = |name| unsafe { libloading::Library::new(name) }.ok();
        let library = LIBRARIES.into_iter().find_map(open);
        let functions = Functions::bind(|name, _| Found::symbol_of(library.as_ref(), name));
        let (fork, leaver) = (ur_mapping::fork_count().into(), AtomicI32::new(0));
        Found { library, functions, fork, leaver }
    })
}
/// The functions of OpenCL, whether there is an ICD loader or not.
pub fn driver() -> &'static Functions {
    &found().functions
}
/// Whether this thread cannot use the drivers: the process was forked after they were started, so that their threads are the parent's,
/// and their locks may be held for ever; or another thread ends the process.
pub fn is_unusable() -> bool {
    // Pairs with the Release in `leave`.
    found().fork.load(Acquire) != ur_mapping::fork_count() && !is_leaver()
}
/// Whether the process exits.
pub fn is_left() -> bool {
    found().fork.load(Acquire) == 0
}
/// Whether this thread ends the process. It may use the drivers until they end.
#[cold]
pub fn is_leaver() -> bool {
    found().leaver.load(Acquire) == rustix::thread::gettid().as_raw_pid()
}
/// This thread ends the process.
pub fn begin_to_leave() {
    found().leaver.store(rustix::thread::gettid().as_raw_pid(), Release);
}
/// Has other threads use the drivers no more.
pub fn leave() {
    found().fork.store(0, Release);
}
/// A function that is called when the process exits, with its exit status.
pub type AtExit = extern "C" fn(c_int, *mut c_void);
/// Has a function called when the process exits, before the libraries that were loaded until now end. This library must not be
/// unloaded from then on: it is linked so.
pub fn at_exit(call: AtExit) {
    // SAFETY: the C library's function, by its prototype.
    unsafe extern "C" {
        fn on_exit(call: AtExit, word: *mut c_void) -> c_int;
    }
    // SAFETY: the function is there as long as the process is.
    let _full = unsafe { on_exit(call, null_mut()) }; // without memory for that, the exit is as it would be without it
}
/// With which status the process exits, once the drivers must not see their own end: [`NOT_EXITING`] until then.
static STATUS: AtomicI32 = AtomicI32::new(NOT_EXITING);
/// No exit status, of which the system keeps eight bits.
const NOT_EXITING: i32 = i32::MIN;
/// Has the process end without the ends of the libraries that were loaded after this one, the drivers among them. All functions
/// that are called at exit have been called then, and what C's streams hold is written.
pub fn skip_ends(status: c_int) {
    STATUS.store(status & 0xff, Release);
}
/// The end of this library. Libraries end in the order in which they were loaded, after all functions that are called at exit.
extern "C" fn end() {
    let status = STATUS.load(Acquire);
    if status != NOT_EXITING {
        // SAFETY: within an exit the C library goes on with what is left of it: it writes out its streams and ends the process.
        unsafe { libc::exit(status) };
    }
}
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
/// Whether there is an ICD loader.
pub fn is_there() -> bool {
    found().library.is_some()
}
impl Extensions {
    /// Those of a platform of this version.
    pub fn of(platform: RawPlatform, version: Version) -> Self {
        Self::bind(|name, since| match since {
            Some(since) if since > version => None,
            Some(_) => found().symbol(name),
            None => {
                // SAFETY: a live platform, and a name that ends with a NUL.
                let own = unsafe { driver().extension(platform, name.as_ptr()) };
                own.and_then(NonNull::new)
            }
        })
    }
}
