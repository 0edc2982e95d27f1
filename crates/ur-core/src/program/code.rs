//! What programs and kernels ask of a driver, beside what code is to it ([`Modules`]).
use crate::over_driver::{Context, Contexts, Device};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_hal::{Capabilities, LaunchLimits, Modules};

pub(super) type Module<D> = <D as Modules>::Module;
pub(super) type Function<D> = <D as Modules>::Function;

/// A driver that has code. What is asked here goes when devices and queues of all are the core's.
pub trait HasCode: Contexts + Modules {
    /// What users call the driver.
    const NAME: &'static str;
    /// Whether a range without items is refused, as the specification has it. Elsewhere it is a launch that runs nothing:
    /// SYCL has such ranges.
    const REFUSES_EMPTY_RANGES: bool = false;
    /// What modules for a device of a context are built for.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn target(context: &Context<Self>, device: &Device<Self>) -> Result<Self::Target> {
        let _ = (context, device);
        Error::unsupported("urProgramBuild")
    }
    /// What a device can run, and in what groups.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn launches(device: &Device<Self>) -> Result<(Capabilities, LaunchLimits)> {
        let _ = device;
        let (group, grid) = ([1; 3], [1; 3]);
        let limits = LaunchLimits { items: 1, group, grid, sub_group: 1, local_memory: 0 };
        Ok((Capabilities::NONE, limits)) // it runs no code
    }
    /// Drops code once the commands are done that were submitted to queues of the context with this handle.
    fn leave(context: usize, what: impl Send + 'static) {
        let _ = context;
        drop(what);
    }
    /// Drops code that was left and that no command uses any more.
    fn sweep_code() {}
}
/// The error for a name that no function of a program has.
pub(super) fn no_kernel(name: &std::ffi::CStr) -> Error {
    Error::new(ErrorCode::InvalidKernelName, format!("the program has no kernel {name:?}"))
}
