//! Programs, kernels, and the checks of launches, over any driver that implements [`Modules`](ur_hal::Modules):
//! `code.rs` (what else is needed from the driver), `object.rs` (a program and its builds), `build.rs` (the state of a
//! build), `link.rs` (linking), `kernel.rs` (kernels on their devices), `launch.rs` (ranges and properties of
//! launches), `entries.rs` and `kernel_entries.rs` (the entries of programs and kernels).
mod build;
mod code;
mod entries;
pub mod kernel;
mod kernel_entries;
pub mod launch;
pub mod link;
mod object;

use crate::over_driver::{Context, Contexts, Device};
use ur_adapter::{
    api::Objects,
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Object, Owned},
};
use ur_sys::*;

pub use code::HasCode;
pub use kernel::{Kernel, OnDevice};
pub use object::Program;

/// A queue, as the core sees it before it knows of streams.
pub trait Placed<D: Contexts> {
    /// The context for which it was made, and the device that runs its commands.
    fn place(&self) -> (&Owned<Context<D>>, &Owned<Device<D>>);
}
/// A driver over which the core implements programs and kernels. These methods are needed until contexts, devices and
/// queues are the core's too.
pub trait RunsCode:
    HasCode + Objects<Program = Program<Self>, Kernel = Kernel<Self>, Queue: Placed<Self>>
{
    /// The native handle of a program.
    ///
    /// # Errors
    /// `INVALID_PROGRAM_EXECUTABLE` unless it is built, if the handle is that of a module.
    fn native_program(program: &Object<Program<Self>>) -> Result<ur_native_handle_t> {
        let _ = program;
        Error::unsupported("urProgramGetNativeHandle")
    }
    /// A program over a native handle, which is released with it if `is_owned`.
    ///
    /// # Errors
    /// As `urProgramCreateWithNativeHandle` documents them.
    fn program_of_native(
        native: ur_native_handle_t,
        context: &Owned<Context<Self>>,
        is_owned: bool,
    ) -> Result<Owned<Program<Self>>> {
        let _ = (native, context, is_owned);
        Error::unsupported("urProgramCreateWithNativeHandle")
    }
    /// The native handle of a kernel.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn native_kernel(kernel: &Object<Kernel<Self>>) -> Result<ur_native_handle_t> {
        let _ = kernel;
        Error::unsupported("urKernelGetNativeHandle")
    }
    /// A kernel over a native handle, which is released with it if `is_owned`.
    ///
    /// # Errors
    /// As `urKernelCreateWithNativeHandle` documents them.
    fn kernel_of_native(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<Self>>,
        program: Option<Borrowed<'_, Program<Self>>>,
        is_owned: bool,
    ) -> Result<Owned<Kernel<Self>>> {
        let _ = (native, context, program, is_owned);
        Error::unsupported("urKernelCreateWithNativeHandle")
    }
}
/// The program that contains a native kernel, as the caller passes it.
///
/// # Errors
/// `INVALID_NULL_HANDLE` if the caller passes none; `INVALID_CONTEXT` for a program of another context.
pub fn of_native_kernel<D: RunsCode>(
    context: Borrowed<'_, Context<D>>,
    program: Option<Borrowed<'_, Program<D>>>,
) -> Result<Owned<Program<D>>> {
    let Some(program) = program else {
        let why = "a kernel of a native handle needs its program: make one of its module";
        return Error::refuse(ErrorCode::InvalidNullHandle, why);
    };
    match program.context().same(&context) {
        true => program.own(),
        false => {
            let why = "the program of the native kernel is of another context";
            Error::refuse(ErrorCode::InvalidContext, why)
        }
    }
}
