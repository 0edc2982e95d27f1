//! Memory of other processes that is open here: where it is. How it arrives is `share.rs`'s. What is open of one allocation of the
//! driver's, which may hold thousands of an application's, the driver opens once: some keep a descriptor for each opening.
use super::{
    device::DriverDevice,
    memory::{Allocation, Memory},
    native::{context::NativeContext, ipc::OpenedHandle},
    registry::registry,
};
use std::{
    collections::HashMap,
    os::fd::AsFd,
    sync::{Arc, Mutex, Weak},
};
use ur_adapter::memory::UsmPtr;
use ur_core::memory::{
    allocation::{Home, Usm},
    allocations::{self, Entries, leave},
};
use ur_hal::{Address, Range};
use ur_lock::locked;

/// What tells one allocation of the driver's from others: where it is opened, and what came of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    context: usize,
    device: usize,
    /// Of its descriptor: file system and file, by the kernel's word.
    file: (u64, u64),
    /// The exporter's words: how long it is, and the driver's handle.
    exposes: u64,
    handle: Vec<u8>,
}
impl Key {
    /// `None` where the kernel does not tell what the descriptor is of.
    pub(super) fn of(
        (context, device): (&Arc<NativeContext>, &DriverDevice),
        fd: impl AsFd,
        exposes: u64,
        handle: &[u8],
    ) -> Option<Self> {
        let about = rustix::fs::fstat(fd).ok()?;
        Some(Self {
            context: Arc::as_ptr(context).addr(),
            device: device.raw().addr(),
            file: (about.st_dev, about.st_ino),
            exposes,
            handle: handle.to_vec(),
        })
    }
}
/// What is open, by what it is of.
pub(super) type Open = Mutex<HashMap<Key, Weak<Whole>>>;

/// An allocation of another process's driver, opened once for all that is open of it.
#[derive(Debug)]
pub struct Whole {
    handle: OpenedHandle,
    /// How long it is from there on, by the driver's word.
    bytes: usize,
    key: Option<Key>,
}
impl Whole {
    /// What is open already, if nothing is open in the `bytes` from `base` on: exporters that give out what overlaps have each of
    /// their objects opened by itself.
    pub(super) fn find(key: &Key, base: u64, bytes: usize) -> Option<Arc<Self>> {
        let found = locked(&registry().get().open).get(key).and_then(Weak::upgrade)?;
        let at = found.at().checked_add(usize::try_from(base).ok()?)?;
        let range = Range::new(Address::new(at)?, bytes).ok()?;
        let is_free = allocations::read(|known: &Entries<Allocation>| !known.touches(range));
        is_free.then_some(found)
    }
    /// Enters what was just opened, which is `bytes` long.
    pub(super) fn new(handle: OpenedHandle, bytes: usize, key: Option<Key>) -> Arc<Self> {
        let store = registry().get();
        store.claim(handle.at() as usize, bytes);
        let made = Arc::new(Self { handle, bytes, key });
        if let Some(key) = &made.key {
            locked(&store.open).insert(key.clone(), Arc::downgrade(&made));
        }
        made
    }
    /// Its first address.
    pub(super) fn at(&self) -> usize {
        self.handle.at() as usize
    }
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
impl Drop for Whole {
    fn drop(&mut self) {
        let store = registry().get();
        if let Some(key) = &self.key {
            let mut open = locked(&store.open);
            // Another thread may have opened it meanwhile.
            if open.get(key).is_some_and(|known| known.strong_count() == 0) {
                open.remove(key);
            }
        }
        store.give_up(self.at());
    }
}

/// Another process's memory in this one's registry, for as long as this lives. Every device that
/// reaches the exporter's can use it: the driver sees to that.
#[derive(Debug)]
pub struct OpenedMemory(Arc<Allocation>);
impl OpenedMemory {
    /// Enters `bytes` from `base` on in `whole`, of `device` by C's handle.
    pub(super) fn new(base: UsmPtr, bytes: usize, device: usize, whole: Arc<Whole>) -> Self {
        let home = Home { device, ..Home::default() };
        Self(Allocation::enter(base, bytes, Usm::Device, home, Memory::Opened(whole)))
    }
    /// The whole of the object.
    pub fn allocation(&self) -> &Allocation {
        &self.0
    }
}
impl Drop for OpenedMemory {
    fn drop(&mut self) {
        leave(&self.0);
    }
}
