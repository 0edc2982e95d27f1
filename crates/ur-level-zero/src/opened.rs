//! Memory imported from other processes. Imports are made in `share.rs`. A driver allocation, which may contain thousands of an application's, is opened once for all
//! of them, because some drivers keep a descriptor for each time it is opened.
use super::{
    device::DriverDevice,
    native::ipc::OpenedHandle,
    registry::{Place, registry},
    utility_lists::UtilityLists,
};
use std::{
    collections::{BTreeMap, HashMap},
    os::fd::AsFd,
    sync::{Arc, Mutex, Weak},
};
use ur_hal::{Address, Memory, MemoryKind, Range, Result, contradiction};
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
        (lists, device): (&Arc<UtilityLists>, &DriverDevice),
        fd: impl AsFd,
        exposes: u64,
        handle: &[u8],
    ) -> Option<Self> {
        let about = rustix::fs::fstat(fd).ok()?;
        Some(Self {
            context: Arc::as_ptr(lists.context()).addr(),
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
    /// The first address of each open object, and the address behind it.
    objects: Mutex<BTreeMap<usize, usize>>,
}
impl Whole {
    /// The opened allocation, if it is open.
    pub(super) fn find(key: &Key) -> Option<Arc<Self>> {
        locked(&registry().open).get(key).and_then(Weak::upgrade)
    }
    /// An allocation of `bytes` that was just opened.
    pub(super) fn new(
        (lists, device): (&Arc<UtilityLists>, &Arc<DriverDevice>),
        handle: OpenedHandle,
        bytes: usize,
        key: Option<Key>,
    ) -> Arc<Self> {
        let (device, lists) = (Arc::clone(device), Arc::clone(lists));
        let place = Place { kind: MemoryKind::Device, device, lists };
        registry().claims.claim(handle.at() as usize, bytes, Some(place));
        Arc::new(Self { handle, bytes, key, objects: Mutex::default() })
    }
    /// Lets [`find`](Self::find) find it.
    pub(super) fn register(self: &Arc<Self>) {
        if let Some(key) = &self.key {
            locked(&registry().open).insert(key.clone(), Arc::downgrade(self));
        }
    }
    /// Its object at an offset. `None` if one is open already in the same bytes: an exporter may export overlapping
    /// objects, and each of those needs an opening of its own.
    ///
    /// # Errors
    /// [`contradiction`] if the object is not inside.
    pub(super) fn object(
        self: Arc<Self>,
        base: usize,
        bytes: usize,
    ) -> Result<Option<OpenedMemory>> {
        if base.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(contradiction("it is larger than what the driver opened"));
        }
        let null = || contradiction("it is at no address");
        let range = Range::new(Address::new(self.at() + base).ok_or_else(null)?, bytes)?;
        let (start, end) = (range.start().get(), range.end());
        let mut objects = locked(&self.objects);
        // They do not overlap, so the last that starts before the end reaches farthest.
        let is_free = objects.range(..end).next_back().is_none_or(|(_, last)| *last <= start);
        if is_free {
            objects.insert(start, end);
        }
        drop(objects);
        Ok(is_free.then_some(OpenedMemory { range, whole: self }))
    }
    /// Its address.
    pub(super) fn at(&self) -> usize {
        self.handle.at() as usize
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

/// An object of another process. All devices that can access the exporter's device can use it without further calls.
#[derive(Debug)]
pub struct OpenedMemory {
    range: Range,
    whole: Arc<Whole>,
}
impl Memory for OpenedMemory {
    fn range(&self) -> Range {
        self.range
    }
}
impl Drop for OpenedMemory {
    fn drop(&mut self) {
        locked(&self.whole.objects).remove(&self.range.start().get());
    }
}
