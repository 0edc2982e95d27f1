//! The entries of devices.
use super::{
    DriverDevice, OverDriver,
    device::HasDevices,
    device_info,
    objects::{Device, Platform, listed},
    own_handle,
    usm_pool::sweep_after_wait,
};
use crate::program::link::select_binary;
use ur_adapter::{
    api::{DeviceApi, DeviceExpApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
    partition::rule,
};
use ur_hal::NativeObject;
use ur_sys::*;

fn handle_of<D: HasDevices>(device: &DriverDevice<D>) -> Result<ur_native_handle_t> {
    Ok(D::native(NativeObject::Device(device))?.0 as ur_native_handle_t)
}

impl<D: HasDevices> DeviceApi for OverDriver<D> {
    fn device_get(
        platform: Borrowed<'_, Platform<D>>,
        kind: ur_device_type_t,
    ) -> Result<Vec<Owned<Device<D>>>> {
        let mut all = platform.roots().to_vec();
        match kind {
            ur_device_type_t::ALL => {}
            ur_device_type_t::DEFAULT => all.truncate(1),
            kind => all.retain(|one| device_info::kind(D::kind(one.driver())) == kind),
        }
        Ok(all)
    }
    fn device_get_info(
        device: Borrowed<'_, Device<D>>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let told = D::tell(device.driver(), name, answer)?
            || device_info::answer::<D>(device, name, answer)?;
        Error::unless(told, ErrorCode::UnsupportedEnumeration, || {
            format!("this device has no answer to {name:?}")
        })
    }
    fn device_partition(
        device: Borrowed<'_, Device<D>>,
        properties: &ur_device_partition_properties_t,
    ) -> Result<Vec<Owned<Device<D>>>> {
        let (parts, whole) = (D::parts(device.driver(), &rule(properties)?)?, device.own()?);
        parts.into_iter().map(|one| Device::part(&whole, one)).collect()
    }
    fn device_get_native_handle(device: Borrowed<'_, Device<D>>) -> Result<ur_native_handle_t> {
        match D::HAS_HANDLES {
            true => handle_of::<D>(device.driver()),
            false => own_handle::of(&device),
        }
    }
    fn device_create_with_native_handle(
        native: ur_native_handle_t,
        _adapter: Borrowed<'_, D::Adapter>,
        _properties: Option<&ur_device_native_properties_t>,
    ) -> Result<Owned<Device<D>>> {
        if !D::HAS_HANDLES {
            return own_handle::find(native);
        }
        let is_it = |one: &DriverDevice<D>| handle_of::<D>(one).is_ok_and(|own| own == native);
        for root in listed::<D>() {
            if is_it(root.driver()) {
                return Ok(root.clone());
            }
            if let Some(part) = D::parts_with_handles(root.driver()).into_iter().find(is_it) {
                return Device::part(root, part);
            }
        }
        let why = format!("no device of the driver's has the native handle {native:#x}");
        Error::refuse(ErrorCode::InvalidDevice, why)
    }
    fn device_select_binary(
        _device: Borrowed<'_, Device<D>>,
        binaries: &[ur_device_binary_t],
    ) -> Result<u32> {
        select_binary::<D>(binaries)
    }
    /// The device's clock and the host's clock, in nanoseconds.
    fn device_get_global_timestamps(device: Borrowed<'_, Device<D>>) -> Result<(u64, u64)> {
        let clocks = D::clocks(device.driver())?;
        Ok((clocks.device, clocks.host))
    }
}
impl<D: HasDevices> DeviceExpApi for OverDriver<D> {
    fn device_wait_exp(device: Owned<Device<D>>) -> Result<()> {
        D::finish_device(device.driver())?;
        sweep_after_wait::<D>();
        Ok(())
    }
}
