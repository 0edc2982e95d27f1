//! What a context is to the driver.
use super::{
    DriverDevice,
    driver::{Extensions, RawContext},
    native::{memory::Reach, own::Own},
};
use std::sync::Arc;

/// The driver's context of some devices of a platform.
#[derive(Debug)]
pub struct DriverContext {
    native: Own<RawContext>,
    devices: Vec<Arc<DriverDevice>>,
    reach: Reach,
}
impl DriverContext {
    /// Of these devices, at least one.
    pub(super) fn new(native: Own<RawContext>, devices: Vec<Arc<DriverDevice>>) -> Self {
        let reach = devices.iter().map(|one| one.facts().can.reach).max().unwrap_or(Reach::None);
        Self { native, devices, reach }
    }
    /// The driver's context.
    pub(super) fn native(&self) -> &Own<RawContext> {
        &self.native
    }
    /// The driver's name of it.
    pub(super) fn raw(&self) -> RawContext {
        self.native.raw()
    }
    /// How all of its devices reach memory.
    pub(super) fn reach(&self) -> Reach {
        self.reach
    }
    /// Its devices; never empty.
    pub(super) fn devices(&self) -> &[Arc<DriverDevice>] {
        &self.devices
    }
    /// The functions of its platform's extensions.
    pub(super) fn extensions(&self) -> &Arc<Extensions> {
        self.devices[0].platform().extensions()
    }
}
