//! Kernels: their arguments, which the driver keeps from one launch to the next.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::{
    own::{Own, Tells, bytes, number, text},
    queue::Linked,
};
use crate::{OpenCl, cl::*, driver::*};
use std::{
    ffi::c_void,
    ptr::{from_ref, null, with_exposed_provenance},
    sync::{Arc, Mutex, MutexGuard, OnceLock},
};
use ur_hal::{Address, Argument, Error, ErrorKind, Geometry, Launch, Result};
use ur_lock::{Shared, locked};
use ur_mapping::PerProcess;

/// What a driver says of an argument. That another one is no sampler is said of the arguments, of which callers of a launch know.
fn of_argument(error: Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidSampler => error.with_kind(ErrorKind::InvalidArguments),
        _ => error,
    }
}
/// A kernel. Its arguments are set and taken along by a launch under one lock, which all have that name this kernel of the driver's.
#[derive(Debug)]
pub struct Kernel {
    raw: Own<RawKernel>,
    turn: Arc<Mutex<()>>,
    /// Which of its parameters are addresses, images or samplers, as far as the driver tells; asked once.
    objects: OnceLock<Vec<bool>>,
    /// What sets addresses, where that is an extension's.
    extensions: Arc<Extensions>,
}
impl Kernel {
    /// A kernel of a platform with these extensions.
    pub fn new(raw: Own<RawKernel>, extensions: &Arc<Extensions>) -> Self {
        static TURNS: PerProcess<Shared<RawKernel, Mutex<()>>> = PerProcess::new();
        let (turn, extensions) = (TURNS.get().of(raw.raw()), Arc::clone(extensions));
        Self { raw, turn, objects: OnceLock::new(), extensions }
    }
    /// The driver's name of it.
    pub fn raw(&self) -> RawKernel {
        self.raw.raw()
    }
    /// Says whether it reaches memory that no argument names.
    ///
    /// # Errors
    /// The driver's own.
    pub fn reach(&self, all: bool, name: cl_uint) -> Result<()> {
        let (value, raw) = (cl_uint::from(all), self.raw());
        let from = from_ref(&value).cast::<c_void>();
        let _turn = self.turn();
        // SAFETY: live, and nobody else sets anything of it now; one truth of OpenCL's.
        unsafe { self.extensions.set_kernel_exec_info(raw, name, size_of::<cl_uint>(), from) }.ok()
    }
    fn turn(&self) -> MutexGuard<'_, ()> {
        locked(&self.turn)
    }
    /// Whether the driver tells that a parameter is an address, an image or a sampler.
    fn takes_object(&self, index: u32) -> bool {
        let told = |index, name| {
            // SAFETY: live; `bytes` passes room for as much as it says.
            let told = bytes(|size, to, length| unsafe {
                driver().get_kernel_arg_info(self.raw(), index, name, size, to, length)
            });
            told.unwrap_or_default()
        };
        let is_object = |index| {
            let kind = number(&told(index, CL_KERNEL_ARG_ADDRESS_QUALIFIER)) as cl_uint;
            matches!(kind, CL_KERNEL_ARG_ADDRESS_GLOBAL | CL_KERNEL_ARG_ADDRESS_CONSTANT)
                || text(&told(index, CL_KERNEL_ARG_TYPE_NAME)) == "sampler_t"
        };
        let count = || self.raw().number(CL_KERNEL_NUM_ARGS).unwrap_or(0) as u32;
        let all = self.objects.get_or_init(|| (0..count()).map(is_object).collect());
        all.get(index as usize).copied().unwrap_or(false)
    }
    fn set(&self, index: u32, argument: &Argument<'_, OpenCl>) -> Result<()> {
        let (image, sampler);
        let (size, value): (usize, *const c_void) = match argument {
            // The driver would take it for an object's name: PoCL crashes over what is none.
            Argument::Value(bytes)
                if bytes.len() == size_of::<RawMem>() && self.takes_object(index) =>
            {
                let why = format!(
                    "argument {index} is a value, and the kernel takes an address, an image or a sampler"
                );
                return Err(Error::new(ErrorKind::InvalidArguments, why));
            }
            Argument::Value(bytes) => (bytes.len(), bytes.as_ptr().cast()),
            Argument::Local(bytes) => (*bytes, null()),
            Argument::Image(pixels, _) => {
                image = pixels.object.raw();
                (size_of::<RawMem>(), from_ref(&image).cast())
            }
            Argument::Sampler(of) => {
                sampler = of.raw();
                (size_of::<RawSampler>(), from_ref(&sampler).cast())
            }
            Argument::Address(at) => {
                let (raw, at) = (self.raw(), with_exposed_provenance(at.map_or(0, Address::get)));
                // SAFETY: live, under its lock; the kernel's author says what is done at the address.
                let set = unsafe { self.extensions.set_kernel_arg_pointer(raw, index, at) };
                return set.ok().map_err(of_argument);
            }
        };
        let raw = self.raw();
        // SAFETY: live, under its lock; as many bytes as are told, or none for local memory.
        unsafe { driver().set_kernel_arg(raw, index, size, value) }.ok().map_err(of_argument)
    }
    /// Sets all arguments and puts a launch into a queue.
    ///
    /// # Errors
    /// The driver's own.
    pub fn launch(
        &self,
        queue: RawQueue,
        launch: &Launch<'_, OpenCl>,
        linked: Linked<'_>,
    ) -> Result<()> {
        let Geometry { groups, local, offset, dimensions } = launch.geometry;
        let local = local.map(|n| n as usize);
        let global = [0, 1, 2].map(|d| groups[d] * local[d]);
        // What nobody sets needs no lock.
        let _turn = (!launch.arguments.is_empty()).then(|| self.turn());
        let mut each = (0..).zip(launch.arguments);
        each.try_for_each(|(index, argument)| self.set(index, argument))?;
        let raw = self.raw();
        let (offset, global, local) = (offset.as_ptr(), global.as_ptr(), local.as_ptr());
        let (waiting, waits, event) = linked.parts();
        // SAFETY: live objects; three sizes each; as many events as are told; the event's place is writable or null.
        unsafe {
            driver().enqueue_nd_range(
                queue, raw, dimensions, offset, global, local, waiting, waits, event,
            )
        }
        .ok()
    }
}
