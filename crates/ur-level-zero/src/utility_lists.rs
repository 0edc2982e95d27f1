//! Command lists for work on memory outside all queues.
use super::{
    device::DriverDevice,
    driver::RawDevice,
    native::{
        context::NativeContext,
        list::{List, NativeList},
    },
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};
use ur_hal::Result;
use ur_lock::locked;

/// Unused command lists for work outside all queues: synchronous ones, each of which one thread at a time uses.
#[derive(Debug)]
pub struct UtilityLists {
    context: Arc<NativeContext>,
    idle: Mutex<HashMap<(RawDevice, u32), Vec<NativeList>>>,
}
impl UtilityLists {
    pub(super) fn new(context: Arc<NativeContext>) -> Self {
        Self { context, idle: Mutex::default() }
    }
    /// The context that they are for.
    pub(super) fn context(&self) -> &Arc<NativeContext> {
        &self.context
    }
    fn idle(&self) -> MutexGuard<'_, HashMap<(RawDevice, u32), Vec<NativeList>>> {
        locked(&self.idle)
    }
    /// Executes `work` on a command list of `device`, ordered with no queue, and waits for it.
    ///
    /// # Errors
    /// Those of `work`; else the driver's error.
    pub(super) fn with<R>(
        &self,
        device: &DriverDevice,
        work: impl FnOnce(&List<'_>) -> Result<R>,
    ) -> Result<R> {
        let group = device.compute()?;
        let key = (device.raw(), group.ordinal);
        let idle = self.idle().get_mut(&key).and_then(Vec::pop);
        let aside = match idle {
            Some(aside) => aside,
            None => NativeList::synchronous(&self.context, device.raw(), group.ordinal)?,
        };
        let list = aside.turn((device.raw(), group.longest_pattern));
        let done = work(&list)?; // after an error its state is unknown, so it is not reused
        self.idle().entry(key).or_default().push(aside);
        Ok(done)
    }
}
