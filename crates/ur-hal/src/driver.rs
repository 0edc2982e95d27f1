//! The trait that a backend implements.
use crate::*;

/// A trait for all that implement these.
macro_rules! all_of {
    ($(#[$doc:meta])* $name:ident: $($verbs:ident)*) => {
        $(#[$doc])*
        pub trait $name: $($verbs +)* {}
        impl<D: $($verbs +)*> $name for D {}
    };
}
all_of! {
    /// A driver: devices, memory, streams, code. Its methods have no `self`, because each driver exists only once in a
    /// process.
    ///
    /// Objects are released when they are dropped. Dropping never waits and never panics; the core drops an object only
    /// when no command uses it any more.
    ///
    /// Devices are in [`OpensDevices`], [`DescribesDevices`] and [`PartitionsDevices`], code in [`Modules`], memory in
    /// [`Allocates`], [`Pins`], [`VirtualMemory`] and [`Shares`], access between devices in [`ReachesPeers`], streams and points in
    /// [`Streams`], graphs in [`Graphs`], buffers in [`MakesBuffers`], images in [`MakesImages`], samplers in [`MakesSamplers`],
    /// and native handles in [`NativeHandles`].
    ///
    /// No method blocks except those of [`Streams`] and [`Modules`] that say so. Methods may be called from any thread,
    /// also concurrently. A method with a default whose documentation names a [`Capability`] is called only for devices that have
    /// it; any other is called for all, and its default says what a driver does that has nothing of the kind.
    ///
    /// All return the driver's error, with the kind that fits best and the driver's status. A method that returns other
    /// errors documents them.
    ///
    /// A type that implements these traits is a driver; nothing else is to be implemented.
    Driver:
        OpensDevices DescribesDevices PartitionsDevices NativeHandles Allocates Pins ReachesPeers MakesBuffers MakesImages
        MakesSamplers VirtualMemory Shares Graphs Modules
}
