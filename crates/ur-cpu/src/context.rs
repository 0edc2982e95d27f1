//! Contexts: which devices belong together, and what to call when one goes.
use super::{Adapter, Cpu, Device};
use std::sync::{Arc, Mutex, PoisonError};
use ur_adapter::{
    api::ContextApi,
    callback::ContextDeleter,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Object, Owned},
};
use ur_core::over_driver::own_handle;
use ur_core::over_driver::usm_pool::DevicePools;
use ur_sys::{
    ur_context_info_t, ur_context_native_properties_t, ur_context_properties_t, ur_native_handle_t,
};

/// A set of devices whose objects can be used together.
#[derive(Debug)]
pub struct Context {
    devices: Vec<Owned<Device>>,
    deleters: Mutex<Vec<ContextDeleter>>,
    pools: DevicePools<Cpu>,
    driver: Arc<DriverContext>,
}
/// What a context is to the device: nothing, since it reaches all memory.
#[derive(Debug)]
pub struct DriverContext;

impl Context {
    /// The devices this context was made for; never empty.
    pub fn devices(&self) -> &[Owned<Device>] {
        &self.devices
    }
    /// The USM pools that its devices use when C names none.
    pub(super) fn pools(&self) -> &DevicePools<Cpu> {
        &self.pools
    }
    /// What it is to the device.
    pub(super) fn driver_context(&self) -> &Arc<DriverContext> {
        &self.driver
    }
    /// A part of a device belongs wherever the whole does.
    ///
    /// # Errors
    /// `INVALID_DEVICE` where `device` is none of this context's, nor a part of one.
    pub fn check(&self, device: Borrowed<'_, Device>) -> Result<()> {
        let has = |one: &Object<Device>| self.devices.iter().any(|d| d.same(one));
        let above = std::iter::successors(device.parent(), |above| above.parent());
        match has(&device) || above.into_iter().any(|above| has(above)) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorCode::InvalidDevice,
                "the device does not belong to the context: make the context with it",
            )),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let deleters = self.deleters.get_mut().unwrap_or_else(PoisonError::into_inner);
        deleters.drain(..).for_each(ContextDeleter::call);
    }
}

impl ContextApi for Cpu {
    fn context_create(
        devices: &[Borrowed<'_, Device>],
        _properties: Option<&ur_context_properties_t>,
    ) -> Result<Owned<Context>> {
        if devices.is_empty() {
            return Err(Error::new(ErrorCode::InvalidValue, "a context needs a device"));
        }
        let devices = devices.iter().map(|d| d.own()).collect::<Result<_>>()?;
        Ok(Owned::new(Context {
            devices,
            deleters: Mutex::default(),
            pools: DevicePools::default(),
            driver: Arc::new(DriverContext),
        }))
    }
    fn context_get_info(
        context: Borrowed<'_, Context>,
        name: ur_context_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_context_info_t::NUM_DEVICES => answer.value(&(context.devices.len() as u32)),
            ur_context_info_t::DEVICES => answer.handles(context.devices.iter().map(|d| &**d)),
            ur_context_info_t::REFERENCE_COUNT => answer.value(&context.api_refs()),
            ur_context_info_t::USM_MEMCPY2D_SUPPORT | ur_context_info_t::USM_FILL2D_SUPPORT => {
                answer.bool(true)
            }
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a context of the CPU has no answer to {name:?}"),
            )),
        }
    }
    fn context_get_native_handle(context: Borrowed<'_, Context>) -> Result<ur_native_handle_t> {
        own_handle::of(&context)
    }
    fn context_create_with_native_handle(
        native: ur_native_handle_t,
        _adapter: Borrowed<'_, Adapter>,
        devices: &[Borrowed<'_, Device>],
        _properties: Option<&ur_context_native_properties_t>,
    ) -> Result<Owned<Context>> {
        let context: Owned<Context> = own_handle::find(native)?;
        devices.iter().try_for_each(|device| context.check(*device))?;
        Ok(context)
    }
    fn context_set_extended_deleter(
        context: Borrowed<'_, Context>,
        deleter: ContextDeleter,
    ) -> Result<()> {
        context.deleters.lock().unwrap_or_else(PoisonError::into_inner).push(deleter);
        Ok(())
    }
}
