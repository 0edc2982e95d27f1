//! Devices and contexts: the verbs of a [`Driver`](crate::Driver) that come first. They are traits of their own, so that a
//! backend has them whose other verbs are not written yet.
use crate::{Adopted, Clocks, Error, NativeHandle, NativeKind, NativeObject, Result, Types};

/// What devices have in common whose objects can be used together: one installed driver, say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlatformFacts {
    /// What users call it.
    pub name: String,
    /// Who makes it.
    pub vendor: String,
    /// Its version, as users know it.
    pub version: String,
    /// What it has beyond its version, as users of that kind of driver write it.
    pub extensions: String,
    /// The driver's own handle of it, if there is such a thing.
    pub handle: Option<NativeHandle>,
}

/// Devices, and what is made of them to use them together.
///
/// No verb blocks. All return the driver's own failures, with the kind that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait OpensDevices: Types {
    /// All devices that are no parts of others, in the driver's order; none, rather than a failure, where no driver is
    /// installed. Asked once.
    fn devices() -> Result<Vec<Self::Device>>;
    /// Devices that several of those are together, where the driver tells of both; callers are told of them by queries alone.
    fn composites() -> Vec<Self::Device> {
        vec![]
    }
    /// What a device belongs to. Devices of which the same is said belong together.
    fn platform(device: &Self::Device) -> Result<PlatformFacts>;
    /// What a device is a part of.
    fn parent(device: &Self::Device) -> Option<Self::Device> {
        let _ = device;
        None
    }
    /// The device's clock and the host's.
    fn clocks(device: &Self::Device) -> Result<Clocks>;
    /// Makes devices ready to be used together.
    fn open(devices: &[Self::Device]) -> Result<Self::Context>;
}

/// The driver's own handles of objects, for applications that use the driver as well.
#[expect(clippy::missing_errors_doc, reason = "said at `OpensDevices` for all verbs")]
pub trait NativeHandles: Types {
    /// Whether the driver has handles. Where it has none, callers are given the numbers of the core's handles instead.
    const HAS_HANDLES: bool = false;
    /// The driver's own handle of an object.
    fn native(object: NativeObject<'_, Self>) -> Result<NativeHandle> {
        let _ = object;
        Error::unsupported("native handles")
    }
    /// Makes an object of a native handle that the application made. The handle is destroyed with the object if it
    /// `is_owned`, and otherwise stays the application's. [`ErrorKind::InvalidValue`](crate::ErrorKind::InvalidValue) for
    /// a handle that the driver can tell to be of another kind, context or device. A context is made for `devices`, or,
    /// where the handle itself says so, for some of them.
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
