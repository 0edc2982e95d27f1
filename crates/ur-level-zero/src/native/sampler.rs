//! Driver samplers.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{RawDevice, RawSampler, driver},
    context::{InContext, NativeContext},
};
use std::sync::Arc;
use ur_hal::{Result, made};
use ze_sys::*;

/// A sampler.
pub type NativeSampler = InContext<RawSampler>;
impl NativeSampler {
    /// Creates a sampler; `normalized`: coordinates are from 0 to 1.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(
        context: &Arc<NativeContext>,
        device: RawDevice,
        addressing: ze_sampler_address_mode_t,
        filter: ze_sampler_filter_mode_t,
        normalized: bool,
    ) -> Result<Self> {
        let desc = ze_sampler_desc_t {
            addressMode: addressing,
            filterMode: filter,
            isNormalized: normalized.into(),
            ..Default::default()
        };
        // SAFETY: the handles are live; `desc` has its type and `to` is writable.
        let made = made(|to| unsafe { driver().sampler_create(context.raw(), device, &desc, to) });
        made.map(|raw| Self::new(raw, Arc::clone(context)))
    }
}
