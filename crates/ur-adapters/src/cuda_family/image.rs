//! Images: arrays of the driver's, one for each device. What they are, how large and how pixels lie in
//! memory of the host's; where the arrays are is `storage.rs`'s, the commands on them
//! `enqueue_image.rs`'s. A kernel that is given an image is given a surface, which reads and writes
//! pixels as they are: so there are the orders of channels whose pixels lie as they are named.
use super::{
    Context, Mem,
    device::has_images,
    driver::{Dialect, RawArray, layout::ArrayDesc},
    native::{
        array::{Array, End, LAYERED, SURFACES},
        stream::Stream,
    },
    storage::{Found, Shape, Storage},
};
use crate::memory::{
    flags::{check_flags, check_size},
    pictures::{pitches, sides},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::Owned,
};
use ur_sys::{
    ur_image_channel_order_t, ur_image_channel_type_t, ur_image_desc_t, ur_image_format_t,
    ur_image_info_t, ur_mem_flags_t, ur_mem_type_t,
};

/// Pixels in memory of C's: the first one, and bytes from row to row and from slice to slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnHost {
    pub(super) at: u64,
    pub(super) pitches: [usize; 2],
}

/// What makes an image of an array.
#[derive(Debug)]
pub struct Image {
    format: ur_image_format_t,
    kind: ur_mem_type_t,
    /// Pixels, as regions count them: of an array the last side that it has is its layers.
    sides: [usize; 3],
    /// Bytes of a pixel.
    pixel: usize,
    /// Bytes from row to row, and from slice or layer to the next, in memory of the host's.
    pitches: [usize; 2],
}

/// A part of an image: pixels, as regions count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its first pixel.
    pub(super) origin: [usize; 3],
    /// How many there are along each side; none is 0.
    pub(super) region: [usize; 3],
}
impl Part {
    /// Whether it has pixels in common with another part of the image that is as large.
    pub(super) fn shares_pixels(self, other: Self) -> bool {
        (0..3).all(|side| self.origin[side].abs_diff(other.origin[side]) < self.region[side])
    }
}

impl Image {
    fn new(format: ur_image_format_t, desc: &ur_image_desc_t) -> Result<Self> {
        let (_, channels, bytes) = elements(format)?;
        let (kind, sides, pixel) = (desc.r#type, sides(desc)?, channels as usize * bytes);
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
    /// The whole of it.
    fn whole(&self) -> Part {
        Part { origin: [0; 3], region: self.sides }
    }
    /// How many bytes its pixels have.
    fn bytes(&self) -> Option<usize> {
        self.sides.iter().try_fold(self.pixel, |all, side| all.checked_mul(*side))
    }
    /// What the driver is asked for: 0 for sides that there are not.
    fn array(&self) -> Result<ArrayDesc> {
        use ur_mem_type_t as T;
        let (format, channels, _) = elements(self.format)?;
        let [width, second, third] = self.sides;
        let (height, depth, layered) = match self.kind {
            T::IMAGE1D_ARRAY => (0, second, LAYERED),
            T::IMAGE2D => (second, 0, 0),
            T::IMAGE2D_ARRAY => (second, third, LAYERED),
            T::IMAGE3D => (second, third, 0),
            _ => (0, 0, 0),
        };
        Ok(ArrayDesc { width, height, depth, format, channels, flags: layered | SURFACES })
    }
    /// # Errors
    /// `INVALID_SIZE` for what is not all within the image.
    pub(super) fn check(&self, part: Part) -> Result<()> {
        let is_inside = |side: usize| {
            let end = part.origin[side].checked_add(part.region[side]);
            part.region[side] > 0 && end.is_some_and(|end| end <= self.sides[side])
        };
        if (0..3).all(is_inside) {
            return Ok(());
        }
        let (Part { origin, region }, sides) = (part, self.sides);
        Err(Error::new(
            ErrorCode::InvalidSize,
            format!("{region:?} pixels from {origin:?} on are not in an image of {sides:?}"),
        ))
    }
    /// As the driver counts: layers are the third side, whatever the second.
    fn driver_order(&self, [x, y, z]: [usize; 3], rest: usize) -> [usize; 3] {
        if self.is_1d_array() { [x, rest, y] } else { [x, y, z] }
    }
    /// Where a part begins in `array`.
    pub(super) fn end<D: Dialect>(&self, array: &Array<D>, origin: [usize; 3]) -> End {
        let [x, y, z] = self.driver_order(origin, 0);
        End::of(array, [x * self.pixel, y, z])
    }
    /// A region in bytes, rows and slices or layers.
    pub(super) fn extent(&self, region: [usize; 3]) -> [usize; 3] {
        let [width, height, depth] = self.driver_order(region, 1);
        [width * self.pixel, height, depth]
    }
    /// Copies pixels of C's into a part of `array`.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn write<D: Dialect>(
        &self,
        stream: &Stream<D>,
        array: &Array<D>,
        part: Part,
        from: OnHost,
    ) -> Result<()> {
        self.pieces(array, part, from, |image, host, region| stream.copy_box(image, host, region))
    }
    /// Copies a part of `array` to where C wants it.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn read<D: Dialect>(
        &self,
        stream: &Stream<D>,
        array: &Array<D>,
        part: Part,
        to: OnHost,
    ) -> Result<()> {
        self.pieces(array, part, to, |image, host, region| stream.copy_box(host, image, region))
    }
    /// Copies pixels from one array to another, which may be an image of another kind.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn copy<D: Dialect>(
        &self,
        stream: &Stream<D>,
        (from, out): (&Array<D>, [usize; 3]),
        (target, to, into): (&Self, &Array<D>, [usize; 3]),
        region: [usize; 3],
    ) -> Result<()> {
        if self.is_1d_array() == target.is_1d_array() {
            let (from, to) = (self.end(from, out), target.end(to, into));
            return stream.copy_box(to, from, self.extent(region));
        }
        // Layers to one are rows to the other.
        let [width, rows, slices] = region;
        (0..slices).flat_map(|z| (0..rows).map(move |y| (y, z))).try_for_each(|(y, z)| {
            let at = |origin: [usize; 3]| [origin[0], origin[1] + y, origin[2] + z];
            let (from, to) = (self.end(from, at(out)), target.end(to, at(into)));
            stream.copy_box(to, from, [width * self.pixel, 1, 1])
        })
    }
    /// A part as pieces that the driver can describe: to it a slice is a number of rows.
    fn pieces<D: Dialect>(
        &self,
        array: &Array<D>,
        part: Part,
        host: OnHost,
        mut copy: impl FnMut(End, End, [usize; 3]) -> Result<()>,
    ) -> Result<()> {
        let ([x, y, z], [row, slice]) = (part.origin, host.pitches);
        let [width, rows, slices] = self.extent(part.region);
        // Rows of one each lie at the slice pitch.
        let pitch = if rows == 1 { slice } else { row };
        if slices == 1 || slice.is_multiple_of(pitch) {
            let there = End::Memory(host.at, pitch.max(width), (slice / pitch).max(rows));
            return copy(self.end(array, [x, y, z]), there, [width, rows, slices]);
        }
        (0..slices).try_for_each(|n| {
            let there = End::Memory(host.at + (n * slice) as u64, pitch, rows);
            copy(self.end(array, [x, y, z + n]), there, [width, rows, 1])
        })
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
                format!("an image has no answer to {name:?}"),
            )),
        }
    }
}

/// Makes an image: new arrays, with C's pixels in the first if there are any. They are C's no longer
/// than that: no driver has arrays in memory of the host's.
///
/// # Errors
/// `UNSUPPORTED_FEATURE` without arrays, `UNSUPPORTED_IMAGE_FORMAT`, `INVALID_IMAGE_SIZE`,
/// `INVALID_IMAGE_FORMAT_DESCRIPTOR` for pitches that do not fit; `INVALID_VALUE` for flags that
/// contradict each other.
pub(super) fn create<D: Dialect>(
    context: Owned<Context<D>>,
    flags: ur_mem_flags_t,
    format: ur_image_format_t,
    desc: &ur_image_desc_t,
    host: Option<UsmPtr>,
) -> Result<Owned<Mem<D>>> {
    check_support::<D>()?;
    let image = Image::new(format, desc)?;
    check_flags(flags)?;
    let bytes = image.bytes().ok_or(ErrorCode::InvalidImageSize)?;
    check_size(bytes, ErrorCode::InvalidImageSize)?;
    let storage = Storage::each(context, Shape::Pixels(image.array()?, image.pixel));
    storage.ready().map_err(|error| match error.code() {
        ErrorCode::InvalidValue => Error::new(
            ErrorCode::InvalidImageSize,
            format!("the device has no images of {:?} pixels: {error}", image.sides),
        ),
        ErrorCode::OutOfDeviceMemory => error.with_code(ErrorCode::OutOfResources),
        _ => error,
    })?;
    if let Some(host) = host {
        host.offset(image.pitches[1].saturating_mul(image.sides[2]))?; // or it would wrap around
        let there = OnHost { at: host.addr() as u64, pitches: image.pitches };
        storage.aside(None, |stream, found| match found {
            Found::Array(array) => image.write(stream, array, image.whole(), there),
            Found::At(_) => Ok(()), // no image has one
        })?;
        storage.written_first();
    }
    Ok(Owned::new(Mem::of_image(flags, storage, bytes, image)))
}
/// An image over an array that C made.
///
/// # Errors
/// As for `create`; `INVALID_MEM_OBJECT` for an array that is not as described, or that the driver
/// does not know.
pub(super) fn adopt<D: Dialect>(
    context: Owned<Context<D>>,
    native: usize,
    format: ur_image_format_t,
    desc: &ur_image_desc_t,
    owned: bool,
) -> Result<Owned<Mem<D>>> {
    check_support::<D>()?;
    let refused = |why: String| Error::new(ErrorCode::InvalidMemObject, why);
    let image = Image::new(format, desc)?;
    let raw = RawArray::from_addr(native).ok_or_else(|| refused("0 is no array".into()))?;
    // Looked at before it is anybody's, so that what is refused stays C's.
    let seen = Array::<D>::adopted(&context.devices()[0], raw, false)?.describe();
    let (seen, asked) = (seen.map_err(|error| refused(error.to_string()))?, image.array()?);
    let shape = |of: &ArrayDesc| (of.width, of.height, of.depth, of.format, of.channels);
    if shape(&seen) != shape(&asked) {
        return Err(refused(format!("the array is {seen:?} and is said to be {asked:?}")));
    }
    let array = Array::adopted(&context.devices()[0], raw, owned)?;
    let shape = Shape::Pixels(seen, image.pixel);
    let bytes = image.bytes().ok_or(ErrorCode::InvalidImageSize)?;
    let storage = Storage::of_array(context, 0, array, shape);
    Ok(Owned::new(Mem::of_image(ur_mem_flags_t::READ_WRITE, storage, bytes, image)))
}
fn check_support<D: Dialect>() -> Result<()> {
    match has_images::<D>() {
        true => Ok(()),
        false => Error::unsupported("images on this driver"),
    }
}

/// The driver's number of an element's type, how many make a pixel, and the bytes of one.
///
/// # Errors
/// `UNSUPPORTED_IMAGE_FORMAT` for what a surface does not show as it is named.
fn elements(format: ur_image_format_t) -> Result<(i32, u32, usize)> {
    use ur_image_channel_order_t as O;
    use ur_image_channel_type_t as T;
    let channels = match format.channelOrder {
        O::R => Some(1),
        O::RG => Some(2),
        O::RGBA => Some(4),
        _ => None,
    };
    let element = match format.channelType {
        T::UNORM_INT8 | T::UNSIGNED_INT8 => Some((1, 1)),
        T::UNORM_INT16 | T::UNSIGNED_INT16 => Some((2, 2)),
        T::UNSIGNED_INT32 => Some((3, 4)),
        T::SNORM_INT8 | T::SIGNED_INT8 => Some((8, 1)),
        T::SNORM_INT16 | T::SIGNED_INT16 => Some((9, 2)),
        T::SIGNED_INT32 => Some((10, 4)),
        T::HALF_FLOAT => Some((16, 2)),
        T::FLOAT => Some((32, 4)),
        _ => None,
    };
    let made = channels.zip(element).map(|(channels, (number, bytes))| (number, channels, bytes));
    made.ok_or_else(|| {
        let (order, channel) = (format.channelOrder, format.channelType);
        Error::new(
            ErrorCode::UnsupportedImageFormat,
            format!("a device has no images with channels {order:?} of type {channel:?}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ur_image_channel_order_t as Order;
    use ur_image_channel_type_t as Channel;

    fn image(kind: ur_mem_type_t, sides: [usize; 3]) -> Result<Image> {
        let format =
            ur_image_format_t { channelOrder: Order::RGBA, channelType: Channel::UNSIGNED_INT8 };
        let [width, second, third] = sides;
        let layers = if kind == ur_mem_type_t::IMAGE1D_ARRAY { second } else { third };
        let desc = ur_image_desc_t {
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
        };
        Image::new(format, &desc)
    }

    #[test]
    fn the_driver_is_asked_for_the_sides_that_an_image_has() {
        use ur_mem_type_t as T;
        for (kind, sides, expected) in [
            (T::IMAGE1D, [40, 1, 1], (40, 0, 0, SURFACES)),
            (T::IMAGE2D, [20, 12, 1], (20, 12, 0, SURFACES)),
            (T::IMAGE3D, [12, 10, 6], (12, 10, 6, SURFACES)),
            (T::IMAGE1D_ARRAY, [24, 5, 1], (24, 0, 5, SURFACES | LAYERED)),
            (T::IMAGE2D_ARRAY, [12, 10, 4], (12, 10, 4, SURFACES | LAYERED)),
        ] {
            let array = image(kind, sides).unwrap().array().unwrap();
            assert_eq!((array.width, array.height, array.depth, array.flags), expected);
            assert_eq!((array.format, array.channels), (1, 4));
        }
    }
    #[test]
    fn layers_of_a_1d_array_are_the_drivers_third_side() {
        let image = image(ur_mem_type_t::IMAGE1D_ARRAY, [24, 5, 1]).unwrap();
        assert_eq!(image.extent([7, 3, 1]), [28, 1, 3]);
        assert_eq!(image.driver_order([2, 4, 0], 0), [2, 0, 4]);
    }
    #[test]
    fn parts_that_begin_or_end_outside_of_an_image_are_refused() {
        let image = image(ur_mem_type_t::IMAGE2D, [20, 12, 1]).unwrap();
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
    fn only_pixels_that_lie_as_their_order_says_make_images() {
        let bytes = |order, channel| {
            let format = ur_image_format_t { channelOrder: order, channelType: channel };
            let made = elements(format);
            made.map(|(_, channels, bytes)| channels as usize * bytes).map_err(|e| e.code())
        };
        assert_eq!(bytes(Order::RGBA, Channel::FLOAT), Ok(16));
        assert_eq!(bytes(Order::RG, Channel::SIGNED_INT16), Ok(4));
        let refused = Err(ErrorCode::UnsupportedImageFormat);
        assert_eq!(bytes(Order::BGRA, Channel::UNORM_INT8), refused);
        assert_eq!(bytes(Order::R, Channel::UNORM_SHORT_565), refused);
    }
}
