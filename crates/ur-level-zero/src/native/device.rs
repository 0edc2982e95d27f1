//! Queries of device properties.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::super::driver::{Outcome, RawDevice, RawDriver, driver};
use std::{
    ffi::c_void,
    ops::Deref,
    ptr::{from_mut, null_mut},
};
use ur_hal::{ErrorKind, Result, handles, listed, told};
use ze_sys::*;

/// A structure that the driver filled in; its link is null, so it contains no pointers.
#[derive(Clone, Copy, Debug)]
pub struct Told<T>(T);
// SAFETY: only `Told::new` creates it, and it leaves no pointer in it.
unsafe impl<T> Send for Told<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Told<T> {}
impl<T: Typed> Told<T> {
    fn new(mut told: T) -> Self {
        let link = from_mut(&mut told).cast::<*mut c_void>().wrapping_add(1);
        // SAFETY: the second member of such a structure is the link, a pointer behind the type.
        unsafe { link.write(null_mut()) };
        Self(told)
    }
}
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
    // SAFETY: `handles` passes a list with the length that it states.
    handles(|count, to| unsafe { driver().device_get(of, count, to) })
}
/// The tiles of a device; most devices have none.
///
/// # Errors
/// Returns the driver's error.
pub fn parts(of: RawDevice) -> Result<Vec<RawDevice>> {
    // SAFETY: `handles` passes a list with the length that it states.
    handles(|count, to| unsafe { driver().device_get_sub_devices(of, count, to) })
}
/// The root device of a tile, if the driver reports it; `None` for a root device, and if only tiles are
/// exposed.
///
/// # Errors
/// Returns the driver's error.
pub fn whole(of: RawDevice) -> Result<Option<RawDevice>> {
    // SAFETY: `to` is writable.
    match told(|to| unsafe { driver().device_get_root_device(of, to) }) {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None), // drivers before version 1.7
        whole => whole,
    }
}
/// The support of two-dimensional block loads and stores: an extension of Intel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BlockArrays {
    stype: ze_structure_type_t,
    next: *mut c_void,
    /// Bit 0: loads; bit 1: stores.
    pub flags: u32,
}
impl Default for BlockArrays {
    fn default() -> Self {
        Self { stype: Self::STYPE, next: null_mut(), flags: 0 }
    }
}
// SAFETY: the extension defines this layout.
unsafe impl Typed for BlockArrays {
    const STYPE: ze_structure_type_t = 0x0003_0007;
}

macro_rules! told { ($($(#[$doc:meta])* $name:ident($($peer:ident)?) -> $t:ty: $call:ident;)*) => { $(
    $(#[$doc])*
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn $name(of: RawDevice $(, $peer: RawDevice)?) -> Result<Told<$t>> {
        // SAFETY: a writable structure with its type.
        told(|to| unsafe { driver().$call(of, $($peer,)? to) }).map(Told::new)
    }
)* } }
told! {
    /// The driver's properties of a device.
    properties() -> ze_device_properties_t: device_get_properties;
    /// The limits of its work-groups.
    compute() -> ze_device_compute_properties_t: device_get_compute_properties;
    /// The supported program formats and capabilities of kernels.
    module() -> ze_device_module_properties_t: device_get_module_properties;
    /// The kinds of memory that it can access, and how.
    access() -> ze_device_memory_access_properties_t: device_get_memory_access_properties;
    /// The limits of its images; zeros if it does not support images.
    image() -> ze_device_image_properties_t: device_get_image_properties;
    /// The kinds of descriptors to which its memory can be exported, and from which memory can be imported.
    external() -> ze_device_external_memory_properties_t: device_get_external_memory_properties;
    /// Its PCI address.
    pci() -> ze_pci_ext_properties_t: device_pci_get_properties_ext;
    /// The properties of the link from one device to another.
    peer(peer) -> ze_device_p2p_properties_t: device_get_p2p_properties;
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
/// Whether `of` can access the memory of `peer`.
///
/// # Errors
/// Returns the driver's error.
pub fn can_access(of: RawDevice, peer: RawDevice) -> Result<bool> {
    // SAFETY: `to` is writable.
    let can: ze_bool_t = told(|to| unsafe { driver().device_can_access_peer(of, peer, to) })?;
    Ok(can != 0)
}
/// The properties of an extension; all zeros if the driver does not know it.
///
/// # Errors
/// Returns the driver's error.
pub fn extended<E: Typed>(of: RawDevice) -> Result<Told<E>> {
    let mut extension = E::default();
    let next = from_mut(&mut extension).cast();
    let mut first = ze_device_properties_t { pNext: next, ..Default::default() };
    // SAFETY: linked structures with their types.
    unsafe { driver().device_get_properties(of, &raw mut first) }.ok()?;
    Ok(Told::new(extension))
}
fn several<T: Typed + Copy>(ask: impl Fn(*mut u32, *mut T) -> Outcome) -> Result<Vec<Told<T>>> {
    Ok(listed(T::default(), ask)?.into_iter().map(Told::new).collect())
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
    // SAFETY: `listed` passes a list with the length that it states.
    let mut all = listed(ze_device_memory_properties_t::default(), |n, to| unsafe {
        driver().device_get_memory_properties(of, n, to)
    })?;
    let (mut count, mut more) = (all.len() as u32, vec![]);
    more.resize_with(all.len(), ze_device_memory_ext_properties_t::default);
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
