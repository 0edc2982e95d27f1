//! Commands on images: checks the regions that the caller passes, and resolves images to the device's image objects.
use super::{
    buffers::{Host, of_host, overlapping},
    ready::{Ready, Room, TakesCommands, Usage},
};
use crate::{
    memory::{
        image_layout::{check, on_host, part},
        ranges::check_range,
    },
    over_driver::mem::Mem,
};
use ur_adapter::{
    api::Objects,
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_hal::{Command, ImageCopy, ImageEnd, Part};
use ur_sys::{ur_command_t as Name, ur_rect_offset_t, ur_rect_region_t};

impl<'a, D: TakesCommands> Ready<'a, D> {
    /// A copy between an image and the host.
    pub(super) fn transfer_pixels(
        device: &Owned<<D as Objects>::Device>,
        of: Borrowed<'a, Mem<D>>,
        (origin, region): (ur_rect_offset_t, ur_rect_region_t),
        (at, pitches, writes): Host<[usize; 2]>,
        room: &'a Room<'a, D>,
    ) -> Result<Self> {
        let image = of.image()?;
        let part = part(origin, region)?;
        check(image, part)?;
        let layout = image.layout();
        let bytes = [part.region[0] * layout.pixel, part.region[1], part.region[2]];
        let (pitches, length) = on_host(layout.is_1d_array, pitches, bytes)?;
        check_range::<D::Known>(at, length, of_host(writes))?;
        if writes {
            of.check_write::<D::Known>(0, of.bytes())?;
        }
        let (other, name) = match writes {
            true => (ImageEnd::FromMemory(at, pitches), Name::MEM_IMAGE_WRITE),
            false => (ImageEnd::ToMemory(at, pitches), Name::MEM_IMAGE_READ),
        };
        let (image, Part { origin, region }) = (of.get().pixels(device)?, part);
        let copy = room.pixels.get_or_init(|| ImageCopy { image, origin, region, other });
        let written = writes.then_some(Usage::Changes);
        Ok(Self::new(name, Command::ImageCopy(copy)).beside((of, 0..of.bytes()), written))
    }
    /// A copy between two images of the same format.
    pub(super) fn copy_pixels(
        device: &Owned<<D as Objects>::Device>,
        (from, out): (Borrowed<'a, Mem<D>>, ur_rect_offset_t),
        (to, into): (Borrowed<'a, Mem<D>>, ur_rect_offset_t),
        region: ur_rect_region_t,
        room: &'a Room<'a, D>,
    ) -> Result<Self> {
        let (source, target) = (from.image()?, to.image()?);
        let (one, other) = (source.format, target.format);
        if one != other {
            return Error::refuse(
                ErrorCode::UnsupportedImageFormat,
                format!("pixels are copied without conversion, so not from {one:?} to {other:?}"),
            );
        }
        let (here, there) = (part(out, region)?, part(into, region)?);
        check(source, here)?;
        check(target, there)?;
        if from.same(&to) && here.shares_pixels(there) {
            return overlapping();
        }
        to.check_write::<D::Known>(0, to.bytes())?;
        let copy = ImageCopy {
            image: to.get().pixels(device)?,
            origin: there.origin,
            region: here.region,
            other: ImageEnd::FromImage(from.get().pixels(device)?, here.origin),
        };
        let copy = room.pixels.get_or_init(|| copy);
        let ready = Self::new(Name::MEM_IMAGE_COPY, Command::ImageCopy(copy));
        let written = ((to, 0..to.bytes()), Usage::Changes);
        Ok(ready.with(Some((from, 0..from.bytes())), Some(written)))
    }
}
