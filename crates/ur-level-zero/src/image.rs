//! Images: their creation, and copies of pixels from and to them. Formats and sizes are in
//! `ur-core/src/memory/image_layout.rs`; the core owns the driver's image.
use super::{
    Context, LevelZero,
    driver::RawImage,
    native::{
        image::{NativeImage, Wished, has_pitches},
        list::List,
    },
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Owned,
};
use ur_core::{
    memory::image_layout::{Image, Layout, Part},
    over_driver::mem::not_made,
};
use ur_hal::{Address, ImageCopy, ImageEnd};
use ur_sys::{
    ur_image_channel_order_t, ur_image_channel_type_t, ur_image_format_t, ur_mem_flags_t,
    ur_mem_type_t,
};
use ze_sys::*;

/// Converts a part of an image to the driver's region.
pub(super) fn region(part: Part) -> ze_image_region_t {
    // Fits: the sides of an image are at most 2^20.
    let [x, y, z] = part.origin.map(|n| n as u32);
    let [width, height, depth] = part.region.map(|n| n as u32);
    ze_image_region_t { originX: x, originY: y, originZ: z, width, height, depth }
}
/// The driver's description of an image.
fn wished(image: &Image, flags: ur_mem_flags_t) -> Result<Wished> {
    use ur_mem_type_t as T;
    let (format, ..) = elements(image.format())?;
    let [width, second, third] = image.sides().map(|side| side as u32); // at most 2^20
    let (kind, sides, layers) = match image.kind() {
        T::IMAGE1D_ARRAY => (ZE_IMAGE_TYPE_1DARRAY, [width, 1, 1], second),
        T::IMAGE2D => (ZE_IMAGE_TYPE_2D, [width, second, 1], 0),
        T::IMAGE2D_ARRAY => (ZE_IMAGE_TYPE_2DARRAY, [width, second, 1], third),
        T::IMAGE3D => (ZE_IMAGE_TYPE_3D, [width, second, third], 0),
        _ => (ZE_IMAGE_TYPE_1D, [width, 1, 1], 0),
    };
    let is_written = !flags.contains(ur_mem_flags_t::READ_ONLY);
    Ok(Wished { kind, format, sides, layers, is_written })
}
/// A driver image, and the layout of its pixels.
#[derive(Debug)]
pub struct Pixels {
    native: NativeImage,
    layout: Layout,
}
impl Pixels {
    pub(super) fn new(native: NativeImage, image: &Image) -> Self {
        Self { native, layout: image.layout() }
    }
    /// The driver's handle.
    pub(super) fn raw(&self) -> RawImage {
        self.native.raw()
    }
}
/// Appends a copy of pixels between images, or between an image and memory.
///
/// # Errors
/// `UNSUPPORTED_FEATURE` for a copy from memory to memory; else the driver's error.
pub(super) fn copy(list: &List<'_>, copy: &ImageCopy<'_, LevelZero>) -> ur_hal::Result<()> {
    let part = |origin| Part { origin, region: copy.region };
    match (copy.to, copy.from) {
        (ImageEnd::Image(to, into), ImageEnd::Image(from, out)) => {
            if from.layout.is_1d_array == to.layout.is_1d_array {
                return to.native.copy(list, region(part(into)), &from.native, region(part(out)));
            }
            // The second coordinate is a layer in one image and a row in the other: copy row by row.
            let [width, rows, slices] = copy.region;
            (0..slices).flat_map(|z| (0..rows).map(move |y| (y, z))).try_for_each(|(y, z)| {
                let row = |[x, first_row, first_slice]: [usize; 3]| {
                    let origin = [x, first_row + y, first_slice + z];
                    region(Part { origin, region: [width, 1, 1] })
                };
                to.native.copy(list, row(into), &from.native, row(out))
            })
        }
        (ImageEnd::Image(to, into), ImageEnd::Memory(at, pitches)) => {
            pieces(to.layout, part(into), (at, pitches), |region, at, pitches| {
                to.native.write(list, region, at, pitches)
            })
        }
        (ImageEnd::Memory(at, pitches), ImageEnd::Image(from, out)) => {
            pieces(from.layout, part(out), (at, pitches), |region, at, pitches| {
                from.native.read(list, region, at, pitches)
            })
        }
        (ImageEnd::Memory(..), ImageEnd::Memory(..)) => {
            ur_hal::Error::unsupported("a copy of pixels without an image")
        }
    }
}
/// Divides a part into pieces that the driver can copy. If the memory is contiguous there is one piece.
/// Otherwise an array of one-dimensional images is copied layer by layer, and other images in one piece with
/// pitches, or row by row if the driver does not support pitches.
fn pieces(
    layout: Layout,
    part: Part,
    (at, [row, slice]): (Address, [usize; 2]),
    mut copy: impl FnMut(ze_image_region_t, usize, [u32; 2]) -> ur_hal::Result<()>,
) -> ur_hal::Result<()> {
    let ([width, rows, slices], at) = (part.region, at.get());
    let bytes = width * layout.pixel;
    let pitch = if layout.is_1d_array { slice } else { row };
    let is_tight = pitch == bytes && (slices == 1 || slice == bytes * rows);
    if is_tight || rows * slices == 1 {
        return copy(region(part), at, [0, 0]);
    }
    let pitches = (u32::try_from(row), u32::try_from(slice));
    if !layout.is_1d_array
        && has_pitches()
        && let (Ok(row), Ok(slice)) = pitches
    {
        return copy(region(part), at, [row, slice]);
    }
    (0..slices).flat_map(|z| (0..rows).map(move |y| (y, z))).try_for_each(|(y, z)| {
        let [x, first_row, first_slice] = part.origin;
        let origin = [x, first_row + y, first_slice + z];
        let one = Part { origin, region: [width, 1, 1] };
        copy(region(one), at + y * pitch + z * slice, [0, 0])
    })
}

/// Creates an image on the context's first device.
///
/// # Errors
/// `INVALID_IMAGE_SIZE`; else the driver's error.
pub(super) fn create(
    context: &Owned<Context>,
    flags: ur_mem_flags_t,
    image: &Image,
) -> Result<Pixels> {
    let device = &context.devices()[0];
    let made = NativeImage::create(context.native(), device, &wished(image, flags)?);
    Ok(Pixels::new(made.map_err(|error| not_made(error.into(), image))?, image))
}

/// The driver's format, the number of channels of a pixel, and the bytes of a channel.
///
/// # Errors
/// `UNSUPPORTED_IMAGE_FORMAT` for a format without a driver equivalent.
pub(super) fn elements(format: ur_image_format_t) -> Result<(ze_image_format_t, usize, usize)> {
    use ur_image_channel_order_t as O;
    use ur_image_channel_type_t as T;
    let [zero, one] = [ZE_IMAGE_FORMAT_SWIZZLE_0, ZE_IMAGE_FORMAT_SWIZZLE_1];
    // The number of channels in memory, and the sources of red, green, blue and alpha.
    let channels = match format.channelOrder {
        O::A => Some((1, [zero, zero, zero, 0])),
        O::R | O::RX => Some((1, [0, zero, zero, one])),
        O::RG | O::RGX => Some((2, [0, 1, zero, one])),
        O::RA => Some((2, [0, zero, zero, 1])),
        O::RGB => Some((3, [0, 1, 2, one])),
        O::RGBX => Some((4, [0, 1, 2, one])),
        O::RGBA => Some((4, [0, 1, 2, 3])),
        O::BGRA => Some((4, [2, 1, 0, 3])),
        O::ARGB => Some((4, [1, 2, 3, 0])),
        O::ABGR => Some((4, [3, 2, 1, 0])),
        _ => None,
    };
    let element = match format.channelType {
        T::UNSIGNED_INT8 => Some((ZE_IMAGE_FORMAT_TYPE_UINT, 1)),
        T::UNSIGNED_INT16 => Some((ZE_IMAGE_FORMAT_TYPE_UINT, 2)),
        T::UNSIGNED_INT32 => Some((ZE_IMAGE_FORMAT_TYPE_UINT, 4)),
        T::SIGNED_INT8 => Some((ZE_IMAGE_FORMAT_TYPE_SINT, 1)),
        T::SIGNED_INT16 => Some((ZE_IMAGE_FORMAT_TYPE_SINT, 2)),
        T::SIGNED_INT32 => Some((ZE_IMAGE_FORMAT_TYPE_SINT, 4)),
        T::UNORM_INT8 => Some((ZE_IMAGE_FORMAT_TYPE_UNORM, 1)),
        T::UNORM_INT16 => Some((ZE_IMAGE_FORMAT_TYPE_UNORM, 2)),
        T::SNORM_INT8 => Some((ZE_IMAGE_FORMAT_TYPE_SNORM, 1)),
        T::SNORM_INT16 => Some((ZE_IMAGE_FORMAT_TYPE_SNORM, 2)),
        T::HALF_FLOAT => Some((ZE_IMAGE_FORMAT_TYPE_FLOAT, 2)),
        T::FLOAT => Some((ZE_IMAGE_FORMAT_TYPE_FLOAT, 4)),
        _ => None,
    };
    let made = channels.zip(element).and_then(|((channels, [x, y, z, w]), (type_, bytes))| {
        let layout = match (channels, bytes) {
            (1, 1) => ZE_IMAGE_FORMAT_LAYOUT_8,
            (1, 2) => ZE_IMAGE_FORMAT_LAYOUT_16,
            (1, 4) => ZE_IMAGE_FORMAT_LAYOUT_32,
            (2, 1) => ZE_IMAGE_FORMAT_LAYOUT_8_8,
            (2, 2) => ZE_IMAGE_FORMAT_LAYOUT_16_16,
            (2, 4) => ZE_IMAGE_FORMAT_LAYOUT_32_32,
            (3, 1) => ZE_IMAGE_FORMAT_LAYOUT_8_8_8,
            (3, 2) => ZE_IMAGE_FORMAT_LAYOUT_16_16_16,
            (3, 4) => ZE_IMAGE_FORMAT_LAYOUT_32_32_32,
            (4, 1) => ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8,
            (4, 2) => ZE_IMAGE_FORMAT_LAYOUT_16_16_16_16,
            (4, 4) => ZE_IMAGE_FORMAT_LAYOUT_32_32_32_32,
            _ => return None,
        };
        Some((ze_image_format_t { layout, type_, x, y, z, w }, channels, bytes))
    });
    made.ok_or_else(|| {
        let (order, channel) = (format.channelOrder, format.channelType);
        Error::new(
            ErrorCode::UnsupportedImageFormat,
            format!("the driver has no images with channels {order:?} of type {channel:?}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ur_core::memory::image_layout::{LONGEST_SIDE, described};
    use ur_image_channel_order_t as Order;
    use ur_image_channel_type_t as Channel;

    fn image(kind: ur_mem_type_t, sides: [usize; 3]) -> Result<Image> {
        let format =
            ur_image_format_t { channelOrder: Order::RGBA, channelType: Channel::UNSIGNED_INT8 };
        Image::new(format, 4, &described(kind, sides), LONGEST_SIDE)
    }

    #[test]
    fn the_driver_is_asked_for_the_sides_and_layers_that_an_image_has() {
        use ur_mem_type_t as T;
        for (kind, sides, expected) in [
            (T::IMAGE1D, [40, 1, 1], (ZE_IMAGE_TYPE_1D, [40, 1, 1], 0)),
            (T::IMAGE2D, [20, 12, 1], (ZE_IMAGE_TYPE_2D, [20, 12, 1], 0)),
            (T::IMAGE3D, [12, 10, 6], (ZE_IMAGE_TYPE_3D, [12, 10, 6], 0)),
            (T::IMAGE1D_ARRAY, [24, 5, 1], (ZE_IMAGE_TYPE_1DARRAY, [24, 1, 1], 5)),
            (T::IMAGE2D_ARRAY, [12, 10, 4], (ZE_IMAGE_TYPE_2DARRAY, [12, 10, 1], 4)),
        ] {
            let wished = wished(&image(kind, sides).unwrap(), ur_mem_flags_t::READ_ONLY).unwrap();
            assert_eq!((wished.kind, wished.sides, wished.layers), expected);
            assert!(!wished.is_written);
        }
    }
    #[test]
    fn pixels_with_something_between_layers_are_copied_layer_by_layer() {
        let image = image(ur_mem_type_t::IMAGE1D_ARRAY, [24, 5, 1]).unwrap();
        let part = Part { origin: [2, 1, 0], region: [7, 3, 1] };
        let copied = |pitches| {
            let mut all = vec![];
            let host = (Address::new(1000).unwrap(), pitches);
            pieces(image.layout(), part, host, |region, at, _| {
                all.push((region.originY, region.height, at));
                Ok(())
            })?;
            Ok::<_, Error>(all)
        };
        assert_eq!(copied([28, 28]).unwrap(), [(1, 3, 1000)]);
        let apart = [(1, 1, 1000), (2, 1, 1100), (3, 1, 1200)];
        assert_eq!(copied([28, 100]).unwrap(), apart);
    }
    #[test]
    fn only_pixels_that_the_driver_has_a_name_for_make_images() {
        let bytes = |order, channel| {
            let format = ur_image_format_t { channelOrder: order, channelType: channel };
            let made = elements(format);
            made.map(|(_, channels, bytes)| channels * bytes).map_err(|e| e.code())
        };
        assert_eq!(bytes(Order::RGBA, Channel::FLOAT), Ok(16));
        assert_eq!(bytes(Order::RG, Channel::SIGNED_INT16), Ok(4));
        assert_eq!(bytes(Order::RX, Channel::UNORM_INT8), Ok(1));
        assert_eq!(bytes(Order::RGB, Channel::UNORM_INT16), Ok(6));
        assert_eq!(bytes(Order::RGBX, Channel::FLOAT), Ok(16));
        let refused = Err(ErrorCode::UnsupportedImageFormat);
        assert_eq!(bytes(Order::INTENSITY, Channel::UNORM_INT8), refused);
        assert_eq!(bytes(Order::R, Channel::UNORM_SHORT_565), refused);
    }
    #[test]
    fn red_green_blue_and_alpha_are_the_channels_that_the_order_names() {
        let [zero, one] = [ZE_IMAGE_FORMAT_SWIZZLE_0, ZE_IMAGE_FORMAT_SWIZZLE_1];
        for (order, expected) in [
            (Order::A, [zero, zero, zero, 0]),
            (Order::RA, [0, zero, zero, 1]),
            (Order::RGX, [0, 1, zero, one]),
            (Order::RGB, [0, 1, 2, one]),
            (Order::ARGB, [1, 2, 3, 0]),
            (Order::ABGR, [3, 2, 1, 0]),
            (Order::RGBX, [0, 1, 2, one]),
        ] {
            let channel = Channel::UNORM_INT8;
            let format = ur_image_format_t { channelOrder: order, channelType: channel };
            let (told, ..) = elements(format).unwrap();
            assert_eq!([told.x, told.y, told.z, told.w], expected, "{order:?}");
        }
    }
}
