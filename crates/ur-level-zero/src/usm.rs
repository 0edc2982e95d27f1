//! USM: chunks for the core's pools, and command lists for work on memory outside all queues.
use super::{
    DriverDevice, LevelZero,
    backing::{ALIGNMENT, Chunk},
    context::DriverContext,
    crossing::{Ends, line},
    driver::RawDevice,
    foreign,
    native::{self, context::NativeContext, list::List, utility_list::UtilityList},
    options,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};
use ur_hal::{Address, Allocates, KnownMemory, MemoryRequest, Range, Result};
use ur_lock::locked;

/// Unused command lists for work outside all queues.
#[derive(Debug)]
pub struct UtilityLists {
    context: Arc<NativeContext>,
    idle: Mutex<HashMap<(RawDevice, u32), Vec<UtilityList>>>,
}
impl UtilityLists {
    pub(super) fn new(context: Arc<NativeContext>) -> Self {
        Self { context, idle: Mutex::default() }
    }
    /// The context that they are for.
    pub(super) fn context(&self) -> &Arc<NativeContext> {
        &self.context
    }
    fn idle(&self) -> MutexGuard<'_, HashMap<(RawDevice, u32), Vec<UtilityList>>> {
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
            None => UtilityList::create(&self.context, device, group)?,
        };
        let done = work(&aside.list())?; // after an error its state is unknown, so it is not reused
        self.idle().entry(key).or_default().push(aside);
        Ok(done)
    }
}

impl Allocates for LevelZero {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    const ROW: usize = 512;
    const SIZE_HINT: &str = " (UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1 lifts that limit)";
    /// Enough for every type of a kernel, and a cache line.
    fn natural_alignment(_: usize) -> usize {
        128
    }
    fn memory_size(device: &Arc<DriverDevice>) -> Result<usize> {
        let memories = native::device::memories(device.raw())?;
        Ok(memories.iter().map(|memory| memory.totalSize as usize).sum())
    }
    fn largest_allocation(device: &Arc<DriverDevice>) -> Result<usize> {
        Ok(match options().relaxed_limits {
            true => isize::MAX as usize, // the driver decides
            false => device.properties().maxMemAllocSize as usize,
        })
    }
    /// The environment can ask for an allocation of the driver each time.
    fn is_pooled() -> bool {
        options().pools
    }
    fn allocate(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        MemoryRequest { kind, bytes, align, .. }: MemoryRequest,
    ) -> Result<Chunk> {
        let (native, devices) = (context.native(), context.devices());
        Chunk::take(kind, native, device, devices, bytes, align)
    }
    fn recognise(
        context: &DriverContext,
        at: Address,
    ) -> Result<Option<KnownMemory<Arc<DriverDevice>>>> {
        foreign::recognise(context, at)
    }
    fn zero(context: &DriverContext, device: &Arc<DriverDevice>, range: Range) -> Result<()> {
        let (at, bytes) = (range.start().get(), range.bytes());
        context.utility_lists().with(device, |list| list.fill(at, &[0], bytes))
    }
    fn copy(context: &DriverContext, to: Address, from: Address, bytes: usize) -> Result<()> {
        let (device, ends) = (&context.devices()[0], (to.get(), from.get()));
        if let Some(ways) = Ends::beyond(context.utility_lists(), device, ends)? {
            return ways.copy((line(ends.0), line(ends.1)), (bytes, 1, 1));
        }
        context.utility_lists().with(device, |list| list.copy(ends.0, ends.1, bytes))
    }
}
