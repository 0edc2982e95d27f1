//! The entries of devices.
use super::{
    OverDriver,
    device::{Device, HasDevices, Platform, untold},
    device_info,
};
use crate::program::link::select_binary;
use ur_adapter::{
    api::{DeviceApi, DeviceExpApi},
    error::Result,
    info::Answer,
    object::{Borrowed, Owned},
    partition::rule,
};
use ur_sys::*;

impl<D: HasDevices> DeviceApi for OverDriver<D> {
    fn device_get(
        platform: Borrowed<'_, Platform<D>>,
        kind: ur_device_type_t,
    ) -> Result<Vec<Owned<Device<D>>>> {
        D::check_fork()?;
        let mut all = D::roots(&platform);
        match kind {
            ur_device_type_t::ALL => {}
            ur_device_type_t::DEFAULT => all.truncate(1),
            kind => all.retain(|one| D::kind(one) == kind),
        }
        Ok(all)
    }
    fn device_get_info(
        device: Borrowed<'_, Device<D>>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        D::check_fork()?;
        D::tell(device, name, answer)
            .or_else(|| device_info::answer::<D>(device, name, answer))
            .unwrap_or_else(|| Err(untold(name)))
    }
    fn device_partition(
        device: Borrowed<'_, Device<D>>,
        properties: &ur_device_partition_properties_t,
    ) -> Result<Vec<Owned<Device<D>>>> {
        D::parts(device, &rule(properties)?)
    }
    fn device_get_native_handle(device: Borrowed<'_, Device<D>>) -> Result<ur_native_handle_t> {
        Ok(D::native_device(&device))
    }
    fn device_create_with_native_handle(
        native: ur_native_handle_t,
        _adapter: Borrowed<'_, D::Adapter>,
        _properties: Option<&ur_device_native_properties_t>,
    ) -> Result<Owned<Device<D>>> {
        D::check_fork()?;
        D::device_of_native(native)
    }
    fn device_select_binary(
        _device: Borrowed<'_, Device<D>>,
        binaries: &[ur_device_binary_t],
    ) -> Result<u32> {
        select_binary::<D>(binaries)
    }
    /// The device's clock in nanoseconds, and the host's.
    fn device_get_global_timestamps(device: Borrowed<'_, Device<D>>) -> Result<(u64, u64)> {
        D::check_fork()?;
        D::clocks(&device).map(|clocks| (clocks.device, clocks.host))
    }
}
impl<D: HasDevices> DeviceExpApi for OverDriver<D> {
    fn device_wait_exp(device: Owned<Device<D>>) -> Result<()> {
        D::wait_for_device(&device)
    }
}
