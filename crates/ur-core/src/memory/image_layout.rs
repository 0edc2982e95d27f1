//! Images as callers describe them, and the layout of their pixels in host memory. What UR's enumerators for formats
//! and types mean to a driver is here, too.
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
};
use ur_hal::{
    Address, ChannelType, Channels, ImageDesc, ImageKind, MakesImages, Part, PixelFormat,
};
use ur_sys::{
    ur_image_channel_order_t as Order, ur_image_channel_type_t as Type, ur_image_desc_t,
    ur_image_format_t, ur_image_info_t, ur_mem_type_t, ur_rect_offset_t, ur_rect_region_t,
};

const ORDERS: [(Order, Channels); 15] = [
    (Order::A, Channels::A),
    (Order::R, Channels::R),
    (Order::RG, Channels::Rg),
    (Order::RA, Channels::Ra),
    (Order::RGB, Channels::Rgb),
    (Order::RGBA, Channels::Rgba),
    (Order::BGRA, Channels::Bgra),
    (Order::ARGB, Channels::Argb),
    (Order::ABGR, Channels::Abgr),
    (Order::INTENSITY, Channels::Intensity),
    (Order::LUMINANCE, Channels::Luminance),
    (Order::RX, Channels::Rx),
    (Order::RGX, Channels::Rgx),
    (Order::RGBX, Channels::Rgbx),
    (Order::SRGBA, Channels::Srgba),
];
const TYPES: [(Type, ChannelType); 15] = [
    (Type::SNORM_INT8, ChannelType::Snorm8),
    (Type::SNORM_INT16, ChannelType::Snorm16),
    (Type::UNORM_INT8, ChannelType::Unorm8),
    (Type::UNORM_INT16, ChannelType::Unorm16),
    (Type::UNORM_SHORT_565, ChannelType::Unorm565),
    (Type::UNORM_SHORT_555, ChannelType::Unorm555),
    (Type::INT_101010, ChannelType::Unorm101010),
    (Type::SIGNED_INT8, ChannelType::Sint8),
    (Type::SIGNED_INT16, ChannelType::Sint16),
    (Type::SIGNED_INT32, ChannelType::Sint32),
    (Type::UNSIGNED_INT8, ChannelType::Uint8),
    (Type::UNSIGNED_INT16, ChannelType::Uint16),
    (Type::UNSIGNED_INT32, ChannelType::Uint32),
    (Type::HALF_FLOAT, ChannelType::Half),
    (Type::FLOAT, ChannelType::Float),
];
/// The driver's value for one of UR's.
fn driver_value<U: PartialEq, V: Copy>(table: &[(U, V)], of: &U) -> Option<V> {
    table.iter().find(|(ur, _)| ur == of).map(|(_, value)| *value)
}
/// UR's value for one of the driver's.
fn ur_value<U: Copy + Default, V: PartialEq>(table: &[(U, V)], of: &V) -> U {
    table.iter().find(|(_, value)| value == of).map_or_else(U::default, |(ur, _)| *ur)
}

/// Describes an image for the driver `D`.
///
/// # Errors
/// `UNSUPPORTED_FEATURE` if it has no images; `UNSUPPORTED_IMAGE_FORMAT` for a format that it does not have;
/// `INVALID_IMAGE_SIZE`; `INVALID_IMAGE_FORMAT_DESCRIPTOR` for a type that is not an image type, and for invalid pitches.
pub fn described<D: MakesImages>(
    format: ur_image_format_t,
    desc: &ur_image_desc_t,
    is_read_only: bool,
) -> Result<ImageDesc> {
    if !D::has_images() {
        return Error::unsupported("images on this driver");
    }
    let (order, channel) = (format.channelOrder, format.channelType);
    let known = driver_value(&ORDERS, &order).zip(driver_value(&TYPES, &channel));
    let format = known.map(|(channels, channel_type)| PixelFormat { channels, channel_type });
    let Some(format) = format.filter(|format| D::has_format(*format)) else {
        let why = format!("the device has no images with channels {order:?} of type {channel:?}");
        return Error::refuse(ErrorCode::UnsupportedImageFormat, why);
    };
    let (kind, sides) = sides(desc, D::LONGEST_SIDE)?;
    let pitches = pitches(desc, sides, format.pixel_bytes())?;
    Ok(ImageDesc { kind, sides, format, pitches, is_read_only })
}
/// The kind of an image, and its sizes in pixels.
fn sides(desc: &ur_image_desc_t, longest: usize) -> Result<(ImageKind, [usize; 3])> {
    use ur_mem_type_t as T;
    let (kind, sides) = match desc.r#type {
        T::IMAGE1D => (ImageKind::D1, [desc.width, 1, 1]),
        T::IMAGE1D_ARRAY => (ImageKind::D1Array, [desc.width, desc.arraySize, 1]),
        T::IMAGE2D => (ImageKind::D2, [desc.width, desc.height, 1]),
        T::IMAGE2D_ARRAY => (ImageKind::D2Array, [desc.width, desc.height, desc.arraySize]),
        T::IMAGE3D => (ImageKind::D3, [desc.width, desc.height, desc.depth]),
        other => {
            return Error::refuse(
                ErrorCode::InvalidImageFormatDescriptor,
                format!("there are no images of type {other:?}"),
            );
        }
    };
    match sides.iter().all(|side| (1..=longest).contains(side)) {
        true => Ok((kind, sides)),
        false => Error::refuse(
            ErrorCode::InvalidImageSize,
            format!("{sides:?} pixels: each side has 1 to {longest}"),
        ),
    }
}
/// Row pitch and slice pitch in bytes. A pitch of 0 means that rows or slices are contiguous.
///
/// # Errors
/// `INVALID_IMAGE_FORMAT_DESCRIPTOR` for a pitch that is too small or not a multiple of its element.
fn pitches(desc: &ur_image_desc_t, sides: [usize; 3], pixel: usize) -> Result<[usize; 2]> {
    let refused = |why: String| Error::refuse(ErrorCode::InvalidImageFormatDescriptor, why);
    let width = sides[0] * pixel; // no overflow: at most 2^20 pixels
    let row = if desc.rowPitch == 0 { width } else { desc.rowPitch };
    if row < width || !row.is_multiple_of(pixel) {
        return refused(format!(
            "a row pitch of {row} is not a multiple of the {pixel} bytes of a pixel that holds a \
             row of {width}"
        ));
    }
    let height = if desc.r#type == ur_mem_type_t::IMAGE1D_ARRAY { 1 } else { sides[1] };
    let Some(rows) = row.checked_mul(height) else {
        return refused(format!("{height} rows, {row} bytes apart, exceed the address space"));
    };
    let slice = if desc.slicePitch == 0 { rows } else { desc.slicePitch };
    if slice < rows || !slice.is_multiple_of(row) {
        return refused(format!(
            "a slice pitch of {slice} is not a multiple of the row pitch {row} that holds {height} \
             rows"
        ));
    }
    Ok([row, slice])
}

/// A region in the terms of UR's entries.
///
/// # Errors
/// `INVALID_SIZE` for numbers that do not fit `usize`.
pub fn part(origin: ur_rect_offset_t, region: ur_rect_region_t) -> Result<Part> {
    let number = |n: u64| usize::try_from(n).map_err(|_| Error::from(ErrorCode::InvalidSize));
    Ok(Part {
        origin: [number(origin.x)?, number(origin.y)?, number(origin.z)?],
        region: [number(region.width)?, number(region.height)?, number(region.depth)?],
    })
}
/// Checks that a region is inside the image and not empty.
///
/// # Errors
/// `INVALID_SIZE` if it is not.
pub fn check(image: &ImageDesc, part: Part) -> Result<()> {
    let is_inside = |side: usize| {
        let end = part.origin[side].checked_add(part.region[side]);
        part.region[side] > 0 && end.is_some_and(|end| end <= image.sides[side])
    };
    let (Part { origin, region }, sides) = (part, image.sides);
    Error::unless((0..3).all(is_inside), ErrorCode::InvalidSize, || {
        format!("{region:?} pixels from {origin:?} on are not in an image of {sides:?}")
    })
}
/// Checks that memory at `base` has room for all pixels of an image.
///
/// # Errors
/// `INVALID_SIZE` for memory that would exceed the address space.
pub fn check_whole_on_host(image: &ImageDesc, base: Address) -> Result<()> {
    base.offset(image.pitches[1].saturating_mul(image.layers()))?;
    Ok(())
}
/// Answers `urMemImageGetInfo`.
///
/// # Errors
/// `UNSUPPORTED_ENUMERATION` for an unknown property; as for `Answer::value`.
pub fn info(image: &ImageDesc, name: ur_image_info_t, answer: &mut Answer<'_>) -> Result<()> {
    use ImageKind as K;
    let ([width, second, third], [row, slice]) = (image.sides, image.pitches);
    // Sides that an image of this type does not have are reported as 0.
    let given = |has: bool, value: usize| if has { value } else { 0 };
    let is_array = matches!(image.kind, K::D1Array | K::D2Array);
    let is_flat = matches!(image.kind, K::D1 | K::D1Array);
    let is_3d = image.kind == K::D3;
    match name {
        ur_image_info_t::FORMAT => {
            let PixelFormat { channels, channel_type } = image.format;
            answer.slice(&[ur_value(&ORDERS, &channels).0, ur_value(&TYPES, &channel_type).0])
        }
        ur_image_info_t::ELEMENT_SIZE => answer.value(&image.format.pixel_bytes()),
        ur_image_info_t::ROW_PITCH => answer.value(&row),
        ur_image_info_t::SLICE_PITCH => answer.value(&given(is_array || is_3d, slice)),
        ur_image_info_t::WIDTH => answer.value(&width),
        ur_image_info_t::HEIGHT => answer.value(&given(!is_flat, second)),
        ur_image_info_t::DEPTH => answer.value(&given(is_3d, third)),
        ur_image_info_t::ARRAY_SIZE => answer.value(&given(is_array, image.layers())),
        ur_image_info_t::NUM_MIP_LEVELS | ur_image_info_t::NUM_SAMPLES => answer.value(&0u32),
        _ => Error::no_answer("an image", name),
    }
}
/// The row pitch and the slice pitch of an image region in the caller's memory, and how many bytes it spans. The region
/// has `width` bytes by `height` rows by `depth` slices. A pitch of 0 means that rows or slices are contiguous. In a 1D array, each
/// row is a slice.
///
/// # Errors
/// `INVALID_SIZE` for pitches that are too small, and for memory that would exceed the address space.
pub fn on_host(
    is_1d_array: bool,
    [row, slice]: [usize; 2],
    [width, height, depth]: [usize; 3],
) -> Result<([usize; 2], usize)> {
    let refused = |why: String| Error::new(ErrorCode::InvalidSize, why);
    let endless = || refused("region and pitches exceed the address space".into());
    let row = if row == 0 { width } else { row };
    if row < width {
        return Err(refused(format!("rows of {width} bytes do not fit a pitch of {row}")));
    }
    let in_slice = if is_1d_array { 1 } else { height };
    let rows = row.checked_mul(in_slice).ok_or_else(endless)?;
    let slice = if slice == 0 { rows } else { slice };
    if slice < rows {
        return Err(refused(format!(
            "{in_slice} rows, {row} bytes apart, do not fit a slice pitch of {slice}"
        )));
    }
    let pitch = if is_1d_array { slice } else { row };
    let bytes = || {
        let slices = slice.checked_mul(depth - 1)?;
        let bytes = pitch.checked_mul(height - 1)?.checked_add(width)?.checked_add(slices);
        bytes.filter(|&bytes| bytes <= isize::MAX as usize)
    };
    let bytes = bytes().ok_or_else(endless)?;
    Ok(([row, slice], bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: PixelFormat =
        PixelFormat { channels: Channels::Rgba, channel_type: ChannelType::Uint8 };

    fn image(kind: ImageKind) -> ImageDesc {
        ImageDesc {
            kind,
            sides: [20, 12, 1],
            format: FORMAT,
            pitches: [80, 80],
            is_read_only: false,
        }
    }

    #[test]
    fn parts_that_begin_or_end_outside_of_an_image_are_refused() {
        let image = image(ImageKind::D2);
        assert!(check(&image, Part { origin: [19, 11, 0], region: [1, 1, 1] }).is_ok());
        for (origin, region) in [
            ([0, 0, 0], [0, 1, 1]),
            ([20, 0, 0], [1, 1, 1]),
            ([0, 0, 1], [1, 1, 1]),
            ([0, 5, 0], [1, 8, 1]),
            ([usize::MAX, 0, 0], [2, 1, 1]),
        ] {
            let refused = check(&image, Part { origin, region }).map_err(|error| error.code());
            assert_eq!(refused, Err(ErrorCode::InvalidSize));
        }
    }

    #[test]
    fn an_array_of_rows_that_would_exceed_the_address_space_is_refused() {
        let image = image(ImageKind::D1Array);
        let before_the_end = |bytes: usize| {
            let base = Address::new(usize::MAX - bytes).unwrap();
            check_whole_on_host(&image, base).map_err(|error| error.code())
        };
        assert_eq!(before_the_end(12 * 80), Ok(()));
        assert_eq!(before_the_end(11 * 80), Err(ErrorCode::InvalidSize));
    }
}
