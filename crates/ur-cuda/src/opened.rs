//! Memory of other processes that is open here: where it is, and who can reach it. How it arrives is
//! `share.rs`'s.
use super::{
    Device, DriverDevice,
    driver::Dialect,
    memory::{Allocation, Memory},
    native::{
        ipc::OpenedHandle,
        pool::{DriverPool, FromPool},
        virtual_memory::{self, Mapped, MappedRun},
    },
};
use std::sync::{Arc, Mutex};
use ur_adapter::{error::Result, memory::UsmPtr};
use ur_core::memory::{
    allocation::{Home, Usm},
    allocations::leave,
};
use ur_lock::locked;

/// Another process's memory, in the way it came.
#[derive(Debug)]
pub enum Opened<D: Dialect> {
    /// By descriptor.
    Mapped(Mapped<D>),
    /// By many descriptors.
    MappedRun(MappedRun<D>),
    /// Of a driver's pool.
    FromPool(FromPool<D>),
    /// By the driver's old handle.
    Handle(OpenedHandle<D>),
}

/// Another process's memory in this one's registry, for as long as this lives.
#[derive(Debug)]
pub struct OpenedMemory<D: Dialect> {
    allocation: Arc<Allocation<D>>,
    reach: Reach<D>,
    /// The driver's numbers of the devices that have access.
    admitted: Mutex<Vec<i32>>,
}
/// How one more device gets access.
#[derive(Debug)]
enum Reach<D: Dialect> {
    /// By what is said of the mapping: its address and length.
    Mapping(u64, usize),
    /// By what is said of the pool.
    Pool(Arc<DriverPool<D>>),
    /// When it reaches for it: the driver sees to that.
    Peers,
}
impl<D: Dialect> OpenedMemory<D> {
    /// Enters `bytes` at `base`, of `device`'s, which `admitted` can reach.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn new(
        base: UsmPtr,
        bytes: usize,
        device: &Arc<DriverDevice<D>>,
        admitted: Vec<i32>,
        memory: Opened<D>,
    ) -> Result<Self> {
        let home = Home { device: Device::<D>::of(device)?.as_handle().addr(), ..Home::default() };
        let reach = match &memory {
            Opened::Mapped(mapped) => Reach::Mapping(mapped.at(), mapped.bytes()),
            Opened::MappedRun(mapped) => Reach::Mapping(mapped.at(), mapped.bytes()),
            Opened::FromPool(memory) => Reach::Pool(Arc::clone(memory.pool())),
            Opened::Handle(_) => Reach::Peers,
        };
        if let Reach::Mapping(at, bytes) = reach {
            let store = D::statics().memory.get();
            store.peers.enter_mapping(device, (at, bytes), admitted.clone(), 3)?;
            store.claim(at as usize, bytes);
        }
        let memory = Memory::Opened(memory);
        let allocation = Allocation::enter(base, bytes, Usm::Device, home, memory);
        Ok(Self { allocation, reach, admitted: Mutex::new(admitted) })
    }
    /// The whole of the object.
    pub fn allocation(&self) -> &Allocation<D> {
        &self.allocation
    }
    /// Lets one more device reach the memory, if it does not yet.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn admit(&self, device: &DriverDevice<D>, home: &DriverDevice<D>) -> Result<()> {
        if locked(&self.admitted).contains(&device.number()) {
            return Ok(());
        }
        device.context()?; // a device can only be given access once its context is there
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
        leave(&self.allocation);
        if let Reach::Mapping(at, _) = self.reach {
            let store = D::statics().memory.get();
            store.peers.leave_mapping(at);
            store.give_up(at as usize);
        }
    }
}
