//! Arrays: the driver's images, in an order of bytes of its own; the surfaces through which kernels
//! see them, and the copies that reach them.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::{DriverDevice, check_fork},
        driver::{
            Dialect, RawArray, RawContext,
            layout::{ArrayDesc, ArrayResource, Copy3d},
        },
    },
    context::Entered,
    stream::Stream,
};
use std::{marker::PhantomData, sync::OnceLock};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    log,
};

/// In [`ArrayDesc`]'s flags: its depth are layers.
pub const LAYERED: u32 = 1;
/// ... kernels read and write it through surfaces.
pub const SURFACES: u32 = 2;
/// Memory types of [`Copy3d`].
const ARRAY: i32 = 3;
const BY_ADDRESS: i32 = 4;

/// An array of one device.
#[derive(Debug)]
pub struct Array<D: Dialect> {
    raw: RawArray,
    is_ours: bool,
    context: RawContext,
    /// Made when a kernel first needs it.
    surface: OnceLock<u64>,
    _dialect: PhantomData<fn() -> D>,
}
impl<D: Dialect> Array<D> {
    /// A new one.
    ///
    /// # Errors
    /// The driver's own: `INVALID_VALUE` for sizes and formats that it has not.
    pub fn new(device: &DriverDevice<D>, what: &ArrayDesc) -> Result<Self> {
        let _on = device.enter()?;
        let mut raw = None;
        // SAFETY: `raw` is writable, `what` is whole.
        unsafe { D::driver().array_create(&raw mut raw, what) }.ok::<D>()?;
        let raw = raw.ok_or_else(|| Error::new(ErrorCode::Unknown, "the driver gave no array"))?;
        Self::adopted(device, raw, true)
    }
    /// Somebody else's, who keeps it for as long as this lives; destroyed with this if `owned`.
    ///
    /// # Errors
    /// As for [`DriverDevice::context`](crate::device::DriverDevice::context).
    pub fn adopted(device: &DriverDevice<D>, raw: RawArray, owned: bool) -> Result<Self> {
        let (context, surface) = (device.context()?, OnceLock::new());
        Ok(Self { raw, is_ours: owned, context, surface, _dialect: PhantomData })
    }
    /// The driver's name of it.
    pub fn raw(&self) -> RawArray {
        self.raw
    }
    /// The context of its device.
    pub fn context(&self) -> RawContext {
        self.context
    }
    /// What it is.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn describe(&self) -> Result<ArrayDesc> {
        let _on = Entered::<D>::enter(self.context)?;
        let mut what = ArrayDesc::default();
        // SAFETY: `what` is writable; the driver judges an array that is not ours.
        unsafe { D::driver().array_describe(&raw mut what, self.raw) }.ok::<D>()?;
        Ok(what)
    }
    /// What a kernel is given of it.
    ///
    /// # Errors
    /// The driver's own: an array that was made without surfaces.
    pub fn surface(&self) -> Result<u64> {
        if let Some(surface) = self.surface.get() {
            return Ok(*surface);
        }
        let _on = Entered::<D>::enter(self.context)?;
        let (resource, mut surface) = (ArrayResource::of(self.raw), 0);
        // SAFETY: `surface` is writable, and the array outlives it.
        unsafe { D::driver().surface_create(&raw mut surface, &raw const resource) }.ok::<D>()?;
        if self.surface.set(surface).is_err() {
            destroy_surface::<D>(surface); // somebody was faster
        }
        Ok(*self.surface.get().expect("it was just set"))
    }
}
fn destroy_surface<D: Dialect>(surface: u64) {
    // SAFETY: ours, and no command uses it any more: the owner's promise.
    let gone = unsafe { D::driver().surface_destroy(surface) }.released::<D>();
    gone.unwrap_or_else(|error| log::say(D::BACKEND, ur_sys::ur_logger_level_t::WARN, &error));
}
impl<D: Dialect> Drop for Array<D> {
    fn drop(&mut self) {
        if check_fork::<D>().is_err() {
            return;
        }
        let _on = match Entered::<D>::enter(self.context) {
            Ok(on) => on,
            Err(error) => return log::say(D::BACKEND, ur_sys::ur_logger_level_t::WARN, &error),
        };
        if let Some(surface) = self.surface.take() {
            destroy_surface::<D>(surface);
        }
        if self.is_ours {
            // SAFETY: as for its surface.
            let gone = unsafe { D::driver().array_destroy(self.raw) }.released::<D>();
            gone.unwrap_or_else(|error| {
                log::say(D::BACKEND, ur_sys::ur_logger_level_t::WARN, &error)
            });
        }
    }
}

/// One end of a copy of a box.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// In memory: its first byte, bytes from row to row, rows from slice to slice.
    Memory(u64, usize, usize),
    /// In an array: bytes into a row, row, slice or layer.
    Array(RawArray, [usize; 3]),
}
impl End {
    /// In an array, from there on.
    pub fn of<D: Dialect>(array: &Array<D>, at: [usize; 3]) -> Self {
        Self::Array(array.raw, at)
    }
}
/// A copy of `width` bytes by rows by slices.
fn copy_of(to: End, from: End, [width, height, depth]: [usize; 3]) -> Copy3d {
    let mut copy = Copy3d { width, height, depth, ..Copy3d::default() };
    match from {
        End::Memory(at, pitch, rows) => {
            (copy.src_type, copy.src_device) = (BY_ADDRESS, at);
            (copy.src_pitch, copy.src_height) = (pitch, rows);
        }
        End::Array(array, [x, y, z]) => {
            (copy.src_type, copy.src_array) = (ARRAY, Some(array));
            (copy.src_x, copy.src_y, copy.src_z) = (x, y, z);
        }
    }
    match to {
        End::Memory(at, pitch, rows) => {
            (copy.dst_type, copy.dst_device) = (BY_ADDRESS, at);
            (copy.dst_pitch, copy.dst_height) = (pitch, rows);
        }
        End::Array(array, [x, y, z]) => {
            (copy.dst_type, copy.dst_array) = (ARRAY, Some(array));
            (copy.dst_x, copy.dst_y, copy.dst_z) = (x, y, z);
        }
    }
    copy
}
impl<D: Dialect> Stream<D> {
    /// Copies a box of `width` bytes by rows by slices from one end to the other.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy_box(&self, to: End, from: End, region: [usize; 3]) -> Result<()> {
        self.copy_3d(&copy_of(to, from, region))
    }
    /// Copies bytes between two devices, told by contexts, be the one within the other's reach or not.
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
        unsafe { driver.copy_peer(to, to_context, from, from_context, bytes, self.raw()) }.ok::<D>()
    }
    /// The same for a box.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(in super::super) fn copy_3d_peer(
        &self,
        what: &Copy3d,
        to: RawContext,
        from: RawContext,
    ) -> Result<()> {
        let what = Copy3d { reserved0: from.addr(), reserved1: to.addr(), ..*what };
        // SAFETY: as for `copy_peer`; the driver reads `what` before it returns.
        unsafe { D::driver().copy_3d_peer(&raw const what, self.raw()) }.ok::<D>()
    }
    /// Copies all of an array, as large as `region`, to that of another device.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy_array(&self, to: &Array<D>, from: &Array<D>, region: [usize; 3]) -> Result<()> {
        let copy = copy_of(End::of(to, [0; 3]), End::of(from, [0; 3]), region);
        self.copy_3d_peer(&copy, to.context, from.context)
    }
}
