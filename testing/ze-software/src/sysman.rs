//! Sysman: how much memory of a device is free, and why its clock is throttled. Sysman has its own handles;
//! the UUID tells which Sysman device is the same as a core device.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    allocations,
    device::{self, Device},
    handle::{self, Object, raw},
    knob, properties, raw,
};
use std::sync::{Arc, OnceLock};
use ze_sys::*;

struct Driver;
impl Object for Driver {
    const TAG: u64 = 0x7a65_7364_7269_7665;
}
/// A whole device and the handles of its components.
struct Whole {
    device: Arc<Device>,
    memories: OnceLock<Vec<usize>>,
    frequencies: OnceLock<Vec<usize>>,
}
impl Object for Whole {
    const TAG: u64 = 0x7a65_7377_686f_6c65;
}
/// The memory of a device, which its subdevices share.
struct Memory(Arc<Device>);
impl Object for Memory {
    const TAG: u64 = 0x7a65_736d_656d_6f72;
}
/// The clock of a device or of a subdevice.
struct Frequency(Arc<Device>);
impl Object for Frequency {
    const TAG: u64 = 0x7a65_7366_7265_7175;
}
fn once<T: Object>(place: &OnceLock<Vec<usize>>, make: impl FnOnce() -> Vec<T>) -> Vec<usize> {
    let made = || make().into_iter().map(|one| handle::make(one).expose_provenance()).collect();
    place.get_or_init(made).clone()
}
fn handles<T>(addresses: &[usize]) -> Vec<*mut T> {
    addresses.iter().map(|address| std::ptr::with_exposed_provenance_mut(*address)).collect()
}

entries! {
    fn zesInit(_flags: zes_init_flags_t) { Ok(()) }
    fn zesDriverGet(count: *mut u32, to: *mut zes_driver_handle_t) {
        static DRIVER: OnceLock<Vec<usize>> = OnceLock::new();
        raw::put_list(count, to, &handles(&once(&DRIVER, || vec![Driver])))
    }
    fn zesDriverGetDeviceByUuidExp(
        driver: zes_driver_handle_t,
        uuid: zes_uuid_t,
        to: *mut zes_device_handle_t,
        on_part: *mut ze_bool_t,
        part: *mut u32,
    ) {
        static WHOLES: OnceLock<Vec<usize>> = OnceLock::new();
        handle::get::<Driver>(raw!(driver))?;
        let found = device::every().find(|device| properties::uuid(device) == uuid.id);
        let found = found.ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        let wholes = once(&WHOLES, || {
            let whole = |device: &Arc<Device>| Whole {
                device: Arc::clone(device),
                memories: OnceLock::new(),
                frequencies: OnceLock::new(),
            };
            device::wholes().iter().map(whole).collect()
        });
        raw::put(to, std::ptr::with_exposed_provenance_mut(wholes[found.index as usize]))?;
        raw::put(on_part, u8::from(found.part.is_some()))?;
        raw::put(part, found.part.unwrap_or(0))
    }
    fn zesDeviceEnumMemoryModules(
        device: zes_device_handle_t,
        count: *mut u32,
        to: *mut zes_mem_handle_t,
    ) {
        let whole = handle::get::<Whole>(raw!(device))?;
        let all = once(&whole.memories, || vec![Memory(Arc::clone(&whole.device))]);
        raw::put_list(count, to, &handles(&all))
    }
    fn zesMemoryGetProperties(memory: zes_mem_handle_t, to: *mut zes_mem_properties_t) {
        let memory = handle::get::<Memory>(raw!(memory))?;
        raw::amend(to, |p| {
            (p.onSubdevice, p.location) = (0, ZES_MEM_LOC_DEVICE);
            p.physicalSize = properties::memory(&memory.0);
            Ok(())
        })
    }
    fn zesMemoryGetState(memory: zes_mem_handle_t, to: *mut zes_mem_state_t) {
        let memory = handle::get::<Memory>(raw!(memory))?;
        raw::amend(to, |p| {
            (p.free, p.size) = (allocations::free(&memory.0), properties::memory(&memory.0));
            Ok(())
        })
    }
    fn zesDeviceEnumFrequencyDomains(
        device: zes_device_handle_t,
        count: *mut u32,
        to: *mut zes_freq_handle_t,
    ) {
        let whole = handle::get::<Whole>(raw!(device))?;
        let all = once(&whole.frequencies, || {
            let of = |one: &&Arc<Device>| one.index == whole.device.index && one.part.is_some();
            let parts: Vec<_> = device::every().filter(of).collect();
            let clocked = if parts.is_empty() { vec![&whole.device] } else { parts };
            clocked.into_iter().map(|one| Frequency(Arc::clone(one))).collect()
        });
        raw::put_list(count, to, &handles(&all))
    }
    fn zesFrequencyGetProperties(frequency: zes_freq_handle_t, to: *mut zes_freq_properties_t) {
        let frequency = handle::get::<Frequency>(raw!(frequency))?;
        raw::amend(to, |p| {
            p.type_ = ZES_FREQ_DOMAIN_GPU;
            p.onSubdevice = u8::from(frequency.0.part.is_some());
            p.subdeviceId = frequency.0.part.unwrap_or(0);
            Ok(())
        })
    }
    fn zesFrequencyGetState(frequency: zes_freq_handle_t, to: *mut zes_freq_state_t) {
        let frequency = handle::get::<Frequency>(raw!(frequency))?;
        let is_last = frequency.0.part.is_none_or(|part| part + 1 == frequency.0.parts);
        raw::amend(to, |p| {
            p.throttleReasons = if is_last { knob::number("THROTTLE", 0) as u32 } else { 0 };
            Ok(())
        })
    }
}
