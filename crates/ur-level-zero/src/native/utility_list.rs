//! A synchronous command list, for work on memory that must be complete when a call returns, and that no
//! queue uses yet.
use super::{
    super::{
        device::{DriverDevice, Group},
        driver::RawDevice,
    },
    context::NativeContext,
    list::{List, NativeList},
};
use std::sync::Arc;
use ur_hal::Result;
use ze_sys::*;

/// A synchronous immediate list, used by one thread at a time.
#[derive(Debug)]
pub struct UtilityList {
    list: NativeList,
    /// Its device, and the longest fill pattern of its engines in bytes.
    what_for: (RawDevice, usize),
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
            ordinal: group.ordinal,
            mode: ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS,
            ..Default::default()
        };
        let list = NativeList::immediate_of(context, device.raw(), &desc)?;
        Ok(Self { list, what_for: (device.raw(), group.longest_pattern) })
    }
    /// Access to it: an append returns when its command is complete.
    pub fn list(&self) -> List<'static> {
        List::new(self.list.raw(), self.what_for, &[], None)
    }
}
