//! The command line.
use causeway::Backend;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Share device memory and events between processes.
#[derive(Parser)]
#[command(name = "causeway", version, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// List the devices and what they can share
    Devices(Devices),
    /// Show everything that platforms and devices say of themselves
    Info(Info),
    /// Load a file into device memory and print a ticket that opens it
    Share(Share),
    /// Open a ticket of `causeway share` and write or hash what it opens
    Open(Open),
    /// Show two processes share memory, physical memory and events, and verify every byte
    Demo(Demo),
    /// Try each adapter in a process of its own, look at where processes meet to share, and say what works
    Doctor(Doctor),
    /// One trial of `doctor`
    #[command(hide = true)]
    DoctorTrial { adapter: usize, place: usize },
    /// The second process of `demo`
    #[command(hide = true)]
    DemoPeer {
        /// As `demo --idle-peer`
        #[arg(long)]
        idle: bool,
    },
}

#[derive(clap::Args)]
pub struct Devices {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Only devices of this backend: native_cpu, cuda, hip, level_zero, opencl or offload
    #[arg(long, value_name = "NAME")]
    pub backend: Option<Backend>,
}

#[derive(clap::Args)]
pub struct Info {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Only the device with this number, as `causeway devices` lists it; with --backend, among those of the backend
    #[arg(long, value_name = "N")]
    pub device: Option<usize>,
    /// Only devices of this backend: native_cpu, cuda, hip, level_zero, opencl or offload
    #[arg(long, value_name = "NAME")]
    pub backend: Option<Backend>,
}

/// Which device.
#[derive(clap::Args, Clone, Copy)]
pub struct On {
    /// Number of the device, as `causeway devices` lists it; with --backend, among those of the backend
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: usize,
    /// Only devices of this backend: native_cpu, cuda, hip, level_zero, opencl or offload
    #[arg(long, value_name = "NAME")]
    pub backend: Option<Backend>,
}

#[derive(clap::Args)]
pub struct Share {
    /// The file to share: a pipe is read to its end first, `-` is standard input
    pub file: PathBuf,
    /// End when one `causeway open` has taken it all
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub on: On,
}

#[derive(clap::Args)]
pub struct Open {
    /// The ticket, or `-` to read it from standard input
    pub ticket: String,
    /// Write the contents to this file, or to standard output if it is `-`
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the SHA-256 of the contents (the default without -o)
    #[arg(long)]
    pub hash: bool,
    #[command(flatten)]
    pub on: On,
}

#[derive(clap::Args)]
pub struct Demo {
    /// Has the second process say that it wrote what it did not write, to see that the demo notices
    #[arg(long, hide = true)]
    pub idle_peer: bool,
    /// How often the processes hand the token over; 1000 on a CPU, 100 on a GPU, whose streams hold
    /// about a thousand commands before a submission waits
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub hops: Option<u32>,
    /// How much device memory they share, in MiB
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub mib: u32,
    #[command(flatten)]
    pub on: On,
}

#[derive(clap::Args)]
pub struct Doctor {
    /// Examine only the adapters that the environment has the loader look for
    #[arg(long)]
    pub adapters: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// How long one adapter may take; a driver that starts many devices may need more
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub timeout: u32,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Args::command().debug_assert();
    }
}
