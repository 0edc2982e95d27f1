//! The table of all memory that is allocated, imported or opened, by address; and the memory used of each
//! device.
use crate::{
    backing::{Backing, Mapping},
    device::Device,
    inject::Answer,
    properties,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};
use ur_lock::{read_locked, write_locked};
use ze_sys::*;

/// How an allocation was created, which determines how it is released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Allocated here; freed.
    Allocated,
    /// Opened by an IPC handle; closed.
    Opened,
    /// The caller's own memory, registered; removed from the table.
    Caller,
}
/// One allocation.
pub struct Allocation {
    pub base: usize,
    /// As requested, in bytes.
    pub size: usize,
    /// The offset in its backing.
    pub offset: usize,
    pub kind: ze_memory_type_t,
    pub origin: Origin,
    /// Its device; `None` for host memory.
    pub device: Option<Arc<Device>>,
    /// The address of its context's handle.
    pub context: usize,
    /// Unique among all allocations of this process.
    pub id: u64,
    /// The kinds of descriptors as which it can be exported.
    pub exports: ze_external_memory_type_flags_t,
    pub backing: Option<Arc<Backing>>,
    /// Unmapped with the last reference.
    pub _mapping: Option<Mapping>,
    /// Its share of the device's memory, returned with the last reference.
    pub _taken: Option<Taken>,
}
/// A share of a device's memory, returned on drop.
pub struct Taken {
    device: u32,
    bytes: u64,
}
type Given = HashMap<u32, u64>;
static GIVEN: RwLock<Option<Given>> = RwLock::new(None);

impl Taken {
    /// Takes a share, if the device has enough free memory.
    pub fn new(device: &Device, bytes: usize) -> Answer<Self> {
        let whole = properties::memory(device) * u64::from(device.share());
        let mut given = write_locked(&GIVEN);
        let given = given.get_or_insert_default().entry(device.index).or_default();
        let bytes = bytes as u64;
        if bytes > whole - (*given).min(whole) {
            return Err(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
        }
        *given += bytes;
        Ok(Self { device: device.index, bytes })
    }
}
impl Drop for Taken {
    fn drop(&mut self) {
        let mut given = write_locked(&GIVEN);
        if let Some(given) = given.as_mut().and_then(|given| given.get_mut(&self.device)) {
            *given -= self.bytes;
        }
    }
}
/// Free bytes of the whole device.
pub fn free(device: &Device) -> u64 {
    let given = read_locked(&GIVEN);
    let given = given.as_ref().and_then(|given| given.get(&device.index)).copied().unwrap_or(0);
    properties::memory(device).saturating_sub(given)
}

static ALL: RwLock<BTreeMap<usize, Arc<Allocation>>> = RwLock::new(BTreeMap::new());

/// A number that no other allocation of this process has.
pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
/// Adds an allocation.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` if it overlaps another one.
pub fn add(allocation: Allocation) -> Answer {
    let end = allocation.base + allocation.size.max(1);
    let mut all = write_locked(&ALL);
    let before = all.range(..end).next_back();
    if before.is_some_and(|(base, one)| base + one.size.max(1) > allocation.base) {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    all.insert(allocation.base, Arc::new(allocation));
    Ok(())
}
/// The allocation that contains `address`.
pub fn find(address: usize) -> Option<Arc<Allocation>> {
    let all = read_locked(&ALL);
    let (base, one) = all.range(..=address).next_back()?;
    (address < base + one.size.max(1)).then(|| Arc::clone(one))
}
/// The start addresses and sizes of the allocations that contain the addresses.
pub fn extents<const N: usize>(addresses: [usize; N]) -> [Option<(usize, usize)>; N] {
    let all = read_locked(&ALL);
    addresses.map(|address| {
        let (base, one) = all.range(..=address).next_back()?;
        (address < base + one.size.max(1)).then_some((*base, one.size))
    })
}
/// Removes the allocation that starts at `base`, if it has this origin.
pub fn remove(base: usize, origin: Origin) -> Option<Arc<Allocation>> {
    let mut all = write_locked(&ALL);
    if all.get(&base)?.origin != origin {
        return None;
    }
    all.remove(&base)
}
