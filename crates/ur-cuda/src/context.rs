//! What a context is to the driver: devices, each with its own primary context, and the queues on them.
use super::{device::DriverDevice, driver::Dialect, work::QueueRegistry};
use std::sync::Arc;

/// The devices whose memory is allocated for all of them.
#[derive(Debug)]
pub struct DriverContext<D: Dialect> {
    devices: Vec<Arc<DriverDevice<D>>>,
    queues: QueueRegistry<D>,
}
impl<D: Dialect> DriverContext<D> {
    /// Of these devices, at least one.
    pub(super) fn new(devices: Vec<Arc<DriverDevice<D>>>) -> Self {
        Self { devices, queues: QueueRegistry::new() }
    }
    /// Its devices; never empty.
    pub fn devices(&self) -> &[Arc<DriverDevice<D>>] {
        &self.devices
    }
    /// The queues that were made for it.
    pub(super) fn queues(&self) -> &QueueRegistry<D> {
        &self.queues
    }
}
