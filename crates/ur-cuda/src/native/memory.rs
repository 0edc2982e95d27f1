//! Memory that the driver allocates with its address: classic device memory, pinned host memory, managed
//! memory; registered host memory; and queries about any address.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{Dialect, Outcome, RawContext, RawPool, layout::Location},
        patience,
    },
    context::{Entered, Owned, Registration, Release},
    own_streams::utility,
};
use std::{ffi::c_void, ptr, sync::Arc};
use ur_hal::{ErrorKind, Result, placed, told};

/// The kind of memory of a [`Piece`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// Device memory of `cuMemAlloc`, for which there are no descriptors.
    Device,
    /// Host memory, pinned and mapped for all devices.
    Host,
    /// Memory that migrates between host and devices.
    Managed,
}

/// What the driver allocated.
#[derive(Clone, Copy, Debug)]
pub struct Allocated {
    at: u64,
    sort: Sort,
}
impl Release for Allocated {
    unsafe fn release<D: Dialect>(self) -> Outcome<D> {
        match self.sort {
            // SAFETY: the caller owns it.
            Sort::Host => unsafe { D::driver().host_free(pointer(self.at)) },
            // SAFETY: as above.
            Sort::Device | Sort::Managed => unsafe { D::driver().free(self.at) },
        }
    }
}
/// An allocation, freed on drop.
pub type Piece<D> = Owned<Allocated, D>;
impl<D: Dialect> Piece<D> {
    /// Allocates `bytes`, at least one, for `device`.
    ///
    /// # Errors
    /// Returns the driver's error, typically out of memory.
    pub fn new(device: &DriverDevice<D>, sort: Sort, bytes: usize) -> Result<Self> {
        let _on = device.enter()?;
        let at = match sort {
            // SAFETY: `to` is writable and a context is current.
            Sort::Device => told(|to| unsafe { D::driver().alloc(to, bytes) }),
            // SAFETY: as above. Flags 1: accessible by all streams of all devices.
            Sort::Managed => told(|to| unsafe { D::driver().managed_alloc(to, bytes, 1) }),
            Sort::Host => {
                // SAFETY: as above. Flags 1 | 2: portable to all contexts, mapped for devices.
                let host = placed(|to| unsafe { D::driver().host_alloc(to, bytes, 3) });
                host.map_err(|error| match error.kind() {
                    ErrorKind::OutOfDeviceMemory => error.with_kind(ErrorKind::OutOfHostMemory),
                    _ => error,
                })
            }
        }?;
        Owned::made(device, Allocated { at, sort })
    }
    /// Takes ownership of device memory that the application allocated: it is freed on drop.
    ///
    /// # Errors
    /// As for [`DriverDevice::context`](crate::device::DriverDevice::context).
    pub fn adopted(device: &DriverDevice<D>, at: u64) -> Result<Self> {
        Owned::made(device, Allocated { at, sort: Sort::Device })
    }
    /// Its address.
    pub fn at(&self) -> u64 {
        self.raw().at
    }
    /// Its kind.
    pub fn sort(&self) -> Sort {
        self.raw().sort
    }
}
/// The address as a pointer.
pub(super) fn pointer(at: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(at as usize)
}
/// Host memory of the application, registered with the driver until this is dropped.
pub type Registered<D> = Owned<Registration, D>;
impl<D: Dialect> Registered<D> {
    /// Pins `bytes` at `at` and maps them for all devices; read-only for the devices if `read_only`.
    ///
    /// # Errors
    /// Returns the driver's error, also for memory that does not exist or is registered already.
    pub fn new(device: &DriverDevice<D>, at: u64, bytes: usize, read_only: bool) -> Result<Self> {
        let on = device.enter()?;
        let flags = 3 | if read_only { 8 } else { 0 };
        Self::register(&on, device.context()?, at, bytes, flags)
    }
    /// Pins `bytes` at `at` in `context`, which is current.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(in super::super) fn register(
        _on: &Entered<D>,
        context: RawContext,
        at: u64,
        bytes: usize,
        flags: u32,
    ) -> Result<Self> {
        // SAFETY: the driver checks the range; pinning it does not affect the host's accesses.
        unsafe { D::driver().host_register(pointer(at), bytes, flags) }.ok()?;
        Ok(Owned::of(Registration(at), true, context))
    }
    /// Its address for devices.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn device_address(&self) -> Result<u64> {
        let (_on, at) = (self.enter()?, pointer(self.raw().0));
        // SAFETY: `to` is writable; the memory is registered for as long as this lives.
        told(|to| unsafe { D::driver().host_pointer(to, at, 0) })
    }
}

/// Fills device memory with zeros and waits for it. Not ordered with other streams: earlier uses of the
/// memory must be complete.
///
/// # Errors
/// Returns the driver's error.
pub fn zero<D: Dialect>(device: &DriverDevice<D>, at: u64, bytes: usize) -> Result<()> {
    let on = device.enter()?;
    let stream = utility(&on, device.context()?)?;
    // SAFETY: the caller allocated the range.
    unsafe { D::driver().set_d8(at, 0, bytes, stream.raw()) }.ok()?;
    patience::finish(&stream, device)
}
/// Copies between any two addresses that the driver knows, and waits for it. Not ordered with other streams:
/// earlier writes of the memory must be complete.
///
/// # Errors
/// Returns the driver's error.
pub fn copy<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    to: u64,
    from: u64,
    bytes: usize,
) -> Result<()> {
    let on = device.enter()?;
    let stream = utility(&on, device.context()?)?;
    let stream = stream.waiting().of(device.clone());
    stream.copy(to, from, bytes)?;
    patience::finish(&stream, device)
}

/// What the driver reports for an address.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Whether it is device memory; true also of managed memory.
    pub is_device: bool,
    /// Whether it is managed memory.
    pub is_managed: bool,
    /// The driver's number of its device.
    pub device: i32,
    /// The start of the allocation or reservation.
    pub base: u64,
    /// Its length in bytes.
    pub bytes: usize,
}
/// An attribute of an address; `None` if the address does not have it, or is unknown to the driver.
fn attribute<D: Dialect>(attribute: i32, at: u64) -> Result<Option<u64>> {
    let mut word = 0_u64; // as wide as the widest attribute; narrower ones are written to its low bytes
    // SAFETY: `word` is large enough for every attribute that is queried here.
    let outcome = unsafe { D::driver().pointer_attribute((&raw mut word).cast(), attribute, at) };
    match outcome.status() {
        Some(1 | 801) => Ok(None),
        _ => outcome.ok().map(|()| Some(word)),
    }
}
/// What the driver reports for `at`; `None` for memory that it does not know.
///
/// # Errors
/// Returns the driver's error.
pub fn known<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<Known>> {
    let Some(sort) = attribute::<D>(2, at)?.filter(|&sort| sort != 0) else { return Ok(None) };
    let word = |number| attribute::<D>(number, at).map(Option::unwrap_or_default);
    let (mut base, mut bytes) = (word(11)?, word(12)?);
    if bytes == 0 {
        (base, bytes) = (at, 1);
    }
    Ok(Some(Known {
        is_device: sort as u32 == 2,
        is_managed: word(8)? as u8 != 0,
        device: word(9)? as i32,
        base,
        bytes: bytes as usize,
    }))
}
/// The driver's number of the allocation or mapping at `at`, which is unique in the process; `None` if there
/// is none.
///
/// # Errors
/// Returns the driver's error.
pub fn buffer_id<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<u64>> {
    attribute::<D>(7, at)
}
/// As [`buffer_id`], for an address where there may be nothing. Uses a call for which that is not an error,
/// because errors take the driver several times as long (NVIDIA's driver 580).
///
/// # Errors
/// Returns the driver's error.
pub fn buffer_id_if_any<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<u64>> {
    let [id] = attributes::<D, 1>([7], at)?;
    Ok((id != 0).then_some(id))
}
/// Several attributes of an address by one call; 0 for those that it does not have.
fn attributes<D: Dialect, const N: usize>(attributes: [i32; N], at: u64) -> Result<[u64; N]> {
    let mut words = [0_u64; N];
    let to = words.each_mut().map(|word| ptr::from_mut(word).cast::<c_void>());
    let (count, attributes) = (N as u32, attributes.as_ptr());
    // SAFETY: both lists have `count` entries, and each word is large enough for its attribute.
    let outcome = unsafe { D::driver().pointer_attributes(count, attributes, to.as_ptr(), at) };
    outcome.ok().map(|()| words)
}
/// Distinguishes an allocation from every other one of this process: the driver's number for it, which is
/// never reused, and as a safeguard its address, its length and its pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    id: u64,
    base: u64,
    bytes: u64,
    pool: u64,
}
/// The identity of the allocation at `at`, by one driver call; `None` if there is none.
///
/// # Errors
/// Returns the driver's error.
pub fn identity<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<Identity>> {
    let [id, base, bytes, pool] = attributes::<D, 4>([7, 11, 12, 17], at)?;
    Ok((id != 0).then_some(Identity { id, base, bytes, pool }))
}
/// The driver's number of the device that the memory at `at` belongs to.
///
/// # Errors
/// Returns the driver's error.
pub fn device_of<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<i32>> {
    Ok(attribute::<D>(9, at)?.map(|word| word as i32))
}
/// The driver's number of the device that the memory at `at` belongs to; `None` for host memory, for managed
/// memory, and for addresses that the driver does not know.
///
/// # Errors
/// Returns the driver's error.
pub fn home_of<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<i32>> {
    let Some(2) = attribute::<D>(2, at)?.map(|sort| sort as u32) else { return Ok(None) };
    let is_managed = attribute::<D>(8, at)?.is_some_and(|word| word as u8 != 0);
    Ok(attribute::<D>(9, at)?.filter(|_| !is_managed).map(|word| word as i32))
}
/// Whether the device with the number `device`, whose context is current, may read and write the memory at
/// `at`.
///
/// # Errors
/// Returns the driver's error.
pub fn is_within_reach<D: Dialect>(on: &Entered<D>, device: i32, at: u64) -> Result<bool> {
    // For memory of a pool the attribute reports access of all devices, whatever the pool's access is
    // (NVIDIA's driver 580), so the pool is queried.
    if let Some(pool) = pool_of(on, at)? {
        let location = Location { kind: 1, id: device };
        // SAFETY: the pool has a live allocation; both pointers are valid, and the first is writable.
        let rights: i32 = told(|to| unsafe { D::driver().pool_rights(to, pool, &location) })?;
        return Ok(rights & 3 == 3);
    }
    Ok(attribute::<D>(16, at)?.is_some_and(|rights| rights & 3 == 3))
}
/// The pool that the memory at `at` was allocated from; `None` if it is not from a pool.
///
/// # Errors
/// Returns the driver's error.
pub fn pool_of<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<RawPool>> {
    Ok(attribute::<D>(17, at)?.and_then(|word| RawPool::from_addr(word as usize)))
}
/// Whether the memory at `at` can be shared by the driver's IPC handles.
///
/// # Errors
/// Returns the driver's error.
pub fn is_legacy_shareable<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<bool> {
    Ok(attribute::<D>(10, at)?.is_some_and(|word| word as u8 != 0))
}
/// Whether the physical memory at `at` can be exported as a descriptor.
///
/// # Errors
/// Returns the driver's error.
pub fn has_descriptor<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<bool> {
    Ok(attribute::<D>(14, at)?.is_some_and(|types| types & 1 != 0))
}
/// The start and the length of the mapping of physical memory at `at`.
///
/// # Errors
/// Returns the driver's error.
pub fn mapping_of<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<(u64, usize)>> {
    let (base, bytes) = (attribute::<D>(19, at)?, attribute::<D>(18, at)?);
    Ok(base.zip(bytes).filter(|&(_, bytes)| bytes > 0).map(|(base, bytes)| (base, bytes as usize)))
}
