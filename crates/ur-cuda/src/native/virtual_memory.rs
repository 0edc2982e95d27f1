//! Physical memory, reserved addresses, and mappings of physical memory at them.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{
            Dialect, RawContext,
            layout::{AccessDesc, AllocationProp, Location},
        },
    },
    memory::{pointer, release},
};
use std::{
    marker::PhantomData,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
    sync::{Arc, OnceLock},
};
use ur_hal::{Error, ErrorKind, Result};

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`
const DESCRIPTOR: i32 = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`
const DEVICE: i32 = 1;

/// Whether the device supports virtual memory.
///
/// # Errors
/// Returns the driver's error.
pub fn is_supported<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    Ok(device.attribute(102)? != 0)
}
/// Whether its physical memory can be exported as descriptors.
///
/// # Errors
/// Returns the driver's error.
pub fn has_descriptors<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    Ok(device.attribute(103)? != 0)
}
fn properties<D: Dialect>(device: &DriverDevice<D>) -> Result<AllocationProp> {
    Ok(AllocationProp {
        handle_types: if has_descriptors(device)? { DESCRIPTOR } else { 0 },
        location: Location { kind: DEVICE, id: device.number() },
        // Older drivers do not know the attribute, and cannot allocate memory for RDMA.
        rdma: u8::from(device.attribute(110).is_ok_and(|can| can != 0)),
        ..AllocationProp::default()
    })
}
/// What lengths and addresses must be multiples of, in bytes: the minimum, or what the driver recommends.
///
/// # Errors
/// Returns the driver's error.
pub fn granularity<D: Dialect>(device: &DriverDevice<D>, recommended: bool) -> Result<usize> {
    let _on = device.enter()?;
    let (properties, mut bytes) = (properties(device)?, 0);
    // SAFETY: `bytes` is writable, the properties are initialized.
    let outcome = unsafe {
        D::driver().granularity(&raw mut bytes, &raw const properties, i32::from(recommended))
    };
    outcome.ok::<D>().map(|()| bytes.max(1))
}

/// Physical memory of a device, without an address. The handle is released on drop; mappings keep the memory
/// alive.
#[derive(Debug)]
pub struct Physical<D: Dialect> {
    handle: u64,
    bytes: usize,
    context: RawContext,
    /// Exported at most once, because an export takes as long as hundreds of other driver calls.
    exported: OnceLock<Arc<OwnedFd>>,
    _dialect: PhantomData<fn() -> D>,
}
impl<D: Dialect> Physical<D> {
    /// Allocates `bytes`, a multiple of the granularity.
    ///
    /// # Errors
    /// Returns the driver's error, typically out of memory.
    pub fn create(device: &DriverDevice<D>, bytes: usize) -> Result<Self> {
        let _on = device.enter()?;
        let (properties, mut handle) = (properties(device)?, 0);
        // SAFETY: `handle` is writable, the properties are initialized.
        let outcome = unsafe {
            D::driver().physical_create(&raw mut handle, bytes, &raw const properties, 0)
        };
        outcome.ok::<D>()?;
        Self::of(device, handle, bytes)
    }
    fn of(device: &DriverDevice<D>, handle: u64, bytes: usize) -> Result<Self> {
        let (context, exported) = (device.context()?, OnceLock::new());
        Ok(Self { handle, bytes, context, exported, _dialect: PhantomData })
    }
    /// Imports memory of another process by its descriptor. `bytes` is the exporter's claim, which is
    /// verified only by mapping the memory.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the descriptor is not of device memory.
    pub fn import(device: &DriverDevice<D>, fd: BorrowedFd<'_>, bytes: usize) -> Result<Self> {
        let _on = device.enter()?;
        let (mut handle, number) = (0, pointer(fd.as_raw_fd() as u64));
        // SAFETY: the driver checks the descriptor, and does not keep it.
        let outcome = unsafe { D::driver().physical_import(&raw mut handle, number, DESCRIPTOR) };
        outcome.ok::<D>().map_err(foreign)?;
        Self::of(device, handle, bytes)
    }
    /// The physical memory of `bytes` that is mapped at `at`, also if other code mapped it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn retain(device: &DriverDevice<D>, at: u64, bytes: usize) -> Result<Self> {
        let _on = device.enter()?;
        let mut handle = 0;
        // SAFETY: the driver checks the address.
        unsafe { D::driver().physical_retain(&raw mut handle, pointer(at)) }.ok::<D>()?;
        Self::of(device, handle, bytes)
    }
    /// Keeps the descriptor with which it was imported, for further exports: the driver cannot export
    /// imported memory.
    #[must_use]
    pub fn passing_on(mut self, fd: OwnedFd) -> Self {
        self.exported = OnceLock::from(Arc::new(fd));
        self
    }
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// The descriptor with which other processes can import it.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the process has no free descriptors; else the driver's error.
    pub fn export(&self, device: &DriverDevice<D>) -> Result<Arc<OwnedFd>> {
        if let Some(fd) = self.exported.get() {
            return Ok(Arc::clone(fd));
        }
        let _on = device.enter()?;
        let mut number = -1_i32;
        // SAFETY: `number` has the type of a descriptor.
        let outcome = unsafe {
            D::driver().physical_export((&raw mut number).cast(), self.handle, DESCRIPTOR, 0)
        };
        outcome.ok::<D>()?;
        let fd = adopt(number)?;
        Ok(Arc::clone(self.exported.get_or_init(|| Arc::new(fd))))
    }
}
impl<D: Dialect> Drop for Physical<D> {
    fn drop(&mut self) {
        release::<D>(self.context, || {
            // SAFETY: every handle is released once; mappings keep the memory alive.
            unsafe { D::driver().physical_release(self.handle) }.released::<D>()
        });
    }
}

/// Takes ownership of a descriptor from the driver, and sets it to be closed on exec.
pub(super) fn adopt(number: i32) -> Result<OwnedFd> {
    if number < 0 {
        return Err(Error::new(ErrorKind::Unknown, "the driver exported no descriptor"));
    }
    // SAFETY: the driver created it for the caller, and does not use it any more.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC).map_err(|e| {
        Error::new(ErrorKind::OutOfResources, format!("a descriptor could not be kept: {e}"))
    })?;
    Ok(fd)
}
/// The error for something that another process sent and the driver refused: the exporter's fault, unless
/// memory ran out, the device failed, or the driver does not have the function.
pub(in super::super) fn foreign(error: Error) -> Error {
    match error.kind() {
        kind if kind.is_want() => error,
        _ if error.status().is_none() => error,
        _ => foreign_refusal(error),
    }
}
/// Explains the driver's refusal of another process's memory.
fn foreign_refusal(error: Error) -> Error {
    const MAPPED: i32 = 208;
    const NOT_PERMITTED: i32 = 800;
    match error.status() {
        Some(MAPPED) => Error::new(
            ErrorKind::InvalidValue,
            format!(
                "another library of this process has this memory open in another context, which the driver \
                 allows once: close it there, or open it there alone: {error}"
            ),
        ),
        Some(NOT_PERMITTED) => Error::new(
            ErrorKind::NotPermitted,
            format!(
                "the driver may not open the exporter's memory: it needs the same user, and for its old \
                 handles the right to look at the exporter (ptrace): {error}"
            ),
        ),
        _ => Error::new(
            ErrorKind::InvalidValue,
            format!("the driver refuses what the exporter sent: {error}"),
        ),
    }
}

/// Reserved addresses, freed on drop.
#[derive(Debug)]
pub struct Range<D: Dialect> {
    at: u64,
    bytes: usize,
    context: RawContext,
    _dialect: PhantomData<fn() -> D>,
}
impl<D: Dialect> Range<D> {
    /// Reserves `bytes` addresses at a multiple of `align`; at `wished` if that is not 0 and free.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn reserve(
        device: &DriverDevice<D>,
        wished: u64,
        bytes: usize,
        align: usize,
    ) -> Result<Self> {
        let _on = device.enter()?;
        let mut at = 0;
        // SAFETY: `at` is writable; reserving maps nothing.
        unsafe { D::driver().address_reserve(&raw mut at, bytes, align, wished, 0) }.ok::<D>()?;
        Ok(Self { at, bytes, context: device.context()?, _dialect: PhantomData })
    }
    /// The first address.
    pub fn at(&self) -> u64 {
        self.at
    }
    /// The number of addresses.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
impl<D: Dialect> Drop for Range<D> {
    fn drop(&mut self) {
        release::<D>(self.context, || {
            // SAFETY: nothing is mapped there any more.
            unsafe { D::driver().address_free(self.at, self.bytes) }.released::<D>()
        });
    }
}

/// Maps `bytes` of `memory` from `offset` on at `at`, without access for any device.
///
/// # Errors
/// Returns the driver's error.
pub fn map<D: Dialect>(
    device: &DriverDevice<D>,
    at: u64,
    bytes: usize,
    memory: &Physical<D>,
    offset: usize,
) -> Result<()> {
    let _on = device.enter()?;
    // SAFETY: the range is reserved and unmapped, which the driver checks too.
    unsafe { D::driver().physical_map(at, bytes, offset, memory.handle, 0) }.ok::<D>()
}
/// Unmaps whole mappings, which nothing may use any more.
///
/// # Errors
/// Returns the driver's error.
pub fn unmap<D: Dialect>(device: &DriverDevice<D>, at: u64, bytes: usize) -> Result<()> {
    let _on = device.enter()?;
    // SAFETY: the caller guarantees that the commands that use it are complete.
    unsafe { D::driver().physical_unmap(at, bytes) }.ok::<D>()
}
/// Sets the access of the devices with these numbers to a mapping: none (0), read (1), read and write (3).
///
/// # Errors
/// Returns the driver's error.
pub fn set_access<D: Dialect>(
    device: &DriverDevice<D>,
    at: u64,
    bytes: usize,
    devices: &[i32],
    flags: i32,
) -> Result<()> {
    let _on = device.enter()?;
    let location = |&id: &i32| Location { kind: DEVICE, id };
    let access = |id| AccessDesc { location: location(id), flags };
    let all: Vec<_> = devices.iter().map(access).collect();
    // SAFETY: the list has the length that is passed; the driver checks that the range is mapped.
    unsafe { D::driver().set_access(at, bytes, all.as_ptr(), all.len()) }.ok::<D>()
}
/// The access of the device to `at`, as for [`set_access`].
///
/// # Errors
/// Returns the driver's error.
pub fn get_access<D: Dialect>(device: &DriverDevice<D>, at: u64) -> Result<i32> {
    let _on = device.enter()?;
    let (location, mut flags) = (Location { kind: DEVICE, id: device.number() }, 0_u64);
    // SAFETY: both are initialized, `flags` is writable.
    let outcome = unsafe { D::driver().get_access(&raw mut flags, ptr::from_ref(&location), at) };
    outcome.ok::<D>().map(|()| flags as i32)
}

/// Several physical memories, each mapped as a whole, one after the other at reserved addresses; readable and
/// writable.
#[derive(Debug)]
pub struct MappedRun<D: Dialect> {
    /// Unmapped on drop before the reservation is freed.
    range: Range<D>,
    /// The length of each mapping in bytes.
    parts: Vec<usize>,
}
impl<D: Dialect> MappedRun<D> {
    /// Maps `parts`, `bytes` in total, at a multiple of `align` for their own device. Afterwards only the
    /// mappings keep the memory alive.
    ///
    /// # Errors
    /// Returns the driver's error, and those of `parts`.
    pub fn new(
        device: &DriverDevice<D>,
        bytes: usize,
        parts: impl Iterator<Item = Result<Physical<D>>>,
        align: usize,
    ) -> Result<Self> {
        let range = Range::reserve(device, 0, bytes, align)?;
        let mut whole = Self { range, parts: vec![] };
        let mut done = 0;
        for part in parts {
            let part = part?;
            map(device, whole.at() + done as u64, part.bytes(), &part, 0)?;
            whole.parts.push(part.bytes());
            done += part.bytes();
        }
        set_access(device, whole.at(), bytes, &[device.number()], 3)?;
        Ok(whole)
    }
    /// Its address.
    pub fn at(&self) -> u64 {
        self.range.at()
    }
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.range.bytes()
    }
}
impl<D: Dialect> Drop for MappedRun<D> {
    fn drop(&mut self) {
        release::<D>(self.range.context, || {
            let mut at = self.range.at();
            for &bytes in &self.parts {
                // SAFETY: mapped here; the owner guarantees that no command uses it any more.
                unsafe { D::driver().physical_unmap(at, bytes) }.released::<D>()?;
                at += bytes as u64;
            }
            Ok(())
        });
    }
}

/// Physical memory, mapped as a whole at reserved addresses; readable and writable.
#[derive(Debug)]
pub struct Mapped<D: Dialect> {
    /// Unmapped on drop before the reservation is freed.
    range: Range<D>,
    memory: Arc<Physical<D>>,
}
impl<D: Dialect> Mapped<D> {
    /// Maps `memory` at a multiple of `align` for its own device.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(device: &DriverDevice<D>, memory: Arc<Physical<D>>, align: usize) -> Result<Self> {
        let bytes = memory.bytes();
        let range = Range::reserve(device, 0, bytes, align)?;
        map(device, range.at(), bytes, &memory, 0)?;
        let whole = Self { range, memory };
        set_access(device, whole.at(), bytes, &[device.number()], 3)?;
        Ok(whole)
    }
    /// Its address.
    pub fn at(&self) -> u64 {
        self.range.at()
    }
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.range.bytes()
    }
    /// The physical memory.
    pub fn memory(&self) -> &Arc<Physical<D>> {
        &self.memory
    }
}
impl<D: Dialect> Drop for Mapped<D> {
    fn drop(&mut self) {
        let (at, bytes) = (self.range.at(), self.range.bytes());
        release::<D>(self.range.context, || {
            // SAFETY: mapped here; the owner guarantees that no command uses it any more.
            unsafe { D::driver().physical_unmap(at, bytes) }.released::<D>()
        });
    }
}
