//! The few things that sharing between processes cannot do without `unsafe`: shared memory as atomic words, and
//! what a process must ask the C library about forks, signals and scheduling, and the kernel about sockets. What the words mean is left to `ur-ipc`.
mod fork;
mod held;
mod limits;
mod pages;
mod privilege;
mod scheduling;
mod signals;
mod socket;
pub mod spin;
mod told;
mod words;

pub use fork::{close_in_child, fork_count, on_fork_in_child};
pub use held::{HeldWord, Holder, is_held};
pub use limits::{addresses_exhausted, mappings_exhausted, start_thread};
pub use pages::Pages;
pub use privilege::is_privileged;
pub use scheduling::{online_cpus, scheduled_real_time};
pub use signals::{Deaf, stop_here};
pub use socket::{Credentials, peer_credentials, peer_pidfd, unreceived};
pub use told::{descriptor_limit, machine_memory, soft_limit};
pub use words::{ReadOnlyWords, SharedWords};
