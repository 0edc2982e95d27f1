//! Contexts: which devices belong together, and what to call when one goes.
use super::{
    Adapter, Device, Family, device,
    driver::{Dialect, RawContext},
    queue::Everyone,
};
use std::sync::{Arc, Mutex, PoisonError};
use ur_adapter::{
    api::ContextApi,
    callback::ContextDeleter,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_core::over_driver::usm_pool::DevicePools;
use ur_sys::{
    ur_context_info_t, ur_context_native_properties_t, ur_context_properties_t, ur_native_handle_t,
};

/// A set of devices whose objects can be used together.
#[derive(Debug)]
pub struct Context<D: Dialect> {
    driver: Arc<DriverContext<D>>,
    deleters: Mutex<Vec<ContextDeleter>>,
    pools: DevicePools<Family<D>>,
    queues: Everyone<D>,
}
/// What a context is to the driver: the devices whose memory is allocated for all of them.
#[derive(Debug)]
pub struct DriverContext<D: Dialect> {
    devices: Vec<Owned<Device<D>>>,
}
impl<D: Dialect> DriverContext<D> {
    /// Those devices; never empty.
    pub fn devices(&self) -> &[Owned<Device<D>>] {
        &self.devices
    }
}

impl<D: Dialect> Context<D> {
    /// The devices this context was made for; never empty.
    pub fn devices(&self) -> &[Owned<Device<D>>] {
        &self.driver.devices
    }
    /// What it is to the driver.
    pub(super) fn driver_context(&self) -> &Arc<DriverContext<D>> {
        &self.driver
    }
    /// What its devices allocate from when C names no pool.
    pub(super) fn pools(&self) -> &DevicePools<Family<D>> {
        &self.pools
    }
    /// The queues that were made for it.
    pub(super) fn queues(&self) -> &Everyone<D> {
        &self.queues
    }
    /// # Errors
    /// `INVALID_DEVICE` where `device` is none of this context's.
    pub fn check(&self, device: Borrowed<'_, Device<D>>) -> Result<()> {
        match self.devices().iter().any(|one| one.same(&device)) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorCode::InvalidDevice,
                "the device does not belong to the context: make the context with it",
            )),
        }
    }
    fn of(devices: Vec<Owned<Device<D>>>) -> Owned<Self> {
        let (deleters, pools) = (Mutex::default(), DevicePools::default());
        let driver = Arc::new(DriverContext { devices });
        Owned::new(Self { driver, deleters, pools, queues: Everyone::new() })
    }
}

impl<D: Dialect> Drop for Context<D> {
    fn drop(&mut self) {
        let deleters = self.deleters.get_mut().unwrap_or_else(PoisonError::into_inner);
        deleters.drain(..).for_each(ContextDeleter::call);
    }
}

impl<D: Dialect> ContextApi for Family<D> {
    fn context_create(
        devices: &[Borrowed<'_, Device<D>>],
        _properties: Option<&ur_context_properties_t>,
    ) -> Result<Owned<Context<D>>> {
        if devices.is_empty() {
            return Err(Error::new(ErrorCode::InvalidValue, "a context needs a device"));
        }
        super::device::check_fork::<D>()?; // what a device's own context costs is for who first uses it
        Ok(Context::of(devices.iter().map(|d| d.own()).collect::<Result<_>>()?))
    }
    fn context_get_info(
        context: Borrowed<'_, Context<D>>,
        name: ur_context_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_context_info_t::NUM_DEVICES => answer.value(&(context.devices().len() as u32)),
            ur_context_info_t::DEVICES => answer.handles(context.devices().iter().map(|d| &**d)),
            ur_context_info_t::REFERENCE_COUNT => answer.value(&context.api_refs()),
            ur_context_info_t::USM_MEMCPY2D_SUPPORT | ur_context_info_t::USM_FILL2D_SUPPORT => {
                answer.bool(true)
            }
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a context of {} has no answer to {name:?}", D::NAME),
            )),
        }
    }
    /// The primary context of its first device.
    fn context_get_native_handle(context: Borrowed<'_, Context<D>>) -> Result<ur_native_handle_t> {
        Ok(context.devices()[0].context()?.addr() as ur_native_handle_t)
    }
    /// Primary contexts alone: any other one's objects could not be used with ours.
    fn context_create_with_native_handle(
        native: ur_native_handle_t,
        _adapter: Borrowed<'_, Adapter<D>>,
        devices: &[Borrowed<'_, Device<D>>],
        _properties: Option<&ur_context_native_properties_t>,
    ) -> Result<Owned<Context<D>>> {
        let named: Vec<_> = devices.iter().map(|d| d.own()).collect::<Result<_>>()?;
        let candidates = if named.is_empty() { device::all::<D>().to_vec() } else { named };
        for one in &candidates {
            if RawContext::from_addr(native).map_or(Ok(false), |raw| one.is_primary(raw))? {
                let all = if devices.is_empty() { vec![one.clone()] } else { candidates.clone() };
                return Ok(Context::of(all));
            }
        }
        Err(Error::new(
            ErrorCode::InvalidValue,
            "the native context is not the primary context of a device given: retain that one \
             (cuDevicePrimaryCtxRetain) and pass it",
        ))
    }
    fn context_set_extended_deleter(
        context: Borrowed<'_, Context<D>>,
        deleter: ContextDeleter,
    ) -> Result<()> {
        context.deleters.lock().unwrap_or_else(PoisonError::into_inner).push(deleter);
        Ok(())
    }
}
