//! Images as callers describe them: their sizes in pixels, and the layout of their pixels in host memory. The driver's
//! image objects are the backend's.
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
};
use ur_sys::{
    ur_image_desc_t, ur_image_format_t, ur_image_info_t, ur_mem_type_t, ur_rect_offset_t,
    ur_rect_region_t,
};

/// A limit for the sides of images, in pixels, that exceeds every driver's own limit.
pub const LONGEST_SIDE: usize = 1 << 20;

/// The sizes of an image in pixels.
///
/// # Errors
/// `INVALID_IMAGE_SIZE`; `INVALID_IMAGE_FORMAT_DESCRIPTOR` for a type that is not an image type.
fn sides(desc: &ur_image_desc_t, longest: usize) -> Result<[usize; 3]> {
    use ur_mem_type_t as T;
    let sides = match desc.r#type {
        T::IMAGE1D => [desc.width, 1, 1],
        T::IMAGE1D_ARRAY => [desc.width, desc.arraySize, 1],
        T::IMAGE2D => [desc.width, desc.height, 1],
        T::IMAGE2D_ARRAY => [desc.width, desc.height, desc.arraySize],
        T::IMAGE3D => [desc.width, desc.height, desc.depth],
        other => {
            return Error::refuse(
                ErrorCode::InvalidImageFormatDescriptor,
                format!("there are no images of type {other:?}"),
            );
        }
    };
    match sides.iter().all(|side| (1..=longest).contains(side)) {
        true => Ok(sides),
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

/// The place of pixels in host memory.
#[derive(Clone, Copy, Debug)]
pub struct OnHost {
    /// The address of the first pixel.
    pub at: usize,
    /// Bytes from row to row, and from slice to slice.
    pub pitches: [usize; 2],
}

/// The shape and the format of an image.
#[derive(Clone, Debug)]
pub struct Image {
    format: ur_image_format_t,
    kind: ur_mem_type_t,
    /// Sizes in pixels, in the order of a region's sides. The last side of an array is its number of layers.
    sides: [usize; 3],
    /// Bytes per pixel.
    pixel: usize,
    /// Bytes from row to row, and from slice or layer to the next, in host memory.
    pitches: [usize; 2],
}

/// How the pixels of an image are counted.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Bytes per pixel.
    pub pixel: usize,
    /// Whether it is a 1D array, whose second side counts layers of one row each.
    pub is_1d_array: bool,
}
/// A region of an image, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its first pixel.
    pub origin: [usize; 3],
    /// Pixels along each side; none is 0.
    pub region: [usize; 3],
}
impl Part {
    /// A region in the terms of UR's entries.
    ///
    /// # Errors
    /// `INVALID_SIZE` for numbers that do not fit `usize`.
    pub fn new(origin: ur_rect_offset_t, region: ur_rect_region_t) -> Result<Self> {
        let number = |n: u64| usize::try_from(n).map_err(|_| Error::from(ErrorCode::InvalidSize));
        Ok(Self {
            origin: [number(origin.x)?, number(origin.y)?, number(origin.z)?],
            region: [number(region.width)?, number(region.height)?, number(region.depth)?],
        })
    }
    /// Whether it overlaps another region of the same image with the same size.
    pub fn shares_pixels(self, other: Self) -> bool {
        (0..3).all(|side| self.origin[side].abs_diff(other.origin[side]) < self.region[side])
    }
}

impl Image {
    /// An image with `pixel` bytes per pixel, and at most `longest` pixels along each side.
    ///
    /// # Errors
    /// `INVALID_IMAGE_SIZE`; `INVALID_IMAGE_FORMAT_DESCRIPTOR` for a type that is not an image type, and for invalid
    /// pitches.
    pub fn new(
        format: ur_image_format_t,
        pixel: usize,
        desc: &ur_image_desc_t,
        longest: usize,
    ) -> Result<Self> {
        let (kind, sides) = (desc.r#type, sides(desc, longest)?);
        let pitches = pitches(desc, sides, pixel)?;
        Ok(Self { format, kind, sides, pixel, pitches })
    }
    /// Bytes per pixel.
    pub fn pixel(&self) -> usize {
        self.pixel
    }
    /// The type of the image, which determines the sides that it has.
    pub fn kind(&self) -> ur_mem_type_t {
        self.kind
    }
    /// Pixels along each side; 1 along sides that it does not have.
    pub fn sides(&self) -> [usize; 3] {
        self.sides
    }
    /// The format of each pixel.
    pub fn format(&self) -> ur_image_format_t {
        self.format
    }
    /// Bytes from row to row, and from slice or layer to the next, in host memory.
    pub fn pitches(&self) -> [usize; 2] {
        self.pitches
    }
    /// Whether it is a 1D array, whose second side counts layers of one row each.
    pub fn is_1d_array(&self) -> bool {
        self.kind == ur_mem_type_t::IMAGE1D_ARRAY
    }
    /// How its pixels are counted.
    pub fn layout(&self) -> Layout {
        Layout { pixel: self.pixel, is_1d_array: self.is_1d_array() }
    }
    /// The region that is the whole image.
    pub fn whole(&self) -> Part {
        Part { origin: [0; 3], region: self.sides }
    }
    /// The bytes of all its pixels, without padding; `None` if they do not fit `usize`.
    pub fn bytes(&self) -> Option<usize> {
        self.sides.iter().try_fold(self.pixel, |all, side| all.checked_mul(*side))
    }
    /// Checks that a region is inside the image and not empty.
    ///
    /// # Errors
    /// `INVALID_SIZE` if it is not.
    pub fn check(&self, part: Part) -> Result<()> {
        let is_inside = |side: usize| {
            let end = part.origin[side].checked_add(part.region[side]);
            part.region[side] > 0 && end.is_some_and(|end| end <= self.sides[side])
        };
        if (0..3).all(is_inside) {
            return Ok(());
        }
        let (Part { origin, region }, sides) = (part, self.sides);
        Error::refuse(
            ErrorCode::InvalidSize,
            format!("{region:?} pixels from {origin:?} on are not in an image of {sides:?}"),
        )
    }
    /// How many layers, or slices of a 3D image, lie one slice pitch apart.
    fn layers(&self) -> usize {
        self.sides[if self.is_1d_array() { 1 } else { 2 }]
    }
    /// The place of all its pixels in the caller's memory at `base`.
    ///
    /// # Errors
    /// `INVALID_SIZE` for memory that would exceed the address space.
    pub fn whole_on_host(&self, base: UsmPtr) -> Result<OnHost> {
        base.offset(self.pitches[1].saturating_mul(self.layers()))?;
        Ok(OnHost { at: base.addr(), pitches: self.pitches })
    }
    /// Answers `urMemImageGetInfo`.
    ///
    /// # Errors
    /// `UNSUPPORTED_ENUMERATION` for an unknown property; as for `Answer::value`.
    pub fn info(&self, name: ur_image_info_t, answer: &mut Answer<'_>) -> Result<()> {
        use ur_mem_type_t as T;
        let ([width, second, third], [row, slice]) = (self.sides, self.pitches);
        // Sides that an image of this type does not have are reported as 0.
        let given = |has: bool, value: usize| if has { value } else { 0 };
        let is_array = matches!(self.kind, T::IMAGE1D_ARRAY | T::IMAGE2D_ARRAY);
        let is_flat = matches!(self.kind, T::IMAGE1D | T::IMAGE1D_ARRAY);
        let layers = self.layers();
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
            _ => Error::no_answer("an image", name),
        }
    }
}
/// The place of an image region in the caller's memory at `base`, and how many bytes it spans. The region has `width`
/// bytes by `height` rows by `depth` slices. A pitch of 0 means that rows or slices are contiguous. In a 1D array, each
/// row is a slice.
///
/// # Errors
/// `INVALID_SIZE` for pitches that are too small, and for memory that would exceed the address space.
pub fn on_host(
    is_1d_array: bool,
    base: UsmPtr,
    [row, slice]: [usize; 2],
    [width, height, depth]: [usize; 3],
) -> Result<(OnHost, usize)> {
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
    Ok((OnHost { at: base.addr(), pitches: [row, slice] }, bytes))
}

/// The descriptor of an image with contiguous rows and slices.
pub fn described(kind: ur_mem_type_t, sides: [usize; 3]) -> ur_image_desc_t {
    let [width, second, third] = sides;
    let layers = if kind == ur_mem_type_t::IMAGE1D_ARRAY { second } else { third };
    ur_image_desc_t {
        stype: ur_sys::ur_structure_type_t::IMAGE_DESC,
        pNext: std::ptr::null(),
        r#type: kind,
        width,
        height: second,
        depth: third,
        arraySize: layers,
        rowPitch: 0,
        slicePitch: 0,
        numMipLevel: 0,
        numSamples: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ur_sys::{ur_image_channel_order_t as Order, ur_image_channel_type_t as Channel};

    #[test]
    fn parts_that_begin_or_end_outside_of_an_image_are_refused() {
        let format =
            ur_image_format_t { channelOrder: Order::RGBA, channelType: Channel::UNSIGNED_INT8 };
        let desc = described(ur_mem_type_t::IMAGE2D, [20, 12, 1]);
        let image = Image::new(format, 4, &desc, LONGEST_SIDE).unwrap();
        assert!(image.check(Part { origin: [19, 11, 0], region: [1, 1, 1] }).is_ok());
        for (origin, region) in [
            ([0, 0, 0], [0, 1, 1]),
            ([20, 0, 0], [1, 1, 1]),
            ([0, 0, 1], [1, 1, 1]),
            ([0, 5, 0], [1, 8, 1]),
            ([usize::MAX, 0, 0], [2, 1, 1]),
        ] {
            let refused = image.check(Part { origin, region }).map_err(|error| error.code());
            assert_eq!(refused, Err(ErrorCode::InvalidSize));
        }
    }

    #[test]
    fn an_array_of_rows_that_would_exceed_the_address_space_is_refused() {
        let format =
            ur_image_format_t { channelOrder: Order::RGBA, channelType: Channel::UNSIGNED_INT8 };
        let desc = described(ur_mem_type_t::IMAGE1D_ARRAY, [20, 12, 1]);
        let image = Image::new(format, 4, &desc, LONGEST_SIDE).unwrap();
        let [_, slice] = image.pitches();
        let before_the_end = |bytes: usize| {
            let base = UsmPtr::new(std::ptr::without_provenance_mut(usize::MAX - bytes)).unwrap();
            image.whole_on_host(base).map(drop).map_err(|error| error.code())
        };
        assert_eq!(before_the_end(12 * slice), Ok(()));
        assert_eq!(before_the_end(11 * slice), Err(ErrorCode::InvalidSize));
    }
}
