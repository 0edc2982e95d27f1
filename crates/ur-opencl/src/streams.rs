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
use ur_hal::{
    AdoptedStream, Command, Completion, Error, ErrorKind, EventSharing, NativeCall, NativeHandle,
    Profile, Result, Signal, Status, StreamRequest, Streams, Submission, Times,
};

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
) -> Result<Option<End>> {
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
    fn check_process() -> Result<()> {
        platform::check_process()
    }
    fn finish_device(device: &Arc<DriverDevice>) -> Result<()> {
        super::lane::wait_for_device(device)
    }
    fn event_sharing(_: &Arc<DriverDevice>) -> EventSharing {
        EventSharing::Words
    }
    fn stream(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        request: StreamRequest,
    ) -> Result<Stream> {
        platform::check_process()?;
        let StreamRequest { is_out_of_order, is_profiled, .. } = request;
        let kind = QueueKind { is_in_order: !is_out_of_order, has_times: is_profiled };
        let native = NativeQueue::new(context.raw(), device.raw(), kind, context.extensions())?;
        Ok(make(context, device, request, native))
    }
    fn submit(stream: &Stream, what: &Submission<'_, Self>) -> Result<Option<End>> {
        match *what.command {
            Command::Native(call) => call_native(stream, what, call),
            Command::Signal(Signal::Word(counter, value)) => {
                stream.lane().signal(what, (counter, value)).map(|()| None)
            }
            _ => stream.lane().put(what),
        }
    }
    fn flush(stream: &Stream) -> Result<()> {
        stream.lane().send(u64::MAX)
    }
    fn is_idle(stream: &Stream) -> Result<bool> {
        Self::check_process()?;
        Ok(stream.lane().is_idle())
    }
    fn finish(stream: &Stream) -> Result<()> {
        stream.lane().drain()?;
        stream.lane().take_failure().map_or(Ok(()), Err)
    }
    fn status(end: &End) -> Result<Status> {
        Self::check_process()?;
        end.status(None)
    }
    fn is_settled(end: &End) -> bool {
        end.is_settled() && platform::check_process().is_ok()
    }
    fn wait(end: &End, deadline: Option<Instant>) -> Result<bool> {
        Self::check_process()?;
        end.wait(deadline)
    }
    fn times(end: &End) -> Result<Option<Times>> {
        Self::check_process()?;
        end.times()
    }
    fn native_stream(stream: &Stream) -> Result<NativeHandle> {
        stream.lane().send(u64::MAX)?; // the application may wait in other queues for what it puts behind
        Ok(NativeHandle(stream.lane().native().raw().addr() as u64))
    }
    fn adopt_stream(
        context: &DriverContext,
        (devices, wished): (&[Arc<DriverDevice>], Option<&Arc<DriverDevice>>),
        handle: NativeHandle,
        is_owned: bool,
        request: StreamRequest,
    ) -> Result<AdoptedStream<Self>> {
        platform::check_process()?;
        let refused = |kind, why: &'static str| Err(Error::new(kind, why));
        let Some(raw) = RawQueue::from_addr(handle.0 as usize) else {
            return refused(ErrorKind::InvalidValue, "the native queue is null");
        };
        raw.check_context(CL_QUEUE_CONTEXT, context.raw(), ErrorKind::InvalidValue)?;
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
    fn native_point(end: &End) -> Result<NativeHandle> {
        Ok(NativeHandle(end.event(None)?.raw().addr() as u64))
    }
    fn adopt_point(
        context: &DriverContext,
        _: &[Arc<DriverDevice>],
        handle: NativeHandle,
        is_owned: bool,
    ) -> Result<End> {
        let raw = RawEvent::from_addr(handle.0 as usize);
        point::adopted(context.raw(), raw, is_owned)
    }
}
