//! Tests that run kernels: some are assembled word by word, some compiled from OpenCL C if a compiler is
//! installed.
#![expect(clippy::cast_possible_truncation, reason = "numbers of tests are small")]
#[path = "../../../tests/assembler/mod.rs"]
mod assembler;
mod malformed;
mod opencl;
#[path = "../../../tests/opencl/mod.rs"]
mod sources;
mod words;

use super::{Argument, Launch, Program};
use std::sync::Arc;

/// Builds a valid module.
fn built(bytes: &[u8]) -> Arc<Program> {
    Arc::new(Program::build(bytes, &[]).unwrap_or_else(|why| panic!("{why}")))
}
/// The address of an array, as an argument.
fn at<T>(numbers: &mut [T]) -> Argument {
    Argument::Bytes((numbers.as_mut_ptr() as u64).to_le_bytes().into())
}
fn number(value: u32) -> Argument {
    Argument::Bytes(value.to_le_bytes().into())
}
/// A launch of a kernel with this group size.
fn launch(program: &Arc<Program>, name: &str, size: [u32; 3], arguments: Vec<Argument>) -> Launch {
    let kernel = program.kernels().iter().find(|k| k.name == name);
    let kernel = Arc::clone(kernel.unwrap_or_else(|| panic!("no kernel {name}")));
    assert_eq!(kernel.parameters.len(), arguments.len());
    Launch { program: Arc::clone(program), kernel, arguments, size, offset: [0; 3] }
}
