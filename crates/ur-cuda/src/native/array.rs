//! Arrays: the driver's images, whose memory layout is opaque; the surfaces through which kernels access
//! them, and copies from and to them.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{
            Dialect, RawArray, RawContext,
            layout::{ArrayDesc, ArrayResource, Copy3d, CopyEnd},
        },
    },
    context::{Owned, Surface},
    stream::Stream,
};
use std::sync::OnceLock;
use ur_hal::{Result, made, told};
use ur_lock::get_or_try;

/// A flag of [`ArrayDesc`]: its depth counts layers.
pub const LAYERED: u32 = 1;
/// A flag of [`ArrayDesc`]: kernels access it through surfaces.
pub const SURFACES: u32 = 2;
/// An array of one device.
#[derive(Debug)]
pub struct Array<D: Dialect> {
    /// Created when a kernel first needs it.
    surface: OnceLock<Owned<Surface, D>>,
    array: Owned<RawArray, D>,
}
impl<D: Dialect> Array<D> {
    /// Creates an array.
    ///
    /// # Errors
    /// Returns the driver's error; `INVALID_VALUE` for sizes and formats that it does not support.
    pub fn new(device: &DriverDevice<D>, what: &ArrayDesc) -> Result<Self> {
        let _on = device.enter()?;
        // SAFETY: `to` is writable, `what` is initialized.
        let raw = made(|to| unsafe { D::driver().array_create(to, what) })?;
        Self::adopted(device, raw, true)
    }
    /// Wraps an existing array, which must outlive this; with `owned` it is destroyed with this.
    ///
    /// # Errors
    /// As for [`DriverDevice::context`](crate::device::DriverDevice::context).
    pub fn adopted(device: &DriverDevice<D>, raw: RawArray, owned: bool) -> Result<Self> {
        let array = Owned::of(raw, owned, device.context()?);
        Ok(Self { surface: OnceLock::new(), array })
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawArray {
        self.array.raw()
    }
    /// A position in it as one end of a copy: byte in the row, row, slice or layer.
    pub fn at(&self, position: [usize; 3]) -> CopyEnd {
        CopyEnd::array(self.raw(), position)
    }
    /// The context of its device.
    pub fn context(&self) -> RawContext {
        self.array.context()
    }
    /// Its size and format.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn describe(&self) -> Result<ArrayDesc> {
        let _on = self.array.enter()?;
        // SAFETY: `to` is writable; the driver checks a handle that the application passed.
        told(|to| unsafe { D::driver().array_describe(to, self.raw()) })
    }
    /// The surface object that is passed to kernels; created at first use.
    ///
    /// # Errors
    /// Returns the driver's error, also for an array that was created without surface support.
    pub fn surface(&self) -> Result<u64> {
        let create = || {
            let (_on, resource) = (self.array.enter()?, ArrayResource::of(self.raw()));
            // SAFETY: `to` is writable, and the array outlives it.
            let surface = told(|to| unsafe { D::driver().surface_create(to, &resource) })?;
            Ok(Owned::of(Surface(surface), true, self.context()))
        };
        get_or_try(&self.surface, create).map(|surface| surface.raw().0)
    }
}

impl<D: Dialect> Stream<D> {
    /// Copies bytes between two devices, given by their contexts, whether or not they can access each other's
    /// memory.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(in super::super) fn copy_peer(
        &self,
        (to, to_context): (u64, RawContext),
        (from, from_context): (u64, RawContext),
        bytes: usize,
    ) -> Result<()> {
        let driver = D::driver();
        // SAFETY: as for `copy`; primary contexts are never released.
        unsafe { driver.copy_peer(to, to_context, from, from_context, bytes, self.raw()) }.ok()
    }
    /// As [`Stream::copy_peer`], for a box.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(in super::super) fn copy_3d_peer(
        &self,
        what: &Copy3d,
        to: RawContext,
        from: RawContext,
    ) -> Result<()> {
        let within = |end, context: RawContext| CopyEnd { context: context.addr(), ..end };
        let what = Copy3d { from: within(what.from, from), to: within(what.to, to), ..*what };
        // SAFETY: as for `copy_peer`; the driver reads `what` before it returns.
        unsafe { D::driver().copy_3d_peer(&raw const what, self.raw()) }.ok()
    }
}
