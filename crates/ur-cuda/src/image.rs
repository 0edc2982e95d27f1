//! Images: arrays of the driver's, one for each device. What an image is beyond that is
//! `memory/pictures.rs`'s; where the arrays are is `storage.rs`'s, the commands on them
//! `enqueue_image.rs`'s. A kernel that is given an image is given a surface, which reads and writes
//! pixels as they are: so there are the orders of channels whose pixels lie as they are named.
use super::{
    Context, Family, Mem,
    device::has_images,
    driver::{Dialect, RawArray, layout::ArrayDesc},
    native::{
        array::{Array, End, LAYERED, SURFACES},
        stream::Stream,
    },
    storage::{Found, Shape, Storage},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Owned,
};
use ur_core::memory::{
    flags::{check_flags, check_size},
    pictures::{Image, LONGEST_SIDE, OnHost, Part},
};
use ur_core::over_driver::mem::check_host;
use ur_sys::{
    ur_image_channel_order_t, ur_image_channel_type_t, ur_image_desc_t, ur_image_format_t,
    ur_mem_flags_t, ur_mem_type_t,
};

/// # Errors
/// `UNSUPPORTED_IMAGE_FORMAT`; as for [`Image::new`].
fn new(format: ur_image_format_t, desc: &ur_image_desc_t) -> Result<Image> {
    let (_, channels, bytes) = elements(format)?;
    Image::new(format, channels as usize * bytes, desc, LONGEST_SIDE)
}
/// What the driver is asked for: 0 for sides that there are not.
fn array_of(image: &Image) -> Result<ArrayDesc> {
    use ur_mem_type_t as T;
    let (format, channels, _) = elements(image.format())?;
    let [width, second, third] = image.sides();
    let (height, depth, layered) = match image.kind() {
        T::IMAGE1D_ARRAY => (0, second, LAYERED),
        T::IMAGE2D => (second, 0, 0),
        T::IMAGE2D_ARRAY => (second, third, LAYERED),
        T::IMAGE3D => (second, third, 0),
        _ => (0, 0, 0),
    };
    Ok(ArrayDesc { width, height, depth, format, channels, flags: layered | SURFACES })
}
/// As the driver counts: layers are the third side, whatever the second.
fn driver_order(image: &Image, [x, y, z]: [usize; 3], rest: usize) -> [usize; 3] {
    if image.is_1d_array() { [x, rest, y] } else { [x, y, z] }
}
/// Where a part begins in `array`.
fn end<D: Dialect>(image: &Image, array: &Array<D>, origin: [usize; 3]) -> End {
    let [x, y, z] = driver_order(image, origin, 0);
    End::of(array, [x * image.pixel(), y, z])
}
/// A region in bytes, rows and slices or layers.
fn extent(image: &Image, region: [usize; 3]) -> [usize; 3] {
    let [width, height, depth] = driver_order(image, region, 1);
    [width * image.pixel(), height, depth]
}
/// Copies pixels of C's into a part of `array`.
///
/// # Errors
/// The driver's own.
pub(super) fn write<D: Dialect>(
    stream: &Stream<D>,
    (image, array): (&Image, &Array<D>),
    part: Part,
    from: OnHost,
) -> Result<()> {
    pieces((image, array), part, from, |there, host, region| stream.copy_box(there, host, region))
}
/// Copies a part of `array` to where C wants it.
///
/// # Errors
/// The driver's own.
pub(super) fn read<D: Dialect>(
    stream: &Stream<D>,
    (image, array): (&Image, &Array<D>),
    part: Part,
    to: OnHost,
) -> Result<()> {
    pieces((image, array), part, to, |there, host, region| stream.copy_box(host, there, region))
}
/// Copies pixels from one array to another, which may be an image of another kind.
///
/// # Errors
/// The driver's own.
pub(super) fn copy<D: Dialect>(
    stream: &Stream<D>,
    (source, from, out): (&Image, &Array<D>, [usize; 3]),
    (target, to, into): (&Image, &Array<D>, [usize; 3]),
    region: [usize; 3],
) -> Result<()> {
    if source.is_1d_array() == target.is_1d_array() {
        let (from, to) = (end(source, from, out), end(target, to, into));
        return stream.copy_box(to, from, extent(source, region));
    }
    // Layers to one are rows to the other.
    let [width, rows, slices] = region;
    (0..slices).flat_map(|z| (0..rows).map(move |y| (y, z))).try_for_each(|(y, z)| {
        let at = |origin: [usize; 3]| [origin[0], origin[1] + y, origin[2] + z];
        let (from, to) = (end(source, from, at(out)), end(target, to, at(into)));
        stream.copy_box(to, from, [width * source.pixel(), 1, 1])
    })
}
/// A part as pieces that the driver can describe: to it a slice is a number of rows.
fn pieces<D: Dialect>(
    (image, array): (&Image, &Array<D>),
    part: Part,
    host: OnHost,
    mut copy: impl FnMut(End, End, [usize; 3]) -> Result<()>,
) -> Result<()> {
    let ([x, y, z], [row, slice]) = (part.origin, host.pitches);
    let [width, rows, slices] = extent(image, part.region);
    // Rows of one each lie at the slice pitch.
    let pitch = if rows == 1 { slice } else { row };
    if slices == 1 || slice.is_multiple_of(pitch) {
        let there = End::Memory(host.at as u64, pitch.max(width), (slice / pitch).max(rows));
        return copy(end(image, array, [x, y, z]), there, [width, rows, slices]);
    }
    (0..slices).try_for_each(|n| {
        let there = End::Memory((host.at + n * slice) as u64, pitch, rows);
        copy(end(image, array, [x, y, z + n]), there, [width, rows, 1])
    })
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
    let image = new(format, desc)?;
    check_flags(flags)?;
    let bytes = image.bytes().ok_or(ErrorCode::InvalidImageSize)?;
    check_size(bytes, ErrorCode::InvalidImageSize)?;
    host.map_or(Ok(()), |host| check_host::<Family<D>>(flags, host, bytes))?;
    let storage = Storage::each(context, Shape::Pixels(array_of(&image)?, image.pixel()));
    storage.ready().map_err(|error| match error.code() {
        ErrorCode::InvalidValue => Error::new(
            ErrorCode::InvalidImageSize,
            format!("the device has no images of {:?} pixels: {error}", image.sides()),
        ),
        ErrorCode::OutOfDeviceMemory => error.with_code(ErrorCode::OutOfResources),
        _ => error,
    })?;
    if let Some(host) = host {
        let there = image.whole_on_host(host)?;
        storage.aside(None, |stream, found| match found {
            Found::Array(array) => write(stream, (&image, array), image.whole(), there),
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
    let image = new(format, desc)?;
    let raw = RawArray::from_addr(native).ok_or_else(|| refused("0 is no array".into()))?;
    // Looked at before it is anybody's, so that what is refused stays C's.
    let seen = Array::<D>::adopted(&context.devices()[0], raw, false)?.describe();
    let (seen, asked) = (seen.map_err(|error| refused(error.to_string()))?, array_of(&image)?);
    let shape = |of: &ArrayDesc| (of.width, of.height, of.depth, of.format, of.channels);
    if shape(&seen) != shape(&asked) {
        return Err(refused(format!("the array is {seen:?} and is said to be {asked:?}")));
    }
    let array = Array::adopted(&context.devices()[0], raw, owned)?;
    let shape = Shape::Pixels(seen, image.pixel());
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
        O::R | O::RX => Some(1),
        O::RG | O::RGX => Some(2),
        O::RGBA | O::RGBX => Some(4),
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
    use ur_core::memory::pictures::described;
    use ur_image_channel_order_t as Order;
    use ur_image_channel_type_t as Channel;

    fn image(kind: ur_mem_type_t, sides: [usize; 3]) -> Result<Image> {
        let format =
            ur_image_format_t { channelOrder: Order::RGBA, channelType: Channel::UNSIGNED_INT8 };
        new(format, &described(kind, sides))
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
            let array = array_of(&image(kind, sides).unwrap()).unwrap();
            assert_eq!((array.width, array.height, array.depth, array.flags), expected);
            assert_eq!((array.format, array.channels), (1, 4));
        }
    }
    #[test]
    fn layers_of_a_1d_array_are_the_drivers_third_side() {
        let image = image(ur_mem_type_t::IMAGE1D_ARRAY, [24, 5, 1]).unwrap();
        assert_eq!(extent(&image, [7, 3, 1]), [28, 1, 3]);
        assert_eq!(driver_order(&image, [2, 4, 0], 0), [2, 0, 4]);
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
        assert_eq!(bytes(Order::RX, Channel::UNORM_INT8), Ok(1));
        assert_eq!(bytes(Order::RGX, Channel::SIGNED_INT16), Ok(4));
        assert_eq!(bytes(Order::RGBX, Channel::FLOAT), Ok(16));
        let refused = Err(ErrorCode::UnsupportedImageFormat);
        assert_eq!(bytes(Order::BGRA, Channel::UNORM_INT8), refused);
        assert_eq!(bytes(Order::A, Channel::UNORM_INT8), refused);
        assert_eq!(bytes(Order::RGB, Channel::UNORM_INT8), refused);
        assert_eq!(bytes(Order::R, Channel::UNORM_SHORT_565), refused);
    }
}
