//! Image formats: the size of a texel, and its four components as numbers.
use crate::spirv::half;
use ze_sys::*;

/// The number of bits of each channel, lowest first; `None` for video formats, which are not supported.
const fn channels(layout: ze_image_format_layout_t) -> Option<&'static [u32]> {
    Some(match layout {
        ZE_IMAGE_FORMAT_LAYOUT_8 | ZE_IMAGE_FORMAT_LAYOUT_Y8 => &[8],
        ZE_IMAGE_FORMAT_LAYOUT_16 | ZE_IMAGE_FORMAT_LAYOUT_Y16 => &[16],
        ZE_IMAGE_FORMAT_LAYOUT_32 => &[32],
        ZE_IMAGE_FORMAT_LAYOUT_8_8 => &[8; 2],
        ZE_IMAGE_FORMAT_LAYOUT_8_8_8 => &[8; 3],
        ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8 => &[8; 4],
        ZE_IMAGE_FORMAT_LAYOUT_16_16 => &[16; 2],
        ZE_IMAGE_FORMAT_LAYOUT_16_16_16 => &[16; 3],
        ZE_IMAGE_FORMAT_LAYOUT_16_16_16_16 => &[16; 4],
        ZE_IMAGE_FORMAT_LAYOUT_32_32 => &[32; 2],
        ZE_IMAGE_FORMAT_LAYOUT_32_32_32 => &[32; 3],
        ZE_IMAGE_FORMAT_LAYOUT_32_32_32_32 => &[32; 4],
        ZE_IMAGE_FORMAT_LAYOUT_10_10_10_2 => &[10, 10, 10, 2],
        ZE_IMAGE_FORMAT_LAYOUT_11_11_10 => &[11, 11, 10],
        ZE_IMAGE_FORMAT_LAYOUT_5_6_5 => &[5, 6, 5],
        ZE_IMAGE_FORMAT_LAYOUT_5_5_5_1 => &[5, 5, 5, 1],
        ZE_IMAGE_FORMAT_LAYOUT_4_4_4_4 => &[4; 4],
        _ => return None,
    })
}
/// A supported image format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    channels: &'static [u32],
    kind: ze_image_format_type_t,
    /// For each component, its channel (0 to 3) or a constant.
    swizzle: [ze_image_format_swizzle_t; 4],
}
impl Format {
    /// The format; `None` if it is not supported.
    pub fn new(f: &ze_image_format_t) -> Option<Format> {
        let channels = channels(f.layout)?;
        let narrow = channels.iter().any(|bits| !matches!(bits, 16 | 32));
        if f.type_ > ZE_IMAGE_FORMAT_TYPE_FLOAT || f.type_ == ZE_IMAGE_FORMAT_TYPE_FLOAT && narrow {
            return None;
        }
        Some(Format { channels, kind: f.type_, swizzle: [f.x, f.y, f.z, f.w] })
    }
    /// Whether its components are signed integers.
    pub fn is_signed(&self) -> bool {
        self.kind == ZE_IMAGE_FORMAT_TYPE_SINT
    }
    /// The size of a texel in bytes.
    pub fn bytes(&self) -> usize {
        self.channels.iter().sum::<u32>() as usize / 8
    }
    fn number(&self, bits: u32, raw: u32) -> f64 {
        let free = 32 - bits;
        let signed = f64::from((raw << free).cast_signed() >> free);
        let most = f64::from(u32::MAX >> free);
        match self.kind {
            ZE_IMAGE_FORMAT_TYPE_UINT => f64::from(raw),
            ZE_IMAGE_FORMAT_TYPE_SINT => signed,
            ZE_IMAGE_FORMAT_TYPE_UNORM => f64::from(raw) / most,
            ZE_IMAGE_FORMAT_TYPE_SNORM => (signed / (most / 2.0).floor()).max(-1.0),
            _ if bits == 16 => f64::from(half::widen(raw as u16)),
            _ => f64::from(f32::from_bits(raw)),
        }
    }
    fn raw(&self, bits: u32, number: f64) -> u32 {
        let mask = u32::MAX >> (32 - bits);
        let (most, half) = (f64::from(mask), f64::from(mask >> 1));
        match self.kind {
            ZE_IMAGE_FORMAT_TYPE_UINT => number.clamp(0.0, most) as u32,
            ZE_IMAGE_FORMAT_TYPE_SINT => {
                (number.clamp(-half - 1.0, half) as i32).cast_unsigned() & mask
            }
            ZE_IMAGE_FORMAT_TYPE_UNORM => (number.clamp(0.0, 1.0) * most).round_ties_even() as u32,
            ZE_IMAGE_FORMAT_TYPE_SNORM => {
                let whole = (number.clamp(-1.0, 1.0) * half).round_ties_even() as i32;
                whole.cast_unsigned() & mask
            }
            _ if bits == 16 => u32::from(half::narrow(number as f32)),
            _ => (number as f32).to_bits(),
        }
    }
    /// The components of a texel: red, green, blue, alpha.
    pub fn read(&self, bytes: &[u8]) -> [f64; 4] {
        let mut word = [0; 16];
        word[..bytes.len().min(16)].copy_from_slice(&bytes[..bytes.len().min(16)]);
        let (mut rest, mut lies) = (u128::from_le_bytes(word), [0.0; 4]);
        for (number, bits) in lies.iter_mut().zip(self.channels) {
            *number = self.number(*bits, rest as u32 & u32::MAX >> (32 - bits));
            rest = rest.checked_shr(*bits).unwrap_or(0);
        }
        // Component n of what a kernel reads is the channel that the swizzle names.
        let absent = [0.0, 0.0, 0.0, 1.0];
        std::array::from_fn(|n| match self.swizzle[n] {
            ZE_IMAGE_FORMAT_SWIZZLE_0 => 0.0,
            ZE_IMAGE_FORMAT_SWIZZLE_1 => 1.0,
            channel if (channel as usize) < self.channels.len() => lies[channel as usize],
            _ => absent[n],
        })
    }
    /// The bytes of a texel with these components.
    pub fn write(&self, components: [f64; 4]) -> Vec<u8> {
        let (mut word, mut at) = (0_u128, 0);
        for (channel, bits) in self.channels.iter().enumerate() {
            let from = self.swizzle.iter().position(|s| *s as usize == channel).unwrap_or(channel);
            word |= u128::from(self.raw(*bits, components[from])) << at;
            at += bits;
        }
        word.to_le_bytes()[..self.bytes()].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(layout: u32, type_: u32, [x, y, z, w]: [u32; 4]) -> Format {
        Format::new(&ze_image_format_t { layout, type_, x, y, z, w }).unwrap()
    }
    #[test]
    fn a_texel_comes_back_as_it_was_written() {
        let bgra = format(ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8, ZE_IMAGE_FORMAT_TYPE_UNORM, [2, 1, 0, 3]);
        let bytes = bgra.write([1.0, 0.0, 0.2, 0.4]);
        assert_eq!(bytes, [51, 0, 255, 102]);
        assert_eq!(bgra.read(&bytes), [1.0, 0.0, 0.2, 0.4]);
    }
    #[test]
    fn numbers_with_a_sign_keep_it() {
        let one = format(ZE_IMAGE_FORMAT_LAYOUT_16, ZE_IMAGE_FORMAT_TYPE_SINT, [0, 4, 4, 5]);
        assert_eq!(one.read(&one.write([-5.0; 4])), [-5.0, 0.0, 0.0, 1.0]);
    }
    #[test]
    fn formats_of_video_are_none() {
        let video = ze_image_format_t {
            layout: ZE_IMAGE_FORMAT_LAYOUT_NV12,
            type_: 0,
            x: 0,
            y: 1,
            z: 2,
            w: 3,
        };
        assert!(Format::new(&video).is_none());
    }
}
