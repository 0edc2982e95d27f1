//! Memory imported from other processes, and its registration in this process. Imports are made in
//! `share.rs`. A driver allocation, which may contain thousands of an application's, is opened once for all
//! of them, because some drivers keep a descriptor for each time it is opened.
use super::{
    device::DriverDevice,
    memory::Allocation,
    native::{context::NativeContext, ipc::OpenedHandle},
    registry::registry,
};
use std::{
    collections::HashMap,
    os::fd::AsFd,
    sync::{Arc, Mutex, Weak},
};
use ur_hal::{Address, Range};
use ur_lock::locked;

/// Identifies an opened driver allocation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    context: usize,
    device: usize,
    /// Device and inode of its descriptor, from `fstat`.
    file: (u64, u64),
    /// Reported by the exporter: its length in bytes, and the form and the bytes of the driver's handle.
    exposes: u64,
    handle: Vec<u8>,
}
impl Key {
    /// `None` if the descriptor cannot be queried.
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
/// The opened driver allocations.
pub(super) type Open = Mutex<HashMap<Key, Weak<Whole>>>;

/// A driver allocation of another process, opened once for all objects in it.
#[derive(Debug)]
pub struct Whole {
    handle: OpenedHandle,
    /// Its length in bytes, as reported by the driver.
    bytes: usize,
    key: Option<Key>,
}
impl Whole {
    /// The opened allocation, unless an object is already open in the `bytes` from `base` on: an exporter may
    /// export overlapping objects, and each of those needs an opening of its own.
    pub(super) fn find(key: &Key, base: u64, bytes: usize) -> Option<Arc<Self>> {
        let found = locked(&registry().open).get(key).and_then(Weak::upgrade)?;
        let at = found.at().checked_add(usize::try_from(base).ok()?)?;
        let range = Range::new(Address::new(at)?, bytes).ok()?;
        let is_used = Allocation::touches(range.start().into(), range.bytes());
        (!is_used).then_some(found)
    }
    /// Registers an allocation of `bytes` that was just opened.
    pub(super) fn new(handle: OpenedHandle, bytes: usize, key: Option<Key>) -> Arc<Self> {
        let store = registry();
        store.claims.claim(handle.at() as usize, bytes);
        let made = Arc::new(Self { handle, bytes, key });
        if let Some(key) = &made.key {
            locked(&store.open).insert(key.clone(), Arc::downgrade(&made));
        }
        made
    }
    /// Its address.
    pub(super) fn at(&self) -> usize {
        self.handle.at() as usize
    }
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
impl Drop for Whole {
    fn drop(&mut self) {
        let store = registry();
        if let Some(key) = &self.key {
            let mut open = locked(&store.open);
            // Another thread may have opened it again meanwhile.
            if open.get(key).is_some_and(|known| known.strong_count() == 0) {
                open.remove(key);
            }
        }
        store.claims.give_up(self.at());
    }
}
