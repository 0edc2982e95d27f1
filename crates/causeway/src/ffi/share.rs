//! Handle bytes for other processes, and their withdrawal. Opening is in the modules of the opened objects.
#![expect(unsafe_code, reason = "calls the C ABI")]
use super::{Context, Event, slot};
use crate::Result;
use std::{any::Any, ffi::c_void, sync::Arc};
use ur_sys::*;

/// Handle bytes that are valid until this is dropped, which also keeps the object that they name.
pub(crate) struct Exported {
    context: Arc<Context>,
    kind: Kind,
    /// Owned by the adapter until `Put`.
    data: *mut c_void,
    bytes: Vec<u8>,
    _names: Arc<dyn Any + Send + Sync>,
}
// SAFETY: `data` is only passed back to the adapter, whose entries may be called from any thread.
unsafe impl Send for Exported {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Exported {}

#[derive(Clone, Copy)]
enum Kind {
    Memory,
    Physical,
    Event,
}

impl Exported {
    /// Shares device memory from `at` on.
    pub(super) fn memory(
        context: &Arc<Context>,
        at: *mut c_void,
        names: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self> {
        const ENTRY: &str = "urIPCGetMemHandleExp";
        let get = slot(context.api().table.ipc_exp.get_mem_handle_exp, ENTRY)?;
        Self::get(context, Kind::Memory, names, ENTRY, |data, size| {
            // SAFETY: a live context, an address that the adapter looks up, places for the results.
            unsafe { get(context.raw(), at, data, size) }
        })
    }
    /// Shares device memory that other code allocated, from `address` on.
    pub(crate) fn foreign(
        context: &Arc<Context>,
        address: usize,
        names: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self> {
        Self::memory(context, address as *mut c_void, names)
    }
    /// Shares a physical memory object.
    pub(super) fn physical(
        context: &Arc<Context>,
        object: ur_physical_mem_handle_t,
        names: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self> {
        const ENTRY: &str = "urIPCGetPhysMemHandleExp";
        let get = slot(context.api().table.ipc_exp.get_phys_mem_handle_exp, ENTRY)?;
        Self::get(context, Kind::Physical, names, ENTRY, |data, size| {
            // SAFETY: live handles (`names` keeps the object), places for the results.
            unsafe { get(context.raw(), object, data, size) }
        })
    }
    /// Shares an event.
    pub(crate) fn event(context: &Arc<Context>, event: &Arc<Event>) -> Result<Self> {
        const ENTRY: &str = "urIPCGetEventHandleExp";
        let get = slot(context.api().table.ipc_exp.get_event_handle_exp, ENTRY)?;
        Self::get(context, Kind::Event, event.clone(), ENTRY, |data, size| {
            // SAFETY: a live event, places for the results.
            unsafe { get(event.raw(), data, size) }
        })
    }
    fn get(
        context: &Arc<Context>,
        kind: Kind,
        names: Arc<dyn Any + Send + Sync>,
        entry: &'static str,
        call: impl FnOnce(*mut *mut c_void, *mut usize) -> ur_result_t,
    ) -> Result<Self> {
        let (mut data, mut size) = (std::ptr::null_mut(), 0);
        context.api().check(entry, call(&mut data, &mut size))?;
        let context = context.clone();
        let mut exported = Self { context, kind, data, bytes: Vec::new(), _names: names };
        if !data.is_null() {
            // SAFETY: the adapter keeps `size` bytes there until `Put`.
            exported.bytes =
                unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) }.to_vec();
        }
        Ok(exported)
    }
    /// The bytes with which other processes open the object.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn put(&self) -> Result<()> {
        let (api, context) = (self.context.api(), self.context.raw());
        let table = &api.table.ipc_exp;
        match self.kind {
            Kind::Memory => {
                const ENTRY: &str = "urIPCPutMemHandleExp";
                let put = slot(table.put_mem_handle_exp, ENTRY)?;
                // SAFETY: returned by `Get`, and put only once.
                api.check(ENTRY, unsafe { put(context, self.data) })
            }
            Kind::Physical => {
                const ENTRY: &str = "urIPCPutPhysMemHandleExp";
                let put = slot(table.put_phys_mem_handle_exp, ENTRY)?;
                // SAFETY: returned by `Get`, and put only once.
                api.check(ENTRY, unsafe { put(context, self.data) })
            }
            Kind::Event => {
                const ENTRY: &str = "urIPCPutEventHandleExp";
                let put = slot(table.put_event_handle_exp, ENTRY)?;
                // SAFETY: returned by `Get`, and put only once.
                api.check(ENTRY, unsafe { put(context, self.data) })
            }
        }
    }
}
impl Drop for Exported {
    fn drop(&mut self) {
        // The error is dropped here: the adapter has logged it.
        let _ = self.put();
    }
}

impl Event {
    /// Opens the event that `handle` names.
    pub(crate) fn open(context: &Context, handle: &[u8]) -> Result<Arc<Self>> {
        const ENTRY: &str = "urIPCOpenEventHandleExp";
        let api = context.api();
        let open = slot(api.table.ipc_exp.open_event_handle_exp, ENTRY)?;
        let mut raw = ur_event_handle_t::NULL;
        // SAFETY: the handle's bytes with their length, a live context, a place for the handle.
        let code = unsafe { open(context.raw(), handle.as_ptr().cast(), handle.len(), &mut raw) };
        api.check(ENTRY, code)?;
        Ok(Self::adopt(context, raw))
    }
}
