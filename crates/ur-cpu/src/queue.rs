//! Queues as C knows them. Taking and running commands is the engine's, what the commands are
//! `enqueue.rs`'s.
//!
//! What the flags come to on a CPU:
//!
//! | Flags | |
//! | --- | --- |
//! | `OUT_OF_ORDER_EXEC_MODE_ENABLE`, `PROFILING_ENABLE` | as documented |
//! | `PRIORITY_LOW`, `PRIORITY_HIGH` | an in-order queue's thread is nicer or less nice by 5, as far as the system allows (being less nice takes a privilege); out-of-order queues share their threads and take no notice |
//! | `DISCARD_EVENTS` | nothing is saved by it: events that are asked for are made |
//! | `SUBMISSION_BATCHED`, `SUBMISSION_IMMEDIATE` | every command is on its way from its submission on, which either allows |
//! | `USE_DEFAULT_STREAM`, `SYNC_WITH_DEFAULT_STREAM` | there is no default stream to use or to wait for |
//! | `LOW_POWER_EVENTS_SUPPORT_EXP` | waiting always ends in sleep |
//! | `ON_DEVICE`, `ON_DEVICE_DEFAULT` | refused: `INVALID_QUEUE_PROPERTIES` |
use super::{Context, Cpu, Device, capture, engine, memory};
use std::sync::{Arc, Mutex, PoisonError};
use ur_adapter::{
    api::QueueApi,
    chain,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Object, Owned},
    per_process::PerProcess,
};
use ur_core::over_driver::own_handle;
use ur_sys::{
    ur_native_handle_t, ur_queue_flags_t, ur_queue_index_properties_t, ur_queue_info_t,
    ur_queue_native_desc_t, ur_queue_native_properties_t, ur_queue_properties_t,
};

/// What `ur_queue_handle_t` points at.
#[derive(Debug)]
pub struct Queue {
    context: Owned<Context>,
    device: Owned<Device>,
    flags: ur_queue_flags_t,
    engine: engine::Queue,
    stand: Arc<capture::Stand>,
}

impl Queue {
    /// The context it was made for.
    pub fn context(&self) -> &Owned<Context> {
        &self.context
    }
    /// The device, or the part of it, that runs its commands.
    pub fn device(&self) -> &Owned<Device> {
        &self.device
    }
    /// Where it stands in a capture of commands.
    pub(super) fn stand(&self) -> &Arc<capture::Stand> {
        &self.stand
    }
    pub(super) fn is_in_order(&self) -> bool {
        !self.flags.contains(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)
    }
    pub(super) fn engine(&self) -> &engine::Queue {
        &self.engine
    }
}
impl Drop for Queue {
    fn drop(&mut self) {
        memory::sweep();
    }
}

/// How much nicer a queue of low priority is than others, and one of high priority less so.
const STEP: i32 = 5;
/// How many engines there are to choose from: see `MAX_COMPUTE_QUEUE_INDICES`.
pub(super) const ENGINES: u32 = 1;

/// # Errors
/// `INVALID_QUEUE_PROPERTIES` for flags that no CPU queue has, and for an engine that there is not.
/// Flags that contradict each other do not come so far.
fn check(properties: &ur_queue_properties_t) -> Result<()> {
    use ur_queue_flags_t as F;
    let flags = properties.flags;
    let refused = |why: String| Err(Error::new(ErrorCode::InvalidQueueProperties, why));
    if flags.intersects(F::ON_DEVICE | F::ON_DEVICE_DEFAULT) {
        return refused("this device has no queues of its own: leave ON_DEVICE out".into());
    }
    match chain::extension::<ur_queue_index_properties_t>(properties)? {
        Some(index) if index.computeIndex >= ENGINES => refused(format!(
            "there is no compute engine {}: this device has {ENGINES}, counted from 0",
            index.computeIndex
        )),
        _ => Ok(()),
    }
}

/// The queues of this process, each with the addresses of its device and of those that is a part of.
type Everyone = Mutex<Vec<(Vec<usize>, engine::Watch)>>;
static EVERYONE: PerProcess<Everyone> = PerProcess::new();

fn note(device: &Object<Device>, watch: engine::Watch) {
    let above = std::iter::successors(device.parent(), |above| above.parent());
    let line = [device].into_iter().chain(above.map(|above| &**above));
    let line = line.map(|device| device.as_handle().addr()).collect();
    let mut all = EVERYONE.get().lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(_, queue)| !queue.is_over());
    all.push((line, watch));
}
/// Waits for all commands submitted so far to queues of `device` and of parts of it, those of queues
/// that have been released included. How commands ended is for their queues and events to tell.
pub(super) fn wait_for_device(device: &Object<Device>) {
    let address = device.as_handle().addr();
    let ticket = {
        let all = EVERYONE.get().lock().unwrap_or_else(PoisonError::into_inner);
        let of_device = all.iter().filter(|(line, _)| line.contains(&address));
        engine::ticket(of_device.map(|(_, queue)| queue))
    };
    ticket.wait();
    memory::sweep();
}

impl QueueApi for Cpu {
    fn queue_create(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        properties: Option<&ur_queue_properties_t>,
    ) -> Result<Owned<Queue>> {
        use ur_queue_flags_t as F;
        context.check(device)?;
        properties.map_or(Ok(()), check)?;
        let flags = properties.map_or(F::default(), |p| p.flags);
        let nice = match () {
            () if flags.contains(F::PRIORITY_LOW) => STEP,
            () if flags.contains(F::PRIORITY_HIGH) => -STEP,
            () => 0,
        };
        let engine = engine::Queue::new(
            context.as_handle().addr(),
            flags.contains(F::OUT_OF_ORDER_EXEC_MODE_ENABLE),
            flags.contains(F::PROFILING_ENABLE),
        )
        .nice(nice);
        let (context, device) = (context.own()?, device.own()?);
        note(&device, engine.watch());
        Ok(Owned::new(Queue { context, device, flags, engine, stand: Arc::default() }))
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
            ur_queue_info_t::EMPTY => answer.bool(queue.engine.is_idle()),
            ur_queue_info_t::SIZE => Err(Error::new(
                ErrorCode::InvalidQueue,
                "only queues made with ON_DEVICE have a size",
            )),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a queue of the CPU has no answer to {name:?}"),
            )),
        }
    }
    fn queue_get_native_handle(
        queue: Borrowed<'_, Queue>,
        _desc: Option<&ur_queue_native_desc_t>,
    ) -> Result<ur_native_handle_t> {
        own_handle::of(&queue)
    }
    fn queue_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        device: Option<Borrowed<'_, Device>>,
        _properties: Option<&ur_queue_native_properties_t>,
    ) -> Result<Owned<Queue>> {
        let queue: Owned<Queue> = own_handle::find(native)?;
        own_handle::check_context(&queue.context, &context)?;
        match device {
            Some(device) if !queue.device.same(&device) => Err(Error::new(
                ErrorCode::InvalidDevice,
                "the native handle is that of a queue of another device",
            )),
            _ => Ok(queue),
        }
    }
    fn queue_finish(queue: Owned<Queue>) -> Result<()> {
        if queue.stand.is_active() {
            return Err(Error::new(
                ErrorCode::GraphCaptureUnsupported,
                "the queue records commands, which run nowhere: end the capture first",
            ));
        }
        let finished = queue.engine.finish();
        memory::sweep();
        finished
    }
    fn queue_flush(queue: Borrowed<'_, Queue>) -> Result<()> {
        queue.engine.flush()
    }
}
