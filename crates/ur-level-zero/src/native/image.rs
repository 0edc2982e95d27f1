//! Driver images, and copies of boxes of pixels.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{RawImage, driver},
    },
    context::NativeContext,
    fork::release,
    list::List,
    memory::pointer,
};
use std::{ptr, sync::Arc};
use ur_hal::Result;
use ze_sys::*;

/// The properties of an image to be created.
#[derive(Clone, Copy, Debug)]
pub struct Wished {
    /// `ZE_IMAGE_TYPE_*`
    pub kind: ze_image_type_t,
    /// The format of its pixels.
    pub format: ze_image_format_t,
    /// Pixels in each dimension; 1 for unused dimensions.
    pub sides: [u32; 3],
    /// The number of layers of an array; else 0.
    pub layers: u32,
    /// Whether kernels may write it.
    pub is_written: bool,
}

/// An image; destroyed on drop if owned.
#[derive(Debug)]
pub struct NativeImage {
    raw: RawImage,
    owned: bool,
    _context: Arc<NativeContext>,
}
impl NativeImage {
    /// Creates an image.
    ///
    /// # Errors
    /// Returns the driver's error, also for sizes and formats that the device does not support.
    pub fn create(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        wished: &Wished,
    ) -> Result<Self> {
        let [width, height, depth] = wished.sides;
        let desc = ze_image_desc_t {
            stype: ZE_STRUCTURE_TYPE_IMAGE_DESC,
            pNext: ptr::null(),
            flags: if wished.is_written { ZE_IMAGE_FLAG_KERNEL_WRITE } else { 0 },
            type_: wished.kind,
            format: wished.format,
            width: u64::from(width),
            height,
            depth,
            arraylevels: wished.layers,
            miplevels: 0,
        };
        let (here, mut raw) = (context.raw(), None);
        let to = &raw mut raw;
        // SAFETY: the descriptor lives until it returns; `raw` is writable.
        unsafe { driver().image_create(here, device.raw(), &desc, to) }.ok()?;
        let raw = RawImage::given(raw, "zeImageCreate")?;
        Ok(Self::adopted(context, raw, true))
    }
    /// Wraps an existing image; `owned`: it is destroyed on drop.
    pub fn adopted(context: &Arc<NativeContext>, raw: RawImage, owned: bool) -> Self {
        Self { raw, owned, _context: Arc::clone(context) }
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawImage {
        self.raw
    }
    /// Appends a copy of pixels to memory. `[row, slice]` are pitches in bytes; 0 for contiguous memory.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn read(
        &self,
        list: &List<'_>,
        region: ze_image_region_t,
        to: usize,
        [row, slice]: [u32; 2],
    ) -> Result<()> {
        let (on, to, ends, region) =
            (list.raw(), pointer(to as u64), list.ends(), &raw const region);
        let (signal, count, waits) = (ends.signal, ends.count(), ends.waits());
        match (row, slice) {
            // SAFETY: the application guarantees that the memory is valid until the copy is complete; the
            // region and the events are read during the call.
            (0, 0) => unsafe {
                driver().command_list_append_image_copy_to_memory(
                    on, to, self.raw, region, signal, count, waits,
                )
            },
            // SAFETY: as above.
            _ => unsafe {
                driver().command_list_append_image_copy_to_memory_ext(
                    on, to, self.raw, region, row, slice, signal, count, waits,
                )
            },
        }
        .ok()
    }
    /// Appends a copy of pixels from memory, with pitches as for [`Self::read`].
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn write(
        &self,
        list: &List<'_>,
        region: ze_image_region_t,
        from: usize,
        [row, slice]: [u32; 2],
    ) -> Result<()> {
        let (on, from, ends, region) =
            (list.raw(), pointer(from as u64), list.ends(), &raw const region);
        let (signal, count, waits) = (ends.signal, ends.count(), ends.waits());
        match (row, slice) {
            // SAFETY: as above.
            (0, 0) => unsafe {
                driver().command_list_append_image_copy_from_memory(
                    on, self.raw, from, region, signal, count, waits,
                )
            },
            // SAFETY: as above.
            _ => unsafe {
                driver().command_list_append_image_copy_from_memory_ext(
                    on, self.raw, from, region, row, slice, signal, count, waits,
                )
            },
        }
        .ok()
    }
    /// Appends a copy of pixels from another image.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy(
        &self,
        list: &List<'_>,
        into: ze_image_region_t,
        from: &Self,
        out: ze_image_region_t,
    ) -> Result<()> {
        let (on, ends) = (list.raw(), list.ends());
        let (signal, count, waits) = (ends.signal, ends.count(), ends.waits());
        let (into, out) = (&raw const into, &raw const out);
        // SAFETY: both images live until the copy is complete, because their release is deferred; the regions
        // and the events are read during the call.
        unsafe {
            driver().command_list_append_image_copy_region(
                on, self.raw, from.raw, into, out, signal, count, waits,
            )
        }
        .ok()
    }
}
/// Whether the driver's image copies take pitches.
pub fn has_pitches() -> bool {
    driver().has("command_list_append_image_copy_to_memory_ext")
        && driver().has("command_list_append_image_copy_from_memory_ext")
}
impl Drop for NativeImage {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: owned, and destroyed once; the owner guarantees that its commands are complete.
            release(|| unsafe { driver().image_destroy(self.raw) });
        }
    }
}
