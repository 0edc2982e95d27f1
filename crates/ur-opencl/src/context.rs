//! What a context is to the driver.
use super::{
    DriverDevice,
    cl::*,
    driver::{Extensions, RawContext, RawMem},
    native::{
        memory::Reach,
        own::{Own, Tells},
    },
};
use std::sync::Arc;
use ur_hal::{Error, ErrorKind, NativeHandle, Result};

/// The driver's context of some devices of a platform.
#[derive(Debug)]
pub struct DriverContext {
    native: Arc<Own<RawContext>>,
    devices: Vec<Arc<DriverDevice>>,
    reach: Reach,
}
impl DriverContext {
    /// Of these devices, at least one.
    pub(super) fn new(native: Own<RawContext>, devices: Vec<Arc<DriverDevice>>) -> Self {
        let reach = devices.iter().map(|one| one.facts().can.reach).max().unwrap_or(Reach::None);
        Self { native: Arc::new(native), devices, reach }
    }
    /// The driver's context.
    pub(super) fn native(&self) -> &Arc<Own<RawContext>> {
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
    /// A memory object that the application made in this context, and its kind.
    ///
    /// # Errors
    /// `InvalidMemory` for 0; `InvalidContext` for an object of another context; the driver's error.
    pub(super) fn mem_object(&self, handle: NativeHandle) -> Result<(RawMem, u32)> {
        let none = || Error::new(ErrorKind::InvalidMemory, "the native memory object is null");
        let raw = RawMem::from_addr(handle.0 as usize).ok_or_else(none)?;
        if raw.number(CL_MEM_CONTEXT)? as usize != self.raw().addr() {
            let why = "the native object is of another context";
            return Err(Error::new(ErrorKind::InvalidContext, why));
        }
        Ok((raw, raw.number(CL_MEM_TYPE)? as u32))
    }
    /// The functions of its platform's extensions.
    pub(super) fn extensions(&self) -> &Arc<Extensions> {
        self.devices[0].platform().extensions()
    }
}
