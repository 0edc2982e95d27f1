//! The trait that a backend implements.
use crate::*;
use std::time::Instant;
use ur_ipc::{Arrived, Payload};

/// A driver: devices, memory, streams, code. Verbs are functions of the type: a process has a driver once.
///
/// Objects go back to the driver when they are dropped. Dropping never waits and never panics; the core drops
/// an object only when no command uses it any more.
///
/// What concerns code is in [`Modules`], what concerns memory in [`Allocates`] and [`VirtualMemory`], access from
/// device to device in [`ReachesPeers`].
///
/// No verb blocks but [`wait`](Self::wait), [`finish`](Self::finish) and those of [`Modules`] that say so, and
/// [`submit`](Self::submit) where [`Completion::Awaited`] or [`Command::Native`] say so. Verbs may be called from any
/// thread, also at the same time. Those with a default belong to the [`Capability`] that is named beside them and are
/// called only where the device has it.
///
/// All return the driver's own failures, with the kind that fits best and the driver's status. A verb that returns
/// other failures documents them.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Driver:
    Allocates
    + ReachesPeers
    + VirtualMemory
    + Modules<Module = <Self as Types>::Module, Function = <Self as Types>::Function>
{
    /// What users call the driver.
    const NAME: &'static str;

    // Devices.

    /// All devices; none, rather than a failure, where no driver is installed.
    fn devices() -> Result<Vec<Self::Device>>;
    /// What a device says of itself. Asked once for each device.
    fn facts(device: &Self::Device) -> Result<DeviceFacts>;
    /// [`Capability::Parts`].
    fn parts(device: &Self::Device, how: &Partition) -> Result<Vec<Self::Device>> {
        let _ = (device, how);
        Error::unsupported("parts of devices")
    }
    /// Bytes of the device's memory that are free at the moment, in all processes.
    fn free_memory(device: &Self::Device) -> Result<u64> {
        let _ = device;
        Error::unsupported("a count of its free memory")
    }
    /// The device's clock and the host's.
    fn clocks(device: &Self::Device) -> Result<Clocks>;
    /// Makes devices ready to be used together.
    fn open(devices: &[Self::Device]) -> Result<Self::Context>;

    // Memory.

    /// [`Capability::OrderedAllocation`]: gives back what streams of the device have freed, down to so many bytes.
    fn trim(context: &Self::Context, device: &Self::Device, keep: usize) -> Result<()> {
        let _ = (context, device, keep);
        Error::unsupported("memory in a stream's order")
    }
    /// [`Capability::Pinning`]: host memory that the application allocated, which must stay where it is while
    /// the result lives.
    fn pin(context: &Self::Context, host: Range, access: Access) -> Result<Self::Allocation> {
        let _ = (context, host, access);
        Error::unsupported("pinned memory of others")
    }
    /// Lets one more device use memory that was allocated or imported before that device was there.
    fn admit(memory: &Self::Allocation, device: &Self::Device) -> Result<()> {
        let _ = (memory, device);
        Error::unsupported("memory that is shared between devices")
    }
    /// [`Capability::SharedMemory`], [`Capability::SharedPhysical`], [`Capability::SharedPoints`]: what another
    /// process's driver makes the same object of.
    fn export(what: Export<'_, Self>) -> Result<Payload> {
        let _ = what;
        Error::unsupported("objects that processes share")
    }
    /// [`Capability::SharedMemory`]: memory of another process, which lies on `device`. What arrived was verified by
    /// `ur_ipc` as far as the kernel can say; everything else in it is the exporter's word, and
    /// [`ErrorKind::InvalidValue`] what contradicts itself.
    fn import_memory(
        context: &Self::Context,
        device: &Self::Device,
        arrived: Arrived,
    ) -> Result<Self::Allocation> {
        let _ = (context, device, arrived);
        Error::unsupported("memory of other processes")
    }

    /// [`Capability::SharedPhysical`]: as [`import_memory`](Self::import_memory).
    fn import_physical(
        context: &Self::Context,
        device: &Self::Device,
        arrived: Arrived,
    ) -> Result<Self::Physical> {
        let _ = (context, device, arrived);
        Error::unsupported("physical memory of other processes")
    }

    // Streams.

    /// A stream of the device's. Dropped, it finishes in the background what was submitted.
    fn stream(
        context: &Self::Context,
        device: &Self::Device,
        request: StreamRequest,
    ) -> Result<Self::Stream>;
    /// Submits a command, and returns its point if one is wanted. On a failure nothing was submitted. Allocates nothing
    /// where the device can do without.
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
    /// Adds points to `into` that are over when everything submitted so far is; none if it is idle. What memory and
    /// code that was given up waits for.
    fn mark(stream: &Self::Stream, into: &mut Vec<Self::Point>) -> Result<()>;

    // Points.

    /// How far it has come, at a glance.
    fn status(point: &Self::Point) -> Result<Status>;
    /// Waits until it is over, or until the deadline; how far it is then. A thread that waits long sleeps.
    fn wait(point: &Self::Point, deadline: Option<Instant>) -> Result<Status>;
    /// When its command was submitted, began and ended; `None` without a [`Profile`].
    fn times(point: &Self::Point) -> Result<Option<Times>>;
    /// [`Capability::Notifications`]: makes the call once it is over, on any thread.
    fn notify(point: &Self::Point, call: HostCall) -> Result<()> {
        let _ = (point, call);
        Error::unsupported("notifications")
    }
    /// [`Capability::ReusablePoints`]: a point that is complete, and is signalled by [`Command::Signal`]; other
    /// processes open it if it `is_shareable` ([`Capability::SharedPoints`]).
    fn reusable(
        context: &Self::Context,
        device: &Self::Device,
        is_shareable: bool,
    ) -> Result<Self::Point> {
        let _ = (context, device, is_shareable);
        Error::unsupported("events that are signalled again")
    }
    /// [`Capability::ReusablePoints`]: the latest signal so far of such a point, as a point of its own which later
    /// signals do not change; `None` if it has come.
    fn latest(point: &Self::Point) -> Result<Option<Self::Point>> {
        let _ = point;
        Error::unsupported("events that are signalled again")
    }
    /// [`Capability::SharedPoints`]: as [`import_memory`](Self::import_memory).
    fn import_point(
        context: &Self::Context,
        device: &Self::Device,
        arrived: Arrived,
    ) -> Result<Self::Point> {
        let _ = (context, device, arrived);
        Error::unsupported("events of other processes")
    }

    // Images: `Capability::Images`, `Capability::Samplers`.

    /// An image; [`ErrorKind::UnsupportedFormat`] for a format or sides that the device does not have.
    fn image(
        context: &Self::Context,
        device: &Self::Device,
        desc: &ImageDesc,
    ) -> Result<Self::Image> {
        let _ = (context, device, desc);
        Error::unsupported("images")
    }
    /// A sampler.
    fn sampler(
        context: &Self::Context,
        device: &Self::Device,
        desc: &SamplerDesc,
    ) -> Result<Self::Sampler> {
        let _ = (context, device, desc);
        Error::unsupported("samplers")
    }

    // Graphs: `Capability::Graphs`. Without them the core submits recorded commands one by one.

    /// A graph without commands.
    fn graph(context: &Self::Context, device: &Self::Device) -> Result<Self::Graph> {
        let _ = (context, device);
        Error::unsupported("graphs")
    }
    /// Records a command behind those with these numbers, and returns its own: 0, 1, 2 and so on. The graph keeps
    /// a copy of what the command points at.
    fn append(
        graph: &mut Self::Graph,
        command: &Command<'_, Self>,
        after: &[usize],
    ) -> Result<usize> {
        let _ = (graph, command, after);
        Error::unsupported("graphs")
    }
    /// Makes it ready to be submitted; it takes no more commands.
    fn close(graph: &mut Self::Graph) -> Result<()> {
        let _ = graph;
        Error::unsupported("graphs")
    }

    // Native handles.

    /// The driver's own handle of an object.
    fn native(object: NativeObject<'_, Self>) -> Result<NativeHandle> {
        let _ = object;
        Error::unsupported("native handles")
    }
    /// Makes an object of a native handle that the application made. The handle is destroyed with the object if it
    /// `is_owned`, and otherwise stays the application's. [`ErrorKind::InvalidValue`] for a handle that the driver can tell to be of another
    /// kind, context or device.
    fn adopt(
        devices: &[Self::Device],
        context: Option<&Self::Context>,
        (kind, handle): (NativeKind, NativeHandle),
        is_owned: bool,
    ) -> Result<Adopted<Self>> {
        let _ = (devices, context, kind, handle, is_owned);
        Error::unsupported("objects made of native handles")
    }
}
