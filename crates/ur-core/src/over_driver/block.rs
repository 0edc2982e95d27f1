//! Memory that adapters allocate for themselves from the pools that serve USM.
use super::{
    usm::{self, Wish},
    usm_pool::{Context, Device, HasUsm},
};
use crate::memory::allocation::Usm;
use ur_adapter::{error::Result, log, memory::UsmPtr, object::Owned};

/// An allocation from the same pools as USM. Dropping it is a deferred free, so commands that use it may still be
/// running.
#[derive(Debug)]
pub struct Block<D: HasUsm> {
    context: Owned<Context<D>>,
    at: UsmPtr,
    is_hosts: bool,
}
impl<D: HasUsm> Block<D> {
    /// Allocates `bytes` of host memory, or of a device's memory.
    ///
    /// # Errors
    /// As for USM.
    pub fn new(
        context: &Owned<Context<D>>,
        device: Option<&Owned<Device<D>>>,
        bytes: usize,
    ) -> Result<Self> {
        let is_hosts = device.is_none();
        let usm = if is_hosts { Usm::Host } else { Usm::Device };
        let wish = Wish { device: device.map(Owned::borrow), desc: None, pool: None };
        let at = usm::allocate::<D>(usm, context.borrow(), wish, bytes)?;
        Ok(Self { context: context.clone(), at, is_hosts })
    }
    /// Its first byte.
    pub fn at(&self) -> UsmPtr {
        self.at
    }
    /// Whether it is host memory.
    pub fn is_hosts(&self) -> bool {
        self.is_hosts
    }
}
impl<D: HasUsm> Drop for Block<D> {
    fn drop(&mut self) {
        if D::check_fork().is_err() {
            return; // it is the parent's
        }
        let freed = usm::free::<D>(&self.context, self.at);
        freed.unwrap_or_else(|error| log::say(D::BACKEND, ur_sys::ur_logger_level_t::WARN, &error));
    }
}
