//! Runs SPIR-V kernels with an interpreter: `Program::build` reads a module, `Launch::run` runs one of its
//! kernels. Supports what compilers of OpenCL C and SYCL commonly emit; building a module with anything else
//! fails. The code uses the specification's numbers for instructions, decorations and builtin variables, and
//! those of the OpenCL set for extended instructions.
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
