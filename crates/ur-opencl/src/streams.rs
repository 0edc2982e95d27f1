//! Streams and points of OpenCL, of which the core makes queues and events. A stream is a queue of the driver's (`lane.rs`), a
//! point an event of it (`point.rs`); what processes share are words of the arena.
//!
//! Of the flags of a queue, out-of-order and profiling are as documented. Priorities, default streams and whether commands are
//! collected are hints, of which OpenCL makes nothing.
use super::{
    DriverDevice, OpenCl,
    cl::*,
    context::DriverContext,
    driver::{RawEvent, RawQueue},
    lane::Stream,
    native::{
        own::Tells,
        queue::{NativeQueue, QueueKind},
        work::Ability,
    },
    platform, point,
    point::End,
};
use std::{convert::Infallible, sync::Arc, time::Instant};
use ur_adapter::error::ErrorCode;
use ur_hal::{
    AdoptedStream, Command, Completion, Error, ErrorKind, EventSharing, NativeCall, NativeHandle,
    Profile, Signal, Status, StreamRequest, Streams, Submission, Times,
};
use ur_sys::ur_queue_flags_t;

fn make(
    context: &DriverContext,
    device: &Arc<DriverDevice>,
    request: StreamRequest,
    native: NativeQueue,
) -> Stream {
    let can = Ability { reach: context.reach(), ..device.facts().can };
    Stream::new(request.context, device, (native, can))
}
/// Lets the application put commands of its own into the driver's queue, between two barriers.
fn call_native(
    stream: &Stream,
    what: &Submission<'_, OpenCl>,
    call: NativeCall<'_>,
) -> ur_hal::Result<Option<End>> {
    let barrier = Submission { command: &Command::Barrier, ..*what };
    let (completion, profile) = (Completion::None, Profile::Off);
    stream.lane().put(&Submission { completion, profile, ..barrier })?;
    call.call()?;
    stream.lane().put(&Submission { waits: &[], ..barrier })
}

impl Streams for OpenCl {
    const HAS_NATIVE_HANDLES: bool = true;
    /// All memory is where it is used.
    const HINTS_CONCERN_ALL: bool = true;
    type ArrivedPoint = Infallible;
    fn check_process() -> ur_hal::Result<()> {
        Ok(platform::check_process()?)
    }
    fn finish_device(device: &Arc<DriverDevice>) -> ur_hal::Result<()> {
        Ok(super::lane::wait_for_device(device)?)
    }
    fn event_sharing(_: &Arc<DriverDevice>) -> EventSharing {
        EventSharing::Words
    }
    fn stream(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        request: StreamRequest,
    ) -> ur_hal::Result<Stream> {
        platform::check_process()?;
        let StreamRequest { is_out_of_order, is_profiled, .. } = request;
        let kind = QueueKind { is_in_order: !is_out_of_order, has_times: is_profiled };
        let native = NativeQueue::new(context.raw(), device.raw(), kind, context.extensions())?;
        Ok(make(context, device, request, native))
    }
    fn submit(stream: &Stream, what: &Submission<'_, Self>) -> ur_hal::Result<Option<End>> {
        match *what.command {
            Command::Native(call) => call_native(stream, what, call),
            Command::Signal(Signal::Word(counter, value)) => {
                stream.lane().signal(what, (counter, value)).map(|()| None)
            }
            _ => stream.lane().put(what),
        }
    }
    fn flush(stream: &Stream) -> ur_hal::Result<()> {
        Ok(stream.lane().send(u64::MAX)?)
    }
    fn is_idle(stream: &Stream) -> ur_hal::Result<bool> {
        Self::check_process()?;
        Ok(stream.lane().is_idle())
    }
    fn finish(stream: &Stream) -> ur_hal::Result<()> {
        stream.lane().drain()?;
        stream.lane().take_failure().map_or(Ok(()), Err)
    }
    fn status(end: &End) -> ur_hal::Result<Status> {
        Self::check_process()?;
        Ok(end.status(None))
    }
    fn is_settled(end: &End) -> bool {
        end.is_settled() && platform::check_process().is_ok()
    }
    fn wait(end: &End, deadline: Option<Instant>) -> ur_hal::Result<bool> {
        Self::check_process()?;
        end.wait(deadline)
    }
    fn times(end: &End) -> ur_hal::Result<Option<Times>> {
        Self::check_process()?;
        Ok(end.times()?)
    }
    fn native_stream(stream: &Stream) -> ur_hal::Result<NativeHandle> {
        stream.lane().send(u64::MAX)?; // the application may wait in other queues for what it puts behind
        Ok(NativeHandle(stream.lane().native().raw().addr() as u64))
    }
    fn adopt_stream(
        context: &DriverContext,
        (devices, wished): (&[Arc<DriverDevice>], Option<&Arc<DriverDevice>>),
        handle: NativeHandle,
        is_owned: bool,
        request: StreamRequest,
    ) -> ur_hal::Result<AdoptedStream<Self>> {
        platform::check_process()?;
        let refused = |kind, why: &'static str| Err(Error::new(kind, why));
        let Some(raw) = RawQueue::from_addr(handle.0 as usize) else {
            return refused(ErrorKind::InvalidValue, "the native queue is null");
        };
        raw.check_context(CL_QUEUE_CONTEXT, context.raw(), ErrorCode::InvalidValue)?;
        let its = raw.number(CL_QUEUE_DEVICE)? as usize;
        let is_its = |one: &&Arc<DriverDevice>| one.raw().addr() == its;
        let found = match wished {
            Some(device) => Some(device).filter(is_its),
            None => devices.iter().find(is_its),
        };
        let Some(device) = found else {
            return refused(ErrorKind::InvalidDevice, "the native queue is of another device");
        };
        let native = NativeQueue::adopted(raw, context.raw(), is_owned, context.extensions())?;
        Ok((Arc::clone(device), make(context, device, request, native)))
    }
    fn is_out_of_order(stream: &Stream) -> bool {
        !stream.lane().native().is_in_order()
    }
    fn native_point(end: &End) -> ur_hal::Result<NativeHandle> {
        Ok(NativeHandle(end.event(None)?.raw().addr() as u64))
    }
    fn adopt_point(
        context: &DriverContext,
        _: &[Arc<DriverDevice>],
        handle: NativeHandle,
        is_owned: bool,
    ) -> ur_hal::Result<End> {
        let raw = RawEvent::from_addr(handle.0 as usize);
        Ok(point::adopted(context.raw(), raw, is_owned)?)
    }
}
/// What queues can be asked for.
pub(super) fn flags() -> ur_queue_flags_t {
    use ur_queue_flags_t as F;
    let hints =
        F::PRIORITY_LOW | F::PRIORITY_HIGH | F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE;
    F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::PROFILING_ENABLE | F::DISCARD_EVENTS | hints
}
