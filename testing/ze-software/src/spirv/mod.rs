//! Kernels in SPIR-V, run by an interpreter: `Program::build` reads a module, `Launch::run` runs one of its kernels.
//! What a useful compiler makes of OpenCL C and SYCL is known; what is not known is refused when the module is built.
//! Instructions, decorations and builtin variables are written by the numbers that the specification gives them, extended
//! ones by those of OpenCL's set.
mod arithmetic;
mod atomics;
mod body;
mod build;
mod collective;
mod constants;
mod convert;
mod group;
pub(crate) mod half;
mod integers;
mod item;
mod math;
mod notes;
mod picture;
mod pointers;
mod program;
mod read;
mod run;
mod seat;
mod step;
mod types;
mod values;
mod wide;

pub use group::{Argument, Launch, SUBGROUP};
pub use program::{Kernel, Parameter, Program, Special};

#[cfg(test)]
mod tests;
