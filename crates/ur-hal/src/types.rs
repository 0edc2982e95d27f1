//! What a driver's objects are, without any verb.
use crate::Range;
use std::{convert::Infallible, fmt};

/// What every object of a driver can do: be sent and shared between threads, and be shown.
pub trait Object: Send + Sync + fmt::Debug + 'static {}
impl<T: Send + Sync + fmt::Debug + 'static> Object for T {}

/// What a driver's objects are. All values that go to a driver depend on this alone, so that commands can be made,
/// looked at and kept for anything that has such objects, whatever verbs it has.
///
/// A driver that does not have a kind of object names [`Infallible`](std::convert::Infallible) for its type.
pub trait Types: Sized + Object {
    /// A device, or a part of one.
    type Device: Object + Clone + PartialEq;
    /// Devices that are used together: what they share, which may be nothing.
    type Context: Object;
    /// Memory: allocated, imported or pinned.
    type Allocation: Memory;
    /// Addresses without memory.
    type Reservation: Memory;
    /// Memory without an address.
    type Physical: Object;
    /// What commands are submitted to. One stream of a driver's, or several that act as one.
    type Stream: Object;
    /// The end of a command, or an event that commands signal again and again.
    type Point: Object;
    /// Code that is loaded on a device.
    type Module: Object;
    /// A function of a module, which keeps that loaded.
    type Function: Object;
    /// An image.
    type Image: Object;
    /// A sampler.
    type Sampler: Object;
    /// Commands that are submitted as one.
    type Graph: Object;
}

/// Something at a range of addresses, which goes back to the driver when it is dropped.
///
/// The core drops it only when no command uses it any more; dropping never waits.
pub trait Memory: Object {
    /// Where it is.
    fn range(&self) -> Range;
}
impl Memory for Infallible {
    fn range(&self) -> Range {
        match *self {}
    }
}
