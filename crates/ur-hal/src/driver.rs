//! The trait that a backend implements.
use crate::*;

/// A driver: devices, memory, streams, code. Its methods have no `self`, because each driver exists only once in a
/// process.
///
/// Objects are released when they are dropped. Dropping never waits and never panics; the core drops an object only
/// when no command uses it any more.
///
/// Devices are in [`OpensDevices`], [`DescribesDevices`] and [`PartitionsDevices`], code in [`Modules`], memory in [`Allocates`], [`Pins`], [`VirtualMemory`] and [`Shares`], access between
/// devices in [`ReachesPeers`], streams and points in [`Streams`], graphs in [`Graphs`], buffers in [`MakesBuffers`], images in [`MakesImages`], samplers in
/// [`MakesSamplers`], and native handles in [`NativeHandles`].
///
/// No method blocks except those of [`Streams`] and [`Modules`] that say so. Methods may be called from any thread,
/// also concurrently. Methods with a default belong to the [`Capability`] named in their documentation, and are called
/// only for devices that have it.
///
/// All return the driver's error, with the kind that fits best and the driver's status. A method that returns other
/// errors documents them.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Driver:
    OpensDevices
    + DescribesDevices
    + PartitionsDevices
    + NativeHandles
    + Allocates
    + Pins
    + ReachesPeers
    + MakesBuffers
    + MakesImages
    + MakesSamplers
    + VirtualMemory
    + Shares
    + Graphs
    + Modules
{
    // Memory.

    /// [`Capability::OrderedAllocation`]: returns freed stream-ordered memory of the device to the driver, down to
    /// `keep` bytes.
    fn trim(context: &Self::Context, device: &Self::Device, keep: usize) -> Result<()> {
        let _ = (context, device, keep);
        Error::unsupported("memory in a stream's order")
    }
    /// Appends points to `into` that are final once everything submitted so far is; none if the stream is idle. The
    /// core uses them for deferred free of memory and code.
    fn mark(stream: &Self::Stream, into: &mut Vec<Self::Point>) -> Result<()>;
}
