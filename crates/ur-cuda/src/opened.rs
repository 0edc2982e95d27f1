//! Memory imported from other processes, and access to it for further devices. Imports are made in `share.rs`.
use super::{
    DriverDevice,
    driver::Dialect,
    native::{
        ipc::OpenedHandle,
        pool::FromPool,
        virtual_memory::{self, Mapped},
    },
};
use std::sync::{Arc, Mutex};
use ur_hal::{Memory, MemoryKind, Range, Result};
use ur_lock::locked;

/// The memory of another process, by the mechanism of the import, on which it depends how another device gets access.
#[derive(Debug)]
pub enum Opened<D: Dialect> {
    /// Physical allocations mapped one after the other, by their descriptors. The access of the mapping is set.
    Mapped(Mapped<D>),
    /// An allocation of a driver's pool. The access of the pool is set.
    FromPool(FromPool<D>),
    /// A classic allocation, by the driver's IPC handle. The driver gives access at the first use.
    Handle(#[expect(dead_code, reason = "held to be dropped")] OpenedHandle<D>),
}

/// Imported memory.
#[derive(Debug)]
pub struct OpenedMemory<D: Dialect> {
    range: Range,
    /// The driver's numbers of the devices that have access.
    admitted: Mutex<Vec<i32>>,
    memory: Opened<D>,
}
impl<D: Dialect> OpenedMemory<D> {
    /// Memory of `device` in `range`, which the devices in `admitted` can access.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn new(
        range: Range,
        device: &Arc<DriverDevice<D>>,
        admitted: Vec<i32>,
        memory: Opened<D>,
    ) -> Result<Self> {
        let store = D::statics().memory.get();
        // Of a mapping all, also what is not of the object.
        let (at, bytes) = match &memory {
            Opened::Mapped(mapped) => {
                let whole = (mapped.at(), mapped.bytes());
                store.peers.enter_mapping(device, whole, admitted.clone(), 3)?;
                (whole.0 as usize, whole.1)
            }
            Opened::FromPool(_) | Opened::Handle(_) => (range.start().get(), range.bytes()),
        };
        store.claims.claim(at, bytes, Some((MemoryKind::Device, device.number())));
        Ok(Self { range, admitted: Mutex::new(admitted), memory })
    }
    /// Whether the driver waits until the context is idle when it is closed.
    pub(super) fn goes_when_idle(&self) -> bool {
        matches!(self.memory, Opened::Handle(_))
    }
    /// Gives another device access, if it has none yet.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn admit(&self, device: &DriverDevice<D>, home: &DriverDevice<D>) -> Result<()> {
        if locked(&self.admitted).contains(&device.number()) {
            return Ok(());
        }
        device.context()?; // access can only be given to devices whose context exists
        let number = [device.number()];
        match &self.memory {
            Opened::Mapped(mapped) => {
                virtual_memory::set_access(home, mapped.at(), mapped.bytes(), &number, 3)?;
            }
            Opened::FromPool(memory) => memory.pool().admit(home, &number, true)?,
            Opened::Handle(_) => {}
        }
        locked(&self.admitted).push(device.number());
        Ok(())
    }
}
impl<D: Dialect> Drop for OpenedMemory<D> {
    fn drop(&mut self) {
        let store = D::statics().memory.get();
        if let Opened::Mapped(mapped) = &self.memory {
            store.claims.give_up(mapped.at() as usize);
            store.peers.leave_mapping(mapped.at());
        } else {
            store.claims.give_up(self.range.start().get());
        }
    }
}
impl<D: Dialect> Memory for OpenedMemory<D> {
    fn range(&self) -> Range {
        self.range
    }
}
