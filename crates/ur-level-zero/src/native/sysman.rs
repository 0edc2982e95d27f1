//! What the driver tells administrators of a device (Sysman), which has handles of its own: free memory, and what slows the
//! clock down.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{RawSysmanDevice, RawSysmanDriver, driver},
    device::listed,
};
use std::sync::OnceLock;
use ur_adapter::error::Result;
use ze_sys::*;

/// A device as Sysman has it: a whole, and which part of it is meant.
#[derive(Clone, Copy, Debug)]
pub struct Sysman {
    whole: RawSysmanDevice,
    part: Option<u32>,
}
/// Sysman's drivers; none where it is not there, or does not start.
fn drivers() -> &'static [RawSysmanDriver] {
    static DRIVERS: OnceLock<Vec<RawSysmanDriver>> = OnceLock::new();
    DRIVERS.get_or_init(|| {
        // SAFETY: may be called at any time, whether or not the driver was started.
        let started = unsafe { driver().sysman_init(0) }.ok();
        // SAFETY: `listed` passes room for as many as it says.
        let all = || listed(|count, to| unsafe { driver().sysman_driver_get(count, to) });
        started.and_then(|()| all()).unwrap_or_default()
    })
}
impl Sysman {
    /// The device with this UUID; `None` where Sysman does not know it.
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
    /// Whether what is on such a part, or on none, is the device's.
    fn has(self, on_part: ze_bool_t, part: u32) -> bool {
        on_part == 0 || self.part.is_none_or(|own| own == part)
    }
    /// Bytes of its memory that nobody has; `None` where no memory is told of.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn free_memory(self) -> Result<Option<u64>> {
        let of = self.whole;
        // SAFETY: `listed` passes room for as many as it says.
        let all = listed(|n, to| unsafe { driver().sysman_device_enum_memory_modules(of, n, to) });
        let mut free = None;
        for module in all? {
            let stype = ZES_STRUCTURE_TYPE_MEM_PROPERTIES;
            let mut about = zes_mem_properties_t { stype, ..Default::default() };
            // SAFETY: a structure that says what it is.
            unsafe { driver().sysman_memory_get_properties(module, &raw mut about) }.ok()?;
            if self.has(about.onSubdevice, about.subdeviceId) {
                let stype = ZES_STRUCTURE_TYPE_MEM_STATE;
                let mut state = zes_mem_state_t { stype, ..Default::default() };
                // SAFETY: as above.
                unsafe { driver().sysman_memory_get_state(module, &raw mut state) }.ok()?;
                free = Some(free.unwrap_or(0) + state.free);
            }
        }
        Ok(free)
    }
    /// Why its clocks are slower than they could be (`ZES_FREQ_THROTTLE_REASON_FLAG_*`); `None` where no clock is told of.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn throttle_reasons(self) -> Result<Option<u32>> {
        let of = self.whole;
        let ask = |n, to| {
            // SAFETY: `listed` passes room for as many as it says.
            unsafe { driver().sysman_device_enum_frequency_domains(of, n, to) }
        };
        let mut reasons = None;
        for clock in listed(ask)? {
            let stype = ZES_STRUCTURE_TYPE_FREQ_PROPERTIES;
            let mut about = zes_freq_properties_t { stype, ..Default::default() };
            // SAFETY: a structure that says what it is.
            unsafe { driver().sysman_frequency_get_properties(clock, &raw mut about) }.ok()?;
            if about.type_ == ZES_FREQ_DOMAIN_GPU && self.has(about.onSubdevice, about.subdeviceId)
            {
                let stype = ZES_STRUCTURE_TYPE_FREQ_STATE;
                let mut state = zes_freq_state_t { stype, ..Default::default() };
                // SAFETY: as above.
                unsafe { driver().sysman_frequency_get_state(clock, &raw mut state) }.ok()?;
                reasons = Some(reasons.unwrap_or(0) | state.throttleReasons);
            }
        }
        Ok(reasons)
    }
}
