//! Driver images, and copies of boxes of pixels.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{RawImage, driver},
    },
    context::{InContext, NativeContext, pointer},
    list::List,
};
use std::sync::Arc;
use ur_hal::{Result, made};
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

/// An image.
pub type NativeImage = InContext<RawImage>;
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
            flags: if wished.is_written { ZE_IMAGE_FLAG_KERNEL_WRITE } else { 0 },
            type_: wished.kind,
            format: wished.format,
            width: u64::from(width),
            height,
            depth,
            arraylevels: wished.layers,
            ..Default::default()
        };
        // SAFETY: the descriptor lives until it returns; `to` is writable.
        let made =
            made(|to| unsafe { driver().image_create(context.raw(), device.raw(), &desc, to) });
        made.map(|raw| Self::new(raw, Arc::clone(context)))
    }
    /// Appends a copy of pixels to memory, or from there. `[row, slice]` are pitches in bytes; 0 for contiguous memory.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy_memory(
        &self,
        list: &List<'_>,
        region: ze_image_region_t,
        (at, is_written): (usize, bool),
        [row, slice]: [u32; 2],
    ) -> Result<()> {
        let (image, at, region) = (self.raw(), pointer(at as u64), &raw const region);
        let is_tight = (row, slice) == (0, 0);
        list.put(|on, (signal, count, waits)| match (is_written, is_tight) {
            // SAFETY: the application guarantees that the memory is valid until the copy is complete; the
            // region and the events are read during the call.
            (true, true) => unsafe {
                driver().command_list_append_image_copy_to_memory(
                    on, at, image, region, signal, count, waits,
                )
            },
            // SAFETY: as above.
            (true, false) => unsafe {
                driver().command_list_append_image_copy_to_memory_ext(
                    on, at, image, region, row, slice, signal, count, waits,
                )
            },
            // SAFETY: as above.
            (false, true) => unsafe {
                driver().command_list_append_image_copy_from_memory(
                    on, image, at, region, signal, count, waits,
                )
            },
            // SAFETY: as above.
            (false, false) => unsafe {
                driver().command_list_append_image_copy_from_memory_ext(
                    on, image, at, region, row, slice, signal, count, waits,
                )
            },
        })
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
        let (to, from) = (self.raw(), from.raw());
        let (into, out) = (&raw const into, &raw const out);
        // SAFETY: both images live until the copy is complete, because their release is deferred; the regions
        // and the events are read during the call.
        list.put(|on, (signal, count, waits)| unsafe {
            driver().command_list_append_image_copy_region(
                on, to, from, into, out, signal, count, waits,
            )
        })
    }
}
/// Whether the driver's image copies take pitches.
pub fn has_pitches() -> bool {
    driver().has("command_list_append_image_copy_to_memory_ext")
        && driver().has("command_list_append_image_copy_from_memory_ext")
}
