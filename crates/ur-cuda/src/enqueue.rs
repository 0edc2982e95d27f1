//! How commands get into the queues of this driver; what is put into a stream is `submission.rs`'s.
use super::{
    Device, Event, Family, Mem, Queue, UsmPool,
    driver::Dialect,
    event::{Point, Times},
    image::Pixels,
    memory::{Allocation, Freeing},
    native::stream::Stream,
    submission::{Made, Submission},
    usm_async,
};
use std::sync::Arc;
use ur_adapter::{
    command::Report,
    error::{ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_core::{
    command::{InOrder, Ready, TakesCommands},
    memory::allocation::Usm,
    profiling::Profile,
};
use ur_hal::{Address, Order};
use ur_sys::ur_command_t;

/// A barrier that signals an event of C's.
fn signal<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    events: &[Borrowed<'_, Event<D>>],
    signalled: &Event<D>,
) -> Result<()> {
    let profiled = signalled.check_signal()? || queue.is_profiling();
    let device = queue.device();
    let on = device.enter()?;
    let command = ur_command_t::EVENTS_WAIT_WITH_BARRIER;
    let (report, profile) = (Report::None, Profile::Off);
    let submission = Submission { command, order: Order::Both, report, profile };
    if let Some(shared) = signalled.as_shared() {
        queue.work().check_capture(
            &on,
            "the signal of an event that processes share, each replay of which would write the same old \
             value,",
        )?;
        let prepared = shared.prepare(&queue)?;
        let put = submission.put(queue, events, |_| Ok(()), |stream| prepared.write(stream));
        put?;
        return prepared.publish();
    }
    let is_captured = queue.work().is_capturing(&on)?;
    let end = device.events().take(&on, profiled)?;
    let mut times = None;
    let body = |stream: &Stream<D>| {
        if profiled {
            times = Some(Times::begin(device, &on, stream, Profile::Instant)?);
        }
        end.record(stream)
    };
    submission.put(queue, events, body, |_| Ok(()))?;
    signalled.replace(match is_captured {
        true => Point::captured(end),
        false => Point::new(end, times, queue.work().open_debts()),
    });
    Ok(())
}

impl<D: Dialect> TakesCommands for Family<D> {
    type Known = Allocation<D>;
    fn is_managed(at: Address) -> bool {
        Allocation::<D>::find(at.into()).is_some_and(|found| found.usm() == Usm::Shared)
    }
    fn buffer_at(device: &Owned<Device<D>>, buffer: &Mem<D>) -> Result<Address> {
        let at = buffer.storage().address(device)? as usize + buffer.origin();
        Address::new(at).ok_or_else(|| ErrorCode::InvalidMemObject.into())
    }
    fn image_at<'m>(device: &Owned<Device<D>>, image: &'m Mem<D>) -> Result<&'m Arc<Pixels<D>>> {
        image.storage().pixels(device)
    }
    fn submit(
        queue: Borrowed<'_, Queue<D>>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event<D>>],
        report: Report,
    ) -> Made<D> {
        let (command, order) = (ready.name, ready.order);
        let profile = ready.profile(queue.profile());
        let device = queue.device();
        let body = |stream: &Stream<D>| {
            for (buffer, writes) in ready.buffers() {
                buffer.storage().at(device, stream, writes)?;
            }
            stream.execute(&ready.command, device.number())
        };
        Submission { command, order, report, profile }.put(queue, events, body, |_| Ok(()))
    }
    fn signal(
        queue: Borrowed<'_, Queue<D>>,
        events: &[Borrowed<'_, Event<D>>],
        signalled: Borrowed<'_, Event<D>>,
    ) -> Result<()> {
        signal(queue, events, &signalled)
    }
    fn allocate_in_order(
        usm: Usm,
        queue: Borrowed<'_, Queue<D>>,
        pool: Borrowed<'_, UsmPool<D>>,
        size: usize,
        events: &[Borrowed<'_, Event<D>>],
        report: Report,
    ) -> Result<Option<InOrder<Event<D>>>> {
        usm_async::allocate(usm, queue, pool, size, events, report)
    }
    fn free_in_order(
        queue: Borrowed<'_, Queue<D>>,
        freeing: Freeing<D>,
        events: &[Borrowed<'_, Event<D>>],
        report: Report,
    ) -> Made<D> {
        usm_async::free(queue, freeing, events, report)
    }
    fn begin_native(
        queue: Borrowed<'_, Queue<D>>,
        barrier: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event<D>>],
    ) -> Result<()> {
        Self::submit(queue, barrier, events, Report::None)?;
        let on = queue.device().enter()?;
        queue.work().keep_first_behind_barrier(&on)
    }
}
