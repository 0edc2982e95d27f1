//! Commands on images: what the caller says of pixels is judged here. Until images are the driver's own, how pixels are
//! copied is the backend's.
use super::{buffers::overlapping, pixels::Pixels, ready::TakesCommands};
use crate::{
    memory::{
        pictures::{Part, on_host},
        ranges::check_range,
    },
    over_driver::{
        OverDriver,
        mem::{KeepsBytes, Mem},
    },
};
use ur_adapter::{
    api::Request,
    error::{Error, ErrorCode, Result},
    object::Borrowed,
};
use ur_hal::Address;
use ur_sys::{ur_command_t as Name, ur_rect_offset_t, ur_rect_region_t};

/// What an entry asks for, and what it is called, if it is about images.
///
/// # Errors
/// Those of the entry.
#[inline(always)] // as `enqueue`
pub(super) fn pixels<D: TakesCommands>(
    request: Request<'_, OverDriver<D>>,
) -> Result<Option<(Name, Pixels<'_, Mem<D>>)>> {
    Ok(Some(match request {
        Request::ImageRead { image, origin, region, row_pitch, slice_pitch, dst } => {
            let host = (dst, [row_pitch, slice_pitch]);
            (Name::MEM_IMAGE_READ, of_host::<D>(image, (origin, region), host, false)?)
        }
        Request::ImageWrite { image, origin, region, row_pitch, slice_pitch, src } => {
            let host = (src, [row_pitch, slice_pitch]);
            (Name::MEM_IMAGE_WRITE, of_host::<D>(image, (origin, region), host, true)?)
        }
        Request::ImageCopy { image_src, image_dst, src_origin, dst_origin, region } => {
            let ends = ((image_src, src_origin), (image_dst, dst_origin));
            (Name::MEM_IMAGE_COPY, copy(ends.0, ends.1, region)?)
        }
        _ => return Ok(None),
    }))
}
fn of_host<'a, D: TakesCommands>(
    of: Borrowed<'a, Mem<D>>,
    (origin, region): (ur_rect_offset_t, ur_rect_region_t),
    (at, pitches): (Address, [usize; 2]),
    writes: bool,
) -> Result<Pixels<'a, Mem<D>>> {
    let image = of.image()?;
    let part = Part::new(origin, region)?;
    image.check(part)?;
    let bytes = [part.region[0] * image.pixel(), part.region[1], part.region[2]];
    let (host, length) = on_host(image.is_1d_array(), at.into(), pitches, bytes)?;
    check_range::<D::Known>(at, length, super::buffers::of_host(writes))?;
    Ok(Pixels::Host { image: of, part, host, writes })
}
fn copy<'a, D: KeepsBytes>(
    (from, out): (Borrowed<'a, Mem<D>>, ur_rect_offset_t),
    (to, into): (Borrowed<'a, Mem<D>>, ur_rect_offset_t),
    region: ur_rect_region_t,
) -> Result<Pixels<'a, Mem<D>>> {
    let (source, target) = (from.image()?, to.image()?);
    let (one, other) = (source.format(), target.format());
    if (one.channelOrder, one.channelType) != (other.channelOrder, other.channelType) {
        return Err(Error::new(
            ErrorCode::UnsupportedImageFormat,
            format!("pixels are copied as they are, from {one:?} to the same and not to {other:?}"),
        ));
    }
    let (here, there) = (Part::new(out, region)?, Part::new(into, region)?);
    source.check(here)?;
    target.check(there)?;
    if from.same(&to) && here.shares_pixels(there) {
        return overlapping();
    }
    Ok(Pixels::Copy { from: (from, here), to: (to, there) })
}
