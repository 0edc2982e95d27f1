//! Images: pixels in host memory, row by row. Formats and sizes are in `ur-core/src/memory/image_layout.rs`,
//! their memory is in `mem.rs`. A kernel gets the address of the first pixel of an image.
use super::{
    Context, Cpu, Mem,
    bytes::Planes,
    engine::Work,
    mem::{Storage, check_size},
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Owned,
};
use ur_core::memory::{
    flags::check_flags,
    image_layout::{Image, Layout},
};
use ur_core::over_driver::mem::check_host;
use ur_hal::{Address, ImageCopy, ImageEnd};
use ur_sys::{
    ur_image_channel_order_t, ur_image_channel_type_t, ur_image_desc_t, ur_image_format_t,
    ur_mem_flags_t,
};

/// The largest number of pixels in each dimension, and of layers in an array.
pub const LONGEST_SIDE: usize = 1 << 16;

/// The bytes from its first to its last pixel; `None` on overflow.
fn bytes(image: &Image) -> Option<usize> {
    let [width, height, depth] = image.sides();
    let ([second, third], row) = (steps(image), width.checked_mul(image.pixel())?);
    let rows = second.checked_mul(height - 1)?.checked_add(row)?;
    third.checked_mul(depth - 1)?.checked_add(rows)
}
/// Bytes between neighbours in the second and in the third dimension. The second dimension of an array of
/// one-dimensional images is its layers.
fn steps(image: &Image) -> [usize; 2] {
    let [row, slice] = image.pitches();
    if image.is_1d_array() { [slice, slice] } else { [row, slice] }
}
/// Where the pixels of an image are.
#[derive(Debug)]
pub struct Pixels {
    first: Address,
    layout: Layout,
    /// Bytes between neighbours in the second and in the third dimension.
    steps: [usize; 2],
}
impl Pixels {
    /// The address of the first pixel.
    pub(super) fn first(&self) -> Address {
        self.first
    }
}
/// The work of a pixel copy. The region has been checked to be within the images.
///
/// # Errors
/// `INVALID_SIZE` on address overflow; `UNSUPPORTED_FEATURE` for a copy from memory to memory.
pub(super) fn copy(copy: &ImageCopy<'_, Cpu>) -> Result<Work> {
    let of = |end: &ImageEnd<'_, Cpu>| match *end {
        ImageEnd::Image(image, _) => Some(Arc::clone(image)),
        ImageEnd::Memory(..) => None,
    };
    let Some(image) = of(&copy.to).or_else(|| of(&copy.from)) else {
        return Error::unsupported("a copy of pixels without an image");
    };
    let place = |end: &ImageEnd<'_, Cpu>| {
        Ok::<_, Error>(match *end {
            ImageEnd::Image(image, [x, y, z]) => {
                let [pitch, slice] = image.steps;
                let base = image.first.offset(x * image.layout.pixel + y * pitch + z * slice)?;
                Planes { base, pitch, slice }
            }
            ImageEnd::Memory(base, [row, slice]) => {
                Planes { base, pitch: if image.layout.is_1d_array { slice } else { row }, slice }
            }
        })
    };
    let [width, height, depth] = copy.region;
    Ok(Work::of_box(
        place(&copy.to)?,
        place(&copy.from)?,
        [width * image.layout.pixel, height, depth],
    ))
}

/// Creates an image in new memory, in the application's memory, or in a copy of that, as the flags say.
///
/// # Errors
/// `UNSUPPORTED_IMAGE_FORMAT`; else as for `Image::new` and `Storage::for_flags`.
pub(super) fn create(
    context: Owned<Context>,
    flags: ur_mem_flags_t,
    format: ur_image_format_t,
    desc: &ur_image_desc_t,
    host: Option<UsmPtr>,
) -> Result<Owned<Mem>> {
    let image = Image::new(format, pixel_bytes(format)?, desc, LONGEST_SIDE)?;
    let bytes = bytes(&image).ok_or(ErrorCode::InvalidImageSize)?;
    check_size(&context, bytes, ErrorCode::InvalidImageSize)?;
    check_flags(flags)?;
    host.map_or(Ok(()), |host| check_host::<Cpu>(flags, host, bytes))?;
    let storage = Storage::for_flags(context, flags, host, bytes)?.with_pixels(|base| Pixels {
        first: base.into(),
        layout: image.layout(),
        steps: steps(&image),
    });
    Ok(Owned::new(Mem::of_image(flags, storage, bytes, image)))
}

/// The bytes of a pixel.
///
/// # Errors
/// `UNSUPPORTED_IMAGE_FORMAT` for a channel order that does not support the channel type.
fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
    use ur_image_channel_order_t as O;
    use ur_image_channel_type_t as T;
    let (order, channel) = (format.channelOrder, format.channelType);
    let is_norm = matches!(
        channel,
        T::SNORM_INT8 | T::SNORM_INT16 | T::UNORM_INT8 | T::UNORM_INT16 | T::HALF_FLOAT | T::FLOAT
    );
    let packed = match channel {
        T::UNORM_SHORT_565 | T::UNORM_SHORT_555 => Some(2),
        T::INT_101010 => Some(4),
        _ => None,
    };
    let channels = match order {
        O::A | O::R | O::RX => Some(1),
        O::RG | O::RA | O::RGX => Some(2),
        O::RGB => Some(3),
        // RGBx has an unused fourth channel, unless it is packed.
        O::RGBA | O::BGRA | O::ARGB | O::ABGR | O::RGBX => Some(4),
        O::INTENSITY | O::LUMINANCE => is_norm.then_some(1),
        O::SRGBA => (channel == T::UNORM_INT8).then_some(4),
        _ => None,
    };
    let bytes = match (order, packed) {
        (O::RGB | O::RGBX, Some(bytes)) => Some(bytes),
        (_, Some(_)) => None,
        (_, None) => channel_bytes(channel).zip(channels).map(|(bytes, channels)| bytes * channels),
    };
    bytes.ok_or_else(|| {
        Error::new(
            ErrorCode::UnsupportedImageFormat,
            format!("no image has channels {order:?} of type {channel:?}"),
        )
    })
}
fn channel_bytes(channel: ur_image_channel_type_t) -> Option<usize> {
    use ur_image_channel_type_t as T;
    match channel {
        T::SNORM_INT8 | T::UNORM_INT8 | T::SIGNED_INT8 | T::UNSIGNED_INT8 => Some(1),
        T::SNORM_INT16 | T::UNORM_INT16 | T::SIGNED_INT16 | T::UNSIGNED_INT16 | T::HALF_FLOAT => {
            Some(2)
        }
        T::SIGNED_INT32 | T::UNSIGNED_INT32 | T::FLOAT => Some(4),
        _ => None,
    }
}
