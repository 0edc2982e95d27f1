//! What all adapters have in common about programs, kernels and launches: reads and checks what callers pass. Nothing
//! here calls a driver.
pub mod arguments;
pub mod geometry;
pub mod metadata;
pub mod program_inputs;
pub mod spirv;
