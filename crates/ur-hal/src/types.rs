//! The types of a driver's objects, without any method.
use crate::Range;
use std::{convert::Infallible, fmt};

/// What every object of a driver can do: be sent and shared between threads, and be printed for debugging.
pub trait Object: Send + Sync + fmt::Debug + 'static {}
impl<T: Send + Sync + fmt::Debug + 'static> Object for T {}

/// The types of a driver's objects. All values that are passed to a driver depend only on this trait, so commands can
/// be built, inspected and stored for any type that has such objects, whatever methods it implements.
///
/// A driver that does not have a kind of object uses [`Infallible`](std::convert::Infallible) as its type.
pub trait Types: Sized + Object {
    /// A device, or a part of one.
    type Device: Object + Clone + PartialEq;
    /// What devices that are used together share, which may be nothing.
    type Context: Object;
    /// Memory: allocated, imported or pinned.
    type Allocation: Memory;
    /// Reserved addresses without memory.
    type Reservation: Memory;
    /// Physical memory without an address.
    type Physical: Object;
    /// A queue to which commands are submitted: one native stream, or several that act as one.
    type Stream: Object;
    /// The end of a command, or an event that commands signal repeatedly.
    type Point: Object;
    /// Code that is loaded on a device.
    type Module: Object;
    /// A function of a module. It keeps the module loaded.
    type Function: Object;
    /// An image.
    type Image: Object;
    /// A sampler.
    type Sampler: Object;
    /// Commands that are submitted as one.
    type Graph: Object;
}

/// Something at a range of addresses. It is released when it is dropped.
///
/// The core drops it only when no command uses it any more; dropping never waits.
pub trait Memory: Object {
    /// Its range.
    fn range(&self) -> Range;
}
impl Memory for Infallible {
    fn range(&self) -> Range {
        match *self {}
    }
}
