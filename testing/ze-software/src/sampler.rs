//! Samplers: how coordinates between texels or outside of an image are resolved to texels.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    context, device,
    handle::{self, Object, raw},
    image::Image,
    raw,
};
use ze_sys::*;

/// A sampler.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    /// The addressing mode, for coordinates outside of the image.
    pub address: ze_sampler_address_mode_t,
    /// Whether it interpolates linearly between texels.
    pub linear: bool,
    /// Whether coordinates are normalized: 1 is the full extent of the image.
    pub normalized: bool,
}
impl Object for Sampler {
    const TAG: u64 = 0x7a65_7361_6d70_6c65;
}
impl Sampler {
    /// The index of the texel that is used for index `at` in a dimension of `size` texels.
    fn wrapped(&self, at: i64, size: i64) -> i64 {
        match self.address {
            ZE_SAMPLER_ADDRESS_MODE_REPEAT => at.rem_euclid(size),
            ZE_SAMPLER_ADDRESS_MODE_MIRROR => {
                let there = at.rem_euclid(2 * size);
                if there < size { there } else { 2 * size - 1 - there }
            }
            ZE_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER => at,
            _ => at.clamp(0, size - 1),
        }
    }
    fn texel(&self, image: &Image, at: [i64; 3]) -> [f64; 4] {
        let (size, _) = image.extent();
        let at = std::array::from_fn(|n| self.wrapped(at[n], i64::from(size[n])));
        image.fetch(at).unwrap_or([0.0; 4])
    }
    /// The image's colour at a coordinate.
    pub fn sample(&self, image: &Image, place: [f64; 3]) -> [f64; 4] {
        let ((size, directions), mixed) = (image.extent(), image.mixed());
        let scaled: [f64; 3] = std::array::from_fn(|n| match n < directions {
            true if n >= mixed => place[n].round_ties_even(), // the index of an array layer
            true if self.normalized => place[n] * f64::from(size[n]),
            true => place[n],
            false => 0.0,
        });
        if !self.linear {
            return self.texel(image, scaled.map(|c| c.floor() as i64));
        }
        let first = scaled.map(|c| (c - 0.5).floor());
        let mut sum = [0.0; 4];
        for corner in 0..1_usize << mixed {
            let (mut at, mut weight) = (scaled.map(|c| c as i64), 1.0);
            for n in 0..mixed {
                let (far, part) = (corner >> n & 1, scaled[n] - 0.5 - first[n]);
                at[n] = first[n] as i64 + far as i64;
                weight *= if far == 1 { part } else { 1.0 - part };
            }
            let texel = self.texel(image, at);
            (0..4).for_each(|n| sum[n] += weight * texel[n]);
        }
        sum
    }
}
entries! {
    fn zeSamplerCreate(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_sampler_desc_t,
        to: *mut ze_sampler_handle_t,
    ) {
        let (_context, _device) = (context::get(context)?, device::get(device)?);
        let d = raw::get(desc)?;
        if d.addressMode > ZE_SAMPLER_ADDRESS_MODE_MIRROR || d.filterMode > ZE_SAMPLER_FILTER_MODE_LINEAR {
            return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
        }
        let linear = d.filterMode == ZE_SAMPLER_FILTER_MODE_LINEAR;
        let sampler = Sampler { address: d.addressMode, linear, normalized: d.isNormalized != 0 };
        if to.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        raw::put(to, handle::make(sampler).cast())
    }
    fn zeSamplerDestroy(sampler: ze_sampler_handle_t) {
        handle::destroy::<Sampler>(raw!(sampler)).map(drop)
    }
}
