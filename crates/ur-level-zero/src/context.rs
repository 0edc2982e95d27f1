//! Contexts: which devices belong together, the driver's context they share, and what to call when
//! one goes.
use super::{
    Adapter, Device, LevelZero, Platform, driver::RawContext, event::ContextEvents,
    native::context::NativeContext, platform, queue::Everyone, usm::Asides,
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
pub struct Context {
    // What was made in the driver's context goes before it: fields are dropped in this order.
    queues: Everyone,
    pools: DevicePools<LevelZero>,
    events: ContextEvents,
    driver: Arc<DriverContext>,
    platform: Owned<Platform>,
    deleters: Mutex<Vec<ContextDeleter>>,
}
/// What a context is to the driver, kept by what is made in it.
#[derive(Debug)]
pub struct DriverContext {
    asides: Asides,
    native: Arc<NativeContext>,
    devices: Vec<Owned<Device>>,
}
impl DriverContext {
    /// Its devices; never empty.
    pub fn devices(&self) -> &[Owned<Device>] {
        &self.devices
    }
    /// The driver's context.
    pub fn native(&self) -> &Arc<NativeContext> {
        &self.native
    }
    /// What works on memory beside all queues.
    pub(super) fn asides(&self) -> &Asides {
        &self.asides
    }
}

impl Context {
    fn new(native: NativeContext, devices: Vec<Owned<Device>>) -> Owned<Self> {
        let (pools, events) = Default::default();
        let (platform, deleters) = (devices[0].platform().clone(), Mutex::default());
        let native = Arc::new(native);
        let asides = Asides::new(Arc::clone(&native));
        let driver = Arc::new(DriverContext { asides, native, devices });
        let queues = Everyone::new();
        Owned::new(Self { queues, pools, events, driver, platform, deleters })
    }
    /// The devices this context was made for; never empty.
    pub fn devices(&self) -> &[Owned<Device>] {
        self.driver.devices()
    }
    /// What it is to the driver.
    pub(super) fn driver_context(&self) -> &Arc<DriverContext> {
        &self.driver
    }
    /// The driver's context.
    pub fn raw(&self) -> RawContext {
        self.native().raw()
    }
    /// The driver's context, to be kept by what is made in it.
    pub fn native(&self) -> &Arc<NativeContext> {
        &self.driver.native
    }
    /// The driver of its devices.
    pub fn platform(&self) -> &Owned<Platform> {
        &self.platform
    }
    /// The queues that were made for it.
    pub(super) fn queues(&self) -> &Everyone {
        &self.queues
    }
    /// What its devices allocate from when C names no pool.
    pub(super) fn pools(&self) -> &DevicePools<LevelZero> {
        &self.pools
    }
    /// Events of the driver's that nobody uses at the moment.
    pub(super) fn events(&self) -> &ContextEvents {
        &self.events
    }
    /// Whether `device` is one of this context's, or a part of one.
    pub fn has(&self, device: &Device) -> bool {
        let is = |one: &Owned<Device>| one.is(device);
        self.devices().iter().any(is) || device.parent().is_some_and(|parent| self.has(parent))
    }
    /// # Errors
    /// `INVALID_DEVICE` where `device` is none of this context's, nor a part of one.
    pub fn check(&self, device: Borrowed<'_, Device>) -> Result<()> {
        match self.has(&device) {
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

impl ContextApi for LevelZero {
    fn context_create(
        devices: &[Borrowed<'_, Device>],
        _properties: Option<&ur_context_properties_t>,
    ) -> Result<Owned<Context>> {
        platform::check_fork()?;
        let Some(first) = devices.first() else {
            return Err(Error::new(ErrorCode::InvalidValue, "a context needs a device"));
        };
        if devices.iter().any(|one| one.platform().raw() != first.platform().raw()) {
            return Err(Error::new(
                ErrorCode::InvalidDevice,
                "devices of different drivers share no context: make one for each platform",
            ));
        }
        let raws: Vec<_> = devices.iter().map(|one| one.raw()).collect();
        let native = NativeContext::create(first.platform().raw(), &raws)?;
        Ok(Context::new(native, devices.iter().map(|d| d.own()).collect::<Result<_>>()?))
    }
    fn context_get_info(
        context: Borrowed<'_, Context>,
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
                format!("a context of Level Zero has no answer to {name:?}"),
            )),
        }
    }
    fn context_get_native_handle(context: Borrowed<'_, Context>) -> Result<ur_native_handle_t> {
        Ok(context.raw().addr() as ur_native_handle_t)
    }
    fn context_create_with_native_handle(
        native: ur_native_handle_t,
        _adapter: Borrowed<'_, Adapter>,
        devices: &[Borrowed<'_, Device>],
        properties: Option<&ur_context_native_properties_t>,
    ) -> Result<Owned<Context>> {
        platform::check_fork()?;
        let Some(raw) = RawContext::from_addr(native) else {
            return Err(Error::new(ErrorCode::InvalidNullHandle, "the native context is null"));
        };
        let mut all: Vec<_> = devices.iter().map(|d| d.own()).collect::<Result<_>>()?;
        if all.is_empty() {
            all = platform::all().first().map(|one| one.devices().to_vec()).unwrap_or_default();
        }
        if all.is_empty() {
            return Err(Error::new(ErrorCode::InvalidDevice, "the context would have no device"));
        }
        let owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        Ok(Context::new(NativeContext::adopt(raw, owned), all))
    }
    fn context_set_extended_deleter(
        context: Borrowed<'_, Context>,
        deleter: ContextDeleter,
    ) -> Result<()> {
        context.deleters.lock().unwrap_or_else(PoisonError::into_inner).push(deleter);
        Ok(())
    }
}
