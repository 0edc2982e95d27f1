//! Host waits for reusable events. What such a wait is for is settled when it begins, and a later
//! signal must not change it; but the driver asks an event for its state at each look. So a command
//! list of its own waits for the event, and the host for that list: in slices, since it may be that
//! nothing ever comes.
use super::{
    Context, Device,
    native::{
        event::EventKind,
        list::{Engine, List, NativeList},
    },
    shared_event::{Owed, lost},
    signal::Cache,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ur_adapter::error::Result;
use ze_sys::ZE_COMMAND_QUEUE_PRIORITY_NORMAL;

/// Lists that wait for nothing at the moment, by device.
#[derive(Debug, Default)]
pub struct ContextLists(Arc<Mutex<Vec<(usize, NativeList)>>>);
impl ContextLists {
    fn take(&self, context: &Context, device: &Device) -> Result<NativeList> {
        let key = device.raw().addr();
        let mut idle = lock(&self.0);
        if let Some(found) = idle.iter().position(|one| one.0 == key) {
            return Ok(idle.swap_remove(found).1);
        }
        drop(idle);
        let ordinal = device.copier().map_or_else(|| device.compute(), Ok)?.ordinal;
        let (index, offloads) = (0, false);
        let engine =
            Engine { ordinal, index, offloads, priority: ZE_COMMAND_QUEUE_PRIORITY_NORMAL };
        NativeList::immediate(context.native(), device.raw(), engine)
    }
}
fn lock(idle: &Mutex<Vec<(usize, NativeList)>>) -> MutexGuard<'_, Vec<(usize, NativeList)>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One wait that has begun.
#[derive(Debug)]
pub(super) struct Lookout {
    owed: Owed,
    list: Option<NativeList>,
    came: Option<EventKind>,
    key: usize,
    cache: Arc<Cache>,
    home: Arc<Mutex<Vec<(usize, NativeList)>>>,
}
impl Lookout {
    /// Begins to wait for what is owed now.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn post(context: &Context, device: &Device, owed: Owed) -> Result<Self> {
        let cache = context.events().of(context, device, false);
        let list = context.lists().take(context, device)?;
        let came = cache.take(false)?;
        let home = Arc::clone(&context.lists().0);
        let key = device.raw().addr();
        let mut this = Self { owed, list: Some(list), came: Some(came), key, cache, home };
        let begun = this.begin(device);
        if begun.is_err() {
            this.came = None; // its list is as it was
        }
        begun.map(|()| this)
    }
    fn begin(&self, device: &Device) -> Result<()> {
        let (Some(list), Some(came)) = (&self.list, &self.came) else { return Ok(()) };
        let waits = [self.owed.event().raw()];
        List::new(list.raw(), (device.raw(), 1), &waits, Some(came.raw())).barrier()
    }
    /// Waits, looking every `slice` nanoseconds whether it may end.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if what is owed never comes; the driver's own.
    pub(super) fn wait(self, slice: u64) -> Result<()> {
        let Some(came) = &self.came else { return Ok(()) };
        while !came.wait(slice)? {
            if self.owed.is_lost() {
                return Err(lost());
            }
        }
        Ok(())
    }
}
impl Drop for Lookout {
    fn drop(&mut self) {
        let is_idle = self.came.as_ref().is_none_or(|came| came.is_complete().unwrap_or(false));
        let Some(mut list) = self.list.take() else { return };
        if is_idle {
            if let Some(came) = self.came.take() {
                self.cache.give(came, false);
            }
            lock(&self.home).push((self.key, list));
        } else {
            list.abandon(); // it waits for ever
            std::mem::forget(self.came.take()); // and would signal this
        }
    }
}
