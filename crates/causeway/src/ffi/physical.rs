//! Physical memory objects: made or opened, shared, and released.
#![expect(unsafe_code, reason = "calls the C ABI")]
use super::{Context, Exported, handle::Owned, slot};
use crate::Result;
use std::{mem::ManuallyDrop, sync::Arc};
use ur_sys::*;

/// A physical memory object. On drop it is closed if it was opened, and released if it was made.
pub(crate) struct Physical {
    handle: ManuallyDrop<Owned<ur_physical_mem_handle_t>>,
    context: Arc<Context>,
    bytes: usize,
    opened: bool,
}
impl Physical {
    /// Makes an object of `bytes`, a multiple of the granularity.
    pub(crate) fn new(context: &Arc<Context>, bytes: usize, shareable: bool) -> Result<Arc<Self>> {
        const ENTRY: &str = "urPhysicalMemCreate";
        let api = context.api();
        let create = slot(api.table.physical_mem.create, ENTRY)?;
        let stype = ur_structure_type_t::PHYSICAL_MEM_PROPERTIES;
        let flags = if shareable {
            ur_physical_mem_flags_t::ENABLE_IPC
        } else {
            ur_physical_mem_flags_t(0)
        };
        let properties = ur_physical_mem_properties_t { stype, pNext: std::ptr::null_mut(), flags };
        let (device, mut raw) = (context.raw_device(), ur_physical_mem_handle_t::NULL);
        // SAFETY: live handles, initialised properties, a place for the handle.
        let code = unsafe { create(context.raw(), device, bytes, &properties, &mut raw) };
        api.check(ENTRY, code)?;
        let handle = ManuallyDrop::new(Owned::new(api, raw));
        Ok(Arc::new(Self { handle, context: context.clone(), bytes, opened: false }))
    }
    /// Opens the object that `handle` names.
    pub(crate) fn open(context: &Arc<Context>, handle: &[u8]) -> Result<Arc<Self>> {
        const ENTRY: &str = "urIPCOpenPhysMemHandleExp";
        let api = context.api();
        let open = slot(api.table.ipc_exp.open_phys_mem_handle_exp, ENTRY)?;
        let (from, size) = (handle.as_ptr().cast(), handle.len());
        let (device, mut raw) = (context.raw_device(), ur_physical_mem_handle_t::NULL);
        // SAFETY: `size` bytes at `from`; live handles; a place for the handle.
        let code = unsafe { open(context.raw(), device, from, size, &mut raw) };
        api.check(ENTRY, code)?;
        let handle = ManuallyDrop::new(Owned::new(api, raw));
        let mut opened = Self { handle, context: context.clone(), bytes: 0, opened: true };
        opened.bytes = opened.size()?;
        Ok(Arc::new(opened))
    }
    fn size(&self) -> Result<usize> {
        const ENTRY: &str = "urPhysicalMemGetInfo";
        let api = self.context.api();
        let get = slot(api.table.physical_mem.get_info, ENTRY)?;
        let name = ur_physical_mem_info_t::SIZE;
        api.value(ENTRY, |size, value, needed| {
            // SAFETY: `value` provides `size` bytes at `value`; the object is live.
            unsafe { get(self.raw(), name, size, value, needed) }
        })
    }
    /// Shares the object with other processes.
    pub(crate) fn share(self: &Arc<Self>) -> Result<Exported> {
        Exported::physical(&self.context, self.raw(), self.clone())
    }
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }
    pub(super) fn raw(&self) -> ur_physical_mem_handle_t {
        self.handle.raw()
    }
    /// The size of the object.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
impl Drop for Physical {
    fn drop(&mut self) {
        if !self.opened {
            // SAFETY: dropped once, here.
            return unsafe { ManuallyDrop::drop(&mut self.handle) };
        }
        const ENTRY: &str = "urIPCClosePhysMemHandleExp";
        let api = self.context.api();
        if let Ok(close) = slot(api.table.ipc_exp.close_phys_mem_handle_exp, ENTRY) {
            // SAFETY: an object that an open returned; closing it takes the reference, which `handle` then never
            // releases.
            let code = unsafe { close(self.context.raw(), self.raw()) };
            // The error is dropped here: the adapter has logged it.
            let _ = api.check(ENTRY, code);
        }
    }
}
