//! Queues as C knows them. Taking and running commands is the engine's, what the commands are
//! `enqueue.rs`'s.
use super::{Context, Cpu, Device, allocation, engine};
use ur_adapter::{
    api::QueueApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_sys::{ur_queue_flags_t, ur_queue_info_t, ur_queue_properties_t};

/// What `ur_queue_handle_t` points at.
#[derive(Debug)]
pub struct Queue {
    context: Owned<Context>,
    device: Owned<Device>,
    flags: ur_queue_flags_t,
    engine: engine::Queue,
}

impl Queue {
    /// The context it was made for.
    pub fn context(&self) -> &Owned<Context> {
        &self.context
    }
    pub(super) fn engine(&self) -> &engine::Queue {
        &self.engine
    }
}
impl Drop for Queue {
    fn drop(&mut self) {
        allocation::sweep();
    }
}

/// # Errors
/// `INVALID_QUEUE_PROPERTIES` for flags that contradict each other or that no CPU queue has.
fn check(flags: ur_queue_flags_t) -> Result<()> {
    use ur_queue_flags_t as F;
    let refused = |why| Err(Error::new(ErrorCode::InvalidQueueProperties, why));
    if flags.contains(F::PRIORITY_LOW | F::PRIORITY_HIGH) {
        return refused("a queue has a low priority or a high one, not both");
    }
    if flags.contains(F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE) {
        return refused("a queue submits in batches or immediately, not both");
    }
    if flags.intersects(F::ON_DEVICE | F::ON_DEVICE_DEFAULT) {
        return refused("this device has no queues of its own: leave ON_DEVICE out");
    }
    Ok(())
}

impl QueueApi for Cpu {
    fn queue_create(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        properties: Option<&ur_queue_properties_t>,
    ) -> Result<Owned<Queue>> {
        context.check(device)?;
        let flags = properties.map_or(ur_queue_flags_t::default(), |p| p.flags);
        check(flags)?;
        let engine = engine::Queue::new(
            context.as_handle().addr(),
            flags.contains(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE),
            flags.contains(ur_queue_flags_t::PROFILING_ENABLE),
        );
        let (context, device) = (context.own()?, device.own()?);
        Ok(Owned::new(Queue { context, device, flags, engine }))
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
    fn queue_finish(queue: Owned<Queue>) -> Result<()> {
        let finished = queue.engine.finish();
        allocation::sweep();
        finished
    }
    fn queue_flush(queue: Borrowed<'_, Queue>) -> Result<()> {
        queue.engine.flush()
    }
}
