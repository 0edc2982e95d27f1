//! Memory that adapters have for themselves, of the pools that C's is of.
use super::Beneath;
use ur_adapter::{error::Result, log, memory::UsmPtr, object::Owned};

/// Memory that C could have allocated as well: of the same pools, and given back in the same way,
/// behind every command that may use it.
#[derive(Debug)]
pub struct Block<D: Beneath> {
    context: Owned<D::Context>,
    at: UsmPtr,
    is_hosts: bool,
}
impl<D: Beneath> Block<D> {
    /// `bytes` of the host's memory, or of a device's.
    ///
    /// # Errors
    /// As for USM.
    pub fn new(
        context: &Owned<D::Context>,
        device: Option<&Owned<D::Device>>,
        bytes: usize,
    ) -> Result<Self> {
        let (borrowed, is_hosts) = (context.borrow(), device.is_none());
        let at = match device {
            None => D::usm_host_alloc(borrowed, None, None, bytes),
            Some(device) => D::usm_device_alloc(borrowed, device.borrow(), None, None, bytes),
        };
        Ok(Self { context: context.clone(), at: at?, is_hosts })
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
impl<D: Beneath> Drop for Block<D> {
    fn drop(&mut self) {
        let freed = D::usm_free(self.context.borrow(), self.at);
        freed.unwrap_or_else(|error| log::say(D::BACKEND, ur_sys::ur_logger_level_t::WARN, &error));
    }
}
