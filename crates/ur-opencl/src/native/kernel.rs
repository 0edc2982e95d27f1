//! Kernels: their arguments, which the driver keeps from one launch to the next.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::{own::Own, queue::Linked};
use crate::{OpenCl, cl::*, driver::*};
use std::{
    ffi::c_void,
    ptr::{from_ref, null, with_exposed_provenance},
    sync::{Arc, Mutex, MutexGuard},
};
use ur_adapter::error::Result;
use ur_hal::{Address, Argument, Geometry, Launch};
use ur_lock::locked;

/// A kernel. Its arguments are set and taken along by a launch under one lock.
#[derive(Debug)]
pub struct Kernel {
    raw: Own<RawKernel>,
    turn: Mutex<()>,
    /// What sets addresses, where that is an extension's.
    extensions: Arc<Extensions>,
}
impl Kernel {
    /// A kernel of a platform with these extensions.
    pub fn new(raw: Own<RawKernel>, extensions: &Arc<Extensions>) -> Self {
        Self { raw, turn: Mutex::default(), extensions: Arc::clone(extensions) }
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
        unsafe { driver().set_kernel_exec_info(raw, name, size_of::<cl_uint>(), from) }.ok()
    }
    fn turn(&self) -> MutexGuard<'_, ()> {
        locked(&self.turn)
    }
    fn set(&self, index: u32, argument: &Argument<'_, OpenCl>) -> Result<()> {
        let (image, sampler);
        let (size, value): (usize, *const c_void) = match argument {
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
                return unsafe { self.extensions.set_kernel_arg_pointer(raw, index, at) }.ok();
            }
        };
        let raw = self.raw();
        // SAFETY: live, under its lock; as many bytes as are told, or none for local memory.
        unsafe { driver().set_kernel_arg(raw, index, size, value) }.ok()
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
