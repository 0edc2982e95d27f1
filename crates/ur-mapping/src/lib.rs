//! The parts of sharing between processes that need `unsafe`: shared memory as atomic words, and calls to the C library
//! and the kernel about forks, signals, scheduling, limits and sockets. `ur-ipc` gives the words their meaning.
mod fork;
mod held;
mod limits;
mod pages;
mod per_process;
mod privilege;
mod scheduling;
mod signals;
mod socket;
pub mod spin;
mod told;
mod words;

pub use fork::{around_forks, close_in_child, fork_count, on_fork_in_child};
pub use held::{HeldWord, Holder, is_held};
pub use limits::{addresses_exhausted, mappings_exhausted, start_scoped_thread, start_thread};
pub use pages::Pages;
pub use per_process::PerProcess;
pub use privilege::is_privileged;
pub use scheduling::{online_cpus, scheduled_real_time};
pub use signals::stop_here;
pub use socket::{Credentials, peer_credentials, peer_pidfd, unreceived};
pub use told::{descriptor_limit, machine_memory, soft_limit};
pub use words::{ReadOnlyWords, SharedWords};
