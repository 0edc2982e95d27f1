//! Images: their creation, and copies of pixels from and to them. Formats and sizes are described by
//! `ur_hal::ImageDesc`; the core owns the driver's image, whose handle is the native handle.
use super::{
    DriverDevice, LevelZero,
    context::DriverContext,
    driver::RawImage,
    native::{
        image::{NativeImage, Wished, has_pitches},
        list::List,
    },
    p2p,
};
use std::sync::Arc;
use ur_hal::{
    Address, ChannelType, Channels, Error, ErrorKind, ImageCopy, ImageDesc, ImageEnd, ImageKind,
    Layout, MakesImages, NativeHandle, Part, PixelFormat, Result, copy_between,
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
fn wished(image: &ImageDesc) -> Result<Wished> {
    use ImageKind as K;
    let format = format_of(image.format).ok_or(ErrorKind::UnsupportedFormat)?;
    let [width, second, third] = image.sides.map(|side| side as u32); // at most 2^20
    let (kind, sides, layers) = match image.kind {
        K::D1 => (ZE_IMAGE_TYPE_1D, [width, 1, 1], 0),
        K::D1Array => (ZE_IMAGE_TYPE_1DARRAY, [width, 1, 1], second),
        K::D2 => (ZE_IMAGE_TYPE_2D, [width, second, 1], 0),
        K::D2Array => (ZE_IMAGE_TYPE_2DARRAY, [width, second, 1], third),
        K::D3 => (ZE_IMAGE_TYPE_3D, [width, second, third], 0),
    };
    Ok(Wished { kind, format, sides, layers, is_written: !image.is_read_only })
}
/// A driver image, and the layout of its pixels.
#[derive(Debug)]
pub struct Pixels {
    native: NativeImage,
    layout: Layout,
}
impl Pixels {
    /// The driver's handle.
    pub(super) fn raw(&self) -> RawImage {
        self.native.raw()
    }
}
impl MakesImages for LevelZero {
    fn has_images() -> bool {
        true
    }
    fn has_format(format: PixelFormat) -> bool {
        format_of(format).is_some()
    }
    fn image(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        _: Option<Address>,
        desc: &ImageDesc,
    ) -> Result<Pixels> {
        let native = NativeImage::create(context.native(), device, &wished(desc)?)?;
        Ok(Pixels { native, layout: desc.layout() })
    }
    fn reaches_images(device: &Arc<DriverDevice>, first: &Arc<DriverDevice>) -> Result<bool> {
        p2p::can_access(device, first)
    }
}
/// Wraps an image of the application; `is_owned`: it is destroyed with the result. The description cannot be verified,
/// because the driver has no query for it.
///
/// # Errors
/// `InvalidMemory` for 0.
pub(super) fn adopt(
    context: &DriverContext,
    handle: NativeHandle,
    image: &ImageDesc,
    is_owned: bool,
) -> Result<Pixels> {
    let none = || Error::new(ErrorKind::InvalidMemory, "0 is no image");
    let raw = RawImage::from_addr(handle.0 as usize).ok_or_else(none)?;
    let native = NativeImage::adopted(raw, is_owned, context.native().clone());
    Ok(Pixels { native, layout: image.layout() })
}
/// Appends a copy of pixels between images, or between an image and memory.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn copy(
    list: &List<'_>,
    &ImageCopy { image, origin, region: size, other }: &ImageCopy<&Arc<Pixels>>,
) -> Result<()> {
    let (part, layout) = (Part { origin, region: size }, image.layout);
    match other {
        ImageEnd::FromImage(from, out) => {
            copy_between((layout, origin), (from.layout, out), size, |into, out| {
                image.native.copy(list, region(into), &from.native, region(out))
            })
        }
        ImageEnd::FromMemory(at, pitches) | ImageEnd::ToMemory(at, pitches) => {
            let is_written = matches!(other, ImageEnd::ToMemory(..));
            pieces(layout, part, (at, pitches), |region, at, pitches| {
                image.native.copy_memory(list, region, (at, is_written), pitches)
            })
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
    mut copy: impl FnMut(ze_image_region_t, usize, [u32; 2]) -> Result<()>,
) -> Result<()> {
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
    part.rows().try_for_each(|(one, [row, layer])| {
        copy(region(one), at + row * pitch + layer * slice, [0, 0])
    })
}

/// The driver's format; `None` for a format without a driver equivalent.
fn format_of(format: PixelFormat) -> Option<ze_image_format_t> {
    use ChannelType as T;
    use Channels as C;
    let [zero, one] = [ZE_IMAGE_FORMAT_SWIZZLE_0, ZE_IMAGE_FORMAT_SWIZZLE_1];
    // The sources of red, green, blue and alpha.
    let [x, y, z, w] = match format.channels {
        C::A => [zero, zero, zero, 0],
        C::R | C::Rx => [0, zero, zero, one],
        C::Rg | C::Rgx => [0, 1, zero, one],
        C::Ra => [0, zero, zero, 1],
        C::Rgb | C::Rgbx => [0, 1, 2, one],
        C::Rgba => [0, 1, 2, 3],
        C::Bgra => [2, 1, 0, 3],
        C::Argb => [1, 2, 3, 0],
        C::Abgr => [3, 2, 1, 0],
        C::Intensity | C::Luminance | C::Srgba => return None,
    };
    let type_ = match format.channel_type {
        T::Uint8 | T::Uint16 | T::Uint32 => ZE_IMAGE_FORMAT_TYPE_UINT,
        T::Sint8 | T::Sint16 | T::Sint32 => ZE_IMAGE_FORMAT_TYPE_SINT,
        T::Unorm8 | T::Unorm16 => ZE_IMAGE_FORMAT_TYPE_UNORM,
        T::Snorm8 | T::Snorm16 => ZE_IMAGE_FORMAT_TYPE_SNORM,
        T::Half | T::Float => ZE_IMAGE_FORMAT_TYPE_FLOAT,
        T::Unorm565 | T::Unorm555 | T::Unorm101010 => return None,
    };
    let layout = match (format.channels.count(), format.channel_type.bytes()) {
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
    Some(ze_image_format_t { layout, type_, x, y, z, w })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(kind: ImageKind, sides: [usize; 3]) -> ImageDesc {
        let format = PixelFormat { channels: Channels::Rgba, channel_type: ChannelType::Uint8 };
        ImageDesc { kind, sides, format, pitches: [0; 2], is_read_only: true }
    }

    #[test]
    fn the_driver_is_asked_for_the_sides_and_layers_that_an_image_has() {
        use ImageKind as K;
        for (kind, sides, expected) in [
            (K::D1, [40, 1, 1], (ZE_IMAGE_TYPE_1D, [40, 1, 1], 0)),
            (K::D2, [20, 12, 1], (ZE_IMAGE_TYPE_2D, [20, 12, 1], 0)),
            (K::D3, [12, 10, 6], (ZE_IMAGE_TYPE_3D, [12, 10, 6], 0)),
            (K::D1Array, [24, 5, 1], (ZE_IMAGE_TYPE_1DARRAY, [24, 1, 1], 5)),
            (K::D2Array, [12, 10, 4], (ZE_IMAGE_TYPE_2DARRAY, [12, 10, 1], 4)),
        ] {
            let wished = wished(&image(kind, sides)).unwrap();
            assert_eq!((wished.kind, wished.sides, wished.layers), expected);
            assert!(!wished.is_written);
        }
    }
    #[test]
    fn pixels_with_something_between_layers_are_copied_layer_by_layer() {
        let image = image(ImageKind::D1Array, [24, 5, 1]);
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
        use {ChannelType as T, Channels as C};
        let has =
            |channels, channel_type| LevelZero::has_format(PixelFormat { channels, channel_type });
        assert!(has(C::Rgba, T::Float) && has(C::Rg, T::Sint16) && has(C::Rx, T::Unorm8));
        assert!(has(C::Rgb, T::Unorm16) && has(C::Rgbx, T::Float));
        assert!(!has(C::Intensity, T::Unorm8) && !has(C::R, T::Unorm565));
    }
    #[test]
    fn red_green_blue_and_alpha_are_the_channels_that_the_order_names() {
        let [zero, one] = [ZE_IMAGE_FORMAT_SWIZZLE_0, ZE_IMAGE_FORMAT_SWIZZLE_1];
        for (order, expected) in [
            (Channels::A, [zero, zero, zero, 0]),
            (Channels::Ra, [0, zero, zero, 1]),
            (Channels::Rgx, [0, 1, zero, one]),
            (Channels::Rgb, [0, 1, 2, one]),
            (Channels::Argb, [1, 2, 3, 0]),
            (Channels::Abgr, [3, 2, 1, 0]),
            (Channels::Rgbx, [0, 1, 2, one]),
        ] {
            let format = PixelFormat { channels: order, channel_type: ChannelType::Unorm8 };
            let told = format_of(format).unwrap();
            assert_eq!([told.x, told.y, told.z, told.w], expected, "{order:?}");
        }
    }
}
