//! Memory that the driver allocates with its address: device, host and shared memory; host memory of the
//! application that is registered with it; and queries about any address.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{self, Outcome, RawContext, RawDevice, RawDriver, driver},
        extensions::Extensions,
        options,
    },
    call::function,
    context::{Allocated, InContext, NativeContext, pointer},
    fork::release,
};
use std::{ffi::c_void, ptr, sync::Arc};
use ur_hal::{Error, ErrorKind, Result, placed, told};
use ze_sys::*;

/// The kind of memory of a [`Piece`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// Device memory.
    Device,
    /// Device memory that can be exported as a descriptor of this kind (`ZE_EXTERNAL_MEMORY_TYPE_FLAG_*`).
    Exportable(u32),
    /// Memory of a descriptor, possibly of another process: its kind, and the number of the descriptor. The driver may take
    /// ownership of that.
    Imported(u32, i32),
    /// Host memory.
    Host,
    /// Memory that migrates between host and device.
    Shared,
}

/// An allocation, freed on drop.
pub type Piece = InContext<Allocated>;
impl Piece {
    /// Allocates `bytes` for `device` at a multiple of `align`. The driver may align less strictly.
    ///
    /// # Errors
    /// Returns the driver's error, typically out of memory.
    pub fn allocate(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        sort: Sort,
        bytes: usize,
        align: usize,
    ) -> Result<Self> {
        let limits = relaxed(device, bytes);
        let past = limits.as_ref().map_or(ptr::null(), |l| ptr::from_ref(l).cast::<c_void>());
        let export = ze_external_memory_export_desc_t {
            pNext: past,
            flags: if let Sort::Exportable(flags) = sort { flags } else { 0 },
            ..Default::default()
        };
        let (flags, fd) = if let Sort::Imported(flags, fd) = sort { (flags, fd) } else { (0, -1) };
        let import =
            ze_external_memory_import_fd_t { pNext: past, flags, fd, ..Default::default() };
        let next = match sort {
            Sort::Exportable(_) => ptr::from_ref(&export).cast(),
            Sort::Imported(..) => ptr::from_ref(&import).cast(),
            _ => past,
        };
        let on_device = ze_device_mem_alloc_desc_t { pNext: next, ..Default::default() };
        let on_host = ze_host_mem_alloc_desc_t {
            pNext: if sort == Sort::Host { past } else { ptr::null() },
            ..Default::default()
        };
        let (raw, here) = (context.raw(), device.raw());
        let at = placed(|to| match sort {
            Sort::Device | Sort::Exportable(_) | Sort::Imported(..) => {
                // SAFETY: the descriptors and the structures linked to them live until it returns; the driver checks
                // the number of a descriptor.
                unsafe { driver().mem_alloc_device(raw, &on_device, bytes, align, here, to) }
            }
            Sort::Host => {
                // SAFETY: as above.
                unsafe { driver().mem_alloc_host(raw, &on_host, bytes, align, to) }
            }
            Sort::Shared => {
                let device = Some(here);
                // SAFETY: as above.
                unsafe {
                    driver().mem_alloc_shared(raw, &on_device, &on_host, bytes, align, device, to)
                }
            }
        });
        let at = at.map_err(|error| match (error.kind(), sort) {
            (ErrorKind::OutOfDeviceMemory, Sort::Host) => {
                error.with_kind(ErrorKind::OutOfHostMemory)
            }
            _ => error,
        })?;
        Ok(Self::at_address(context, at))
    }
    /// Takes ownership of memory that the driver allocated in the context: it is freed on drop.
    pub fn at_address(context: &Arc<NativeContext>, at: u64) -> Self {
        Self::new(Allocated(at), Arc::clone(context))
    }
    /// Its address.
    pub fn at(&self) -> u64 {
        self.raw().0
    }
}

/// The descriptor that allows an allocation to exceed the device's normal limit; `None` if it does not, or if
/// the application did not request this (`UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS`).
fn relaxed(device: &DriverDevice, bytes: usize) -> Option<ze_relaxed_allocation_limits_ext_desc_t> {
    let exceeds = bytes as u64 > device.properties().maxMemAllocSize;
    (exceeds && options().relaxed_limits).then_some(ze_relaxed_allocation_limits_ext_desc_t {
        flags: ZE_RELAXED_ALLOCATION_LIMITS_EXT_FLAG_MAX_SIZE,
        ..Default::default()
    })
}
/// Makes `bytes` at `at` resident for a device. Does nothing if the driver does not have the function: such a
/// driver does this by itself.
pub fn make_resident(
    context: &NativeContext,
    device: &DriverDevice,
    at: u64,
    bytes: usize,
) -> Result<()> {
    let (raw, here) = (context.raw(), device.raw());
    // SAFETY: the memory is allocated.
    let outcome = unsafe { driver().context_make_memory_resident(raw, here, pointer(at), bytes) };
    if driver::is_unsupported(outcome) { Ok(()) } else { outcome.ok() }
}

/// What the driver reports for an address.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The kind of memory: `ZE_MEMORY_TYPE_*`.
    pub kind: ze_memory_type_t,
    /// The device, if it is memory of a device.
    pub device: Option<RawDevice>,
    /// The start of the allocation.
    pub base: u64,
    /// Its length in bytes.
    pub bytes: usize,
    /// The driver's number of the allocation.
    pub id: u64,
}
/// What the driver reports for `at`; `None` for memory that it does not know.
///
/// # Errors
/// Returns the driver's error.
pub fn known(context: &NativeContext, at: u64) -> Result<Option<Known>> {
    let (raw, mut device) = (context.raw(), None);
    // SAFETY: both are writable; the query accepts any address.
    let properties: ze_memory_allocation_properties_t = told(|to| unsafe {
        driver().mem_get_alloc_properties(raw, pointer(at), to, &raw mut device)
    })?;
    if properties.type_ == ZE_MEMORY_TYPE_UNKNOWN {
        return Ok(None);
    }
    let mut bytes = 0;
    // SAFETY: as above.
    let base = placed(|to| unsafe {
        driver().mem_get_address_range(raw, pointer(at), to, &raw mut bytes)
    })?;
    Ok(Some(Known { kind: properties.type_, device, base, bytes, id: properties.id }))
}
/// The descriptor of memory that was allocated for export; it remains the driver's.
///
/// # Errors
/// `UNSUPPORTED_FEATURE` if the driver does not provide one; else the driver's error.
pub(super) fn exported(context: RawContext, at: u64, flags: u32) -> Result<i32> {
    let mut export = ze_external_memory_export_fd_t { flags, fd: -1, ..Default::default() };
    let mut properties =
        ze_memory_allocation_properties_t { pNext: (&raw mut export).cast(), ..Default::default() };
    let (to, mut device) = (&raw mut properties, None);
    // SAFETY: all are writable, also the structures linked to them.
    unsafe { driver().mem_get_alloc_properties(context, pointer(at), to, &raw mut device) }.ok()?;
    Ok(export.fd)
}

/// Host memory of the application, registered with the driver until this is dropped.
#[derive(Debug)]
pub struct Imported {
    at: u64,
    way: Way,
}
/// How it was registered.
#[derive(Debug)]
enum Way {
    /// By Intel's extension, for any range.
    External(RawDriver, unsafe extern "C" fn(RawDriver, *mut c_void) -> ze_result_t),
    /// As an allocation over existing pages.
    Mapped(Arc<NativeContext>),
}
impl Imported {
    /// Registers `bytes` at `at`, so that devices can copy from and to it directly.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if the driver cannot do this; else the driver's error.
    pub fn new(
        platform: RawDriver,
        context: &Arc<NativeContext>,
        at: u64,
        bytes: usize,
    ) -> Result<Self> {
        type Import = unsafe extern "C" fn(RawDriver, *mut c_void, usize) -> ze_result_t;
        // SAFETY: the function with that name has this prototype.
        let import: Option<Import> = unsafe { function(platform, Extensions::IMPORT) };
        // SAFETY: as above.
        let release = unsafe { function(platform, c"zexDriverReleaseImportedPointer") };
        let (Some(import), Some(release)) = (import, release) else {
            return Self::mapped(context, at, bytes);
        };
        let platform = driver::unwrapped(platform);
        // SAFETY: the application guarantees that the range is valid while it is registered.
        let status = unsafe { import(platform, pointer(at), bytes) };
        Outcome::new("zexDriverImportExternalPointer", Some(status)).ok()?;
        Ok(Self { at, way: Way::External(platform, release) })
    }
    fn mapped(context: &Arc<NativeContext>, at: u64, bytes: usize) -> Result<Self> {
        let memory = ze_external_memmap_sysmem_ext_desc_t {
            pSystemMemory: pointer(at),
            size: bytes as u64,
            ..Default::default()
        };
        let next = ptr::from_ref(&memory).cast();
        let desc = ze_host_mem_alloc_desc_t { pNext: next, ..Default::default() };
        // SAFETY: the application guarantees that the range is valid while it is registered.
        let there =
            placed(|to| unsafe { driver().mem_alloc_host(context.raw(), &desc, bytes, 0, to) })?;
        let made = Self { at: there, way: Way::Mapped(Arc::clone(context)) };
        match made.at == at {
            true => Ok(made),
            false => Err(Error::new(
                ErrorKind::Unsupported,
                "this driver takes no host memory of others where it is: allocate it with \
                 urUSMHostAlloc",
            )),
        }
    }
}
impl Drop for Imported {
    fn drop(&mut self) {
        release(|| match &self.way {
            Way::External(platform, release) => {
                // SAFETY: registered here; the owner guarantees that nothing uses it any more.
                let status = unsafe { release(*platform, pointer(self.at)) };
                Outcome::new("zexDriverReleaseImportedPointer", Some(status))
            }
            // SAFETY: as above; the pages themselves stay the application's.
            Way::Mapped(context) => unsafe { driver().mem_free(context.raw(), pointer(self.at)) },
        });
    }
}
