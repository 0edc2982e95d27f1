//! What adapters have in common about programs, kernels and launches: what C gives is read and judged
//! here, with no driver in sight. What becomes of it is each adapter's.
pub mod arguments;
pub mod geometry;
pub mod metadata;
pub mod program_inputs;
pub mod spirv;
