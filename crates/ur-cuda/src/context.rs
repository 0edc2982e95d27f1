//! A context: its devices and its queues. There is no driver object for it; each device has a primary
//! context.
use super::{device::DriverDevice, driver::Dialect, work::QueueRegistry};
use std::sync::Arc;

/// The devices and the queues of a context.
#[derive(Debug)]
pub struct DriverContext<D: Dialect> {
    devices: Vec<Arc<DriverDevice<D>>>,
    queues: QueueRegistry<D>,
}
impl<D: Dialect> DriverContext<D> {
    /// A context of these devices; at least one.
    pub(super) fn new(devices: Vec<Arc<DriverDevice<D>>>) -> Self {
        Self { devices, queues: QueueRegistry::new() }
    }
    /// Its devices; never empty.
    pub fn devices(&self) -> &[Arc<DriverDevice<D>>] {
        &self.devices
    }
    /// The queues that were created in it.
    pub(super) fn queues(&self) -> &QueueRegistry<D> {
        &self.queues
    }
}
