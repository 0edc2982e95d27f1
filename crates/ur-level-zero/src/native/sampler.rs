//! Driver samplers.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{RawDevice, RawSampler, driver},
    context::NativeContext,
    fork::release,
};
use std::sync::Arc;
use ur_hal::Result;
use ze_sys::*;

/// A sampler; destroyed on drop if owned.
#[derive(Debug)]
pub struct NativeSampler {
    raw: RawSampler,
    owned: bool,
    _context: Arc<NativeContext>,
}
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
            stype: ZE_STRUCTURE_TYPE_SAMPLER_DESC,
            addressMode: addressing,
            filterMode: filter,
            isNormalized: normalized.into(),
            ..Default::default()
        };
        let mut raw = None;
        let (of, told, to) = (context.raw(), &raw const desc, &raw mut raw);
        // SAFETY: the handles are live; `desc` has its type and `raw` is writable.
        unsafe { driver().sampler_create(of, device, told, to) }.ok()?;
        let raw = RawSampler::given(raw, "zeSamplerCreate")?;
        Ok(Self { raw, owned: true, _context: Arc::clone(context) })
    }
    /// Wraps an existing sampler; `owned`: it is destroyed on drop.
    pub fn adopted(raw: RawSampler, owned: bool, context: &Arc<NativeContext>) -> Self {
        Self { raw, owned, _context: Arc::clone(context) }
    }
    /// Whether it is destroyed on drop.
    pub fn is_owned(&self) -> bool {
        self.owned
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawSampler {
        self.raw
    }
}
impl Drop for NativeSampler {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: owned, and destroyed once; nothing uses it any more.
            release(|| unsafe { driver().sampler_destroy(self.raw) });
        }
    }
}
