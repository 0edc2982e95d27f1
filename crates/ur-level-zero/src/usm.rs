//! USM: chunks for the core's pools, and command lists for work on memory outside all queues.
use super::{
    Context, DriverDevice, LevelZero,
    backing::{ALIGNMENT, Chunk},
    context::DriverContext,
    crossing::{Ends, line},
    driver::RawDevice,
    foreign,
    native::{self, context::NativeContext, list::List, utility_list::UtilityList},
    options,
    sync_point::{self, Moment},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object},
    pool::Limits,
};
use ur_core::over_driver::usm_pool::{HasUsm, OWN_DEVICE, OWN_OTHERS};
use ur_hal::{Address, Allocates, KnownMemory, MemoryRequest};
use ur_lock::locked;

/// The alignment in bytes of allocations without a requested one: enough for every kernel type, and a cache
/// line.
const NATURAL: usize = 128;

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
        work: impl FnOnce(&List<'_>) -> ur_hal::Result<R>,
    ) -> ur_hal::Result<R> {
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
    type Ordered = std::convert::Infallible;
    fn allocate(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        MemoryRequest { kind, bytes, align, .. }: MemoryRequest,
    ) -> ur_hal::Result<Chunk> {
        let (native, devices) = (context.native(), context.devices());
        Chunk::take(kind, native, device, devices, bytes, align)
    }
    fn recognise(
        context: &DriverContext,
        at: Address,
    ) -> ur_hal::Result<Option<KnownMemory<Arc<DriverDevice>>>> {
        foreign::recognise(context, at)
    }
}
impl HasUsm for LevelZero {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    const ROW: usize = 512;
    type DriverPools = ();

    fn check_size(device: &Arc<DriverDevice>, bytes: usize) -> Result<()> {
        let most = match options().relaxed_limits {
            true => isize::MAX as u64, // the driver decides
            false => device.properties().maxMemAllocSize,
        };
        match bytes > 0 && bytes as u64 <= most {
            true => Ok(()),
            false => Err(Error::new(
                ErrorCode::InvalidUsmSize,
                format!(
                    "{bytes} bytes are none, or more than the {most} that one allocation may have \
                     (UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1 lifts that limit)"
                ),
            )),
        }
    }
    fn natural_alignment(_bytes: usize) -> usize {
        NATURAL
    }
    /// The limits of the default pools. If the environment disables pooling, every allocation is a driver
    /// allocation.
    fn own_limits() -> [Limits; 2] {
        let own = [OWN_DEVICE, OWN_OTHERS];
        match options().pools {
            true => own,
            false => own.map(|limits| Limits { poolable: 0, keep: 0, ..limits }),
        }
    }
    fn memory_size(device: &Arc<DriverDevice>) -> Result<usize> {
        let memories = native::device::memories(device.raw())?;
        Ok(memories.iter().map(|memory| memory.totalSize as usize).sum())
    }
    fn submitted(context: &Object<Context>, since: u64) -> Vec<Moment> {
        sync_point::submitted(context.as_handle().addr(), since)
    }
    fn zero(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        at: UsmPtr,
        bytes: usize,
    ) -> Result<()> {
        Ok(context.utility_lists().with(device, |list| list.fill(at.addr(), &[0], bytes))?)
    }
    fn copy(context: Borrowed<'_, Context>, to: UsmPtr, from: UsmPtr, bytes: usize) -> Result<()> {
        let (device, ends) = (&context.devices()[0], (to.addr(), from.addr()));
        if let Some(ways) = Ends::beyond(context.utility_lists(), device, ends)? {
            return Ok(ways.copy((line(ends.0), line(ends.1)), (bytes, 1, 1))?);
        }
        Ok(context
            .driver()
            .utility_lists()
            .with(device, |list| list.copy(ends.0, ends.1, bytes))?)
    }
}
