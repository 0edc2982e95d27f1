//! What programs and kernels need from a driver in addition to [`Modules`].
use crate::{memory::deferred_free, over_driver::CoreBackend};
use ur_adapter::error::{Error, ErrorCode};
use ur_hal::{Modules, Types};

pub(super) type Module<D> = <D as Types>::Module;
pub(super) type Function<D> = <D as Types>::Function;

/// A driver that runs code.
pub trait HasCode: CoreBackend + Modules {}
impl<D: CoreBackend + Modules> HasCode for D {}

/// Drops code, or a sampler of it, when the commands submitted so far to queues of the context with this handle are
/// complete.
pub(crate) fn leave<D: HasCode>(context: usize, what: impl Send + 'static) {
    match D::COMMANDS_KEEP_CODE {
        true => drop(what),
        false => deferred_free::leave::<D::Memory>(context, what),
    }
}
/// Drops some of the code that was passed to [`leave`] and that no command uses any more.
pub(super) fn sweep<D: HasCode>() {
    if !D::COMMANDS_KEEP_CODE {
        deferred_free::sweep::<D::Memory>();
    }
}
/// The error for a kernel name that the program does not contain.
pub(super) fn no_kernel(name: &std::ffi::CStr) -> Error {
    Error::new(ErrorCode::InvalidKernelName, format!("the program has no kernel {name:?}"))
}
