//! Devices and their sub-devices: created once from the settings in the environment; their handles never
//! change.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    clock, driver,
    handle::{self, Object, raw},
    inject::Answer,
    knob, raw,
};
use std::{
    ffi::c_void,
    sync::{
        Arc, LazyLock, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use ze_sys::*;

/// A device, or a part (sub-device) of one.
pub struct Device {
    /// The number of the whole device.
    pub index: u32,
    /// The number of the part; `None`: the whole device.
    pub part: Option<u32>,
    /// The number of parts of the whole device.
    pub parts: u32,
    raw: OnceLock<usize>,
}
impl Object for Device {
    const TAG: u64 = 0x7a65_6465_7669_6365;
}
impl Device {
    /// The divisor of the whole device's resources that gives its share.
    pub fn share(&self) -> u32 {
        self.part.map_or(1, |_| self.parts.max(1))
    }
    /// Its handle.
    pub fn raw(&self) -> ze_device_handle_t {
        let address = self.raw.get().expect("set when it was made");
        std::ptr::with_exposed_provenance_mut(*address)
    }
}
/// What is listed as a device if devices have parts, as Intel's driver defines it for
/// `ZE_FLAT_DEVICE_HIERARCHY`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hierarchy {
    /// The whole devices, which have parts.
    Composite,
    /// The parts only.
    Flat,
    /// The parts, which report their whole device.
    Combined,
}
/// The hierarchy from the program's environment, else from `ZE_SOFTWARE_HIERARCHY`.
pub fn hierarchy() -> Hierarchy {
    static HIERARCHY: LazyLock<Hierarchy> = LazyLock::new(|| {
        let told = std::env::var("ZE_FLAT_DEVICE_HIERARCHY").ok();
        match told.or_else(|| knob::text("HIERARCHY")).as_deref() {
            Some("FLAT") => Hierarchy::Flat,
            Some("COMBINED") => Hierarchy::Combined,
            _ => Hierarchy::Composite,
        }
    });
    *HIERARCHY
}
struct All {
    wholes: Vec<Arc<Device>>,
    parts: Vec<Vec<Arc<Device>>>,
    listed: Vec<Arc<Device>>,
}
/// The devices that `ZE_AFFINITY_MASK` makes visible: numbers of devices, each followed by a dot and a part
/// if only that is visible; `None`: all.
fn mask() -> Option<Vec<(u32, Option<u32>)>> {
    let text = std::env::var("ZE_AFFINITY_MASK").ok().filter(|text| !text.trim().is_empty())?;
    let number = |text: &str| text.trim().parse().ok();
    let one = |one: &str| match one.split_once('.') {
        Some((device, part)) => Some((number(device)?, Some(number(part)?))),
        None => Some((number(one)?, None)),
    };
    Some(text.split(',').filter_map(one).collect())
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
        let count = knob::number("DEVICES", 1) as u32;
        let parts = knob::number("SUBDEVICES", 0) as u32;
        let mask = mask();
        let wholes: Vec<_> = (0..count).map(|index| make(index, None, parts)).collect();
        let every = |d| (0..parts).map(move |p| make(d, Some(p), parts));
        let mut parts: Vec<Vec<_>> = (0..count).map(|d| every(d).collect()).collect();
        let mut flat: Vec<_> = wholes
            .iter()
            .zip(&parts)
            .flat_map(|(whole, parts)| match parts.is_empty() {
                true => vec![Arc::clone(whole)],
                false => parts.clone(),
            })
            .collect();
        let Some(mask) = mask else {
            let listed = if hierarchy() == Hierarchy::Composite { wholes.clone() } else { flat };
            return All { wholes, parts, listed };
        };
        if hierarchy() != Hierarchy::Composite {
            // The numbers refer to the devices that would be listed without the mask.
            let mut number = 0..;
            flat.retain(|_| number.next().is_some_and(|n| mask.contains(&(n, None))));
            let is_seen = |part: &Arc<Device>| flat.iter().any(|seen| Arc::ptr_eq(seen, part));
            parts.iter_mut().for_each(|parts| parts.retain(is_seen));
            return All { wholes, parts, listed: flat };
        }
        for (device, parts) in (0..).zip(&mut parts) {
            let is_seen =
                |part| mask.contains(&(device, None)) || mask.contains(&(device, Some(part)));
            parts.retain(|part| part.part.is_some_and(is_seen));
        }
        let is_seen = |whole: &&Arc<Device>| mask.iter().any(|(device, _)| *device == whole.index);
        let listed = wholes.iter().filter(is_seen).cloned().collect();
        All { wholes, parts, listed }
    })
}
/// The devices that programs see.
pub fn roots() -> &'static [Arc<Device>] {
    &all().listed
}
/// The parts of a whole device that programs see; none for a part, and none in the flat hierarchy.
pub fn parts(device: &Device) -> &'static [Arc<Device>] {
    let has_any = device.part.is_none() && hierarchy() != Hierarchy::Flat;
    if has_any { &all().parts[device.index as usize] } else { &[] }
}
/// The whole devices, visible or not.
pub fn wholes() -> &'static [Arc<Device>] {
    &all().wholes
}
/// All devices and their parts.
pub fn every() -> impl Iterator<Item = &'static Arc<Device>> {
    wholes().iter().chain(all().parts.iter().flatten())
}
/// The device behind `raw`.
///
/// # Errors
/// As for [`handle::get`]; `ZE_RESULT_ERROR_DEVICE_LOST` for the device that the environment declares broken.
pub fn get(raw: ze_device_handle_t) -> Answer<Arc<Device>> {
    static BROKEN: LazyLock<u64> = LazyLock::new(|| knob::number("BROKEN_DEVICE", u64::MAX));
    let device = handle::get::<Device>(raw!(raw))?;
    if u64::from(device.index) == *BROKEN { Err(ZE_RESULT_ERROR_DEVICE_LOST) } else { Ok(device) }
}
/// Counts a command.
///
/// # Errors
/// `ZE_RESULT_ERROR_DEVICE_LOST` after as many commands as `ZE_SOFTWARE_LOST_AFTER` says.
pub fn count_command() -> Answer {
    COMMANDS.fetch_add(1, Relaxed);
    check_lost()
}
/// # Errors
/// `ZE_RESULT_ERROR_DEVICE_LOST` if so many commands have been counted.
pub fn check_lost() -> Answer {
    static AFTER: LazyLock<u64> = LazyLock::new(|| knob::number("LOST_AFTER", u64::MAX));
    if COMMANDS.load(Relaxed) > *AFTER { Err(ZE_RESULT_ERROR_DEVICE_LOST) } else { Ok(()) }
}
static COMMANDS: AtomicU64 = AtomicU64::new(0);
/// Whether one device can access the memory of the other; always true for itself and its parts.
pub fn reaches(one: &Device, other: &Device) -> bool {
    reach_each_other(one.index, other.index)
}
/// As [`reaches`], for the devices with these numbers.
pub fn reach_each_other(one: u32, other: u32) -> bool {
    one == other || knob::number("PEER", 1) != 0
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
        let has_whole = device.part.is_some() && hierarchy() != Hierarchy::Flat;
        let whole = has_whole.then(|| all().wholes[device.index as usize].raw());
        raw::put(to, whole.unwrap_or(std::ptr::null_mut()))
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
