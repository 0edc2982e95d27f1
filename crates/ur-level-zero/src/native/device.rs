//! Queries of device properties.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::super::driver::{Outcome, RawDevice, RawDriver, driver};
use std::{
    ops::Deref,
    ptr::{from_mut, null_mut},
};
use ur_hal::{ErrorKind, Result};
use ze_sys::*;

/// A structure that the driver filled in; its link is null, so it contains no pointers.
#[derive(Clone, Copy, Debug)]
pub struct Told<T>(T);
// SAFETY: only `chained`, `told` and `several` create it, and they leave no pointer in it.
unsafe impl<T> Send for Told<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Told<T> {}
impl<T> Deref for Told<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The driver's devices, in its order.
///
/// # Errors
/// Returns the driver's error.
pub fn all(of: RawDriver) -> Result<Vec<RawDevice>> {
    // SAFETY: `listed` passes a list with the length that it states.
    listed(|count, to| unsafe { driver().device_get(of, count, to) })
}
/// The tiles of a device; most devices have none.
///
/// # Errors
/// Returns the driver's error.
pub fn parts(of: RawDevice) -> Result<Vec<RawDevice>> {
    // SAFETY: `listed` passes a list with the length that it states.
    listed(|count, to| unsafe { driver().device_get_sub_devices(of, count, to) })
}
/// The root device of a tile, if the driver reports it; `None` for a root device, and if only tiles are
/// exposed.
///
/// # Errors
/// Returns the driver's error.
pub fn whole(of: RawDevice) -> Result<Option<RawDevice>> {
    let mut whole = None;
    // SAFETY: `whole` is writable.
    match unsafe { driver().device_get_root_device(of, &raw mut whole) }.ok() {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None), // drivers before version 1.7
        told => told.map(|()| whole),
    }
}
/// Calls a query that returns a list: first for the length, then for the entries.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn listed<T: Copy>(ask: impl Fn(*mut u32, *mut Option<T>) -> Outcome) -> Result<Vec<T>> {
    let mut count = 0;
    ask(&raw mut count, null_mut()).ok()?;
    let mut found = vec![None; count as usize];
    if count != 0 {
        ask(&raw mut count, found.as_mut_ptr()).ok()?;
    }
    Ok(found.into_iter().take(count as usize).flatten().collect())
}

/// A structure of Level Zero with a type and a link (`stype`, `pNext`).
///
/// # Safety
/// The first two fields must be the type and the link, as in every structure of Level Zero.
pub unsafe trait Linked: Default {
    /// The value of its type: `ZE_STRUCTURE_TYPE_*`.
    const STYPE: ze_structure_type_t;
}
#[repr(C)]
struct Head {
    stype: ze_structure_type_t,
    next: *mut std::ffi::c_void,
}
fn head<T: Linked>(of: &mut T) -> &mut Head {
    // SAFETY: the trait guarantees that it begins with these two fields.
    unsafe { &mut *from_mut(of).cast::<Head>() }
}
fn fresh<T: Linked>() -> T {
    let mut made = T::default();
    head(&mut made).stype = T::STYPE;
    made
}
fn told<T: Linked>(ask: impl FnOnce(*mut T) -> Outcome) -> Result<Told<T>> {
    let mut made = fresh::<T>();
    ask(&raw mut made).ok()?;
    head(&mut made).next = null_mut();
    Ok(Told(made))
}
/// Queries `T` with `E` linked to it, and returns `E`; all zeros if the driver does not know `E`.
fn chained<T: Linked, E: Linked>(ask: impl FnOnce(*mut T) -> Outcome) -> Result<Told<E>> {
    let (mut first, mut second) = (fresh::<T>(), fresh::<E>());
    head(&mut first).next = from_mut(&mut second).cast();
    ask(&raw mut first).ok()?;
    head(&mut second).next = null_mut();
    Ok(Told(second))
}
macro_rules! linked { ($($t:ty = $stype:ident;)*) => { $(
    // SAFETY: the specification defines this layout.
    unsafe impl Linked for $t { const STYPE: ze_structure_type_t = $stype; }
)* } }
linked! {
    ze_device_memory_ext_properties_t = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_EXT_PROPERTIES;
    ze_device_vector_width_properties_ext_t = ZE_STRUCTURE_TYPE_DEVICE_VECTOR_WIDTH_PROPERTIES_EXT;
    ze_mutable_command_list_exp_properties_t = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES;
    ze_command_queue_group_properties_t = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES;
    ze_device_memory_properties_t = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES;
    ze_device_cache_properties_t = ZE_STRUCTURE_TYPE_DEVICE_CACHE_PROPERTIES;
    ze_device_properties_t = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
    ze_device_compute_properties_t = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES;
    ze_device_module_properties_t = ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES;
    ze_device_memory_access_properties_t = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES;
    ze_device_image_properties_t = ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES;
    ze_device_external_memory_properties_t = ZE_STRUCTURE_TYPE_DEVICE_EXTERNAL_MEMORY_PROPERTIES;
    ze_device_p2p_properties_t = ZE_STRUCTURE_TYPE_DEVICE_P2P_PROPERTIES;
    ze_pci_ext_properties_t = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES;
    ze_eu_count_ext_t = ZE_STRUCTURE_TYPE_EU_COUNT_EXT;
    ze_device_ip_version_ext_t = ZE_STRUCTURE_TYPE_DEVICE_IP_VERSION_EXT;
    ze_float_atomic_ext_properties_t = ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES;
    ze_device_luid_ext_properties_t = ZE_STRUCTURE_TYPE_DEVICE_LUID_EXT_PROPERTIES;
    ze_device_usablemem_size_ext_properties_t = ZE_STRUCTURE_TYPE_DEVICE_USABLEMEM_SIZE_EXT_PROPERTIES;
}

/// The support of two-dimensional block loads and stores: an extension of Intel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BlockArrays {
    stype: ze_structure_type_t,
    next: *mut std::ffi::c_void,
    /// Bit 0: loads; bit 1: stores.
    pub flags: u32,
}
impl Default for BlockArrays {
    fn default() -> Self {
        Self { stype: 0, next: null_mut(), flags: 0 }
    }
}
// SAFETY: the extension defines this layout.
unsafe impl Linked for BlockArrays {
    const STYPE: ze_structure_type_t = 0x0003_0007;
}

/// The driver's properties of a device.
///
/// # Errors
/// Returns the driver's error.
pub fn properties(of: RawDevice) -> Result<Told<ze_device_properties_t>> {
    // SAFETY: a structure with its type.
    told(|to| unsafe { driver().device_get_properties(of, to) })
}
/// Ticks of its clock in a second. For drivers since version 1.2.
///
/// # Errors
/// Returns the driver's error.
pub fn cycles_per_second(of: RawDevice) -> Result<u64> {
    let stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
    let mut told = ze_device_properties_t { stype, ..Default::default() };
    // SAFETY: a structure with its type.
    unsafe { driver().device_get_properties(of, &raw mut told) }.ok()?;
    Ok(told.timerResolution)
}
/// The limits of its work-groups.
///
/// # Errors
/// Returns the driver's error.
pub fn compute(of: RawDevice) -> Result<Told<ze_device_compute_properties_t>> {
    // SAFETY: as above.
    told(|to| unsafe { driver().device_get_compute_properties(of, to) })
}
/// The supported program formats and capabilities of kernels.
///
/// # Errors
/// Returns the driver's error.
pub fn module(of: RawDevice) -> Result<Told<ze_device_module_properties_t>> {
    // SAFETY: as above.
    told(|to| unsafe { driver().device_get_module_properties(of, to) })
}
/// The kinds of memory that it can access, and how.
///
/// # Errors
/// Returns the driver's error.
pub fn access(of: RawDevice) -> Result<Told<ze_device_memory_access_properties_t>> {
    // SAFETY: as above.
    told(|to| unsafe { driver().device_get_memory_access_properties(of, to) })
}
/// The limits of its images; zeros if it does not support images.
///
/// # Errors
/// Returns the driver's error.
pub fn image(of: RawDevice) -> Result<Told<ze_device_image_properties_t>> {
    // SAFETY: as above.
    told(|to| unsafe { driver().device_get_image_properties(of, to) })
}
/// The kinds of descriptors to which its memory can be exported, and from which memory can be imported.
///
/// # Errors
/// Returns the driver's error.
pub fn external(of: RawDevice) -> Result<Told<ze_device_external_memory_properties_t>> {
    // SAFETY: as above.
    told(|to| unsafe { driver().device_get_external_memory_properties(of, to) })
}
/// Its PCI address.
///
/// # Errors
/// Returns the driver's error.
pub fn pci(of: RawDevice) -> Result<Told<ze_pci_ext_properties_t>> {
    // SAFETY: as above.
    told(|to| unsafe { driver().device_pci_get_properties_ext(of, to) })
}
/// The properties of the link from one device to another.
///
/// # Errors
/// Returns the driver's error.
pub fn peer(of: RawDevice, peer: RawDevice) -> Result<Told<ze_device_p2p_properties_t>> {
    // SAFETY: as above.
    told(|to| unsafe { driver().device_get_p2p_properties(of, peer, to) })
}
/// Whether `of` can access the memory of `peer`.
///
/// # Errors
/// Returns the driver's error.
pub fn can_access(of: RawDevice, peer: RawDevice) -> Result<bool> {
    let mut can = 0;
    // SAFETY: `can` is writable.
    unsafe { driver().device_can_access_peer(of, peer, &raw mut can) }.ok()?;
    Ok(can != 0)
}
/// The properties of an extension; all zeros if the driver does not know it.
///
/// # Errors
/// Returns the driver's error.
pub fn extended<E: Linked>(of: RawDevice) -> Result<Told<E>> {
    // SAFETY: linked structures with their types.
    chained(|to: *mut ze_device_properties_t| unsafe { driver().device_get_properties(of, to) })
}
fn several<T: Linked + Copy>(ask: impl Fn(*mut u32, *mut T) -> Outcome) -> Result<Vec<Told<T>>> {
    let mut count = 0;
    ask(&raw mut count, null_mut()).ok()?;
    let mut all = vec![fresh::<T>(); count as usize];
    if count != 0 {
        ask(&raw mut count, all.as_mut_ptr()).ok()?;
    }
    all.truncate(count as usize);
    all.iter_mut().for_each(|one| head(one).next = null_mut());
    Ok(all.into_iter().map(Told).collect())
}
/// Its engine groups; the index of a group is its ordinal.
///
/// # Errors
/// Returns the driver's error.
pub fn groups(of: RawDevice) -> Result<Vec<Told<ze_command_queue_group_properties_t>>> {
    // SAFETY: `several` passes a list with the length that it states.
    several(|n, to| unsafe { driver().device_get_command_queue_group_properties(of, n, to) })
}
/// The properties of its memories.
///
/// # Errors
/// Returns the driver's error.
pub fn memories(of: RawDevice) -> Result<Vec<Told<ze_device_memory_properties_t>>> {
    // SAFETY: `several` passes a list with the length that it states.
    several(|n, to| unsafe { driver().device_get_memory_properties(of, n, to) })
}
/// The maximum bandwidth of all its memories in bytes a second; 0 if the driver does not report it.
///
/// # Errors
/// Returns the driver's error.
pub fn bandwidth(of: RawDevice) -> Result<u64> {
    let mut count = 0;
    // SAFETY: `count` is writable, and no list is passed.
    unsafe { driver().device_get_memory_properties(of, &raw mut count, null_mut()) }.ok()?;
    let mut all = vec![fresh::<ze_device_memory_properties_t>(); count as usize];
    let mut more = vec![fresh::<ze_device_memory_ext_properties_t>(); count as usize];
    for (one, ext) in all.iter_mut().zip(&mut more) {
        one.pNext = from_mut(ext).cast();
    }
    // SAFETY: the list has `count` entries, each linked to its extension.
    unsafe { driver().device_get_memory_properties(of, &raw mut count, all.as_mut_ptr()) }.ok()?;
    let rate = |one: &ze_device_memory_ext_properties_t| match one.bandwidthUnit {
        ZE_BANDWIDTH_UNIT_BYTES_PER_NANOSEC => u64::from(one.readBandwidth) * 1_000_000_000,
        _ => 0, // bytes a clock, of an unknown clock
    };
    Ok(more.iter().map(rate).sum())
}
/// The vector widths that it prefers, and those that it computes with; empty if the driver does not report
/// them.
pub fn vectors(of: RawDevice) -> Vec<Told<ze_device_vector_width_properties_ext_t>> {
    // SAFETY: `several` passes a list with the length that it states.
    several(|n, to| unsafe { driver().device_get_vector_width_properties_ext(of, n, to) })
        .unwrap_or_default()
}
/// The properties of its caches.
///
/// # Errors
/// Returns the driver's error.
pub fn caches(of: RawDevice) -> Result<Vec<Told<ze_device_cache_properties_t>>> {
    // SAFETY: `several` passes a list with the length that it states.
    several(|n, to| unsafe { driver().device_get_cache_properties(of, n, to) })
}
/// The host's clock in nanoseconds and the device's in ticks, read together.
///
/// # Errors
/// Returns the driver's error.
pub fn timestamps(of: RawDevice) -> Result<(u64, u64)> {
    let (mut host, mut device) = (0, 0);
    // SAFETY: both are writable.
    unsafe { driver().device_get_global_timestamps(of, &raw mut host, &raw mut device) }.ok()?;
    Ok((host, device))
}
