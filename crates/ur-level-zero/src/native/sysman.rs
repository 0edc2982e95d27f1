//! System management queries (Sysman), which have device handles of their own: free memory, and reasons for
//! throttled clocks.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::super::driver::{RawSysmanDevice, RawSysmanDriver, driver};
use std::sync::OnceLock;
use ur_hal::{Result, handles, told};
use ze_sys::*;

/// A device for Sysman: a whole device, and the sub-device that is meant.
#[derive(Clone, Copy, Debug)]
pub struct Sysman {
    whole: RawSysmanDevice,
    part: Option<u32>,
}
/// Sysman's drivers; none if Sysman does not exist or cannot be initialised.
fn drivers() -> &'static [RawSysmanDriver] {
    static DRIVERS: OnceLock<Vec<RawSysmanDriver>> = OnceLock::new();
    DRIVERS.get_or_init(|| {
        // SAFETY: may be called at any time, whether or not the driver was initialised.
        let started = unsafe { driver().sysman_init(0) }.ok();
        // SAFETY: `handles` passes a list with the length that it states.
        let all = || handles(|count, to| unsafe { driver().sysman_driver_get(count, to) });
        started.and_then(|()| all()).unwrap_or_default()
    })
}
impl Sysman {
    /// The device with this UUID; `None` if Sysman does not know it.
    pub fn find(id: [u8; 16]) -> Option<Self> {
        drivers().iter().find_map(|of| {
            let (mut whole, mut on_part, mut part, uuid) = (None, 0, 0, zes_uuid_t { id });
            let to = (&raw mut whole, &raw mut on_part, &raw mut part);
            // SAFETY: all three are writable.
            let told = unsafe {
                driver().sysman_driver_get_device_by_uuid_exp(*of, uuid, to.0, to.1, to.2)
            };
            told.ok().ok()?;
            Some(Self { whole: whole?, part: (on_part != 0).then_some(part) })
        })
    }
    /// Whether a component on this sub-device, or on none, belongs to the device.
    fn has(self, on_part: ze_bool_t, part: u32) -> bool {
        on_part == 0 || self.part.is_none_or(|own| own == part)
    }
    /// Bytes of free memory; `None` if no memory is reported.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn free_memory(self) -> Result<Option<u64>> {
        let of = self.whole;
        // SAFETY: `handles` passes a list with the length that it states.
        let all = handles(|n, to| unsafe { driver().sysman_device_enum_memory_modules(of, n, to) });
        let mut free = None;
        for module in all? {
            // SAFETY: a structure with its type.
            let about: zes_mem_properties_t =
                told(|to| unsafe { driver().sysman_memory_get_properties(module, to) })?;
            if self.has(about.onSubdevice, about.subdeviceId) {
                // SAFETY: as above.
                let state: zes_mem_state_t =
                    told(|to| unsafe { driver().sysman_memory_get_state(module, to) })?;
                free = Some(free.unwrap_or(0) + state.free);
            }
        }
        Ok(free)
    }
    /// The reasons for throttled clocks (`ZES_FREQ_THROTTLE_REASON_FLAG_*`); `None` if no clock is reported.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn throttle_reasons(self) -> Result<Option<u32>> {
        let of = self.whole;
        let ask = |n, to| {
            // SAFETY: `handles` passes a list with the length that it states.
            unsafe { driver().sysman_device_enum_frequency_domains(of, n, to) }
        };
        let mut reasons = None;
        for clock in handles(ask)? {
            // SAFETY: a structure with its type.
            let about: zes_freq_properties_t =
                told(|to| unsafe { driver().sysman_frequency_get_properties(clock, to) })?;
            if about.type_ == ZES_FREQ_DOMAIN_GPU && self.has(about.onSubdevice, about.subdeviceId)
            {
                // SAFETY: as above.
                let state: zes_freq_state_t =
                    told(|to| unsafe { driver().sysman_frequency_get_state(clock, to) })?;
                reasons = Some(reasons.unwrap_or(0) | state.throttleReasons);
            }
        }
        Ok(reasons)
    }
}
