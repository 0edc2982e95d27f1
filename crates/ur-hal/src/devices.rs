//! Devices and contexts: the first methods of a [`Driver`](crate::Driver) that a backend implements. They are separate
//! traits, so that a backend can implement them before its other methods exist.
use crate::{Adopted, Clocks, Error, NativeHandle, NativeKind, NativeObject, Result, Types};

/// A group of devices whose objects can be used together, for example those of one installed driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlatformFacts {
    /// Its name for users.
    pub name: String,
    /// The vendor's name.
    pub vendor: String,
    /// Its version for users.
    pub version: String,
    /// Its extensions, in the driver's own notation.
    pub extensions: String,
    /// The driver's handle of it, if there is one.
    pub handle: Option<NativeHandle>,
}

/// Enumeration of devices, and contexts in which they are used together.
///
/// No method blocks. All return the driver's error, with the kind that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait OpensDevices: Types {
    /// The driver's name in messages.
    const NAME: &'static str;
    /// All devices that are not parts of others, in the driver's order. Returns an empty list, not an error, if no
    /// driver is installed. Called once.
    fn devices() -> Result<Vec<Self::Device>>;
    /// Devices that combine several of those, if the driver reports both. Callers see them only through queries.
    fn composites() -> Vec<Self::Device> {
        vec![]
    }
    /// The platform of a device. Devices with equal facts belong to the same platform.
    fn platform(device: &Self::Device) -> Result<PlatformFacts>;
    /// The device of which this one is a part.
    fn parent(device: &Self::Device) -> Option<Self::Device> {
        let _ = device;
        None
    }
    /// The device's UUID in tickets of what belongs to it, which is the same in every process that sees the device.
    fn uuid(device: &Self::Device) -> Result<[u8; 16]>;
    /// Reads the device's clock and the host's clock.
    fn clocks(device: &Self::Device) -> Result<Clocks>;
    /// Makes a context in which the devices can be used together.
    fn open(devices: &[Self::Device]) -> Result<Self::Context>;
}

/// The driver's native handles of objects, for applications that also use the driver directly.
#[expect(clippy::missing_errors_doc, reason = "said at `OpensDevices` for all verbs")]
pub trait NativeHandles: Types {
    /// Whether the driver has handles. If not, callers get the numbers of the core's handles instead.
    const HAS_HANDLES: bool = false;
    /// The native handle of an object.
    fn native(object: NativeObject<'_, Self>) -> Result<NativeHandle> {
        let _ = object;
        Error::unsupported("native handles")
    }
    /// Wraps a native handle that the application made. If it `is_owned`, the handle is destroyed with the object;
    /// otherwise the application keeps it. Returns [`ErrorKind::InvalidValue`](crate::ErrorKind::InvalidValue) if the
    /// driver can tell that the handle has another kind, context or device. A context or a module is made for `devices`, or
    /// only for those of them that the handle itself names.
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
