//! Devices and their parts: made once by the environment's wish, for ever the same handles.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    clock, driver,
    handle::{self, Object, raw},
    inject::Answer,
    raw,
};
use std::{
    ffi::c_void,
    sync::{Arc, LazyLock, OnceLock},
};
use ze_sys::*;

/// A device, or a part (sub-device) of one.
pub struct Device {
    /// Which device.
    pub index: u32,
    /// Which part of it; `None`: it is the whole.
    pub part: Option<u32>,
    /// How many parts the whole device has.
    pub parts: u32,
    raw: OnceLock<usize>,
}
impl Object for Device {
    const TAG: u64 = 0x7a65_6465_7669_6365;
}
impl Device {
    /// One over what it has of the whole.
    pub fn share(&self) -> u32 {
        self.part.map_or(1, |_| self.parts.max(1))
    }
    /// Its handle.
    pub fn raw(&self) -> ze_device_handle_t {
        let address = self.raw.get().expect("set when it was made");
        std::ptr::with_exposed_provenance_mut(*address)
    }
}
struct All {
    roots: Vec<Arc<Device>>,
    parts: Vec<Vec<Arc<Device>>>,
}
/// A number of the environment's, or `otherwise`.
pub fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(otherwise)
}
fn make(index: u32, part: Option<u32>, parts: u32) -> Arc<Device> {
    let device = Arc::new(Device { index, part, parts, raw: OnceLock::new() });
    let address = handle::make_shared(Arc::clone(&device)).expose_provenance();
    device.raw.set(address).expect("nobody else has it yet");
    device
}
fn all() -> &'static All {
    static ALL: OnceLock<All> = OnceLock::new();
    ALL.get_or_init(|| {
        let count = number("ZE_SOFTWARE_DEVICES", 1) as u32;
        let parts = number("ZE_SOFTWARE_SUBDEVICES", 0) as u32;
        let roots = (0..count).map(|index| make(index, None, parts)).collect();
        let parts =
            (0..count).map(|d| (0..parts).map(|p| make(d, Some(p), parts)).collect()).collect();
        All { roots, parts }
    })
}
/// The whole devices.
pub fn roots() -> &'static [Arc<Device>] {
    &all().roots
}
/// The parts of a whole device; none of a part.
pub fn parts(device: &Device) -> &'static [Arc<Device>] {
    if device.part.is_some() { &[] } else { &all().parts[device.index as usize] }
}
/// The device behind `raw`.
///
/// # Errors
/// As [`handle::get`]; `ZE_RESULT_ERROR_DEVICE_LOST` for the one that is to be broken.
pub fn get(raw: ze_device_handle_t) -> Answer<Arc<Device>> {
    static BROKEN: LazyLock<u64> = LazyLock::new(|| number("ZE_SOFTWARE_BROKEN_DEVICE", u64::MAX));
    let device = handle::get::<Device>(raw!(raw))?;
    if u64::from(device.index) == *BROKEN { Err(ZE_RESULT_ERROR_DEVICE_LOST) } else { Ok(device) }
}
/// Whether one device reads and writes the memory of the other: itself and its parts always.
pub fn reaches(one: &Device, other: &Device) -> bool {
    reach_each_other(one.index, other.index)
}
/// The same, of the devices with these numbers.
pub fn reach_each_other(one: u32, other: u32) -> bool {
    one == other || number("ZE_SOFTWARE_PEER", 1) != 0
}

entries! {
    fn zeDeviceGet(driver: ze_driver_handle_t, count: *mut u32, to: *mut ze_device_handle_t) {
        driver::check(driver)?;
        raw::put_list(count, to, &roots().iter().map(|device| device.raw()).collect::<Vec<_>>())
    }
    fn zeDeviceGetSubDevices(device: ze_device_handle_t, count: *mut u32, to: *mut ze_device_handle_t) {
        let all: Vec<_> = parts(&*get(device)?).iter().map(|part| part.raw()).collect();
        raw::put_list(count, to, &all)
    }
    fn zeDeviceGetRootDevice(device: ze_device_handle_t, to: *mut ze_device_handle_t) {
        let device = get(device)?;
        let root = device.part.map_or(std::ptr::null_mut(), |_| roots()[device.index as usize].raw());
        raw::put(to, root)
    }
    fn zeDeviceCanAccessPeer(device: ze_device_handle_t, peer: ze_device_handle_t, to: *mut ze_bool_t) {
        raw::put(to, u8::from(reaches(&*get(device)?, &*get(peer)?)))
    }
    fn zeDeviceGetP2PProperties(
        device: ze_device_handle_t,
        peer: ze_device_handle_t,
        to: *mut ze_device_p2p_properties_t,
    ) {
        let reaches = reaches(&*get(device)?, &*get(peer)?);
        let all = ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS | ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS;
        raw::amend(to, |properties| {
            properties.flags = if reaches { all } else { 0 };
            Ok(())
        })
    }
    fn zeDeviceGetStatus(device: ze_device_handle_t) { get(device).map(drop) }
    fn zeDeviceGetGlobalTimestamps(device: ze_device_handle_t, host: *mut u64, on_device: *mut u64) {
        get(device)?;
        let now = clock::host_now();
        raw::put(host, now)?;
        raw::put(on_device, clock::shown(clock::device_of(now)))
    }
    fn zeDeviceReserveCacheExt(device: ze_device_handle_t, _level: usize, size: usize) {
        get(device)?;
        if size == 0 { Ok(()) } else { Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) }
    }
    fn zeDeviceSetCacheAdviceExt(
        device: ze_device_handle_t,
        _at: *mut c_void,
        _size: usize,
        _region: ze_cache_ext_region_t,
    ) {
        get(device).map(drop)
    }
    fn zeDeviceGetCounterBasedEventMaxValue(device: ze_device_handle_t, to: *mut u64) {
        get(device)?;
        raw::put(to, u64::MAX)
    }
    fn zeDeviceGetAggregatedCopyOffloadIncrementValue(device: ze_device_handle_t, to: *mut u32) {
        get(device)?;
        raw::put(to, 1)
    }
}
