//! Contexts: memory, events and modules belong to one. A context is for all devices unless the caller names
//! some.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    device::{self, Device},
    driver::Driver,
    handle::{self, Object, raw},
    inject::Answer,
    raw,
};
use std::{ffi::c_void, sync::Arc};
use ze_sys::*;

/// A context: its devices.
pub struct Context {
    pub devices: Vec<Arc<Device>>,
}
impl Object for Context {
    const TAG: u64 = 0x7a65_636f_6e74_6578;
}
impl Context {
    /// A context for these devices and their sub-devices.
    pub fn new(devices: Vec<Arc<Device>>) -> Self {
        Self { devices }
    }
    /// Whether `device`, or the device that it is a part of, is in this context.
    pub fn has(&self, device: &Device) -> bool {
        self.devices
            .iter()
            .any(|d| d.index == device.index && d.part.is_none_or(|p| device.part == Some(p)))
    }
}
/// The context behind `raw`.
pub fn get(raw: ze_context_handle_t) -> Answer<Arc<Context>> {
    handle::get(raw!(raw))
}

/// The handle with this address, which was exposed before.
pub fn from_address(address: usize) -> ze_context_handle_t {
    std::ptr::with_exposed_provenance_mut(address)
}

entries! {
    fn zeContextCreate(
        driver: ze_driver_handle_t,
        desc: *const ze_context_desc_t,
        to: *mut ze_context_handle_t,
    ) {
        create(driver, desc, 0, std::ptr::null(), to)
    }
    fn zeContextCreateEx(
        driver: ze_driver_handle_t,
        desc: *const ze_context_desc_t,
        count: u32,
        devices: *mut ze_device_handle_t,
        to: *mut ze_context_handle_t,
    ) {
        create(driver, desc, count, devices, to)
    }
    fn zeContextDestroy(context: ze_context_handle_t) {
        handle::destroy::<Context>(raw!(context)).map(drop)
    }
    fn zeContextGetStatus(context: ze_context_handle_t) { get(context).map(drop) }
    fn zeContextSystemBarrier(context: ze_context_handle_t, device: ze_device_handle_t) {
        of(context, device)
    }
    fn zeContextMakeMemoryResident(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        at: *mut c_void,
        _size: usize,
    ) {
        of(context, device)?;
        if at.is_null() { Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER) } else { Ok(()) }
    }
    fn zeContextEvictMemory(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        at: *mut c_void,
        _size: usize,
    ) {
        of(context, device)?;
        if at.is_null() { Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER) } else { Ok(()) }
    }
    fn zeContextMakeImageResident(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        image: ze_image_handle_t,
    ) {
        of(context, device)?;
        if image.is_null() { Err(ZE_RESULT_ERROR_INVALID_NULL_HANDLE) } else { Ok(()) }
    }
    fn zeContextEvictImage(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        image: ze_image_handle_t,
    ) {
        of(context, device)?;
        if image.is_null() { Err(ZE_RESULT_ERROR_INVALID_NULL_HANDLE) } else { Ok(()) }
    }
}

fn of(context: ze_context_handle_t, device: ze_device_handle_t) -> Answer {
    let (context, device) = (get(context)?, device::get(device)?);
    if context.has(&device) { Ok(()) } else { Err(ZE_RESULT_ERROR_INVALID_ARGUMENT) }
}
fn create(
    driver: ze_driver_handle_t,
    desc: *const ze_context_desc_t,
    count: u32,
    devices: *const ze_device_handle_t,
    to: *mut ze_context_handle_t,
) -> Answer {
    handle::get::<Driver>(raw!(driver))?;
    let _flags = raw::get(desc)?.flags;
    let devices = if count == 0 || devices.is_null() {
        device::roots().to_vec()
    } else {
        let named = raw::list(devices, count as usize)?;
        named.into_iter().map(device::get).collect::<Answer<_>>()?
    };
    raw::put(to, handle::make(Context::new(devices)).cast())
}
