//! The commands on images: reads, writes and copies of boxes of pixels. What C says of them is
//! checked here; where the pixels are is `image.rs`'s to say.
use super::{
    Event, Mem, Queue,
    enqueue::{Made, submit},
    enqueue_mem::overlapping,
    image::{self, region as region_of},
    memory::check_range,
    native::image::NativeImage,
};
use crate::memory::pictures::{OnHost, Part, on_host};
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
};
use ur_sys::{ur_command_t, ur_rect_offset_t, ur_rect_region_t};

/// Pixels of an image, and where C keeps such in memory of its own.
pub(super) struct Pixels<'call> {
    pub(super) image: Borrowed<'call, Mem>,
    pub(super) origin: ur_rect_offset_t,
    pub(super) region: ur_rect_region_t,
    /// 0: nothing is between the rows.
    pub(super) row_pitch: usize,
    /// 0: nothing is between the slices.
    pub(super) slice_pitch: usize,
    pub(super) host: UsmPtr,
}
impl Pixels<'_> {
    /// Which part of the image, and where in memory.
    ///
    /// # Errors
    /// `INVALID_SIZE`, `INVALID_MEM_OBJECT`
    fn places(&self) -> Result<(Part, OnHost)> {
        let image = self.image.image()?;
        let part = Part::new(self.origin, self.region)?;
        image.check(part)?;
        let pitches = [self.row_pitch, self.slice_pitch];
        let region = [part.region[0] * image.pixel(), part.region[1], part.region[2]];
        let (there, bytes) = on_host(image.is_1d_array(), self.host, pitches, region)?;
        check_range(self.host, bytes)?;
        Ok((part, there))
    }
}

/// The driver's image, for commands of the queue.
fn pixels<'m>(queue: &Queue, image: &'m Mem) -> Result<&'m NativeImage> {
    image.storage().pixels(queue.device())
}

/// `urEnqueueMemImageRead`
///
/// # Errors
/// As `submit`; `INVALID_SIZE`, `INVALID_MEM_OBJECT`
pub(super) fn mem_image_read(
    queue: Borrowed<'_, Queue>,
    blocking: bool,
    pixels: &Pixels<'_>,
    waits: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let ((part, there), image) = (pixels.places()?, pixels.image.image()?);
    let report = Report::of(blocking, want_event);
    submit(queue, ur_command_t::MEM_IMAGE_READ, waits, report, |list| {
        image::read(list, (image, self::pixels(&queue, &pixels.image)?), part, there)
    })
}
/// `urEnqueueMemImageWrite`
///
/// # Errors
/// As for `mem_image_read`.
pub(super) fn mem_image_write(
    queue: Borrowed<'_, Queue>,
    blocking: bool,
    pixels: &Pixels<'_>,
    waits: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let ((part, there), image) = (pixels.places()?, pixels.image.image()?);
    let report = Report::of(blocking, want_event);
    submit(queue, ur_command_t::MEM_IMAGE_WRITE, waits, report, |list| {
        image::write(list, (image, self::pixels(&queue, &pixels.image)?), part, there)
    })
}
/// `urEnqueueMemImageCopy`: of images with one format.
///
/// # Errors
/// As for `mem_image_read`; `UNSUPPORTED_IMAGE_FORMAT` for images of different formats,
/// `OVERLAPPING_REGIONS` for regions of one image that share pixels.
pub(super) fn mem_image_copy(
    queue: Borrowed<'_, Queue>,
    (from, to): (Borrowed<'_, Mem>, Borrowed<'_, Mem>),
    (from_origin, to_origin): (ur_rect_offset_t, ur_rect_offset_t),
    region: ur_rect_region_t,
    waits: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let (source, target) = (from.image()?, to.image()?);
    let (one, other) = (source.format(), target.format());
    if (one.channelOrder, one.channelType) != (other.channelOrder, other.channelType) {
        return Err(Error::new(
            ErrorCode::UnsupportedImageFormat,
            format!("pixels are copied as they are, from {one:?} to the same and not to {other:?}"),
        ));
    }
    let (here, there) = (Part::new(from_origin, region)?, Part::new(to_origin, region)?);
    source.check(here)?;
    target.check(there)?;
    if from.same(&to) && here.shares_pixels(there) {
        return Err(overlapping());
    }
    let report = Report::event(want_event);
    submit(queue, ur_command_t::MEM_IMAGE_COPY, waits, report, |list| {
        let (out, into) = (pixels(&queue, &from)?, pixels(&queue, &to)?);
        if source.is_1d_array() == target.is_1d_array() {
            return into.copy(list, region_of(there), out, region_of(here));
        }
        // Layers to one are rows to the other.
        let [width, rows, slices] = here.region;
        (0..slices).flat_map(|z| (0..rows).map(move |y| (y, z))).try_for_each(|(y, z)| {
            let row = |part: Part| {
                let origin = [part.origin[0], part.origin[1] + y, part.origin[2] + z];
                region_of(Part { origin, region: [width, 1, 1] })
            };
            into.copy(list, row(there), out, row(here))
        })
    })
}
