//! What programs and kernels need from a driver in addition to [`Modules`].
use crate::over_driver::{Context, Contexts, Device};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_hal::{Capabilities, LaunchLimits, Modules};

pub(super) type Module<D> = <D as Modules>::Module;
pub(super) type Function<D> = <D as Modules>::Function;

/// A driver that runs code. These methods are needed until devices and queues of all backends are the core's.
pub trait HasCode: Contexts + Modules {
    /// Whether a launch over an empty range is refused, as the specification requires. Otherwise it is a launch that
    /// runs nothing, because SYCL programs may have empty ranges.
    const REFUSES_EMPTY_RANGES: bool = false;
    /// The build target for a device of a context.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn target(context: &Context<Self>, device: &Device<Self>) -> Result<Self::Target> {
        let _ = (context, device);
        Error::unsupported("urProgramBuild")
    }
    /// Which kinds of launches a device supports, and their limits.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn launches(device: &Device<Self>) -> Result<(Capabilities, LaunchLimits)> {
        let _ = device;
        let (group, grid) = ([1; 3], [1; 3]);
        let limits = LaunchLimits { items: 1, group, grid, sub_group: 1, local_memory: 0 };
        Ok((Capabilities::NONE, limits)) // a device that runs no code
    }
    /// Drops code when the commands submitted so far to queues of the context with this handle are complete.
    fn leave(context: usize, what: impl Send + 'static) {
        let _ = context;
        drop(what);
    }
    /// Drops code that was passed to [`leave`](Self::leave) and that no command uses any more.
    fn sweep_code() {}
}
/// The error for a kernel name that the program does not contain.
pub(super) fn no_kernel(name: &std::ffi::CStr) -> Error {
    Error::new(ErrorCode::InvalidKernelName, format!("the program has no kernel {name:?}"))
}
