//! A context: its devices. There is no driver object for it; each device has a primary context.
use super::{device::DriverDevice, driver::Dialect};
use std::sync::Arc;

/// The devices of a context.
#[derive(Debug)]
pub struct DriverContext<D: Dialect> {
    devices: Vec<Arc<DriverDevice<D>>>,
}
impl<D: Dialect> DriverContext<D> {
    /// A context of these devices; at least one.
    pub(super) fn new(devices: Vec<Arc<DriverDevice<D>>>) -> Self {
        Self { devices }
    }
    /// Its devices; never empty.
    pub fn devices(&self) -> &[Arc<DriverDevice<D>>] {
        &self.devices
    }
}
