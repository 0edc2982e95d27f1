//! The commands on images: reads, writes and copies of boxes of pixels. What C says of them is
//! checked here; where the pixels are is `image.rs`'s to say.
use super::{
    Event, Mem, Queue,
    driver::Dialect,
    enqueue_mem::overlapping,
    image,
    memory::check_range,
    native::{array::Array, stream::Stream},
    storage::Found,
    submission::{Made, submit},
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
pub(super) struct Pixels<'call, D: Dialect> {
    pub(super) image: Borrowed<'call, Mem<D>>,
    pub(super) origin: ur_rect_offset_t,
    pub(super) region: ur_rect_region_t,
    /// 0: nothing is between the rows.
    pub(super) row_pitch: usize,
    /// 0: nothing is between the slices.
    pub(super) slice_pitch: usize,
    pub(super) host: UsmPtr,
}
impl<D: Dialect> Pixels<'_, D> {
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
        check_range::<D>(self.host, bytes)?;
        Ok((part, there))
    }
}

/// The array of an image on the queue's device, up to date in `stream`.
fn array<'m, D: Dialect>(
    queue: &Queue<D>,
    stream: &Stream<D>,
    image: &'m Mem<D>,
    writes: bool,
) -> Result<&'m Array<D>> {
    match image.storage().at(queue.device(), stream, writes)? {
        Found::Array(array) => Ok(array),
        Found::At(_) => Err(ErrorCode::InvalidMemObject.into()), // no image has an address
    }
}

/// `urEnqueueMemImageRead`
///
/// # Errors
/// As `submit`; `INVALID_SIZE`, `INVALID_MEM_OBJECT`
pub(super) fn mem_image_read<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    blocking: bool,
    pixels: &Pixels<'_, D>,
    waits: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    let ((part, there), image) = (pixels.places()?, pixels.image.image()?);
    let report = Report::of(blocking, want_event);
    submit(queue, ur_command_t::MEM_IMAGE_READ, waits, report, |stream| {
        let array = array(&queue, stream, &pixels.image, false)?;
        image::read(stream, (image, array), part, there)
    })
}
/// `urEnqueueMemImageWrite`
///
/// # Errors
/// As for `mem_image_read`.
pub(super) fn mem_image_write<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    blocking: bool,
    pixels: &Pixels<'_, D>,
    waits: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    let ((part, there), image) = (pixels.places()?, pixels.image.image()?);
    let report = Report::of(blocking, want_event);
    submit(queue, ur_command_t::MEM_IMAGE_WRITE, waits, report, |stream| {
        let array = array(&queue, stream, &pixels.image, true)?;
        image::write(stream, (image, array), part, there)
    })
}
/// `urEnqueueMemImageCopy`: of images with one format.
///
/// # Errors
/// As for `mem_image_read`; `UNSUPPORTED_IMAGE_FORMAT` for images of different formats,
/// `OVERLAPPING_REGIONS` for regions of one image that share pixels.
pub(super) fn mem_image_copy<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    (from, to): (Borrowed<'_, Mem<D>>, Borrowed<'_, Mem<D>>),
    (from_origin, to_origin): (ur_rect_offset_t, ur_rect_offset_t),
    region: ur_rect_region_t,
    waits: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
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
    submit(queue, ur_command_t::MEM_IMAGE_COPY, waits, report, |stream| {
        let out = array(&queue, stream, &from, false)?;
        let into = array(&queue, stream, &to, true)?;
        let (from, to) = ((source, out, here.origin), (target, into, there.origin));
        image::copy(stream, from, to, here.region)
    })
}
