//! Memory that the driver gives in one piece with its address: device memory of the old kind, pinned
//! host memory, managed memory; host memory that is made known to it; and what it says of any address.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::{DriverDevice, check_fork},
        driver::{Dialect, RawContext, RawPool, layout::Location},
        patience,
    },
    context::Entered,
};
use std::sync::Arc;
use std::{ffi::c_void, marker::PhantomData, ptr};
use ur_adapter::{
    error::{ErrorCode, Result},
    log,
};

/// What kind of memory a [`Piece`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// The device's, which no descriptor names.
    Device,
    /// The host's, pinned and mapped for all devices.
    Host,
    /// Memory that moves between the two.
    Managed,
}

/// Memory of one sort, given back on drop.
#[derive(Debug)]
pub struct Piece<D: Dialect> {
    at: u64,
    sort: Sort,
    context: RawContext,
    _dialect: PhantomData<fn() -> D>,
}
impl<D: Dialect> Piece<D> {
    /// `bytes` of memory, at least one, for `device`.
    ///
    /// # Errors
    /// The driver's own, out of memory most of all.
    pub fn new(device: &DriverDevice<D>, sort: Sort, bytes: usize) -> Result<Self> {
        let _on = device.enter()?;
        let mut at = 0;
        match sort {
            Sort::Device => {
                // SAFETY: `at` is writable and a context is current.
                unsafe { D::driver().alloc(&raw mut at, bytes) }.ok::<D>()?;
            }
            Sort::Managed => {
                // SAFETY: as above. Flags 1: for all streams of all devices.
                unsafe { D::driver().managed_alloc(&raw mut at, bytes, 1) }.ok::<D>()?;
            }
            Sort::Host => {
                let mut host = ptr::null_mut();
                // SAFETY: `host` is writable. Flags 1 | 2: for all contexts, mapped for devices.
                let outcome = unsafe { D::driver().host_alloc(&raw mut host, bytes, 3) };
                outcome.ok::<D>().map_err(|error| match error.code() {
                    ErrorCode::OutOfDeviceMemory => error.with_code(ErrorCode::OutOfHostMemory),
                    _ => error,
                })?;
                at = host.expose_provenance() as u64;
            }
        }
        Ok(Self { at, sort, context: device.context()?, _dialect: PhantomData })
    }
    /// Device memory that C made and gives away: freed on drop like our own.
    ///
    /// # Errors
    /// As for [`DriverDevice::context`](crate::device::DriverDevice::context).
    pub fn adopted(device: &DriverDevice<D>, at: u64) -> Result<Self> {
        let (sort, context) = (Sort::Device, device.context()?);
        Ok(Self { at, sort, context, _dialect: PhantomData })
    }
    /// Its first byte.
    pub fn at(&self) -> u64 {
        self.at
    }
    /// What it is.
    pub fn sort(&self) -> Sort {
        self.sort
    }
}
impl<D: Dialect> Drop for Piece<D> {
    fn drop(&mut self) {
        release::<D>(self.context, || match self.sort {
            // SAFETY: it is ours, and nothing uses it any more: that is the owner's promise.
            Sort::Host => unsafe { D::driver().host_free(pointer(self.at)) }.released::<D>(),
            // SAFETY: as above.
            Sort::Device | Sort::Managed => unsafe { D::driver().free(self.at) }.released::<D>(),
        });
    }
}

/// The pointer that the driver takes for host memory.
pub(super) fn pointer(at: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(at as usize)
}
/// Runs what gives something back to the driver, in a context. A forked child gives nothing back: what
/// it has is its parent's. What fails is said, for there is nobody to return it to.
pub(super) fn release<D: Dialect>(context: RawContext, work: impl FnOnce() -> Result<()>) {
    if check_fork::<D>().is_err() {
        return;
    }
    let done = match Entered::<D>::enter(context) {
        Ok(_on) => work(),
        Err(error) => Err(error),
    };
    done.unwrap_or_else(|error| log::say(D::BACKEND, ur_sys::ur_logger_level_t::WARN, &error));
}

/// Host memory of C's that the driver was told of, until this is dropped.
#[derive(Debug)]
pub struct Registered<D: Dialect> {
    at: u64,
    context: RawContext,
    _dialect: PhantomData<fn() -> D>,
}
impl<D: Dialect> Registered<D> {
    /// Pins `bytes` at `at` and maps them for all devices, to read only if `read_only`.
    ///
    /// # Errors
    /// The driver's own: memory that is not there, or known already.
    pub fn new(device: &DriverDevice<D>, at: u64, bytes: usize, read_only: bool) -> Result<Self> {
        let _on = device.enter()?;
        let flags = 3 | if read_only { 8 } else { 0 };
        // SAFETY: the driver checks the range; pinning it changes nothing for the host.
        unsafe { D::driver().host_register(pointer(at), bytes, flags) }.ok::<D>()?;
        Ok(Self { at, context: device.context()?, _dialect: PhantomData })
    }
    /// Its first byte, as devices know it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn device_address(&self) -> Result<u64> {
        let _on = Entered::<D>::enter(self.context)?;
        let mut at = 0;
        // SAFETY: `at` is writable; the memory is registered for as long as this lives.
        unsafe { D::driver().host_pointer(&raw mut at, pointer(self.at), 0) }.ok::<D>()?;
        Ok(at)
    }
}
impl<D: Dialect> Drop for Registered<D> {
    fn drop(&mut self) {
        release::<D>(self.context, || {
            // SAFETY: it was registered here, and commands that use it have ended.
            unsafe { D::driver().host_unregister(pointer(self.at)) }.released::<D>()
        });
    }
}

/// Fills device memory with zeros and waits for it. It is ordered with nothing else: what used the memory before has
/// ended.
///
/// # Errors
/// Returns the driver's error.
pub fn zero<D: Dialect>(device: &DriverDevice<D>, at: u64, bytes: usize) -> Result<()> {
    let on = device.enter()?;
    let stream = D::statics().utility.of(&on, device.context()?)?;
    // SAFETY: whoever allocated the range asks for it.
    unsafe { D::driver().set_d8(at, 0, bytes, stream.raw()) }.ok::<D>()?;
    patience::finish(&stream, device)
}
/// Copies between any two addresses that the driver knows and waits for it. It is ordered with nothing else: what
/// writes the memory before has ended.
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
    let stream = D::statics().utility.of(&on, device.context()?)?;
    let stream = stream.waiting().of(device.clone());
    stream.copy(to, from, bytes)?;
    patience::finish(&stream, device)
}

/// What the driver says of an address that it knows.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Whether it is device memory; managed memory is too.
    pub is_device: bool,
    /// Whether it moves.
    pub is_managed: bool,
    /// The driver's number of its device.
    pub device: i32,
    /// Where what was allocated or reserved there begins.
    pub base: u64,
    /// How long that is.
    pub bytes: usize,
}
/// One attribute of an address; `None` if it has none, or the driver does not know the address.
fn attribute<D: Dialect>(attribute: i32, at: u64) -> Result<Option<u64>> {
    let mut word = 0_u64; // the widest of them; narrower ones fill its low bytes
    // SAFETY: `word` has room for every attribute that is asked for here.
    let outcome = unsafe { D::driver().pointer_attribute((&raw mut word).cast(), attribute, at) };
    match outcome.status() {
        Some(1 | 801) => Ok(None),
        _ => outcome.ok::<D>().map(|()| Some(word)),
    }
}
/// What the driver knows of `at`; `None` for memory that is none of its.
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
/// The number that tells what is allocated at `at` from what was and will be; `None` for nothing.
///
/// # Errors
/// Returns the driver's error.
pub fn buffer_id<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<u64>> {
    attribute::<D>(7, at)
}
/// The same of an address where there may be nothing: by the call to which that is no error, for an error takes the
/// driver several times as long as an answer (NVIDIA's driver 580).
///
/// # Errors
/// Returns the driver's error.
pub fn buffer_id_if_any<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<u64>> {
    let [id] = attributes::<D, 1>([7], at)?;
    Ok((id != 0).then_some(id))
}
/// Attributes of an address by one call; 0 for those that it does not have.
fn attributes<D: Dialect, const N: usize>(attributes: [i32; N], at: u64) -> Result<[u64; N]> {
    let mut words = [0_u64; N];
    let to = words.each_mut().map(|word| ptr::from_mut(word).cast::<c_void>());
    let (count, attributes) = (N as u32, attributes.as_ptr());
    // SAFETY: both lists have `count` entries, and each word has room for its attribute.
    let outcome = unsafe { D::driver().pointer_attributes(count, attributes, to.as_ptr(), at) };
    outcome.ok::<D>().map(|()| words)
}
/// What tells one allocation from every other one of this process: the driver's number of it, which is never used
/// again, and what would differ if that did not: where it begins, how long it is, and the pool that it is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    id: u64,
    base: u64,
    bytes: u64,
    pool: u64,
}
/// The identity of the allocation at `at`, by one call of the driver's; `None` for nothing.
///
/// # Errors
/// Returns the driver's error.
pub fn identity<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<Identity>> {
    let [id, base, bytes, pool] = attributes::<D, 4>([7, 11, 12, 17], at)?;
    Ok((id != 0).then_some(Identity { id, base, bytes, pool }))
}
/// The driver's number of the device that it lies on.
///
/// # Errors
/// Returns the driver's error.
pub fn device_of<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<i32>> {
    Ok(attribute::<D>(9, at)?.map(|word| word as i32))
}
/// The driver's number of the device whose memory it is; `None` for memory of the host, for memory that moves, and
/// for what the driver does not know.
///
/// # Errors
/// Returns the driver's error.
pub fn home_of<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<i32>> {
    let Some(2) = attribute::<D>(2, at)?.map(|sort| sort as u32) else { return Ok(None) };
    let is_managed = attribute::<D>(8, at)?.is_some_and(|word| word as u8 != 0);
    Ok(attribute::<D>(9, at)?.filter(|_| !is_managed).map(|word| word as i32))
}
/// Whether the device with the number `device`, whose context is current, may read and write it.
///
/// # Errors
/// Returns the driver's error.
pub fn is_within_reach<D: Dialect>(on: &Entered<D>, device: i32, at: u64) -> Result<bool> {
    // Of a pool's memory the attribute says that any device may, whatever the pool says (NVIDIA's driver 580).
    if let Some(pool) = pool_of(on, at)? {
        let (mut rights, location) = (0, Location { kind: 1, id: device });
        // SAFETY: the pool has live memory; both places are readable, and the first is writable.
        unsafe { D::driver().pool_rights(&raw mut rights, pool, &raw const location) }.ok::<D>()?;
        return Ok(rights & 3 == 3);
    }
    Ok(attribute::<D>(16, at)?.is_some_and(|rights| rights & 3 == 3))
}
/// The pool that it is from, if from one.
///
/// # Errors
/// Returns the driver's error.
pub fn pool_of<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<RawPool>> {
    Ok(attribute::<D>(17, at)?.and_then(|word| RawPool::from_addr(word as usize)))
}
/// Whether the driver's old handles take it.
///
/// # Errors
/// Returns the driver's error.
pub fn is_legacy_shareable<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<bool> {
    Ok(attribute::<D>(10, at)?.is_some_and(|word| word as u8 != 0))
}
/// Whether its physical memory can be exported by descriptor.
///
/// # Errors
/// Returns the driver's error.
pub fn has_descriptor<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<bool> {
    Ok(attribute::<D>(14, at)?.is_some_and(|types| types & 1 != 0))
}
/// Base and length of the one mapping of physical memory at `at`.
///
/// # Errors
/// Returns the driver's error.
pub fn mapping_of<D: Dialect>(_on: &Entered<D>, at: u64) -> Result<Option<(u64, usize)>> {
    let (base, bytes) = (attribute::<D>(19, at)?, attribute::<D>(18, at)?);
    Ok(base.zip(bytes).filter(|&(_, bytes)| bytes > 0).map(|(base, bytes)| (base, bytes as usize)))
}
