//! The trait that a backend implements.
use crate::*;
use ur_ipc::{Arrived, Payload};

/// A driver: devices, memory, streams, code. Verbs are functions of the type: a process has a driver once.
///
/// Objects go back to the driver when they are dropped. Dropping never waits and never panics; the core drops
/// an object only when no command uses it any more.
///
/// Which devices there are is in [`OpensDevices`], what concerns code in [`Modules`], what concerns memory in [`Allocates`]
/// and [`VirtualMemory`], access from device to device in [`ReachesPeers`], streams and points in [`Streams`], handles of the
/// driver's own in [`NativeHandles`].
///
/// No verb blocks but those of [`Streams`] and [`Modules`] that say so. Verbs may be called from any
/// thread, also at the same time. Those with a default belong to the [`Capability`] that is named beside them and are
/// called only where the device has it.
///
/// All return the driver's own failures, with the kind that fits best and the driver's status. A verb that returns
/// other failures documents them.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Driver:
    OpensDevices
    + NativeHandles
    + Allocates
    + ReachesPeers
    + VirtualMemory
    + Streams
    + Modules<Module = <Self as Types>::Module, Function = <Self as Types>::Function>
{
    /// What users call the driver.
    const NAME: &'static str;

    // Devices.

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
    /// [`Capability::SharedMemory`], [`Capability::SharedPhysical`]: what another process's driver makes the same object
    /// of.
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

    /// Adds points to `into` that are over when everything submitted so far is; none if the stream is idle. What memory and
    /// code that was given up waits for.
    fn mark(stream: &Self::Stream, into: &mut Vec<Self::Point>) -> Result<()>;

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
}
