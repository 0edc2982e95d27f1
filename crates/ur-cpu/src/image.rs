//! Images: pixels in host memory, row by row. Their formats and sizes are described by `ur_hal::ImageDesc`; the core
//! allocates their memory. A kernel gets the address of the first pixel of an image.
use super::{
    Cpu,
    bytes::Planes,
    device::{DriverContext, DriverDevice},
    engine::Work,
};
use std::sync::Arc;
use ur_hal::{
    Address, ChannelType, Channels, Error, ImageCopy, ImageDesc, ImageEnd, Layout, MakesImages,
    PixelFormat, Placement, Result,
};

/// The largest number of pixels in each dimension, and of layers in an array.
pub const LONGEST_SIDE: usize = 1 << 16;

/// Where the pixels of an image are.
#[derive(Debug)]
pub struct Pixels {
    first: Address,
    layout: Layout,
    /// Bytes between neighbours in the second and in the third dimension.
    steps: [usize; 2],
}
impl Pixels {
    /// The address of the first pixel.
    pub(super) fn first(&self) -> Address {
        self.first
    }
}
impl MakesImages for Cpu {
    const PLACEMENT: Placement = Placement::Host;
    const LONGEST_SIDE: usize = LONGEST_SIDE;
    fn has_images() -> bool {
        true
    }
    fn has_format(PixelFormat { channels, channel_type }: PixelFormat) -> bool {
        match channels {
            Channels::Rgb | Channels::Rgbx => true,
            _ if channel_type.is_packed() => false,
            Channels::Intensity | Channels::Luminance => !channel_type.is_integer(),
            Channels::Srgba => channel_type == ChannelType::Unorm8,
            _ => true,
        }
    }
    fn image(
        _: &DriverContext,
        _: &Arc<DriverDevice>,
        memory: Option<Address>,
        desc: &ImageDesc,
    ) -> Result<Pixels> {
        match memory {
            Some(first) => Ok(Pixels { first, layout: desc.layout(), steps: desc.steps() }),
            None => Error::unsupported("images that are not in host memory"),
        }
    }
}
/// The work of a pixel copy. The region has been checked to be within the images.
///
/// # Errors
/// `INVALID_SIZE` on address overflow.
pub(super) fn copy(
    &ImageCopy { image, origin, region, other }: &ImageCopy<&Arc<Pixels>>,
) -> Result<Work> {
    let Layout { pixel, is_1d_array } = image.layout;
    let pixels = |image: &Pixels, [x, y, z]: [usize; 3]| {
        let [pitch, slice] = image.steps;
        let base = image.first.offset(x * pixel + y * pitch + z * slice)?;
        Ok::<_, Error>(Planes { base, pitch, slice })
    };
    let memory = |base, [row, slice]: [usize; 2]| {
        let pitch = if is_1d_array { slice } else { row };
        Planes { base, pitch, slice }
    };
    let here = pixels(image, origin)?;
    let (to, from) = match other {
        ImageEnd::FromImage(image, origin) => (here, pixels(image, origin)?),
        ImageEnd::FromMemory(at, pitches) => (here, memory(at, pitches)),
        ImageEnd::ToMemory(at, pitches) => (memory(at, pitches), here),
    };
    let [width, height, depth] = region;
    Ok(Work::of_box(to, from, [width * pixel, height, depth]))
}
