//! Images: pixels in host memory, row by row. Formats and sizes are in `ur-core/src/memory/image_layout.rs`,
//! their memory is in `mem.rs`. A kernel gets the address of the first pixel of an image.
use super::{Cpu, bytes::Planes, engine::Work};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use ur_core::memory::image_layout::{Image, Layout};
use ur_hal::{Address, ImageCopy, ImageEnd};
use ur_sys::{ur_image_channel_order_t, ur_image_channel_type_t, ur_image_format_t};

/// The largest number of pixels in each dimension, and of layers in an array.
pub const LONGEST_SIDE: usize = 1 << 16;

/// The bytes from its first to its last pixel; `None` on overflow.
pub(super) fn bytes(image: &Image) -> Option<usize> {
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
    /// The pixels of an image at `base`.
    pub(super) fn new(base: UsmPtr, image: &Image) -> Self {
        Self { first: base.into(), layout: image.layout(), steps: steps(image) }
    }
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

/// The bytes of a pixel.
///
/// # Errors
/// `UNSUPPORTED_IMAGE_FORMAT` for a channel order that does not support the channel type.
pub(super) fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
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
