//! What images and samplers are made by.

/// Which sides an image has.
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
/// Which channels a pixel has, in the order of its bytes; X is a channel that is not looked at.
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
    /// As RGBA, with colours that are not linear.
    Srgba,
}
/// What each channel is.
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
/// An image as it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageDesc {
    /// Which sides it has.
    pub kind: ImageKind,
    /// Pixels along its sides, 1 along those that it does not have; of an array the third are its layers.
    pub sides: [usize; 3],
    /// Which channels a pixel has.
    pub channels: Channels,
    /// What each of them is.
    pub channel_type: ChannelType,
}
/// What is read beyond the edge of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Repeat {
    /// Undefined: the kernel does not read there.
    Undefined,
    /// The pixel at the edge.
    Edge,
    /// The border colour.
    Border,
    /// The image again.
    Repeat,
    /// The image again, mirrored.
    Mirror,
}
/// What is read between pixels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// A mean of those around.
    Linear,
}
/// A sampler as it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SamplerDesc {
    /// Whether coordinates go from 0 to 1 along each side, or count pixels.
    pub is_normalized: bool,
    /// Beyond the edge.
    pub repeat: Repeat,
    /// Between pixels.
    pub filter: Filter,
}
impl SamplerDesc {
    /// All of it as one number, for kernels that read between pixels by themselves: bit 0 says whether coordinates are
    /// normalized, bit 1 whether the filter is linear, bits 2 to 4 hold what is read beyond the edge.
    pub fn word(&self) -> u32 {
        u32::from(self.is_normalized) | (self.filter as u32) << 1 | (self.repeat as u32) << 2
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
