//! Memory of other processes that is open here: where it is. How it arrives is `share.rs`'s.
use super::{
    memory::{Allocation, Memory},
    native::ipc::OpenedHandle,
    registry::registry,
};
use std::sync::Arc;
use ur_adapter::memory::UsmPtr;
use ur_core::memory::{
    allocation::{Home, Usm},
    allocations::leave,
};

/// Another process's memory in this one's registry, for as long as this lives. Every device that
/// reaches the exporter's can use it: the driver sees to that.
#[derive(Debug)]
pub struct OpenedMemory {
    allocation: Arc<Allocation>,
    /// What the driver opened: its first address.
    at: usize,
}
impl OpenedMemory {
    /// Enters `bytes` at `base`, of `device` by C's handle, within the `whole` bytes of `memory`.
    pub(super) fn new(
        base: UsmPtr,
        bytes: usize,
        device: usize,
        memory: OpenedHandle,
        whole: usize,
    ) -> Self {
        let (home, at) = (Home { device, ..Home::default() }, memory.at() as usize);
        registry().get().claim(at, whole);
        let memory = Memory::Opened(memory);
        Self { allocation: Allocation::enter(base, bytes, Usm::Device, home, memory), at }
    }
    /// The whole of the object.
    pub fn allocation(&self) -> &Allocation {
        &self.allocation
    }
}
impl Drop for OpenedMemory {
    fn drop(&mut self) {
        leave(&self.allocation);
        registry().get().give_up(self.at);
    }
}
