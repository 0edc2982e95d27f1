//! Images: driver arrays, one for each device. Formats and sizes are in `ur-core/src/memory/image_layout.rs`;
//! which device has the current contents is known to `ur-core/src/queue/newest.rs`. A kernel gets an image as a
//! surface object, which reads and writes pixels in memory order. So only channel orders are supported whose
//! memory order is that of their name.
use super::{
    DriverDevice, Family,
    device::has_images,
    driver::{Dialect, RawArray, layout::ArrayDesc},
    native::{
        array::{Array, End, LAYERED, SURFACES},
        stream::Stream,
    },
};
use std::sync::Arc;
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_core::{
    memory::image_layout::{Image, Layout},
    over_driver::mem::not_made,
};
use ur_hal::{Address, ImageCopy, ImageEnd};
use ur_sys::{ur_image_channel_order_t, ur_image_channel_type_t, ur_image_format_t, ur_mem_type_t};

/// The driver's description of the array; unused dimensions are 0.
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
/// An image on one device: an array, and the layout of its pixels.
#[derive(Debug)]
pub struct Pixels<D: Dialect> {
    array: Array<D>,
    layout: Layout,
}
/// Coordinates in the driver's order: the layer index is the third, also of an array of one-dimensional
/// images. `rest` is the value of the unused second one.
fn driver_order(layout: Layout, [x, y, z]: [usize; 3], rest: usize) -> [usize; 3] {
    if layout.is_1d_array { [x, rest, y] } else { [x, y, z] }
}
/// The size of a region: bytes of a row, rows, and slices or layers.
fn extent(layout: Layout, region: [usize; 3]) -> [usize; 3] {
    let [width, height, depth] = driver_order(layout, region, 1);
    [width * layout.pixel, height, depth]
}
impl<D: Dialect> Pixels<D> {
    /// Wraps an array with this layout.
    pub(super) fn new(array: Array<D>, layout: Layout) -> Self {
        Self { array, layout }
    }
    /// The array.
    pub fn array(&self) -> &Array<D> {
        &self.array
    }
    /// A position in the array as one end of a copy.
    fn end(&self, origin: [usize; 3]) -> End {
        let [x, y, z] = driver_order(self.layout, origin, 0);
        End::of(&self.array, [x * self.layout.pixel, y, z])
    }
}
/// Enqueues a copy of pixels between arrays, or between an array and memory.
///
/// # Errors
/// `UNSUPPORTED_FEATURE` for a copy from memory to memory; else the driver's error.
pub(super) fn copy<D: Dialect>(
    stream: &Stream<D>,
    copy: &ImageCopy<'_, Family<D>>,
) -> ur_hal::Result<()> {
    let region = copy.region;
    match (copy.to, copy.from) {
        (ImageEnd::Image(to, into), ImageEnd::Image(from, out)) => {
            if from.layout.is_1d_array == to.layout.is_1d_array {
                let (region, ends) = (extent(from.layout, region), (to.end(into), from.end(out)));
                let contexts = (to.array.context(), from.array.context());
                return match contexts.0 == contexts.1 {
                    true => stream.copy_box(ends.0, ends.1, region),
                    false => {
                        stream.copy_box_between((contexts.0, ends.0), (contexts.1, ends.1), region)
                    }
                };
            }
            // The second coordinate is a layer in one image and a row in the other: copy row by row.
            let [width, rows, slices] = region;
            (0..slices).flat_map(|z| (0..rows).map(move |y| (y, z))).try_for_each(|(y, z)| {
                let at = |origin: [usize; 3]| [origin[0], origin[1] + y, origin[2] + z];
                let row = [width * from.layout.pixel, 1, 1];
                stream.copy_box(to.end(at(into)), from.end(at(out)), row)
            })
        }
        (ImageEnd::Image(to, into), ImageEnd::Memory(at, pitches)) => {
            pieces(to, (into, region), (at, pitches), |there, host, size| {
                stream.copy_box(there, host, size)
            })
        }
        (ImageEnd::Memory(at, pitches), ImageEnd::Image(from, out)) => {
            pieces(from, (out, region), (at, pitches), |there, host, size| {
                stream.copy_box(host, there, size)
            })
        }
        (ImageEnd::Memory(..), ImageEnd::Memory(..)) => {
            ur_hal::Error::unsupported("a copy of pixels without an image")
        }
    }
}
/// Divides a region into pieces that the driver can describe: it requires the slice pitch to be a multiple of
/// the row pitch.
fn pieces<D: Dialect>(
    image: &Pixels<D>,
    ([x, y, z], region): ([usize; 3], [usize; 3]),
    (at, [row, slice]): (Address, [usize; 2]),
    mut copy: impl FnMut(End, End, [usize; 3]) -> ur_hal::Result<()>,
) -> ur_hal::Result<()> {
    let [width, rows, slices] = extent(image.layout, region);
    // If slices have one row each, the rows are a slice pitch apart.
    let pitch = if rows == 1 { slice } else { row };
    if slices == 1 || slice.is_multiple_of(pitch) {
        let there = End::Memory(at.get() as u64, pitch.max(width), (slice / pitch).max(rows));
        return copy(image.end([x, y, z]), there, [width, rows, slices]);
    }
    (0..slices).try_for_each(|n| {
        let there = End::Memory((at.get() + n * slice) as u64, pitch, rows);
        copy(image.end([x, y, z + n]), there, [width, rows, 1])
    })
}

/// Creates an image on a device. Driver arrays cannot be in host memory.
///
/// # Errors
/// `INVALID_IMAGE_SIZE`; else the driver's error.
pub(super) fn create<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    image: &Image,
) -> Result<Pixels<D>> {
    let made = Array::new(device, &array_of(image)?).map_err(|error| not_made(error.into(), image));
    Ok(Pixels::new(made?, image.layout()))
}
/// Wraps an existing driver array as an image; `owned`: the array is destroyed with it.
///
/// # Errors
/// As for `create`; `INVALID_MEM_OBJECT` for an array that differs from the description, or that the driver
/// does not know.
pub(super) fn adopt<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    native: usize,
    image: &Image,
    owned: bool,
) -> Result<Pixels<D>> {
    let refused = |why: String| Error::new(ErrorCode::InvalidMemObject, why);
    let raw = RawArray::from_addr(native).ok_or_else(|| refused("0 is no array".into()))?;
    // Checked before ownership is taken, so that the caller keeps an array that is refused.
    let seen = Array::<D>::adopted(device, raw, false)?.describe();
    let (seen, asked) = (seen.map_err(|error| refused(error.to_string()))?, array_of(image)?);
    let shape = |of: &ArrayDesc| (of.width, of.height, of.depth, of.format, of.channels);
    if shape(&seen) != shape(&asked) {
        return Err(refused(format!("the array is {seen:?} and is said to be {asked:?}")));
    }
    Ok(Pixels::new(Array::adopted(device, raw, owned)?, image.layout()))
}
/// # Errors
/// `UNSUPPORTED_FEATURE` if the driver has no arrays.
pub(super) fn check_support<D: Dialect>() -> Result<()> {
    match has_images::<D>() {
        true => Ok(()),
        false => Error::unsupported("images on this driver"),
    }
}

/// The driver's format number of a channel, the number of channels, and the bytes of a channel.
///
/// # Errors
/// `UNSUPPORTED_IMAGE_FORMAT` for formats that a surface does not show in the order of their name.
pub(super) fn elements(format: ur_image_format_t) -> Result<(i32, u32, usize)> {
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
    use ur_core::memory::image_layout::{LONGEST_SIDE, described};
    use ur_image_channel_order_t as Order;
    use ur_image_channel_type_t as Channel;

    fn image(kind: ur_mem_type_t, sides: [usize; 3]) -> Result<Image> {
        let format =
            ur_image_format_t { channelOrder: Order::RGBA, channelType: Channel::UNSIGNED_INT8 };
        Image::new(format, 4, &described(kind, sides), LONGEST_SIDE)
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
        assert_eq!(extent(image.layout(), [7, 3, 1]), [28, 1, 3]);
        assert_eq!(driver_order(image.layout(), [2, 4, 0], 0), [2, 0, 4]);
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
