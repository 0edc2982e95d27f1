//! A synchronous command list, for work on memory that must be complete when a call returns, and that no
//! queue uses yet.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::{DriverDevice, Group},
        driver::{RawDevice, RawList, driver},
    },
    context::NativeContext,
    fork::release,
    list::List,
};
use std::sync::Arc;
use ur_hal::Result;
use ze_sys::*;

/// A synchronous immediate list, used by one thread at a time.
#[derive(Debug)]
pub struct UtilityList {
    raw: RawList,
    /// Its device, and the longest fill pattern of its engines in bytes.
    what_for: (RawDevice, usize),
    _context: Arc<NativeContext>,
}
impl UtilityList {
    /// Creates a list for an engine group of the device.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        group: Group,
    ) -> Result<Self> {
        let desc = ze_command_queue_desc_t {
            stype: ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
            ordinal: group.ordinal,
            mode: ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS,
            ..Default::default()
        };
        let (here, mut raw) = (context.raw(), None);
        let (to, desc) = (&raw mut raw, &raw const desc);
        // SAFETY: the descriptor lives until it returns; `raw` is writable.
        unsafe { driver().command_list_create_immediate(here, device.raw(), desc, to) }.ok()?;
        let raw = RawList::given(raw, "zeCommandListCreateImmediate")?;
        let what_for = (device.raw(), group.longest_pattern);
        Ok(Self { raw, what_for, _context: Arc::clone(context) })
    }
    /// Access to it: an append returns when its command is complete.
    pub fn list(&self) -> List<'static> {
        List::new(self.raw, self.what_for, &[], None)
    }
}
impl Drop for UtilityList {
    fn drop(&mut self) {
        // SAFETY: destroyed once; its commands are complete.
        release(|| unsafe { driver().command_list_destroy(self.raw) });
    }
}
