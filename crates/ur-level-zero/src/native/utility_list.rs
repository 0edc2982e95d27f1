//! Work on memory beside all queues, done when the call returns: for what C wants to find done, and
//! what nothing else can be using yet.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::{DriverDevice, Group},
        driver::{RawDevice, RawList, driver},
    },
    context::NativeContext,
    list::List,
    memory::release,
};
use std::sync::Arc;
use ur_adapter::error::Result;
use ze_sys::*;

/// A synchronous immediate list. One thread at a time uses it.
#[derive(Debug)]
pub struct UtilityList {
    raw: RawList,
    /// Its device, and the longest pattern that its engines fill with.
    what_for: (RawDevice, usize),
    _context: Arc<NativeContext>,
}
impl UtilityList {
    /// A list for one group of the device's engines.
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
    /// A turn at it: whatever is appended is done when that returns.
    pub fn list(&self) -> List<'static> {
        List::new(self.raw, self.what_for, &[], None)
    }
}
impl Drop for UtilityList {
    fn drop(&mut self) {
        // SAFETY: destroyed once; all that it was given is done.
        release(|| unsafe { driver().command_list_destroy(self.raw) });
    }
}
