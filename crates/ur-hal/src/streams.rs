//! What a driver does with streams, and with the points that commands leave behind in them.
use crate::{Error, NativeHandle, Result, Status, StreamRequest, Submission, Times, Types};
use std::time::Instant;
use ur_ipc::{Arrived, Payload, Remote};

/// How processes share events of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventSharing {
    /// Not at all.
    None,
    /// Streams of the device write words that processes share, and wait for them: [`Wait::Word`](crate::Wait::Word) and
    /// [`Signal::Word`](crate::Signal::Word). Everything else about them is the core's.
    Words,
    /// The driver has events that processes share: [`Streams::reusable`], [`Streams::export_point`] and
    /// [`Streams::open_point`].
    Points,
}
/// A stream that was made of a native handle, and the device that it is of.
pub type AdoptedStream<D> = (<D as Types>::Device, <D as Types>::Stream);
/// Called when a point has come as far as somebody wishes.
pub type Notification = Box<dyn FnOnce() + Send>;

/// A driver's streams and points. A stream takes commands; a point is the end of one, or an event that commands signal
/// again and again.
///
/// No verb blocks but [`wait`](Self::wait) and [`finish`](Self::finish), and [`submit`](Self::submit) where
/// [`Completion::Done`](crate::Completion::Done) or [`Command::Native`](crate::Command::Native) say so. Verbs may be called
/// from any thread, also at the same time.
///
/// All return the driver's own failures, with the kind that fits best and the driver's status. A verb that returns
/// other failures documents them.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Streams: Types {
    /// Whether points call back by themselves ([`notify`](Self::notify)). Without it a thread of the core's looks at them.
    const NOTIFIES: bool = false;
    /// Whether streams and points have native handles. Without them objects of the core's stand for themselves, and
    /// [`Command::Native`](crate::Command::Native) is not submitted.
    const HAS_NATIVE_HANDLES: bool = false;
    /// What arrives of another process's event, before it is opened in a context: see [`open_point`](Self::open_point).
    type ArrivedPoint: Send + Sync + 'static;

    /// [`ErrorKind::Uninitialized`](crate::ErrorKind::Uninitialized) in a forked child of a process whose driver works in
    /// that process alone.
    fn check_process() -> Result<()> {
        Ok(())
    }
    /// How many engines there are to choose from: [`StreamRequest::engine`] is less.
    fn engines(device: &Self::Device) -> Result<u32> {
        let _ = device;
        Ok(1)
    }
    /// How processes share events of the device.
    fn event_sharing(device: &Self::Device) -> EventSharing;

    /// A stream of the device's. Dropped, it finishes in the background what was submitted.
    fn stream(
        context: &Self::Context,
        device: &Self::Device,
        request: StreamRequest,
    ) -> Result<Self::Stream>;
    /// Submits a command, and returns its point if one is wanted. Allocates nothing where the device can do without.
    ///
    /// On a failure nothing was submitted, except where the command is waited for: then it may be its own failure.
    /// [`ErrorKind::DependencyFailed`](crate::ErrorKind::DependencyFailed) if one of what it waits for is known to have
    /// failed.
    fn submit(
        stream: &Self::Stream,
        submission: &Submission<'_, Self>,
    ) -> Result<Option<Self::Point>>;
    /// Sends off what the stream has collected.
    fn flush(stream: &Self::Stream) -> Result<()> {
        let _ = stream;
        Ok(())
    }
    /// Whether everything submitted so far is over. Never waits.
    fn is_idle(stream: &Self::Stream) -> Result<bool>;
    /// Waits until everything submitted so far is over.
    ///
    /// Returns why a command failed, once for each failure that no point told of.
    fn finish(stream: &Self::Stream) -> Result<()>;

    /// How far it has come, at a glance. It is sent off, if its stream has only collected it.
    fn status(point: &Self::Point) -> Result<Status>;
    /// Whether it is seen to be complete without asking anybody: an entry that waits for it alone then returns at once.
    fn is_settled(point: &Self::Point) -> bool {
        let _ = point;
        false
    }
    /// Waits until it is over, or until the deadline; whether it is over. A thread that waits long sleeps. The point is
    /// sent off first.
    ///
    /// Returns why it failed, if it did: [`ErrorKind::DependencyFailed`](crate::ErrorKind::DependencyFailed) unless the
    /// driver itself failed.
    fn wait(point: &Self::Point, deadline: Option<Instant>) -> Result<bool>;
    /// When its command was submitted, began and ended; `None` without a [`Profile`](crate::Profile).
    fn times(point: &Self::Point) -> Result<Option<Times>>;
    /// [`NOTIFIES`](Self::NOTIFIES): makes the call once it is at least that far, on any thread; on this one if it is
    /// there already. A failure is past everything.
    fn notify(point: &Self::Point, at: Status, call: Notification) -> Result<()> {
        let _ = (point, at, call);
        Error::unsupported("notifications")
    }

    /// A point that is complete, and is signalled by [`Command::Signal`](crate::Command::Signal); other processes open
    /// it if it `is_shareable` ([`EventSharing::Points`]). `None` where the driver has none: then the core keeps the
    /// point of the latest signal, and nothing else of this trait about such points is called.
    ///
    /// A wait for such a point is one for its latest signal so far.
    fn reusable(
        context: &Self::Context,
        device: &Self::Device,
        is_shareable: bool,
    ) -> Result<Option<Self::Point>> {
        let _ = (context, device, is_shareable);
        Ok(None)
    }
    /// The latest signal so far of such a point, as a point of its own which later signals do not change; `None` if it
    /// has come.
    fn latest(point: &Self::Point) -> Result<Option<Self::Point>> {
        let _ = point;
        Error::unsupported("events that are signalled again")
    }
    /// [`EventSharing::Points`]: what another process opens such a point by.
    fn export_point(point: &Self::Point) -> Result<Payload> {
        let _ = point;
        Error::unsupported("events that processes share")
    }
    /// [`EventSharing::Points`]: what arrived of another process's. It was verified by `ur_ipc` as far as the kernel can
    /// say; everything else in it is the exporter's word, and [`ErrorKind::InvalidValue`](crate::ErrorKind::InvalidValue)
    /// what contradicts itself.
    fn arrived_point(arrived: Arrived) -> Result<Self::ArrivedPoint> {
        let _ = arrived;
        Error::unsupported("events of other processes")
    }
    /// [`EventSharing::Points`]: opens it. The exporter lends it as long as `arrived` lives, which also tells whether the
    /// exporter does.
    fn open_point(
        context: &Self::Context,
        device: &Self::Device,
        arrived: Remote<Self::ArrivedPoint>,
    ) -> Result<Self::Point> {
        let _ = (context, device, arrived);
        Error::unsupported("events of other processes")
    }

    /// [`HAS_NATIVE_HANDLES`](Self::HAS_NATIVE_HANDLES): the driver's own handle; of several streams that act as one, the
    /// first, behind everything that was submitted.
    fn native_stream(stream: &Self::Stream) -> Result<NativeHandle> {
        let _ = stream;
        Error::unsupported("native handles of queues")
    }
    /// A stream over one that the application made, for `wished` or else whichever of the devices it is of. It is
    /// destroyed with the object if it `is_owned`, and otherwise stays the application's.
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
    /// The driver's own handle of what marks the end of a command, or of an event that is signalled again and again.
    fn native_point(point: &Self::Point) -> Result<NativeHandle> {
        let _ = point;
        Error::unsupported("native handles of events")
    }
    /// A point over an event that the application made; not 0. As for [`adopt_stream`](Self::adopt_stream).
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
