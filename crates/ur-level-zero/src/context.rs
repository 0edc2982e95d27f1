//! What a context is to the driver, and what is made in it.
use super::{
    DriverDevice, driver::RawContext, native::context::NativeContext, platform::DriverPlatform,
    signal::ContextEvents, usm::UtilityLists,
};
use std::sync::Arc;

/// The driver's context of some devices.
#[derive(Debug)]
pub struct DriverContext {
    // What was made in the driver's context goes before it: fields are dropped in this order.
    events: ContextEvents,
    utility_lists: UtilityLists,
    native: Arc<NativeContext>,
    devices: Vec<Arc<DriverDevice>>,
}
impl DriverContext {
    /// Of these devices, at least one.
    pub(super) fn new(native: NativeContext, devices: Vec<Arc<DriverDevice>>) -> Self {
        let native = Arc::new(native);
        let (utility_lists, events) =
            (UtilityLists::new(Arc::clone(&native)), ContextEvents::default());
        Self { events, utility_lists, native, devices }
    }
    /// Its devices; never empty.
    pub fn devices(&self) -> &[Arc<DriverDevice>] {
        &self.devices
    }
    /// The driver of its devices.
    pub fn platform(&self) -> &Arc<DriverPlatform> {
        self.devices[0].platform()
    }
    /// The driver's context.
    pub fn raw(&self) -> RawContext {
        self.native.raw()
    }
    /// The driver's context, to be kept by what is made in it.
    pub fn native(&self) -> &Arc<NativeContext> {
        &self.native
    }
    /// What works on memory beside all queues.
    pub(super) fn utility_lists(&self) -> &UtilityLists {
        &self.utility_lists
    }
    /// Events of the driver's that nobody uses at the moment.
    pub(super) fn events(&self) -> &ContextEvents {
        &self.events
    }
    /// Whether `device` is one of the context's, or a part of one.
    pub fn has(&self, device: &DriverDevice) -> bool {
        let is = |one: &Arc<DriverDevice>| one.is(device);
        self.devices.iter().any(is) || device.parent().is_some_and(|parent| self.has(parent))
    }
}
