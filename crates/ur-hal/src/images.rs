//! The descriptions from which images and samplers are made.
use crate::{Error, Result, Types};

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
    Rx,
    Rgx,
    Rgbx,
    /// RGBA in the sRGB colour space, with non-linear colours.
    Srgba,
}
/// The type of each channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ChannelType {
    Snorm8,
    Snorm16,
    Unorm8,
    Unorm16,
    Sint8,
    Sint16,
    Sint32,
    Uint8,
    Uint16,
    Uint32,
    Half,
    Float,
}
/// The description of a requested image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageDesc {
    /// The image's dimensions.
    pub kind: ImageKind,
    /// Pixels in each dimension, 1 in those that the image does not have; for an array the third is the number of
    /// layers.
    pub sides: [usize; 3],
    /// The channels of a pixel.
    pub channels: Channels,
    /// The type of each channel.
    pub channel_type: ChannelType,
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
/// [`Capability::Samplers`](crate::Capability::Samplers). A driver without objects for them has the type `u32`, and
/// kernels get [`SamplerDesc::word`].
pub trait MakesSamplers: Types {
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
}
