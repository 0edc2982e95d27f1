//! Streams and points of CUDA and HIP, of which the core makes queues and events. An in-order stream is one
//! driver stream. An out-of-order one has several, called lanes, which are used in turn (`work.rs`). Commands
//! are enqueued in `submission.rs`; a point is a driver event (`point.rs`).
//!
//! The effect of the flags of a queue:
//!
//! | Flags | |
//! | --- | --- |
//! | `OUT_OF_ORDER_EXEC_MODE_ENABLE`, `PROFILING_ENABLE` | as documented |
//! | `PRIORITY_LOW`, `PRIORITY_HIGH` | the least and the greatest priority of streams |
//! | `USE_DEFAULT_STREAM` | an in-order queue is the driver's default stream |
//! | `SYNC_WITH_DEFAULT_STREAM` | its streams are ordered with the default stream |
//! | `DISCARD_EVENTS`, `SUBMISSION_BATCHED`, `SUBMISSION_IMMEDIATE`, `LOW_POWER_EVENTS_SUPPORT_EXP` | hints without effect |
//! | `ON_DEVICE`, `ON_DEVICE_DEFAULT` | refused: `INVALID_QUEUE_PROPERTIES` |
use super::{
    DriverDevice, Family,
    context::DriverContext,
    device,
    driver::{Dialect, RawEvent, RawStream},
    native::{
        event::NativeEvent,
        stream::{self as native, StreamHome, taken},
    },
    point::Point,
    shared_words::{self, SIGNALS_WORDS, WAITS_FOR_WORDS, Word},
    submission::put,
    usm_async,
    work::{Lanes, QueueState},
};
use std::{convert::Infallible, sync::Arc};
use ur_hal::{
    AdoptedStream, Command, Completion, DefaultStream, Error, ErrorKind, EventSharing, NativeCall,
    NativeHandle, Priority, Profile, Result, Signal, Status, StreamRequest, Streams, Submission,
    Times, repeated,
};
use ur_ipc::arena::{Counter, protocol::word_of};

/// Creates a stream object over an existing driver stream, or with lanes of its own.
fn make<D: Dialect>(
    context: &DriverContext<D>,
    device: &Arc<DriverDevice<D>>,
    request: StreamRequest,
    stream: Option<native::Stream<D>>,
) -> Result<Lanes<D>> {
    let (least, greatest) = device.enter()?.priorities()?;
    let priority = match request.priority {
        Priority::Low => least,
        Priority::High => greatest,
        Priority::Normal => 0,
    };
    let in_step = request.default_stream == Some(DefaultStream::InStep);
    let is_in_order = !request.is_out_of_order || stream.is_some();
    let kind = (priority, in_step, is_in_order);
    let work = Arc::new(QueueState::make(device, request.context, kind, stream)?);
    D::statics().queues_now.add(&work);
    Ok(Lanes { work, context: Arc::clone(context) })
}

/// Enqueues a write of a counter's value behind the dependencies of the submission. If this fails, waiters of
/// the value do not hang: the next write exceeds it.
fn signal<D: Dialect>(
    work: &QueueState<D>,
    what: &Submission<'_, Family<D>>,
    counter: &Arc<Counter>,
    value: u64,
) -> Result<()> {
    let on = work.device.enter()?;
    work.check_capture(&on, SIGNALS_WORDS)?; // `put` asks again: the capture may begin meanwhile
    let word = Word::of_counter(work, &on, counter)?;
    let taken_before = taken();
    let written = put(work, what, |stream| stream.write_value(word.at(), word_of(value)));
    let is_owed = taken() != taken_before; // also if the driver refused what follows the write
    word.keep(work, is_owed.then_some(counter)); // after the write was enqueued
    shared_words::watch_for_loss::<D>();
    written.map(drop)
}
/// Lets the application enqueue commands of its own on the first lane, between two barriers. The device's context is current
/// meanwhile, which commands that name no context go to.
fn call_native<D: Dialect>(
    work: &QueueState<D>,
    what: &Submission<'_, Family<D>>,
    call: NativeCall<'_>,
) -> Result<Option<Point<D>>> {
    let _on = work.device.enter()?;
    let before = Submission { completion: Completion::None, profile: Profile::Off, ..*what };
    put(work, &before, |_| Ok(()))?;
    work.keep_first_behind_barrier()?;
    call.call()?;
    // It has been called, and must not be left without an end.
    repeated(|| put(work, &Submission { waits: &[], ..*what }, |_| Ok(())))
}
/// Enqueues a command in a lane.
#[inline]
fn submit<D: Dialect>(
    stream: &Lanes<D>,
    what: &Submission<'_, Family<D>>,
) -> Result<Option<Point<D>>> {
    let work = &*stream.work;
    match *what.command {
        Command::AllocAsync { request, made } => {
            usm_async::allocate((work, &stream.context), what, request.bytes, made)
        }
        Command::FreeAsync(memory) => usm_async::free(work, what, memory),
        Command::Native(call) => call_native(work, what, call),
        Command::Signal(Signal::Word(counter, value)) => {
            signal(work, what, counter, value).map(|()| None)
        }
        ref command => put(work, what, |stream| stream.execute(command, work.device.number())),
    }
}

/// `CU_STREAM_PER_THREAD`: a different stream on each thread.
const PER_THREAD: usize = 2;
/// Stream handles up to this number are default streams of the current context.
const DEFAULTS: usize = 2;

/// The device that an adopted stream belongs to: the `wished` one, or if there is none any device of the
/// context.
///
/// # Errors
/// `INVALID_VALUE` for a stream of another context, and for the per-thread default stream.
fn whose<D: Dialect>(
    stream: &native::Stream<D>,
    all: &[Arc<DriverDevice<D>>],
    wished: Option<&Arc<DriverDevice<D>>>,
) -> Result<Arc<DriverDevice<D>>> {
    let number = stream.raw().map_or(0, RawStream::addr);
    if number == PER_THREAD {
        return Err(Error::new(
            ErrorKind::InvalidValue,
            "2 (CU_STREAM_PER_THREAD) names another stream on each thread that uses it, and a queue may be \
             used on any: create a stream, and make the queue of that",
        ));
    }
    let first = wished.unwrap_or(&all[0]);
    let on = first.enter()?;
    let home = if number <= DEFAULTS { None } else { stream.home()? };
    drop(on);
    let Some(home) = home else { return Ok(Arc::clone(first)) };
    if home.is_of(first)? {
        return Ok(Arc::clone(first));
    }
    let others = all.iter().filter(|_| wished.is_none());
    for device in others {
        if home.is_of(device)? {
            return Ok(Arc::clone(device));
        }
    }
    let why = match home {
        StreamHome::Context(_) => {
            "the stream belongs to another context than the primary one of this device: name the \
                                   device whose primary context it was made in, or make one in it \
                                   (cuDevicePrimaryCtxRetain)"
                .into()
        }
        StreamHome::Device(number) => format!(
            "the stream was made on device {number} of {}: name that device, with a context that has it, or make the \
             stream on this one",
            D::NAME
        ),
    };
    Err(Error::new(ErrorKind::InvalidValue, why))
}

impl<D: Dialect> Streams for Family<D> {
    const CAN_BE_CAPTURED: bool = true;
    const HAS_NATIVE_HANDLES: bool = true;
    type ArrivedPoint = Infallible;
    fn check_process() -> Result<()> {
        device::check_fork::<D>()
    }
    fn finish_device(device: &Arc<DriverDevice<D>>) -> Result<()> {
        super::work::wait_for_device(device)
    }
    fn event_sharing(device: &Arc<DriverDevice<D>>) -> EventSharing {
        match shared_words::is_supported(device) {
            Ok(true) => EventSharing::Words,
            _ => EventSharing::None,
        }
    }
    fn allocates(device: &Arc<DriverDevice<D>>) -> Result<bool> {
        device.has_pools()
    }
    fn stream(
        context: &DriverContext<D>,
        device: &Arc<DriverDevice<D>>,
        request: StreamRequest,
    ) -> Result<Lanes<D>> {
        let is_default = request.default_stream == Some(DefaultStream::Is);
        let stream = is_default.then(|| native::Stream::adopted(None, false));
        make(context, device, request, stream)
    }
    #[inline]
    fn submit(stream: &Lanes<D>, submission: &Submission<'_, Self>) -> Result<Option<Point<D>>> {
        submit(stream, submission)
    }
    fn is_captured(stream: &Lanes<D>) -> Result<bool> {
        stream.work.is_captured()
    }
    fn check_word_wait(stream: &Lanes<D>) -> Result<()> {
        let work = &*stream.work;
        work.check_capture(&work.device.enter()?, WAITS_FOR_WORDS)
    }
    /// Does nothing but check the process: commands are passed to the driver at submission.
    fn flush(stream: &Lanes<D>) -> Result<()> {
        stream.work.device.context()?;
        Ok(())
    }
    fn leave(stream: &Lanes<D>) -> Result<()> {
        stream.work.leave_borrowed();
        Ok(())
    }
    fn is_idle(stream: &Lanes<D>) -> Result<bool> {
        stream.work.is_idle()
    }
    fn finish(stream: &Lanes<D>) -> Result<()> {
        stream.work.finish()
    }
    fn status(point: &Point<D>) -> Result<Status> {
        point.status()
    }
    fn check_runs(point: &Point<D>) -> Result<()> {
        point.check_runs()
    }
    #[inline]
    fn is_settled(point: &Point<D>) -> bool {
        point.is_settled() && device::check_fork::<D>().is_ok()
    }
    fn wait_until_final(point: &Point<D>) -> Result<()> {
        point.wait()
    }
    fn times(point: &Point<D>) -> Result<Option<Times>> {
        point.times()
    }
    /// The driver stream; of an out-of-order queue the first lane.
    fn native_stream(stream: &Lanes<D>) -> Result<NativeHandle> {
        let first = stream.work.lend_first()?;
        Ok(NativeHandle(first.raw().map_or(0, RawStream::addr) as u64))
    }
    /// An in-order stream over a driver stream; 0 is the default stream.
    fn adopt_stream(
        context: &DriverContext<D>,
        (devices, wished): (&[Arc<DriverDevice<D>>], Option<&Arc<DriverDevice<D>>>),
        handle: NativeHandle,
        is_owned: bool,
        request: StreamRequest,
    ) -> Result<AdoptedStream<Self>> {
        let raw = RawStream::from_addr(handle.0 as usize);
        let stream = native::Stream::adopted(raw, is_owned);
        let device = whose(&stream, devices, wished)?;
        let stream = make(context, &device, request, Some(stream))?;
        Ok((device, stream))
    }
    fn native_point(point: &Point<D>) -> Result<NativeHandle> {
        Ok(NativeHandle(point.raw().addr() as u64))
    }
    fn adopt_point(
        _: &DriverContext<D>,
        devices: &[Arc<DriverDevice<D>>],
        handle: NativeHandle,
        is_owned: bool,
    ) -> Result<Point<D>> {
        let raw = RawEvent::from_addr(handle.0 as usize).ok_or(ErrorKind::InvalidValue)?;
        Ok(Point::Native(NativeEvent::adopted(raw, is_owned), Arc::clone(&devices[0])))
    }
}
