//! Physical memory of a device: allocated, exported and imported by descriptors.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{RawDriver, RawPhysical, driver},
    },
    context::NativeContext,
    fork::release,
    import_fd::{Keepers, close_if_left, was_kept},
    ipc::{duplicate, of_number},
    virtual_memory::page_size,
};
use std::{
    ffi::c_void,
    os::fd::{BorrowedFd, OwnedFd},
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::*},
    },
};
use ur_hal::{Error, ErrorKind, Result, made, refused_import};
use ur_lock::PerKey;
use ze_sys::*;

/// The kind of descriptor: a dma-buf.
pub(super) const DMA_BUF: u32 = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF;

/// Whether physical memory of the device can be exported and imported by descriptors. Determined by a trial
/// export, because a loader has the function even if the driver does not (Intel's before 26.18). All devices
/// of a driver are assumed to be alike.
///
/// # Errors
/// Returns the driver's error.
pub fn has_descriptors(device: &DriverDevice) -> Result<bool> {
    static KNOWN: PerKey<RawDriver, bool> = PerKey::new();
    if !super::virtual_memory::is_supported(device)? {
        return Ok(false);
    }
    let properties = super::device::external(device.raw())?;
    let both = properties.memoryAllocationExportTypes & properties.memoryAllocationImportTypes;
    if both & DMA_BUF == 0 || !driver().has("physical_mem_get_properties") {
        return Ok(false);
    }
    let raw = device.platform().raw();
    KNOWN.get(raw, || {
        let context = Arc::new(NativeContext::create(raw, &[device.raw()])?);
        let bytes = page_size(&context, device, 1)?;
        match Physical::create(&context, device, bytes, true).and_then(|one| one.export()) {
            Ok(_) => Ok(true),
            Err(error) if error.kind().is_want() => Err(error),
            Err(_) => Ok(false),
        }
    })
}

/// Physical memory of a device, without an address. The handle is destroyed on drop; mappings keep the memory
/// alive.
#[derive(Debug)]
pub struct Physical {
    raw: RawPhysical,
    bytes: usize,
    /// The UUID of its device.
    device: [u8; 16],
    context: Arc<NativeContext>,
    is_opened: bool,
    /// Exported at most once.
    exported: OnceLock<Arc<OwnedFd>>,
    /// The number of the driver's own descriptor, of which `exported` is a duplicate.
    lent: OnceLock<i32>,
    /// The number of its mappings.
    mappings: AtomicUsize,
}
impl Physical {
    /// Allocates `bytes`, a multiple of the granularity; it can be exported only with `exportable`.
    ///
    /// # Errors
    /// Returns the driver's error, typically out of memory.
    pub fn create(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        bytes: usize,
        exportable: bool,
    ) -> Result<Self> {
        let export = ze_external_memory_export_desc_t { flags: DMA_BUF, ..Default::default() };
        let next = if exportable { ptr::from_ref(&export).cast() } else { ptr::null() };
        Self::new(context, device, bytes, next)
    }
    /// Imports memory of another process by its descriptor. `bytes` is the exporter's claim.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the descriptor is not of device memory, or of less memory.
    pub fn import(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        fd: BorrowedFd<'_>,
        bytes: usize,
    ) -> Result<Self> {
        static KEEPERS: Keepers = Keepers::new(|device| {
            let context = NativeContext::create(device.platform().raw(), &[device.raw()])?;
            let bytes = page_size(&context, device, 1)?;
            let context = Arc::new(context);
            let ours = Physical::create(&context, device, bytes, true)?.export()?;
            was_kept(&ours, |number| Physical::of(&context, device, number, bytes))
        });
        let import = |number| Self::of(context, device, number, bytes).map_err(refused_import);
        KEEPERS.give(device, fd, import)
    }
    /// Imports memory by the descriptor `number`, of which the driver may take ownership.
    fn of(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        number: i32,
        bytes: usize,
    ) -> Result<Self> {
        let import =
            ze_external_memory_import_fd_t { flags: DMA_BUF, fd: number, ..Default::default() };
        Self::new(context, device, bytes, ptr::from_ref(&import).cast())
    }
    fn new(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        bytes: usize,
        next: *const c_void,
    ) -> Result<Self> {
        let mut desc = ze_physical_mem_desc_t {
            pNext: next,
            flags: ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_DEVICE,
            size: bytes,
            ..Default::default()
        };
        // SAFETY: the descriptor and its chain live until it returns; `to` is writable.
        let raw = made(|to| unsafe {
            driver().physical_mem_create(context.raw(), device.raw(), &raw mut desc, to)
        })?;
        Ok(Self {
            raw,
            bytes,
            device: device.uuid(),
            context: Arc::clone(context),
            is_opened: false,
            exported: OnceLock::new(),
            lent: OnceLock::new(),
            mappings: AtomicUsize::new(0),
        })
    }
    /// Marks it as another process's, and keeps the descriptor with which it was imported for further
    /// exports.
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
    /// Counts a mapping. With `alone` only if there is none yet; returns whether it was counted.
    pub fn count_mapping(&self, alone: bool) -> bool {
        let more = |mappings: usize| (!alone || mappings == 0).then_some(mappings + 1);
        self.mappings.fetch_update(AcqRel, Acquire, more).is_ok()
    }
    /// Counts the end of a mapping.
    pub fn discount_mapping(&self) {
        self.mappings.fetch_sub(1, AcqRel);
    }
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// The UUID of its device.
    pub fn device(&self) -> [u8; 16] {
        self.device
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawPhysical {
        self.raw
    }
    /// The context that it was created in.
    pub fn context(&self) -> &Arc<NativeContext> {
        &self.context
    }
    /// The descriptor with which other processes can import it.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the process has no free descriptors; else the driver's error.
    pub fn export(&self) -> Result<Arc<OwnedFd>> {
        if let Some(fd) = self.exported.get() {
            return Ok(Arc::clone(fd));
        }
        let mut export =
            ze_external_memory_export_fd_t { flags: DMA_BUF, fd: -1, ..Default::default() };
        let mut properties =
            ze_physical_mem_properties_t { pNext: (&raw mut export).cast(), ..Default::default() };
        let (here, to) = (self.context.raw(), &raw mut properties);
        // SAFETY: the properties and the structure linked to them are writable.
        unsafe { driver().physical_mem_get_properties(here, self.raw, to) }.ok()?;
        let none = || {
            let why = "the driver exported no descriptor of this physical memory: a newer one may";
            Error::new(ErrorKind::Unsupported, why)
        };
        let fd = duplicate(export.fd)?.ok_or_else(none)?;
        put_back(&self.context, export.fd);
        let _first = self.lent.set(export.fd);
        Ok(Arc::clone(self.exported.get_or_init(|| Arc::new(fd))))
    }
}
/// Returns a descriptor to the driver, of which we have a duplicate, if the driver supports this; else the
/// driver keeps it until the memory is freed.
pub(super) fn put_back(context: &NativeContext, number: i32) {
    if let Ok(handle) = of_number(context, number) {
        // SAFETY: the handle was made by the driver, and is returned once.
        unsafe { driver().mem_put_ipc_handle(context.raw(), handle) }.let_go();
    }
}
impl Drop for Physical {
    fn drop(&mut self) {
        // SAFETY: destroyed once; the core keeps it while it is mapped.
        release(|| unsafe { driver().physical_mem_destroy(self.context.raw(), self.raw) });
        if let (Some(&lent), Some(ours)) = (self.lent.get(), self.exported.get()) {
            // Some drivers close exported descriptors when the memory is freed, others leave that to the
            // caller.
            close_if_left(lent, ours);
        }
    }
}
