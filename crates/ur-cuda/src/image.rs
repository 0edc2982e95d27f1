//! Images: driver arrays, one for each device. Formats and sizes are described by `ur_hal::ImageDesc`; which device has
//! the current contents is known to `ur-core/src/queue/newest.rs`. A kernel gets an image as a surface object, which
//! reads and writes pixels in memory order. So only channel orders are supported whose memory order is that of their
//! name. The native handle of an image is its array.
use super::{
    DriverDevice, Family,
    context::DriverContext,
    device::has_images,
    driver::{
        Dialect, RawArray,
        layout::{ArrayDesc, Copy3d, CopyEnd},
    },
    native::{
        array::{Array, LAYERED, SURFACES},
        stream::Stream,
    },
};
use std::sync::Arc;
use ur_hal::{
    Address, ChannelType, Channels, Error, ErrorKind, ImageCopy, ImageDesc, ImageEnd, ImageKind,
    Layout, MakesImages, NativeHandle, PixelFormat, Placement, Result, copy_between,
};

/// The driver's description of the array; unused dimensions are 0.
fn array_of(image: &ImageDesc) -> Result<ArrayDesc> {
    use ImageKind as K;
    let format = element(image.format).ok_or(ErrorKind::UnsupportedFormat)?;
    let channels = image.format.channels.count() as u32;
    let [width, second, third] = image.sides;
    let (height, depth, layered) = match image.kind {
        K::D1 => (0, 0, 0),
        K::D1Array => (0, second, LAYERED),
        K::D2 => (second, 0, 0),
        K::D2Array => (second, third, LAYERED),
        K::D3 => (second, third, 0),
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
    /// The driver's handle.
    pub(super) fn handle(&self) -> NativeHandle {
        NativeHandle(self.array.raw().addr() as u64)
    }
    /// The array.
    pub fn array(&self) -> &Array<D> {
        &self.array
    }
    /// A position in the array as one end of a copy.
    fn end(&self, origin: [usize; 3]) -> CopyEnd {
        let [x, y, z] = driver_order(self.layout, origin, 0);
        self.array.at([x * self.layout.pixel, y, z])
    }
}
/// Enqueues a copy of pixels between arrays, or between an array and memory.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn copy<D: Dialect>(
    stream: &Stream<D>,
    &ImageCopy { image, origin, region, other }: &ImageCopy<&Arc<Pixels<D>>>,
) -> Result<()> {
    match other {
        ImageEnd::FromImage(from, out) => {
            let contexts = (image.array.context(), from.array.context());
            let (to_part, from_part) = ((image.layout, origin), (from.layout, out));
            copy_between(to_part, from_part, region, |into, out| {
                let (to, from) = (image.end(into.origin), from.end(out.origin));
                let what = Copy3d::new(to, from, extent(image.layout, into.region));
                match contexts.0 == contexts.1 {
                    true => stream.copy_3d(&what),
                    false => stream.copy_3d_peer(&what, contexts.0, contexts.1),
                }
            })
        }
        ImageEnd::FromMemory(at, pitches) | ImageEnd::ToMemory(at, pitches) => {
            let is_written = matches!(other, ImageEnd::ToMemory(..));
            pieces(image, (origin, region), (at, pitches), |there, host, size| {
                let (to, from) = if is_written { (host, there) } else { (there, host) };
                stream.copy_3d(&Copy3d::new(to, from, size))
            })
        }
    }
}
/// Divides a region into pieces that the driver can describe: it requires the slice pitch to be a multiple of
/// the row pitch.
fn pieces<D: Dialect>(
    image: &Pixels<D>,
    ([x, y, z], region): ([usize; 3], [usize; 3]),
    (at, [row, slice]): (Address, [usize; 2]),
    mut copy: impl FnMut(CopyEnd, CopyEnd, [usize; 3]) -> Result<()>,
) -> Result<()> {
    let [width, rows, slices] = extent(image.layout, region);
    // If slices have one row each, the rows are a slice pitch apart.
    let pitch = if rows == 1 { slice } else { row };
    if slices == 1 || slice.is_multiple_of(pitch) {
        let there = CopyEnd::memory(at.get() as u64, pitch.max(width), (slice / pitch).max(rows));
        return copy(image.end([x, y, z]), there, [width, rows, slices]);
    }
    (0..slices).try_for_each(|n| {
        let there = CopyEnd::memory((at.get() + n * slice) as u64, pitch, rows);
        copy(image.end([x, y, z + n]), there, [width, rows, 1])
    })
}

impl<D: Dialect> MakesImages for Family<D> {
    const PLACEMENT: Placement = Placement::Each;
    fn has_images() -> bool {
        has_images::<D>()
    }
    fn has_format(format: PixelFormat) -> bool {
        element(format).is_some()
    }
    fn image(
        _: &DriverContext<D>,
        device: &Arc<DriverDevice<D>>,
        _: Option<Address>,
        desc: &ImageDesc,
    ) -> Result<Pixels<D>> {
        let array = Array::new(device, &array_of(desc)?)?;
        Ok(Pixels { array, layout: desc.layout() })
    }
}
/// Wraps an existing driver array as an image; `owned`: the array is destroyed with it.
///
/// # Errors
/// `InvalidMemory` for an array that differs from the description, or that the driver does not know; else the driver's
/// error.
pub(super) fn adopt<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    native: NativeHandle,
    image: &ImageDesc,
    owned: bool,
) -> Result<Pixels<D>> {
    let refused = |why: String| Error::new(ErrorKind::InvalidMemory, why);
    let raw = RawArray::from_addr(native.0 as usize);
    let raw = raw.ok_or_else(|| refused("0 is no array".into()))?;
    // Checked before ownership is taken, so that the caller keeps an array that is refused.
    let seen = Array::<D>::adopted(device, raw, false)?.describe();
    let (seen, asked) = (seen.map_err(|error| refused(error.to_string()))?, array_of(image)?);
    let shape = |of: &ArrayDesc| (of.width, of.height, of.depth, of.format, of.channels);
    if shape(&seen) != shape(&asked) {
        return Err(refused(format!("the array is {seen:?} and is said to be {asked:?}")));
    }
    Ok(Pixels { array: Array::adopted(device, raw, owned)?, layout: image.layout() })
}

/// The driver's format number of a channel; `None` for formats that a surface does not show in the order of their name.
fn element(format: PixelFormat) -> Option<i32> {
    use ChannelType as T;
    use Channels as C;
    if !matches!(format.channels, C::R | C::Rx | C::Rg | C::Rgx | C::Rgba | C::Rgbx) {
        return None;
    }
    Some(match format.channel_type {
        T::Unorm8 | T::Uint8 => 1,
        T::Unorm16 | T::Uint16 => 2,
        T::Uint32 => 3,
        T::Snorm8 | T::Sint8 => 8,
        T::Snorm16 | T::Sint16 => 9,
        T::Sint32 => 10,
        T::Half => 16,
        T::Float => 32,
        T::Unorm565 | T::Unorm555 | T::Unorm101010 => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(kind: ImageKind, sides: [usize; 3]) -> ImageDesc {
        let format = PixelFormat { channels: Channels::Rgba, channel_type: ChannelType::Uint8 };
        ImageDesc { kind, sides, format, pitches: [0; 2], is_read_only: false }
    }

    #[test]
    fn the_driver_is_asked_for_the_sides_that_an_image_has() {
        use ImageKind as K;
        for (kind, sides, expected) in [
            (K::D1, [40, 1, 1], (40, 0, 0, SURFACES)),
            (K::D2, [20, 12, 1], (20, 12, 0, SURFACES)),
            (K::D3, [12, 10, 6], (12, 10, 6, SURFACES)),
            (K::D1Array, [24, 5, 1], (24, 0, 5, SURFACES | LAYERED)),
            (K::D2Array, [12, 10, 4], (12, 10, 4, SURFACES | LAYERED)),
        ] {
            let array = array_of(&image(kind, sides)).unwrap();
            assert_eq!((array.width, array.height, array.depth, array.flags), expected);
            assert_eq!((array.format, array.channels), (1, 4));
        }
    }
    #[test]
    fn layers_of_a_1d_array_are_the_drivers_third_side() {
        let image = image(ImageKind::D1Array, [24, 5, 1]);
        assert_eq!(extent(image.layout(), [7, 3, 1]), [28, 1, 3]);
        assert_eq!(driver_order(image.layout(), [2, 4, 0], 0), [2, 0, 4]);
    }
    #[test]
    fn only_pixels_that_lie_as_their_order_says_make_images() {
        use {ChannelType as T, Channels as C};
        let has =
            |channels, channel_type| element(PixelFormat { channels, channel_type }).is_some();
        assert!(has(C::Rgba, T::Float) && has(C::Rg, T::Sint16) && has(C::Rx, T::Unorm8));
        assert!(has(C::Rgx, T::Sint16) && has(C::Rgbx, T::Float));
        assert!(!has(C::Bgra, T::Unorm8) && !has(C::A, T::Unorm8) && !has(C::Rgb, T::Unorm8));
        assert!(!has(C::R, T::Unorm565));
    }
}
