//! Reference-counted handles that release their reference on drop; and the context, from which all others are made.
#![expect(unsafe_code, reason = "calls the C ABI")]
use super::{Api, Device, slot};
use crate::Result;
use std::sync::Arc;
use ur_sys::*;

/// A kind of handle with a reference count.
pub(super) trait Counted: Copy {
    /// The entry that releases a reference, and its name.
    fn release(table: &ur_dditable_t) -> (Option<Release<Self>>, &'static str);
}
type Release<H> = unsafe extern "C" fn(H) -> ur_result_t;

macro_rules! counted {
    ($($handle:ident: $table:ident, $entry:literal;)*) => { $(
        impl Counted for $handle {
            fn release(table: &ur_dditable_t) -> (Option<Release<Self>>, &'static str) {
                (table.$table.release, $entry)
            }
        }
    )* };
}
counted! {
    ur_context_handle_t: context, "urContextRelease";
    ur_queue_handle_t: queue, "urQueueRelease";
    ur_event_handle_t: event, "urEventRelease";
    ur_physical_mem_handle_t: physical_mem, "urPhysicalMemRelease";
}

/// One reference to an object, released on drop.
pub(super) struct Owned<H: Counted> {
    pub api: &'static Api,
    raw: H,
}
// SAFETY: UR handles may be used and released from any thread.
unsafe impl<H: Counted> Send for Owned<H> {}
// SAFETY: as above; entries do their own locking.
unsafe impl<H: Counted> Sync for Owned<H> {}

impl<H: Counted> Owned<H> {
    /// Takes over the reference that an entry of `api` has just returned in `raw`.
    pub(super) fn new(api: &'static Api, raw: H) -> Self {
        Self { api, raw }
    }
    pub(super) fn raw(&self) -> H {
        self.raw
    }
}
impl<H: Counted> Drop for Owned<H> {
    fn drop(&mut self) {
        let (release, entry) = H::release(self.api.table);
        if let Some(release) = release {
            // SAFETY: this value owns the reference, and is being dropped.
            let code = unsafe { release(self.raw) };
            // The error is dropped here: the adapter has logged it.
            let _ = self.api.check(entry, code);
        }
    }
}

/// A context with its one device.
pub(crate) struct Context {
    handle: Owned<ur_context_handle_t>,
    device: &'static Device,
}
impl Context {
    /// Makes a context for `device`.
    pub(crate) fn new(device: &'static Device) -> Result<Arc<Self>> {
        const ENTRY: &str = "urContextCreate";
        let api = device.api;
        let create = slot(api.table.context.create, ENTRY)?;
        let mut raw = ur_context_handle_t::NULL;
        // SAFETY: one live device, no properties, a place for the handle.
        api.check(ENTRY, unsafe { create(1, &device.raw, std::ptr::null(), &mut raw) })?;
        Ok(Arc::new(Self { handle: Owned::new(api, raw), device }))
    }
    pub(super) fn api(&self) -> &'static Api {
        self.handle.api
    }
    pub(super) fn raw(&self) -> ur_context_handle_t {
        self.handle.raw()
    }
    pub(super) fn raw_device(&self) -> ur_device_handle_t {
        self.device.raw
    }
    /// The device.
    pub(crate) fn device(&self) -> &'static Device {
        self.device
    }
    /// The unit in bytes in which physical memory is made and mapped.
    pub(crate) fn granularity(&self) -> Result<usize> {
        const ENTRY: &str = "urVirtualMemGranularityGetInfo";
        let api = self.api();
        let get = slot(api.table.virtual_mem.granularity_get_info, ENTRY)?;
        let name = ur_virtual_mem_granularity_info_t::RECOMMENDED;
        api.value(ENTRY, |size, value, needed| {
            // SAFETY: `value` provides `size` bytes at `value`; both handles are live.
            unsafe { get(self.raw(), self.raw_device(), 1, name, size, value, needed) }
        })
    }
}
