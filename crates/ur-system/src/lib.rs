//! The system's memory as a device's: what the CPU's backend is made of, and what a backend uses whose devices reach the
//! system's memory (`ur-opencl`). Memfds, mappings, the blocks that are cut from them, what is made of a descriptor of
//! another process, and what this machine says of itself. No driver is in it, and no handle.
pub mod backing;
pub mod host;
pub mod mapping;
pub mod opened;
