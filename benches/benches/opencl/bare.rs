//! The driver itself, called as a C program calls it: the yardstick.
use super::{
    Result, nothing,
    shared::{ADD, ITEMS},
};
use libloading::os::unix::Library;
use std::{
    ffi::{CStr, c_char, c_void},
    ptr::{null, null_mut},
};

type Handle = *mut c_void;
type Enqueued = (u32, *const Handle, *mut Handle);

/// Finds a function of the ICD loader and calls it.
macro_rules! cl {
    ($bare:expr, $name:literal($($argument:expr => $of:ty),* $(,)?) -> $back:ty) => {{
        let found = unsafe { $bare.get::<unsafe extern "C" fn($($of),*) -> $back>($name)? };
        unsafe { found($($argument),*) }
    }};
}
fn judge(what: &str, status: i32) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(format!("{what}: {status}").into()) }
}
fn made(what: &str, object: Handle, status: i32) -> Result<Handle> {
    judge(what, status)?;
    if object.is_null() { Err(format!("{what} gave nothing").into()) } else { Ok(object) }
}

type Launch = unsafe extern "C" fn(
    Handle,
    Handle,
    u32,
    *const usize,
    *const usize,
    *const usize,
    u32,
    *const Handle,
    *mut Handle,
) -> i32;
type Copy = unsafe extern "C" fn(
    Handle,
    u32,
    *mut c_void,
    *const c_void,
    usize,
    u32,
    *const Handle,
    *mut Handle,
) -> i32;
type Argument = unsafe extern "C" fn(Handle, u32, *const c_void) -> i32;
type Alloc = unsafe extern "C" fn(Handle, Handle, *const u64, usize, u32, *mut i32) -> Handle;

/// The first device of the first platform, with an in-order queue and a kernel.
pub struct Bare {
    queue: Handle,
    nothing: Handle,
    add: Handle,
    host: *mut c_void,
    memory: *mut c_void,
    context: Handle,
    device: Handle,
    launch: Launch,
    copy: Copy,
    alloc: Alloc,
    argument: Argument,
    flush: unsafe extern "C" fn(Handle) -> i32,
    finish: unsafe extern "C" fn(Handle) -> i32,
    wait: unsafe extern "C" fn(u32, *const Handle) -> i32,
    release: unsafe extern "C" fn(Handle) -> i32,
}
impl Bare {
    pub fn start() -> Result<Self> {
        let cl: &'static Library = Box::leak(Box::new(unsafe { Library::new("libOpenCL.so.1")? }));
        let (mut platform, mut device, mut status) = (null_mut(), null_mut(), 0);
        type Out = *mut Handle;
        let got = cl!(cl, b"clGetPlatformIDs\0"(1 => u32, &raw mut platform => Out, null_mut() => *mut u32) -> i32);
        judge("clGetPlatformIDs", got)?;
        let got = cl!(cl, b"clGetDeviceIDs\0"(platform => Handle, u64::from(u32::MAX) => u64, 1 => u32, &raw mut device => Out, null_mut() => *mut u32) -> i32);
        judge("clGetDeviceIDs", got)?;
        let context = cl!(cl, b"clCreateContext\0"(null() => *const isize, 1 => u32, &raw const device => *const Handle, null() => *const c_void, null_mut() => Handle, &raw mut status => *mut i32) -> Handle);
        let context = made("clCreateContext", context, status)?;
        let queue = cl!(cl, b"clCreateCommandQueueWithProperties\0"(context => Handle, device => Handle, null() => *const u64, &raw mut status => *mut i32) -> Handle);
        let queue = made("clCreateCommandQueueWithProperties", queue, status)?;
        let code = nothing();
        let program = cl!(cl, b"clCreateProgramWithIL\0"(context => Handle, code.as_ptr().cast() => *const c_void, size_of_val(code.as_slice()) => usize, &raw mut status => *mut i32) -> Handle);
        let program = made("clCreateProgramWithIL", program, status)?;
        let kernel = |program: Handle, name: &CStr| -> Result<Handle> {
            let mut status = 0;
            let got = cl!(cl, b"clBuildProgram\0"(program => Handle, 1 => u32, &raw const device => *const Handle, null() => *const c_char, null() => *const c_void, null_mut() => Handle) -> i32);
            judge("clBuildProgram", got)?;
            let kernel = cl!(cl, b"clCreateKernel\0"(program => Handle, name.as_ptr() => *const c_char, &raw mut status => *mut i32) -> Handle);
            made("clCreateKernel", kernel, status)
        };
        let nothing = kernel(program, c"nothing")?;
        let (text, length) = (ADD.as_ptr().cast::<c_char>(), ADD.len());
        let program = cl!(cl, b"clCreateProgramWithSource\0"(context => Handle, 1 => u32, &raw const text => *const *const c_char, &raw const length => *const usize, &raw mut status => *mut i32) -> Handle);
        let add = kernel(made("clCreateProgramWithSource", program, status)?, c"add")?;
        let extension = |name: &CStr| -> Result<Handle> {
            let at = cl!(cl, b"clGetExtensionFunctionAddressForPlatform\0"(platform => Handle, name.as_ptr() => *const c_char) -> Handle);
            if at.is_null() { Err(format!("there is no {name:?}").into()) } else { Ok(at) }
        };
        let mut bare = Self {
            queue,
            nothing,
            add,
            host: null_mut(),
            memory: null_mut(),
            context,
            device,
            launch: unsafe { *cl.get(b"clEnqueueNDRangeKernel\0")? },
            copy: unsafe {
                std::mem::transmute::<Handle, Copy>(extension(c"clEnqueueMemcpyINTEL")?)
            },
            alloc: unsafe {
                std::mem::transmute::<Handle, Alloc>(extension(c"clDeviceMemAllocINTEL")?)
            },
            argument: unsafe {
                std::mem::transmute::<Handle, Argument>(extension(
                    c"clSetKernelArgMemPointerINTEL",
                )?)
            },
            flush: unsafe { *cl.get(b"clFlush\0")? },
            finish: unsafe { *cl.get(b"clFinish\0")? },
            wait: unsafe { *cl.get(b"clWaitForEvents\0")? },
            release: unsafe { *cl.get(b"clReleaseEvent\0")? },
        };
        (bare.host, bare.memory) = (bare.allocate(4096)?, bare.allocate(4096)?);
        Ok(bare)
    }
    fn allocate(&self, bytes: usize) -> Result<*mut c_void> {
        let mut status = 0;
        let at =
            unsafe { (self.alloc)(self.context, self.device, null(), bytes, 64, &raw mut status) };
        made("clDeviceMemAllocINTEL", at, status)
    }
    fn waited(&self, put: impl FnOnce(Enqueued) -> i32) -> Result<()> {
        let mut event = null_mut();
        judge("a command", put((0, null(), &raw mut event)))?;
        judge("clWaitForEvents", unsafe { (self.wait)(1, &raw const event) })?;
        judge("clReleaseEvent", unsafe { (self.release)(event) })
    }
    fn put(&self, (count, list, event): Enqueued) -> i32 {
        let one = [1_usize];
        let one = one.as_ptr();
        unsafe { (self.launch)(self.queue, self.nothing, 1, null(), one, one, count, list, event) }
    }
    /// A launch with an event, which is waited for.
    pub fn launch(&self) -> Result<()> {
        self.waited(|how| self.put(how))
    }
    /// A launch without an event, sent off.
    pub fn launch_only(&self) -> Result<()> {
        judge("clEnqueueNDRangeKernel", self.put((0, null(), null_mut())))?;
        judge("clFlush", unsafe { (self.flush)(self.queue) })
    }
    /// Waits for all.
    pub fn finish(&self) -> Result<()> {
        judge("clFinish", unsafe { (self.finish)(self.queue) })
    }
    /// A copy of 1 KiB with an event, which is waited for.
    pub fn copy(&self) -> Result<()> {
        self.waited(|(count, list, event)| unsafe {
            (self.copy)(self.queue, 0, self.memory, self.host, 1024, count, list, event)
        })
    }
    /// Sets the driver's own memory as what the kernel `add` writes and reads, so many bytes each. Both were written before: what was not
    /// has no pages of its own.
    pub fn own_memory(&self, bytes: usize) -> Result<()> {
        let memory = [self.allocate(bytes)?, self.allocate(bytes)?];
        for order in [[1, 0], [0, 1]] {
            for (index, which) in (0..).zip(order) {
                let set = unsafe { (self.argument)(self.add, index, memory[which]) };
                judge("clSetKernelArgMemPointerINTEL", set)?;
            }
            self.add()?;
        }
        Ok(())
    }
    /// A launch of that kernel, waited for.
    pub fn add(&self) -> Result<()> {
        let (items, group) = ITEMS;
        self.waited(|(count, list, event)| unsafe {
            (self.launch)(self.queue, self.add, 1, null(), &items, &group, count, list, event)
        })
    }
}
