//! A context: its devices and their pools. There is no driver object for it; each device has a primary context.
use super::{device::DriverDevice, driver::Dialect, ordered_pools::OrderedPools};
use std::sync::Arc;

/// The devices of a context.
#[derive(Debug)]
pub struct DriverContext<D: Dialect>(Arc<OrderedPools<D>>);
impl<D: Dialect> DriverContext<D> {
    /// A context of these devices; at least one.
    pub(super) fn new(devices: Vec<Arc<DriverDevice<D>>>) -> Self {
        Self(Arc::new(OrderedPools::new(devices)))
    }
    /// Its devices; never empty.
    pub fn devices(&self) -> &[Arc<DriverDevice<D>>] {
        self.0.devices()
    }
    /// The pools of which its streams allocate memory in their order.
    pub(super) fn pools(&self) -> &Arc<OrderedPools<D>> {
        &self.0
    }
}
