//! The system's memory used as device memory: the basis of the CPU backend, also used by backends whose devices access
//! the system's memory (`ur-opencl`). It has memfds, mappings, the blocks cut from them, memory opened from another
//! process's descriptor, and the facts about this machine. It contains no driver and no handle. One thread of
//! such a backend waits for the signals of other processes (`owed`).
pub mod backing;
pub mod bytes;
pub mod host;
pub mod mapping;
pub mod opened;
pub mod owed;
pub mod usm;
