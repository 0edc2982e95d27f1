//! Contexts: which devices belong together, and what to call when one goes.
use super::{Cpu, Device};
use std::sync::{Mutex, PoisonError};
use ur_adapter::{
    api::ContextApi,
    callback::ContextDeleter,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_sys::{ur_context_info_t, ur_context_properties_t};

/// A set of devices whose objects can be used together.
#[derive(Debug)]
pub struct Context {
    devices: Vec<Owned<Device>>,
    deleters: Mutex<Vec<ContextDeleter>>,
}

impl Context {
    /// The devices this context was made for; never empty.
    pub fn devices(&self) -> &[Owned<Device>] {
        &self.devices
    }
    /// # Errors
    /// `INVALID_DEVICE` where `device` is not one of this context's.
    pub fn check(&self, device: Borrowed<'_, Device>) -> Result<()> {
        match self.devices.iter().any(|d| d.same(&device)) {
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
        Ok(Owned::new(Context { devices, deleters: Mutex::default() }))
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
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
    fn context_set_extended_deleter(
        context: Borrowed<'_, Context>,
        deleter: ContextDeleter,
    ) -> Result<()> {
        context.deleters.lock().unwrap_or_else(PoisonError::into_inner).push(deleter);
        Ok(())
    }
}
