//! `urDeviceGetSelected`: the devices of a platform that `ONEAPI_DEVICE_SELECTOR` accepts. `selector` parses
//! the variable, which is read at each call because the program may have changed it.
#![expect(unsafe_code, reason = "calls adapters")]
use crate::{
    entry,
    failure::{Failure, Result, enter},
    log,
    selector::{DEPTH, Place, Selector},
};
use std::ptr::null_mut;
use ur_adapter::error::ErrorCode;
use ur_sys::*;

/// The variable's name.
pub(crate) const VARIABLE: &str = "ONEAPI_DEVICE_SELECTOR";

/// Parses the current value of the variable; `None` if it is not set.
///
/// # Errors
/// Returns what is wrong with the value.
pub(crate) fn selector() -> std::result::Result<Option<Selector>, String> {
    let Some(value) = std::env::var_os(VARIABLE) else { return Ok(None) };
    let value = value.to_str().ok_or("it is not UTF-8")?;
    Selector::parse(value)
}

/// Returns why the variable selects nothing, if it is malformed.
pub fn complaint() -> Option<String> {
    selector().err().map(|wrong| selects_nothing(&wrong))
}
fn selects_nothing(wrong: &str) -> String {
    format!("{VARIABLE} selects nothing: {wrong}")
}

/// A device that was found. A sub-device among them carries a reference, which is released unless it is
/// returned to the caller.
struct Found {
    device: ur_device_handle_t,
    place: Place,
}
impl Found {
    fn is_part(&self) -> bool {
        self.place.numbers.len() > 1
    }
}

/// Lists the selected devices of `platform` that are of the given type. Sub-devices that are returned carry a
/// reference, which the caller must release.
///
/// # Safety
/// `platform` is null or a platform; `devices` is null or has room for `num_entries`; `num_devices` is
/// null or writable.
pub unsafe extern "C" fn device_get_selected(
    platform: ur_platform_handle_t,
    device_type: ur_device_type_t,
    num_entries: u32,
    devices: *mut ur_device_handle_t,
    num_devices: *mut u32,
) -> ur_result_t {
    enter("urDeviceGetSelected", || {
        if platform.is_null() {
            return Err(ErrorCode::InvalidNullHandle.into());
        }
        if !ur_device_type_t::VALUES.contains(&device_type) {
            return Err(ErrorCode::InvalidEnumeration.into());
        }
        if devices.is_null() && num_entries != 0 {
            return Err(ErrorCode::InvalidNullPointer.into());
        }
        if num_entries == 0 && num_devices.is_null() {
            return Err(ErrorCode::InvalidSize.into());
        }
        let chosen = chosen(platform, device_type)?;
        if !num_devices.is_null() {
            let count = u32::try_from(chosen.len()).map_err(|_| ErrorCode::OutOfResources)?;
            // SAFETY: not null, hence writable.
            unsafe { num_devices.write(count) };
        }
        for (at, found) in chosen.iter().enumerate() {
            if at < num_entries as usize {
                // SAFETY: the caller promises space for `num_entries` handles, and `at` is less.
                let to = unsafe { devices.add(at) };
                // SAFETY: as above.
                unsafe { to.write(found.device) };
            } else if found.is_part() {
                give_back(found.device);
            }
        }
        Ok(())
    })
}

fn chosen(platform: ur_platform_handle_t, device_type: ur_device_type_t) -> Result<Vec<Found>> {
    let selector = selector().map_err(|wrong| {
        let sentence = selects_nothing(&wrong);
        log::error(&sentence);
        Failure::new(ErrorCode::InvalidValue, sentence)
    })?;
    let backend = backend(platform)?;
    let all = roots(platform)?;
    let of_kind = |found: &Found| {
        matches!(device_type, ur_device_type_t::ALL | ur_device_type_t::DEFAULT)
            || found.place.kind == device_type
    };
    let Some(selector) = selector else {
        return Ok(all.into_iter().filter(of_kind).collect());
    };
    let all = with_parts(all, &selector, backend);
    let places: Vec<_> = all.iter().map(|found| found.place.clone()).collect();
    let order = selector.choose(backend, &places);
    let mut all: Vec<_> = all.into_iter().map(Some).collect();
    let chosen = order.iter().filter_map(|at| all[*at].take_if(|found| of_kind(found))).collect();
    all.into_iter().flatten().filter(Found::is_part).for_each(|found| give_back(found.device));
    Ok(chosen)
}

fn give_back(part: ur_device_handle_t) {
    // SAFETY: the sub-device was created here and was not returned to the caller.
    let code = unsafe { entry::device_release(part) };
    if code != ur_result_t::SUCCESS {
        log::warn(format_args!(
            "a part of a device that was not selected is not released: {code:?}"
        ));
    }
}

/// Queries one property of fixed size.
fn ask<T: Default>(query: impl FnOnce(usize, *mut T) -> ur_result_t) -> Result<T> {
    let mut answer = T::default();
    Failure::of(query(size_of::<T>(), &raw mut answer))?;
    Ok(answer)
}
fn backend(platform: ur_platform_handle_t) -> Result<ur_backend_t> {
    let name = ur_platform_info_t::BACKEND;
    // SAFETY: the handle is a platform, and `at` has space for the answer.
    ask(|size, at: *mut ur_backend_t| unsafe {
        entry::platform_get_info(platform, name, size, at.cast(), null_mut())
    })
}
fn kind(device: ur_device_handle_t) -> Result<ur_device_type_t> {
    let name = ur_device_info_t::TYPE;
    // SAFETY: the handle is a device, and `at` has space for the answer.
    ask(|size, at: *mut ur_device_type_t| unsafe {
        entry::device_get_info(device, name, size, at.cast(), null_mut())
    })
}

/// Returns the platform's root devices.
fn roots(platform: ur_platform_handle_t) -> Result<Vec<Found>> {
    let all = ur_device_type_t::ALL;
    let mut count = 0;
    // SAFETY: the handle is a platform, and `count` is writable.
    Failure::of(unsafe { entry::device_get(platform, all, 0, null_mut(), &raw mut count) })?;
    let mut devices = vec![ur_device_handle_t::NULL; count as usize];
    if count != 0 {
        let room = devices.as_mut_ptr();
        // SAFETY: the vector has space for `count` handles.
        Failure::of(unsafe { entry::device_get(platform, all, count, room, null_mut()) })?;
    }
    let found = |(number, device): (u32, ur_device_handle_t)| {
        Ok(Found { device, place: Place { kind: kind(device)?, numbers: vec![number] } })
    };
    (0..).zip(devices).map(found).collect()
}

/// Appends to the devices the sub-devices that the selector may name.
fn with_parts(mut all: Vec<Found>, selector: &Selector, backend: ur_backend_t) -> Vec<Found> {
    let mut layer = 0..all.len();
    for _ in 1..DEPTH {
        let end = all.len();
        for at in layer {
            let whole = &all[at];
            if !selector.looks_into(backend, &whole.place.numbers) {
                continue;
            }
            let (kind, numbers) = (whole.place.kind, whole.place.numbers.clone());
            let part = |(number, device)| {
                let numbers = [numbers.as_slice(), &[number]].concat();
                Found { device, place: Place { kind, numbers } }
            };
            let parts: Vec<_> = (0..).zip(parts(whole.device)).map(part).collect();
            all.extend(parts);
        }
        layer = end..all.len();
    }
    all
}

/// Creates the sub-devices of a device: by its next partitionable affinity domain, or by compute slices.
/// Returns none if it cannot be partitioned.
fn parts(device: ur_device_handle_t) -> Vec<ur_device_handle_t> {
    use ur_device_affinity_domain_flags_t as Domain;
    let next = ur_device_partition_value_t { affinity_domain: Domain::NEXT_PARTITIONABLE };
    let nothing = ur_device_partition_value_t { count: 0 };
    let rules = [
        (ur_device_partition_t::BY_AFFINITY_DOMAIN, next),
        (ur_device_partition_t::BY_CSLICE, nothing),
    ];
    let split = |(r#type, value)| split(device, &ur_device_partition_property_t { r#type, value });
    rules.into_iter().find_map(split).unwrap_or_default()
}
fn split(
    device: ur_device_handle_t,
    rule: &ur_device_partition_property_t,
) -> Option<Vec<ur_device_handle_t>> {
    let properties = ur_device_partition_properties_t {
        stype: ur_structure_type_t::DEVICE_PARTITION_PROPERTIES,
        pNext: null_mut(),
        pProperties: rule,
        PropCount: 1,
    };
    let mut count = 0;
    // SAFETY: the handle is a device, the properties are complete, and `count` is writable.
    let code =
        unsafe { entry::device_partition(device, &properties, 0, null_mut(), &raw mut count) };
    if code != ur_result_t::SUCCESS || count == 0 {
        return None;
    }
    let mut parts = vec![ur_device_handle_t::NULL; count as usize];
    let room = parts.as_mut_ptr();
    // SAFETY: the vector has space for `count` handles.
    let code = unsafe { entry::device_partition(device, &properties, count, room, null_mut()) };
    (code == ur_result_t::SUCCESS).then_some(parts)
}
