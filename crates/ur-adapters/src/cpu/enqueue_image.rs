//! The commands on images: reads, writes and copies of boxes of pixels. What C says of them is
//! checked here; where the pixels are is `image.rs`'s to say, when they move the engine's.
use super::{
    Event, Mem, Queue,
    engine::{Submission, Work},
    enqueue::{Made, check_range, enqueue},
    enqueue_mem::{box_work, keeping, overlapping},
    image::place,
    mem::Placed,
    native::Planes,
};
use crate::memory::pictures::{Part, on_host};
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
    /// Where they are in the image, where in memory, and the region in bytes.
    ///
    /// # Errors
    /// `INVALID_SIZE`, `INVALID_MEM_OBJECT`
    fn places(&self) -> Result<(Planes, Planes, [usize; 3])> {
        let image = self.image.image()?;
        let part = Part::new(self.origin, self.region)?;
        let inside = place(image, self.image.address(), part)?;
        let bytes = [part.region[0] * image.pixel(), part.region[1], part.region[2]];
        let pitches = [self.row_pitch, self.slice_pitch];
        let (there, length) = on_host(image.is_1d_array(), self.host, pitches, bytes)?;
        check_range(self.host, length)?;
        let [row, slice] = there.pitches;
        let pitch = if image.is_1d_array() { slice } else { row };
        let outside = Planes { base: self.host.into(), pitch, slice };
        Ok((inside, outside, bytes))
    }
}

/// `urEnqueueMemImageRead`
///
/// # Errors
/// As `enqueue`; `INVALID_SIZE`, `INVALID_MEM_OBJECT`
pub(super) fn read(
    queue: Borrowed<'_, Queue>,
    blocking: bool,
    pixels: &Pixels<'_>,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let (from, to, bytes) = pixels.places()?;
    let work = keeping(box_work(to, from, bytes), &pixels.image);
    let report = Report::of(blocking, want_event);
    enqueue(queue, ur_command_t::MEM_IMAGE_READ, events, Submission::new(work), report)
}
/// `urEnqueueMemImageWrite`
///
/// # Errors
/// As for `read`.
pub(super) fn write(
    queue: Borrowed<'_, Queue>,
    blocking: bool,
    pixels: &Pixels<'_>,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let (to, from, bytes) = pixels.places()?;
    let work = keeping(box_work(to, from, bytes), &pixels.image);
    let report = Report::of(blocking, want_event);
    enqueue(queue, ur_command_t::MEM_IMAGE_WRITE, events, Submission::new(work), report)
}
/// `urEnqueueMemImageCopy`: of images with one format.
///
/// # Errors
/// As for `read`; `UNSUPPORTED_IMAGE_FORMAT` for images of different formats, `OVERLAPPING_REGIONS`
/// for regions of one image that share pixels.
pub(super) fn copy(
    queue: Borrowed<'_, Queue>,
    (from, to): (Borrowed<'_, Mem>, Borrowed<'_, Mem>),
    (from_origin, to_origin): (ur_rect_offset_t, ur_rect_offset_t),
    region: ur_rect_region_t,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let work = copy_work((from, to), (from_origin, to_origin), region)?;
    let report = Report::event(want_event);
    enqueue(queue, ur_command_t::MEM_IMAGE_COPY, events, Submission::new(work), report)
}
fn copy_work(
    (from, to): (Borrowed<'_, Mem>, Borrowed<'_, Mem>),
    (from_origin, to_origin): (ur_rect_offset_t, ur_rect_offset_t),
    region: ur_rect_region_t,
) -> Result<Work> {
    let (source, target) = (from.image()?, to.image()?);
    let (one, other) = (source.format(), target.format());
    if (one.channelOrder, one.channelType) != (other.channelOrder, other.channelType) {
        return Err(Error::new(
            ErrorCode::UnsupportedImageFormat,
            format!("pixels are copied as they are, from {one:?} to the same and not to {other:?}"),
        ));
    }
    let (here, there) = (Part::new(from_origin, region)?, Part::new(to_origin, region)?);
    let out = place(source, from.address(), here)?;
    let into = place(target, to.address(), there)?;
    if from.same(&to) && here.shares_pixels(there) {
        return Err(overlapping());
    }
    let bytes = [here.region[0] * source.pixel(), here.region[1], here.region[2]];
    Ok(keeping(keeping(box_work(into, out, bytes), &from), &to))
}
