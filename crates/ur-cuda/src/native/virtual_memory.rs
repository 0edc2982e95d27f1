//! Physical memory, reserved addresses, and mappings of physical memory at them.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{
            Dialect, Outcome,
            layout::{AccessDesc, AllocationProp, Location},
        },
    },
    context::{Mapping, Owned, PhysicalHandle, Reserved},
    memory::pointer,
};
use std::{
    borrow::Borrow,
    ffi::c_void,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    sync::{Arc, OnceLock},
};
use ur_hal::{Error, ErrorKind, Result, refused_import, told};
use ur_lock::get_or_try;

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
    let (properties, kind) = (properties(device)?, i32::from(recommended));
    // SAFETY: `to` is writable, the properties are initialized.
    let bytes: usize = told(|to| unsafe { D::driver().granularity(to, &properties, kind) })?;
    Ok(bytes.max(1))
}

/// Physical memory of a device, without an address. The handle is released on drop; mappings keep the memory
/// alive.
#[derive(Debug)]
pub struct Physical<D: Dialect> {
    handle: Owned<PhysicalHandle, D>,
    bytes: usize,
    device: Arc<DriverDevice<D>>,
    /// Whether it was imported from another process.
    is_opened: bool,
    /// Exported at most once, because an export takes as long as hundreds of other driver calls.
    exported: OnceLock<Arc<OwnedFd>>,
}
impl<D: Dialect> Physical<D> {
    /// Allocates `bytes`, a multiple of the granularity.
    ///
    /// # Errors
    /// Returns the driver's error, typically out of memory.
    pub fn create(device: &Arc<DriverDevice<D>>, bytes: usize) -> Result<Self> {
        let _on = device.enter()?;
        let properties = properties(device)?;
        // SAFETY: `to` is writable, the properties are initialized.
        let handle = told(|to| unsafe { D::driver().physical_create(to, bytes, &properties, 0) })?;
        Self::of(device, handle, bytes)
    }
    fn of(device: &Arc<DriverDevice<D>>, handle: u64, bytes: usize) -> Result<Self> {
        let handle = Owned::made(device, PhysicalHandle(handle))?;
        let (device, exported) = (Arc::clone(device), OnceLock::new());
        Ok(Self { handle, bytes, device, is_opened: false, exported })
    }
    /// Imports memory of another process by its descriptor. `bytes` is the exporter's claim, which is
    /// verified only by mapping the memory.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the descriptor is not of device memory.
    pub fn import(device: &Arc<DriverDevice<D>>, fd: BorrowedFd<'_>, bytes: usize) -> Result<Self> {
        let _on = device.enter()?;
        let number = pointer(fd.as_raw_fd() as u64);
        // SAFETY: the driver checks the descriptor, and does not keep it.
        let handle = told(|to| unsafe { D::driver().physical_import(to, number, DESCRIPTOR) });
        Self::of(device, handle.map_err(foreign)?, bytes)
    }
    /// The physical memory of `bytes` that is mapped at `at`, also if other code mapped it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn retain(device: &Arc<DriverDevice<D>>, at: u64, bytes: usize) -> Result<Self> {
        let _on = device.enter()?;
        // SAFETY: the driver checks the address.
        let handle = told(|to| unsafe { D::driver().physical_retain(to, pointer(at)) })?;
        Self::of(device, handle, bytes)
    }
    /// Marks it as another process's, and keeps the descriptor with which it was imported, for further exports: the
    /// driver cannot export imported memory.
    #[must_use]
    pub fn passing_on(mut self, fd: OwnedFd) -> Self {
        self.exported = OnceLock::from(Arc::new(fd));
        self.is_opened = true;
        self
    }
    /// Whether it was imported from another process.
    pub fn is_opened(&self) -> bool {
        self.is_opened
    }
    /// The device whose memory it is.
    pub fn device(&self) -> &Arc<DriverDevice<D>> {
        &self.device
    }
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// The descriptor with which other processes can import it.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the process has no free descriptors; else the driver's error.
    pub fn export(&self) -> Result<Arc<OwnedFd>> {
        exported(&self.device, &self.exported, |to| {
            // SAFETY: `to` is for a descriptor.
            unsafe { D::driver().physical_export(to, self.handle.raw().0, DESCRIPTOR, 0) }
        })
    }
}
/// The descriptor that `export` writes, which is kept: an export takes long.
///
/// # Errors
/// `OUT_OF_RESOURCES` if the process has no free descriptors; else the driver's error.
pub(super) fn exported<D: Dialect>(
    device: &DriverDevice<D>,
    kept: &OnceLock<Arc<OwnedFd>>,
    export: impl FnOnce(*mut c_void) -> Outcome<D>,
) -> Result<Arc<OwnedFd>> {
    let fresh = || {
        let (_on, mut number) = (device.enter()?, -1_i32);
        export((&raw mut number).cast()).ok()?;
        adopt(number).map(Arc::new)
    };
    get_or_try(kept, fresh).cloned()
}
/// Takes ownership of a descriptor from the driver, and sets it to be closed on exec.
fn adopt(number: i32) -> Result<OwnedFd> {
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
/// The error for something that another process sent and the driver refused, as for [`refused_import`], with an
/// explanation of the refusals that have one.
pub(in super::super) fn foreign(error: Error) -> Error {
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
        _ => refused_import(error),
    }
}

/// Reserved addresses, freed on drop.
pub type Range<D> = Owned<Reserved, D>;
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
        // SAFETY: `to` is writable; reserving maps nothing.
        let at = told(|to| unsafe { D::driver().address_reserve(to, bytes, align, wished, 0) })?;
        Owned::made(device, Reserved { at, bytes })
    }
    /// The first address.
    pub fn at(&self) -> u64 {
        self.raw().at
    }
    /// The number of addresses.
    pub fn bytes(&self) -> usize {
        self.raw().bytes
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
    unsafe { D::driver().physical_map(at, bytes, offset, memory.handle.raw().0, 0) }.ok()
}
/// Unmaps whole mappings, which nothing may use any more.
///
/// # Errors
/// Returns the driver's error.
pub fn unmap<D: Dialect>(device: &DriverDevice<D>, at: u64, bytes: usize) -> Result<()> {
    let _on = device.enter()?;
    // SAFETY: the caller guarantees that the commands that use it are complete.
    unsafe { D::driver().physical_unmap(at, bytes) }.ok()
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
    unsafe { D::driver().set_access(at, bytes, all.as_ptr(), all.len()) }.ok()
}
/// Physical memories, each mapped as a whole, one after the other at reserved addresses; readable and writable.
#[derive(Debug)]
pub struct Mapped<D: Dialect> {
    /// Unmapped before the reservation is freed.
    parts: Vec<Owned<Mapping, D>>,
    range: Range<D>,
}
impl<D: Dialect> Mapped<D> {
    /// Maps `parts`, `bytes` in total, at a multiple of `align` for their own device. Only the mappings keep the memory
    /// of those alive that are dropped.
    ///
    /// # Errors
    /// Returns the driver's error, and those of `parts`.
    pub fn new<P: Borrow<Physical<D>>>(
        device: &DriverDevice<D>,
        bytes: usize,
        parts: impl IntoIterator<Item = Result<P>>,
        align: usize,
    ) -> Result<Self> {
        let range = Range::reserve(device, 0, bytes, align)?;
        let mut whole = Self { range, parts: vec![] };
        let mut done = 0;
        for part in parts {
            let part = part?;
            let (at, part) = (whole.at() + done as u64, part.borrow());
            map(device, at, part.bytes(), part, 0)?;
            whole.parts.push(Owned::made(device, Mapping(at, part.bytes()))?);
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
