//! Streams, and the points that mark the end of their commands.
use crate::{Error, NativeHandle, Result, Status, StreamRequest, Submission, Times, Types};
use std::{
    any::Any,
    sync::Arc,
    time::{Duration, Instant},
};
use ur_ipc::{Arrived, Payload, Remote};

/// How processes share events of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventSharing {
    /// Not at all.
    None,
    /// Streams of the device write words in memory that processes share, and wait for them:
    /// [`Wait::Word`](crate::Wait::Word) and [`Signal::Word`](crate::Signal::Word). The core does everything else.
    Words,
    /// The driver itself has events that processes share: [`Streams::reusable`], [`Streams::export_point`] and
    /// [`Streams::open_point`].
    Points,
}
/// A stream that was made from a native handle, and its device.
pub type AdoptedStream<D> = (<D as Types>::Device, <D as Types>::Stream);
/// Called when a point has reached the requested status.
pub type Notification = Box<dyn FnOnce() + Send>;

/// A driver's streams and points. A stream executes commands; a point is the end of one, or an event that commands
/// signal repeatedly.
///
/// No method blocks except [`wait`](Self::wait), [`finish`](Self::finish) and [`finish_device`](Self::finish_device), and [`submit`](Self::submit) for
/// [`Completion::Done`](crate::Completion::Done) and [`Command::Native`](crate::Command::Native). Methods may be called
/// from any thread, also concurrently.
///
/// All return the driver's error, with the kind that fits best and the driver's status. A method that returns other
/// errors documents them.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Streams: Types {
    /// Whether points call back by themselves ([`notify`](Self::notify)). Otherwise a thread of the core polls them.
    const NOTIFIES: bool = false;
    /// Whether streams and points have native handles. If not, the core uses objects of its own as handles, and does
    /// not submit [`Command::Native`](crate::Command::Native).
    const HAS_NATIVE_HANDLES: bool = false;
    /// Whether streams hand what [`submit_keeping`](Self::submit_keeping) is given to the commands. Otherwise the core keeps
    /// it until the stream has come so far.
    const KEEPS_OBJECTS: bool = false;
    /// Whether recorded commands wait for points even in in-order streams.
    const ORDERS_BY_POINTS: bool = false;
    /// Whether code outside this project can capture the commands of streams, so that they do not run: see
    /// [`is_captured`](Self::is_captured).
    const CAN_BE_CAPTURED: bool = false;
    /// Whether hints concern all memory, and not only memory that the driver migrates.
    const HINTS_CONCERN_ALL: bool = false;
    /// The number by which callers tell what native handles of streams are, where a driver has several kinds: of Level
    /// Zero 1 is an immediate command list, and 0 a command queue.
    const STREAM_FORM: Option<i32> = None;
    /// An event of another process as it was received, before it is opened in a context: see
    /// [`open_point`](Self::open_point).
    type ArrivedPoint: Send + Sync + 'static;

    /// Returns [`ErrorKind::Uninitialized`](crate::ErrorKind::Uninitialized) in a forked child of a process, if the
    /// driver only works in the process that initialised it.
    fn check_process() -> Result<()> {
        Ok(())
    }
    /// Waits for all commands submitted so far to streams of a device and of its parts.
    fn finish_device(device: &Self::Device) -> Result<()>;
    /// How many engines can be selected; [`StreamRequest::engine`] is less than this.
    fn engines(device: &Self::Device) -> Result<u32> {
        let _ = device;
        Ok(1)
    }
    /// How processes share events of the device.
    fn event_sharing(device: &Self::Device) -> EventSharing;

    /// [`Capability::OrderedAllocation`](crate::Capability::OrderedAllocation): whether streams of the device allocate and
    /// free memory in their order. Otherwise the core does not submit [`Command::AllocAsync`](crate::Command::AllocAsync).
    fn allocates(device: &Self::Device) -> Result<bool> {
        let _ = device;
        Ok(false)
    }

    /// Makes a stream of the device. When it is dropped, it completes in the background what was submitted.
    fn stream(
        context: &Self::Context,
        device: &Self::Device,
        request: StreamRequest,
    ) -> Result<Self::Stream>;
    /// Submits a command, and returns its point if one is requested. Allocates nothing if the device permits that.
    ///
    /// If it fails, nothing was submitted, unless the submission waits for the command: then the error may be the
    /// command's own. Returns [`ErrorKind::DependencyFailed`](crate::ErrorKind::DependencyFailed) if something that the
    /// command waits for is known to have failed, and once if an earlier command of the stream has and neither a submission nor
    /// [`finish`](Self::finish) has said so.
    fn submit(
        stream: &Self::Stream,
        submission: &Submission<'_, Self>,
    ) -> Result<Option<Self::Point>>;
    /// Submits a command with which an object is kept until it is complete: see [`KEEPS_OBJECTS`](Self::KEEPS_OBJECTS).
    fn submit_keeping(
        stream: &Self::Stream,
        submission: &Submission<'_, Self>,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Result<Option<Self::Point>> {
        let _ = (stream, submission, kept);
        Error::unsupported("objects that commands keep")
    }
    /// Whether commands that are submitted now are captured by code outside this project.
    fn is_captured(stream: &Self::Stream) -> Result<bool> {
        let _ = stream;
        Ok(false)
    }
    /// Checks that the stream can wait for a word now: not if it [is captured](Self::is_captured), even if the word has its
    /// value already.
    fn check_word_wait(stream: &Self::Stream) -> Result<()> {
        let _ = stream;
        Ok(())
    }
    /// Sends the commands that the stream has collected to the device.
    fn flush(stream: &Self::Stream) -> Result<()> {
        let _ = stream;
        Ok(())
    }
    /// The application has released the queue: sends what the stream has collected. From now on nothing is enqueued, and a
    /// native stream that the application owns is not used any more, because it may be destroyed; points of the stream's
    /// commands may keep this object.
    fn leave(stream: &Self::Stream) -> Result<()> {
        Self::flush(stream)
    }
    /// Whether everything submitted so far is final. Never waits.
    fn is_idle(stream: &Self::Stream) -> Result<bool>;
    /// Waits until everything submitted so far is final.
    ///
    /// Returns the error of a failed command, once for each failure that no point reports.
    fn finish(stream: &Self::Stream) -> Result<()>;

    /// The status of a point, without waiting. If its stream has only collected the command, it is sent to the device.
    fn status(point: &Self::Point) -> Result<Status>;
    /// Checks that its command ever runs.
    ///
    /// Returns [`ErrorKind::InvalidOperation`](crate::ErrorKind::InvalidOperation) for one that code outside this project
    /// captured.
    fn check_runs(point: &Self::Point) -> Result<()> {
        let _ = point;
        Ok(())
    }
    /// Whether the point is known to be complete without a call to the driver; an entry that waits only for it then
    /// returns at once.
    fn is_settled(point: &Self::Point) -> bool {
        let _ = point;
        false
    }
    /// Waits until the point is final or the deadline passes; returns whether it is final. A thread that waits long
    /// sleeps. The command is sent to the device first if it has only been collected.
    ///
    /// Returns an error if the command failed: [`ErrorKind::DependencyFailed`](crate::ErrorKind::DependencyFailed)
    /// unless the driver itself failed.
    fn wait(point: &Self::Point, deadline: Option<Instant>) -> Result<bool> {
        if let Some(deadline) = deadline {
            // Looks at the point again and again.
            while !Self::status(point)?.is_final() {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(false);
                }
                std::thread::sleep(left.min(Duration::from_micros(100)));
            }
        }
        Self::wait_until_final(point).map(|()| true)
    }
    /// [`wait`](Self::wait) without a deadline: what drivers implement instead that wait without one only.
    fn wait_until_final(point: &Self::Point) -> Result<()> {
        let _ = point;
        Error::unsupported("waits for points")
    }
    /// When its command was submitted, began and ended; `None` without a [`Profile`](crate::Profile).
    fn times(point: &Self::Point) -> Result<Option<Times>>;
    /// [`NOTIFIES`](Self::NOTIFIES): calls `call` once the point has at least the status `at`, on any thread; on the
    /// calling thread if it has it already. A failure counts as beyond every other status.
    fn notify(point: &Self::Point, at: Status, call: Notification) -> Result<()> {
        let _ = (point, at, call);
        Error::unsupported("notifications")
    }

    /// Makes a point that is complete, and that [`Command::Signal`](crate::Command::Signal) signals. Other processes
    /// can open it if it `is_shareable` ([`EventSharing::Points`]). `None` if the driver has no such points: then the
    /// core keeps the point of the latest signal, and calls no other method of this trait for such points.
    ///
    /// A wait for such a point waits for its latest signal at that time.
    fn reusable(
        context: &Self::Context,
        device: &Self::Device,
        is_shareable: bool,
    ) -> Result<Option<Self::Point>> {
        let _ = (context, device, is_shareable);
        Ok(None)
    }
    /// The latest signal so far of such a point, as a separate point that later signals do not change; `None` if that
    /// signal is complete.
    fn latest(point: &Self::Point) -> Result<Option<Self::Point>> {
        let _ = point;
        Error::unsupported("events that are signalled again")
    }
    /// [`EventSharing::Points`]: the payload with which another process opens such a point.
    fn export_point(point: &Self::Point) -> Result<Payload> {
        let _ = point;
        Error::unsupported("events that processes share")
    }
    /// [`EventSharing::Points`]: receives an event of another process. `ur_ipc` has verified what can be verified
    /// through the kernel. Everything else in it is only claimed by the exporter; returns
    /// [`ErrorKind::InvalidValue`](crate::ErrorKind::InvalidValue) if it is inconsistent.
    fn arrived_point(arrived: Arrived) -> Result<Self::ArrivedPoint> {
        let _ = arrived;
        Error::unsupported("events of other processes")
    }
    /// [`EventSharing::Points`]: opens the event. The exporter keeps it while `arrived` exists; `arrived` also tells
    /// whether the exporter is alive.
    fn open_point(
        context: &Self::Context,
        device: &Self::Device,
        arrived: Remote<Self::ArrivedPoint>,
    ) -> Result<Self::Point> {
        let _ = (context, device, arrived);
        Error::unsupported("events of other processes")
    }

    /// [`HAS_NATIVE_HANDLES`](Self::HAS_NATIVE_HANDLES): the native handle of a stream. For several native streams that
    /// act as one it is the first, ordered after everything that was submitted.
    fn native_stream(stream: &Self::Stream) -> Result<NativeHandle> {
        let _ = stream;
        Error::unsupported("native handles of queues")
    }
    /// Wraps a native stream that the application made, for the device `wished`, or else for that of the devices to
    /// which it belongs. If it `is_owned`, it is destroyed with the object; otherwise the application keeps it.
    fn adopt_stream(
        context: &Self::Context,
        (devices, wished): (&[Self::Device], Option<&Self::Device>),
        handle: NativeHandle,
        is_owned: bool,
        request: StreamRequest,
    ) -> Result<AdoptedStream<Self>> {
        let _ = (context, devices, wished, handle, is_owned, request);
        Error::unsupported("queues made of native handles")
    }
    /// Whether commands of a stream over one of the application's may overtake each other.
    fn is_out_of_order(stream: &Self::Stream) -> bool {
        let _ = stream;
        false
    }
    /// The native handle of the end of a command, or of an event that is signalled repeatedly.
    fn native_point(point: &Self::Point) -> Result<NativeHandle> {
        let _ = point;
        Error::unsupported("native handles of events")
    }
    /// Wraps a native event that the application made; the handle is not 0. Ownership is as for
    /// [`adopt_stream`](Self::adopt_stream).
    fn adopt_point(
        context: &Self::Context,
        devices: &[Self::Device],
        handle: NativeHandle,
        is_owned: bool,
    ) -> Result<Self::Point> {
        let _ = (context, devices, handle, is_owned);
        Error::unsupported("events made of native handles")
    }
}
