//! Memory that adapters have for themselves, of the pools that C's is of.
use super::{
    usm::{self, Wish},
    usm_pool::{Context, Device, HasUsm},
};
use crate::memory::allocation::Usm;
use ur_adapter::{error::Result, log, memory::UsmPtr, object::Owned};

/// Memory that C could have allocated as well: of the same pools, and given back in the same way,
/// behind every command that may use it.
#[derive(Debug)]
pub struct Block<D: HasUsm> {
    context: Owned<Context<D>>,
    at: UsmPtr,
    is_hosts: bool,
}
impl<D: HasUsm> Block<D> {
    /// `bytes` of the host's memory, or of a device's.
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
    /// Where it is.
    pub fn at(&self) -> UsmPtr {
        self.at
    }
    /// Whether it is the host's memory.
    pub fn is_hosts(&self) -> bool {
        self.is_hosts
    }
}
impl<D: HasUsm> Drop for Block<D> {
    fn drop(&mut self) {
        let freed = usm::free::<D>(&self.context, self.at);
        freed.unwrap_or_else(|error| log::say(D::BACKEND, ur_sys::ur_logger_level_t::WARN, &error));
    }
}
