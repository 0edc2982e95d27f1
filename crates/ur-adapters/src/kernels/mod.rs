//! What adapters have in common about programs, kernels and launches: what C gives is read and judged
//! here, with no driver in sight. What becomes of it is each adapter's.
pub(crate) mod arguments;
pub(crate) mod geometry;
pub(crate) mod given;
pub(crate) mod metadata;
pub(crate) mod spirv;
