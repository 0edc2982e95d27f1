//! A driver context, and the objects that belong to it.
use super::{
    DriverDevice, driver::RawContext, native::context::NativeContext, platform::DriverPlatform,
    signal::ContextEvents, utility_lists::UtilityLists,
};
use std::sync::Arc;

/// A driver context of some devices.
#[derive(Debug)]
pub struct DriverContext {
    // Fields are dropped in this order: objects of the driver's context before the context.
    events: ContextEvents,
    utility_lists: Arc<UtilityLists>,
    native: Arc<NativeContext>,
    devices: Vec<Arc<DriverDevice>>,
}
impl DriverContext {
    /// A context of these devices; at least one.
    pub(super) fn new(native: NativeContext, devices: Vec<Arc<DriverDevice>>) -> Self {
        let native = Arc::new(native);
        let (utility_lists, events) =
            (Arc::new(UtilityLists::new(Arc::clone(&native))), ContextEvents::default());
        Self { events, utility_lists, native, devices }
    }
    /// Its devices; never empty.
    pub fn devices(&self) -> &[Arc<DriverDevice>] {
        &self.devices
    }
    /// The driver that its devices belong to.
    pub fn platform(&self) -> &Arc<DriverPlatform> {
        self.devices[0].platform()
    }
    /// The handle of the driver's context.
    pub fn raw(&self) -> RawContext {
        self.native.raw()
    }
    /// The driver's context; objects created in it keep a reference.
    pub fn native(&self) -> &Arc<NativeContext> {
        &self.native
    }
    /// Command lists for work on memory outside all queues.
    pub(super) fn utility_lists(&self) -> &Arc<UtilityLists> {
        &self.utility_lists
    }
    /// The pool of unused driver events.
    pub(super) fn events(&self) -> &ContextEvents {
        &self.events
    }
}
