//! Images and samplers: the descriptions from which they are made, and parts of images.
use crate::{Address, Error, Placement, Result, Types};

/// The dimensions of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ImageKind {
    /// Width.
    D1,
    /// Width and height.
    D2,
    /// Width, height and depth.
    D3,
    /// Layers with a width.
    D1Array,
    /// Layers with a width and a height.
    D2Array,
}
/// The channels of a pixel in the order of its bytes; X is an ignored channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Channels {
    A,
    R,
    Rg,
    Ra,
    Rgb,
    Rgba,
    Bgra,
    Argb,
    Abgr,
    /// One channel, which is read as red, green, blue and alpha.
    Intensity,
    /// One channel, which is read as red, green and blue.
    Luminance,
    /// R, whose alpha is 0 at the border.
    Rx,
    /// RG, whose alpha is 0 at the border.
    Rgx,
    Rgbx,
    /// RGBA in the sRGB colour space, with non-linear colours.
    Srgba,
}
impl Channels {
    /// How many there are in memory.
    pub fn count(self) -> usize {
        use Channels::*;
        match self {
            A | R | Intensity | Luminance | Rx => 1,
            Rg | Ra | Rgx => 2,
            Rgb => 3,
            Rgba | Bgra | Argb | Abgr | Rgbx | Srgba => 4,
        }
    }
}
/// The type of each channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ChannelType {
    Snorm8,
    Snorm16,
    Unorm8,
    Unorm16,
    /// All channels of a pixel in 16 bits: 5, 6 and 5.
    Unorm565,
    /// All channels of a pixel in 16 bits: 5, 5 and 5.
    Unorm555,
    /// All channels of a pixel in 32 bits: 10, 10 and 10.
    Unorm101010,
    Sint8,
    Sint16,
    Sint32,
    Uint8,
    Uint16,
    Uint32,
    Half,
    Float,
}
impl ChannelType {
    /// The bytes of one channel, or of all channels of a pixel if they are packed.
    pub fn bytes(self) -> usize {
        use ChannelType::*;
        match self {
            Snorm8 | Unorm8 | Sint8 | Uint8 => 1,
            Snorm16 | Unorm16 | Unorm565 | Unorm555 | Sint16 | Uint16 | Half => 2,
            Unorm101010 | Sint32 | Uint32 | Float => 4,
        }
    }
    /// Whether one value holds all channels of a pixel.
    pub fn is_packed(self) -> bool {
        matches!(self, Self::Unorm565 | Self::Unorm555 | Self::Unorm101010)
    }
    /// Whether kernels read integers.
    pub fn is_integer(self) -> bool {
        use ChannelType::*;
        matches!(self, Sint8 | Sint16 | Sint32 | Uint8 | Uint16 | Uint32)
    }
}
/// The format of a pixel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PixelFormat {
    /// Its channels.
    pub channels: Channels,
    /// The type of each channel.
    pub channel_type: ChannelType,
}
impl PixelFormat {
    /// The bytes of a pixel.
    pub fn pixel_bytes(self) -> usize {
        let count = if self.channel_type.is_packed() { 1 } else { self.channels.count() };
        count * self.channel_type.bytes()
    }
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
    /// Whether it overlaps another region of the same image with the same size.
    pub fn shares_pixels(self, other: Self) -> bool {
        (0..3).all(|side| self.origin[side].abs_diff(other.origin[side]) < self.region[side])
    }
    /// Its rows one by one, each with its position in the region: row, and slice or layer.
    pub fn rows(self) -> impl Iterator<Item = (Self, [usize; 2])> {
        let Self { origin: [x, y, z], region: [width, rows, slices] } = self;
        let at = move |row, slice| Self { origin: [x, y + row, z + slice], region: [width, 1, 1] };
        (0..slices).flat_map(move |slice| (0..rows).map(move |row| (at(row, slice), [row, slice])))
    }
}
/// Copies a region between two images by calls of `copy` with a part of the destination and of the source: one for the
/// whole region, or one for each row if one image is a 1D array and the other is not. The second coordinate is then a
/// layer in one image and a row in the other, and drivers copy only between equal coordinates.
///
/// # Errors
/// The first error of `copy`.
pub fn copy_between(
    (to, into): (Layout, [usize; 3]),
    (from, out): (Layout, [usize; 3]),
    region: [usize; 3],
    mut copy: impl FnMut(Part, Part) -> Result<()>,
) -> Result<()> {
    let (into, out) = (Part { origin: into, region }, Part { origin: out, region });
    match to.is_1d_array == from.is_1d_array {
        true => copy(into, out),
        false => into.rows().zip(out.rows()).try_for_each(|((to, _), (from, _))| copy(to, from)),
    }
}
/// The description of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ImageDesc {
    /// The image's dimensions.
    pub kind: ImageKind,
    /// Pixels along each side, in the order of a region's sides; 1 along those that the image does not have. The last
    /// side of an array is its number of layers.
    pub sides: [usize; 3],
    /// The format of each pixel.
    pub format: PixelFormat,
    /// Bytes from row to row, and from slice or layer to the next, in host memory.
    pub pitches: [usize; 2],
    /// Whether kernels only read it.
    pub is_read_only: bool,
}
impl ImageDesc {
    /// Whether it is a 1D array, whose second side counts layers of one row each.
    pub fn is_1d_array(&self) -> bool {
        self.kind == ImageKind::D1Array
    }
    /// How its pixels are counted.
    pub fn layout(&self) -> Layout {
        Layout { pixel: self.format.pixel_bytes(), is_1d_array: self.is_1d_array() }
    }
    /// How many layers, or slices of a 3D image, lie one slice pitch apart.
    pub fn layers(&self) -> usize {
        self.sides[if self.is_1d_array() { 1 } else { 2 }]
    }
    /// The bytes of all its pixels, without padding; `None` if they do not fit `usize`.
    pub fn bytes(&self) -> Option<usize> {
        let pixel = self.format.pixel_bytes();
        self.sides.iter().try_fold(pixel, |all, side| all.checked_mul(*side))
    }
    /// Bytes between neighbours along the second and along the third side in host memory.
    pub fn steps(&self) -> [usize; 2] {
        let [row, slice] = self.pitches;
        if self.is_1d_array() { [slice, slice] } else { [row, slice] }
    }
    /// The bytes in host memory from its first to its last pixel; `None` if they do not fit `usize`.
    pub fn span(&self) -> Option<usize> {
        let ([width, height, depth], [second, third]) = (self.sides, self.steps());
        let row = width.checked_mul(self.format.pixel_bytes())?;
        let rows = second.checked_mul(height - 1)?.checked_add(row)?;
        third.checked_mul(depth - 1)?.checked_add(rows)
    }
}
/// Images: [`ImageLimits::are_supported`](crate::ImageLimits::are_supported).
pub trait MakesImages: Types {
    /// Where images are.
    const PLACEMENT: Placement = Placement::First;
    /// A limit for the sides of images, in pixels, if the driver has no lower one of its own.
    const LONGEST_SIDE: usize = 1 << 20;

    /// Whether the driver has images.
    fn has_images() -> bool {
        false
    }
    /// Whether there are images of a format.
    fn has_format(format: PixelFormat) -> bool {
        let _ = format;
        false
    }
    /// Makes an image without contents: for a device, or in host `memory` if that is where images are.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidValue`](crate::ErrorKind::InvalidValue) or
    /// [`ErrorKind::InvalidSize`](crate::ErrorKind::InvalidSize) for sizes that the device does not support;
    /// [`ErrorKind::UnsupportedFormat`](crate::ErrorKind::UnsupportedFormat) for a format; else the driver's error.
    fn image(
        context: &Self::Context,
        device: &Self::Device,
        memory: Option<Address>,
        desc: &ImageDesc,
    ) -> Result<Self::Image> {
        let _ = (context, device, memory, desc);
        Error::unsupported("images")
    }
    /// Whether a device of a context can access images of its first device.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn reaches_images(device: &Self::Device, first: &Self::Device) -> Result<bool> {
        let _ = (device, first);
        Ok(true)
    }
}
/// How coordinates outside an image are handled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Repeat {
    /// Undefined: the kernel does not use such coordinates.
    Undefined,
    /// The pixel at the edge is used.
    Edge,
    /// The border colour is used.
    Border,
    /// The image is repeated.
    Repeat,
    /// The image is repeated and mirrored.
    Mirror,
}
/// How values between pixels are determined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// A weighted mean of the surrounding pixels.
    Linear,
}
/// The description of a requested sampler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SamplerDesc {
    /// Whether coordinates range from 0 to 1 in each dimension instead of counting pixels.
    pub is_normalized: bool,
    /// How coordinates outside the image are handled.
    pub repeat: Repeat,
    /// How values between pixels are determined.
    pub filter: Filter,
}
impl SamplerDesc {
    /// The whole sampler as one number, for kernels that filter in software: bit 0 is set for normalized coordinates,
    /// bit 1 for the linear filter, and bits 2 to 4 hold the handling of coordinates outside the image.
    pub fn word(&self) -> u32 {
        u32::from(self.is_normalized) | (self.filter as u32) << 1 | (self.repeat as u32) << 2
    }
}
/// Samplers.
pub trait MakesSamplers: Types {
    /// Whether the driver has objects for samplers. If not, their type is `u32`, kernels get [`SamplerDesc::word`], and
    /// callers get the core's handles instead of native handles.
    const HAS_SAMPLERS: bool = false;
    /// Makes a sampler.
    ///
    /// # Errors
    /// Returns the driver's error, with the kind that fits best.
    fn sampler(
        context: &Self::Context,
        device: &Self::Device,
        desc: &SamplerDesc,
    ) -> Result<Self::Sampler> {
        let _ = (context, device, desc);
        Error::unsupported("samplers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_is_one_number() {
        let desc =
            SamplerDesc { is_normalized: true, repeat: Repeat::Mirror, filter: Filter::Linear };
        assert_eq!(desc.word(), 0b1_0011);
        let other =
            SamplerDesc { is_normalized: false, repeat: Repeat::Edge, filter: Filter::Nearest };
        assert_eq!(other.word(), 0b0_0100);
    }
    #[test]
    fn a_pixel_has_the_bytes_of_its_channels_unless_they_are_packed() {
        use ChannelType::*;
        let bytes = |channels, channel_type| PixelFormat { channels, channel_type }.pixel_bytes();
        assert_eq!(bytes(Channels::Rgba, Float), 16);
        assert_eq!(bytes(Channels::Rg, Sint16), 4);
        assert_eq!(bytes(Channels::Rx, Unorm8), 1);
        assert_eq!(bytes(Channels::Rgx, Sint16), 4);
        assert_eq!(bytes(Channels::Rgb, Unorm16), 6);
        assert_eq!(bytes(Channels::Rgbx, Unorm565), 2);
        assert_eq!(bytes(Channels::Rgb, Unorm101010), 4);
    }
    #[test]
    fn a_1d_array_is_copied_row_by_row_from_and_to_other_images() {
        let copied = |to, from| {
            let layout = |is_1d_array| Layout { pixel: 4, is_1d_array };
            let mut all = vec![];
            let ends = ((layout(to), [2, 1, 0]), (layout(from), [0, 0, 5]));
            copy_between(ends.0, ends.1, [7, 2, 1], |to, from| {
                assert_eq!(to.region, from.region);
                all.push((to.origin, from.origin, to.region));
                Ok(())
            })
            .unwrap();
            all
        };
        let whole = [([2, 1, 0], [0, 0, 5], [7, 2, 1])];
        assert_eq!((copied(true, true), copied(false, false)), (whole.to_vec(), whole.to_vec()));
        let rows = [([2, 1, 0], [0, 0, 5], [7, 1, 1]), ([2, 2, 0], [0, 1, 5], [7, 1, 1])];
        assert_eq!(copied(true, false), rows);
    }
}
