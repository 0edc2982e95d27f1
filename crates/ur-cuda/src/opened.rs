//! Memory imported from other processes, and access to it for further devices. Imports are made in `share.rs`.
use super::{
    DriverDevice,
    driver::Dialect,
    native::{
        ipc::OpenedHandle,
        pool::{DriverPool, FromPool},
        virtual_memory::{self, Mapped},
    },
};
use std::sync::{Arc, Mutex};
use ur_hal::{Memory, MemoryKind, Range, Result};
use ur_lock::locked;

/// The memory of another process, by the mechanism of the import.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub enum Opened<D: Dialect> {
    /// Physical allocations mapped one after the other, by their descriptors.
    Mapped(Mapped<D>),
    /// An allocation of a driver's pool.
    FromPool(FromPool<D>),
    /// A classic allocation, by the driver's IPC handle.
    Handle(OpenedHandle<D>),
}

/// Imported memory.
#[derive(Debug)]
pub struct OpenedMemory<D: Dialect> {
    range: Range,
    reach: Reach<D>,
    /// The driver's numbers of the devices that have access.
    admitted: Mutex<Vec<i32>>,
    _memory: Opened<D>,
}
/// How another device gets access.
#[derive(Debug)]
enum Reach<D: Dialect> {
    /// By setting the access of the mapping, given by its address and its length in bytes.
    Mapping(u64, usize),
    /// By setting the access of the pool.
    Pool(Arc<DriverPool<D>>),
    /// By the driver, at the first use.
    Peers,
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
        let reach = match &memory {
            Opened::Mapped(mapped) => Reach::Mapping(mapped.at(), mapped.bytes()),
            Opened::FromPool(memory) => Reach::Pool(Arc::clone(memory.pool())),
            Opened::Handle(_) => Reach::Peers,
        };
        if let Reach::Mapping(at, bytes) = reach {
            let store = D::statics().memory.get();
            store.peers.enter_mapping(device, (at, bytes), admitted.clone(), 3)?;
        }
        let place = Some((MemoryKind::Device, device.number()));
        // Of a mapping all, also what is not of the object.
        let (at, bytes) = match reach {
            Reach::Mapping(at, bytes) => (at as usize, bytes),
            _ => (range.start().get(), range.bytes()),
        };
        D::statics().memory.get().claims.claim(at, bytes, place);
        Ok(Self { range, reach, admitted: Mutex::new(admitted), _memory: memory })
    }
    /// Whether the driver waits until the context is idle when it is closed.
    pub(super) fn goes_when_idle(&self) -> bool {
        matches!(self.reach, Reach::Peers)
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
        match &self.reach {
            Reach::Mapping(at, bytes) => {
                virtual_memory::set_access(home, *at, *bytes, &number, 3)?;
            }
            Reach::Pool(pool) => pool.admit(home, &number, true)?,
            Reach::Peers => {}
        }
        locked(&self.admitted).push(device.number());
        Ok(())
    }
}
impl<D: Dialect> Drop for OpenedMemory<D> {
    fn drop(&mut self) {
        let store = D::statics().memory.get();
        match self.reach {
            Reach::Mapping(at, _) => {
                store.claims.give_up(at as usize);
                store.peers.leave_mapping(at);
            }
            _ => store.claims.give_up(self.range.start().get()),
        }
    }
}
impl<D: Dialect> Memory for OpenedMemory<D> {
    fn range(&self) -> Range {
        self.range
    }
}
