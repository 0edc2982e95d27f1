//! Events: creation, status, waiting. `wait` decides when to give up waiting.
#![expect(unsafe_code, reason = "calls the C ABI")]
use super::{Context, handle::Owned, slot};
use crate::{Result, Status, wait::Bell};
use std::{ffi::c_void, sync::Arc};
use ur_sys::*;

/// An event of a command, one made for reuse, or one opened from another process.
pub(crate) struct Event(Owned<ur_event_handle_t>);

impl Event {
    /// Takes over the reference that an entry of `context`'s adapter has just returned in `raw`.
    pub(super) fn adopt(context: &Context, raw: ur_event_handle_t) -> Arc<Self> {
        Arc::new(Self(Owned::new(context.api(), raw)))
    }
    /// Makes an event that queues can signal repeatedly, and that can be shared if `shareable`.
    pub(crate) fn reusable(context: &Context, shareable: bool) -> Result<Arc<Self>> {
        const ENTRY: &str = "urEventCreateExp";
        let api = context.api();
        let create = slot(api.table.event_exp.create_exp, ENTRY)?;
        let flags = if shareable { ur_exp_event_flags_t::IPC_EXP } else { ur_exp_event_flags_t(0) };
        let stype = ur_structure_type_t::EXP_EVENT_DESC;
        let desc = ur_exp_event_desc_t { stype, pNext: std::ptr::null(), flags };
        let mut raw = ur_event_handle_t::NULL;
        // SAFETY: live handles, an initialised descriptor, a place for the handle.
        let code = unsafe { create(context.raw(), context.raw_device(), &desc, &mut raw) };
        api.check(ENTRY, code)?;
        Ok(Self::adopt(context, raw))
    }
    pub(super) fn raw(&self) -> ur_event_handle_t {
        self.0.raw()
    }
    /// The current status. Never blocks.
    pub(crate) fn status(&self) -> Result<Status> {
        const ENTRY: &str = "urEventGetInfo";
        let get = slot(self.0.api.table.event.get_info, ENTRY)?;
        let name = ur_event_info_t::COMMAND_EXECUTION_STATUS;
        let status: u32 = self.0.api.value(ENTRY, |size, value, needed| {
            // SAFETY: `value` provides `size` bytes at `value`; the event is live.
            unsafe { get(self.raw(), name, size, value, needed) }
        })?;
        Ok(match ur_event_status_t(status) {
            ur_event_status_t::COMPLETE => Status::Complete,
            ur_event_status_t::RUNNING => Status::Running,
            ur_event_status_t::SUBMITTED | ur_event_status_t::QUEUED => Status::Submitted,
            _ => Status::Failed,
        })
    }
    /// Has `bell` rung when the event has completed or failed.
    pub(crate) fn ring_at_end(&self, bell: &Arc<Bell>) -> Result<()> {
        const ENTRY: &str = "urEventSetCallback";
        let set = slot(self.0.api.table.event.set_callback, ENTRY)?;
        let data = Arc::into_raw(Arc::clone(bell)).cast_mut().cast::<c_void>();
        // SAFETY: a live event; `ring` takes over the reference in `data`, and is called once.
        let code = unsafe { set(self.raw(), ur_execution_info_t::COMPLETE, Some(ring), data) };
        self.0.api.check(ENTRY, code).inspect_err(|_| {
            // SAFETY: made above and not taken over, because a callback that was refused is never called.
            drop(unsafe { Arc::from_raw(data.cast::<Bell>()) });
        })
    }
    /// Blocks until the event is complete or failed. It is called for events that already are, to get the error.
    pub(crate) fn settle(&self) -> Result<()> {
        const ENTRY: &str = "urEventWait";
        let wait = slot(self.0.api.table.event.wait, ENTRY)?;
        // SAFETY: a list of one live event.
        let code = unsafe { wait(1, &self.raw()) };
        self.0.api.check(ENTRY, code)
    }
}

/// Rings the bell to which `data` points.
unsafe extern "C" fn ring(_: ur_event_handle_t, _: ur_execution_info_t, data: *mut c_void) {
    // SAFETY: `ring_at_end` left a reference in it for this one call.
    let bell = unsafe { Arc::from_raw(data.cast::<Bell>()) };
    bell.ring();
}
