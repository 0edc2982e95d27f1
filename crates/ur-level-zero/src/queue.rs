//! Queues as C knows them. An in-order queue is one in-order command list of the driver's; an
//! out-of-order queue has several, its lanes, which commands take in turn. What commands are is
//! `enqueue.rs`'s; how lists of a queue work together is `work.rs`'s.
//!
//! What the flags come to:
//!
//! | Flags | |
//! | --- | --- |
//! | `OUT_OF_ORDER_EXEC_MODE_ENABLE`, `PROFILING_ENABLE` | as documented |
//! | `PRIORITY_LOW`, `PRIORITY_HIGH` | the driver's priorities |
//! | `SUBMISSION_BATCHED`, `SUBMISSION_IMMEDIATE` | as documented for in-order queues; what the environment says goes first |
//! | `DISCARD_EVENTS`, `USE_DEFAULT_STREAM`, `SYNC_WITH_DEFAULT_STREAM`, `LOW_POWER_EVENTS_SUPPORT_EXP` | hints; nothing changes |
//! | `ON_DEVICE`, `ON_DEVICE_DEFAULT` | refused: `INVALID_QUEUE_PROPERTIES` |
pub(super) use super::ticket::{Everyone, ticket, wait_for_device};
pub(super) use super::work::{Spot, Submission, Turn, Work};
use super::{
    Context, Device, LevelZero,
    driver::RawList,
    native::{
        list::{Engine, NativeList},
        queue as native,
    },
    options,
};
use std::sync::Arc;
use ur_adapter::{
    api::{QueueApi, QueueExpApi},
    chain,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_sys::{
    ur_native_handle_t, ur_queue_flags_t, ur_queue_index_properties_t, ur_queue_info_t,
    ur_queue_native_desc_t, ur_queue_native_properties_t, ur_queue_properties_t,
};
use ze_sys::{
    ZE_COMMAND_QUEUE_PRIORITY_NORMAL, ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH,
    ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW,
};

/// Commands of a batch, if nobody says how many.
const BATCH: u32 = 16;

/// What `ur_queue_handle_t` points at.
#[derive(Debug)]
pub struct Queue {
    context: Owned<Context>,
    device: Owned<Device>,
    flags: ur_queue_flags_t,
    work: Arc<Work>,
}
impl Queue {
    /// The context it was made for.
    pub fn context(&self) -> &Owned<Context> {
        &self.context
    }
    /// The device that runs its commands.
    pub fn device(&self) -> &Owned<Device> {
        &self.device
    }
    /// Whether commands run in the order of their submission.
    pub fn is_in_order(&self) -> bool {
        self.work.is_in_order()
    }
    /// Whether its events have times.
    pub fn is_profiling(&self) -> bool {
        self.flags.contains(ur_queue_flags_t::PROFILING_ENABLE)
    }
    pub(super) fn work(&self) -> &Arc<Work> {
        &self.work
    }
    fn make(
        context: Owned<Context>,
        device: Owned<Device>,
        flags: ur_queue_flags_t,
        index: Option<u32>,
        list: Option<NativeList>,
    ) -> Result<Owned<Self>> {
        use ur_queue_flags_t as F;
        let engines = device.compute()?;
        let priority = match () {
            () if flags.contains(F::PRIORITY_LOW) => ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW,
            () if flags.contains(F::PRIORITY_HIGH) => ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH,
            () => ZE_COMMAND_QUEUE_PRIORITY_NORMAL,
        };
        let engine = Engine {
            ordinal: engines.ordinal,
            index: device.engine().or(index).unwrap_or(0),
            offloads: options().copiers,
            priority,
        };
        let in_order = !flags.contains(F::OUT_OF_ORDER_EXEC_MODE_ENABLE) || list.is_some();
        // What may overtake must not lie behind in a batch.
        let submission = match list {
            None if in_order => submission(flags),
            _ => Submission::Immediate,
        };
        let work = Work::new(&context, &device, engine, (submission, in_order), list)?;
        context.queues().add(&work);
        Ok(Owned::new(Self { context, device, flags, work }))
    }
}
impl Drop for Queue {
    fn drop(&mut self) {
        self.work.leave();
        self.context.queues().sweep();
    }
}

/// How a queue with these flags submits.
fn submission(flags: ur_queue_flags_t) -> Submission {
    let batched = match options().immediate {
        Some(immediate) => !immediate,
        None => flags.contains(ur_queue_flags_t::SUBMISSION_BATCHED),
    };
    let most = options().batch.unwrap_or(BATCH);
    match batched && most > 1 && native::can_batch() {
        true => Submission::Batched { most },
        false => Submission::Immediate,
    }
}
/// The engine that C asks for.
///
/// # Errors
/// `INVALID_QUEUE_PROPERTIES` for flags that no queue has, and for an engine that there is not.
fn check(device: &Device, properties: &ur_queue_properties_t) -> Result<Option<u32>> {
    use ur_queue_flags_t as F;
    let refused = |why: String| Err(Error::new(ErrorCode::InvalidQueueProperties, why));
    if properties.flags.intersects(F::ON_DEVICE | F::ON_DEVICE_DEFAULT) {
        return refused("this device has no queues of its own: leave ON_DEVICE out".into());
    }
    let engines = if device.engine().is_some() { 1 } else { device.compute()?.engines };
    match chain::extension::<ur_queue_index_properties_t>(properties)? {
        Some(index) if index.computeIndex >= engines => refused(format!(
            "there is no compute engine {}: this device has {engines}, counted from 0",
            index.computeIndex
        )),
        index => Ok(index.map(|index| index.computeIndex)),
    }
}

impl QueueApi for LevelZero {
    fn queue_create(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        properties: Option<&ur_queue_properties_t>,
    ) -> Result<Owned<Queue>> {
        context.check(device)?;
        let index = properties.map_or(Ok(None), |p| check(&device, p))?;
        let flags = properties.map_or(ur_queue_flags_t::default(), |p| p.flags);
        Queue::make(context.own()?, device.own()?, flags, index, None)
    }
    fn queue_get_info(
        queue: Borrowed<'_, Queue>,
        name: ur_queue_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_queue_info_t::CONTEXT => answer.handle(&queue.context),
            ur_queue_info_t::DEVICE => answer.handle(&queue.device),
            ur_queue_info_t::FLAGS => answer.value(&queue.flags.bits()),
            ur_queue_info_t::REFERENCE_COUNT => answer.value(&queue.api_refs()),
            ur_queue_info_t::EMPTY => answer.bool(queue.work.is_idle()?),
            ur_queue_info_t::SIZE => Err(Error::new(
                ErrorCode::InvalidQueue,
                "only queues made with ON_DEVICE have a size",
            )),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a queue of Level Zero has no answer to {name:?}"),
            )),
        }
    }
    /// The immediate command list: of an out-of-order queue the first of several.
    fn queue_get_native_handle(
        queue: Borrowed<'_, Queue>,
        desc: Option<&ur_queue_native_desc_t>,
    ) -> Result<ur_native_handle_t> {
        native::tell_immediate(desc);
        Ok(queue.work.first()?.raw().addr() as ur_native_handle_t)
    }
    /// An in-order queue over an immediate, in-order command list.
    fn queue_create_with_native_handle(
        handle: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        device: Option<Borrowed<'_, Device>>,
        properties: Option<&ur_queue_native_properties_t>,
    ) -> Result<Owned<Queue>> {
        device.map_or(Ok(()), |device| context.check(device))?;
        let null =
            || Error::new(ErrorCode::InvalidNullHandle, "0 is no command list of the driver");
        let raw = RawList::from_addr(handle).ok_or_else(null)?;
        if let Some(properties) = properties
            && let Some(desc) = chain::extension::<ur_queue_native_desc_t>(properties)?
            && !native::is_immediate(desc)
        {
            return Err(Error::new(
                ErrorCode::UnsupportedFeature,
                "a queue is made over an immediate command list here, not over a command queue",
            ));
        }
        let device = match device {
            Some(device) => device.own()?,
            None => context.devices()[0].clone(),
        };
        let owned = properties.is_some_and(|p| p.isNativeHandleOwned);
        let list = NativeList::adopted(raw, owned, context.native());
        Queue::make(context.own()?, device, ur_queue_flags_t::default(), None, Some(list))
    }
    fn queue_finish(queue: Owned<Queue>) -> Result<()> {
        queue.work.finish()
    }
    fn queue_flush(queue: Borrowed<'_, Queue>) -> Result<()> {
        queue.work.flush()
    }
}
impl QueueExpApi for LevelZero {}
