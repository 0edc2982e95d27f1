//! Images: pixels in host memory, row after row, as their description says. What they are, how large
//! and where each pixel is; their bytes are `mem.rs`'s, the commands on them `enqueue_image.rs`'s.
//! A kernel that is given an image is given the address of its first pixel.
use super::{Context, Mem, mem::Storage, native::Planes, usm::check_size};
use crate::memory::pictures::{Part, pitches};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_sys::{
    ur_image_channel_order_t, ur_image_channel_type_t, ur_image_desc_t, ur_image_format_t,
    ur_image_info_t, ur_mem_flags_t, ur_mem_type_t,
};

/// The most pixels along any side, and the most layers of an array.
pub const LONGEST_SIDE: usize = 1 << 16;

/// What makes an image of bytes.
#[derive(Debug)]
pub struct Image {
    format: ur_image_format_t,
    kind: ur_mem_type_t,
    /// Pixels, as regions count them: of an array the last side that it has is its layers.
    sides: [usize; 3],
    /// Bytes of a pixel.
    pixel: usize,
    /// Bytes from row to row, and from slice or layer to the next.
    pitches: [usize; 2],
}

impl Image {
    /// # Errors
    /// `UNSUPPORTED_IMAGE_FORMAT`, `INVALID_IMAGE_SIZE`; `INVALID_IMAGE_FORMAT_DESCRIPTOR` for
    /// pitches that do not fit.
    fn new(format: ur_image_format_t, desc: &ur_image_desc_t) -> Result<Self> {
        let pixel = pixel_bytes(format)?;
        let (kind, sides) = (desc.r#type, sides(desc)?);
        let pitches = pitches(desc, sides, pixel)?;
        Ok(Self { format, kind, sides, pixel, pitches })
    }
    /// Bytes of a pixel.
    pub(super) fn pixel(&self) -> usize {
        self.pixel
    }
    /// What each pixel means.
    pub(super) fn format(&self) -> ur_image_format_t {
        self.format
    }
    /// Whether its second side are layers of one row each.
    pub(super) fn is_1d_array(&self) -> bool {
        self.kind == ur_mem_type_t::IMAGE1D_ARRAY
    }
    /// How many bytes there are from its first to its last.
    fn bytes(&self) -> Option<usize> {
        let [width, height, depth] = self.sides;
        let ([second, third], row) = (self.steps(), width.checked_mul(self.pixel)?);
        let rows = second.checked_mul(height - 1)?.checked_add(row)?;
        third.checked_mul(depth - 1)?.checked_add(rows)
    }
    /// Bytes from one to the next of its second side, and of its third; a 1D array counts its layers
    /// where others count rows.
    fn steps(&self) -> [usize; 2] {
        let [row, slice] = self.pitches;
        if self.is_1d_array() { [slice, slice] } else { [row, slice] }
    }
    /// Where a part of it is, if its first pixel is at `base`.
    ///
    /// # Errors
    /// `INVALID_SIZE` for what is not all within the image.
    pub(super) fn part(&self, base: UsmPtr, part: Part) -> Result<Planes> {
        let outside = || {
            let (Part { origin, region }, sides) = (part, self.sides);
            Error::new(
                ErrorCode::InvalidSize,
                format!("{region:?} pixels from {origin:?} on are not in an image of {sides:?}"),
            )
        };
        for side in 0..3 {
            let end = part.origin[side].checked_add(part.region[side]);
            if part.region[side] == 0 || end.is_none_or(|end| end > self.sides[side]) {
                return Err(outside());
            }
        }
        let [pitch, slice] = self.steps();
        let [x, y, z] = part.origin;
        let base = base.offset(x * self.pixel + y * pitch + z * slice)?; // within the image
        Ok(Planes { base, pitch, slice })
    }
    /// # Errors
    /// `UNSUPPORTED_ENUMERATION` for what it does not know; as for `Answer::value`.
    pub(super) fn info(&self, name: ur_image_info_t, answer: &mut Answer<'_>) -> Result<()> {
        use ur_mem_type_t as T;
        let ([width, second, third], [row, slice]) = (self.sides, self.pitches);
        // A side that an image of this kind does not have is 0.
        let given = |has: bool, value: usize| if has { value } else { 0 };
        let is_array = matches!(self.kind, T::IMAGE1D_ARRAY | T::IMAGE2D_ARRAY);
        let is_flat = matches!(self.kind, T::IMAGE1D | T::IMAGE1D_ARRAY);
        let layers = if self.is_1d_array() { second } else { third };
        match name {
            ur_image_info_t::FORMAT => {
                answer.slice(&[self.format.channelOrder.0, self.format.channelType.0])
            }
            ur_image_info_t::ELEMENT_SIZE => answer.value(&self.pixel),
            ur_image_info_t::ROW_PITCH => answer.value(&row),
            ur_image_info_t::SLICE_PITCH => {
                answer.value(&given(is_array || self.kind == T::IMAGE3D, slice))
            }
            ur_image_info_t::WIDTH => answer.value(&width),
            ur_image_info_t::HEIGHT => answer.value(&given(!is_flat, second)),
            ur_image_info_t::DEPTH => answer.value(&given(self.kind == T::IMAGE3D, third)),
            ur_image_info_t::ARRAY_SIZE => answer.value(&given(is_array, layers)),
            ur_image_info_t::NUM_MIP_LEVELS | ur_image_info_t::NUM_SAMPLES => answer.value(&0u32),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("an image of the CPU has no answer to {name:?}"),
            )),
        }
    }
}

/// Makes an image: new memory, C's own, or a copy of that.
///
/// # Errors
/// As for `Image::new` and `Storage::for_flags`.
pub(super) fn create(
    context: Borrowed<'_, Context>,
    flags: ur_mem_flags_t,
    format: &ur_image_format_t,
    desc: &ur_image_desc_t,
    host: Option<UsmPtr>,
) -> Result<Owned<Mem>> {
    let image = Image::new(*format, desc)?;
    let bytes = image.bytes().ok_or(ErrorCode::InvalidImageSize)?;
    check_size(bytes, ErrorCode::InvalidImageSize)?;
    let storage = Storage::for_flags(flags, host, bytes)?;
    Ok(Owned::new(Mem::of_image(context.own()?, flags, storage, bytes, image)))
}

/// # Errors
/// `INVALID_IMAGE_SIZE`; `INVALID_IMAGE_FORMAT_DESCRIPTOR` for an image that is none of the kinds.
fn sides(desc: &ur_image_desc_t) -> Result<[usize; 3]> {
    use ur_mem_type_t as T;
    let sides = match desc.r#type {
        T::IMAGE1D => [desc.width, 1, 1],
        T::IMAGE1D_ARRAY => [desc.width, desc.arraySize, 1],
        T::IMAGE2D => [desc.width, desc.height, 1],
        T::IMAGE2D_ARRAY => [desc.width, desc.height, desc.arraySize],
        T::IMAGE3D => [desc.width, desc.height, desc.depth],
        other => {
            return Err(Error::new(
                ErrorCode::InvalidImageFormatDescriptor,
                format!("a CPU has no images of type {other:?}"),
            ));
        }
    };
    match sides.iter().all(|side| (1..=LONGEST_SIDE).contains(side)) {
        true => Ok(sides),
        false => Err(Error::new(
            ErrorCode::InvalidImageSize,
            format!("{sides:?} pixels: each side has 1 to {LONGEST_SIDE}"),
        )),
    }
}

/// How many bytes a pixel has.
///
/// # Errors
/// `UNSUPPORTED_IMAGE_FORMAT` for channels that do not go with their type.
fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
    use ur_image_channel_order_t as O;
    use ur_image_channel_type_t as T;
    let (order, channel) = (format.channelOrder, format.channelType);
    let is_byte =
        matches!(channel, T::SNORM_INT8 | T::UNORM_INT8 | T::SIGNED_INT8 | T::UNSIGNED_INT8);
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
        O::RGBA => Some(4),
        O::BGRA | O::ARGB | O::ABGR => is_byte.then_some(4),
        O::INTENSITY | O::LUMINANCE => is_norm.then_some(1),
        O::SRGBA => (channel == T::UNORM_INT8).then_some(4),
        _ => None,
    };
    let bytes = match (order, packed) {
        (O::RGB | O::RGBX, packed) => packed,
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
