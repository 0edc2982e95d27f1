//! Programs, kernels, and the checks of launches, over any driver that implements [`Modules`](ur_hal::Modules):
//! `code.rs` (when code is dropped), `object.rs` (a program and its builds), `build.rs` (the state of a
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
use ur_adapter::{api::Objects, object::Owned};

pub use code::HasCode;
pub(crate) use code::leave;
pub use kernel::{Kernel, OnDevice};
pub use object::Program;

/// A queue, as the core sees it before it knows of streams.
pub trait Placed<D: Contexts> {
    /// The context for which it was made, and the device that runs its commands.
    fn place(&self) -> (&Owned<Context<D>>, &Owned<Device<D>>);
}
/// A driver over which the core implements programs and kernels.
pub trait RunsCode:
    HasCode + Objects<Program = Program<Self>, Kernel = Kernel<Self>, Queue: Placed<Self>>
{
}
impl<D> RunsCode for D where
    D: HasCode + Objects<Program = Program<Self>, Kernel = Kernel<Self>, Queue: Placed<Self>>
{
}
