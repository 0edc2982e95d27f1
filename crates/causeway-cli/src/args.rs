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
    /// Show all properties of platforms and devices
    Info(Info),
    /// Load a file into device memory and print a ticket that opens it
    Share(Share),
    /// Open a ticket of `causeway share` and write or hash what it opens
    Open(Open),
    /// Share memory, physical memory and events between two processes, and verify every byte
    Demo(Demo),
    /// Test each adapter in a separate process, check the directories used for sharing, and report what works
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

/// The device to use.
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
    /// End when one `causeway open` has read everything
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
    /// The second process reports writes that it does not make, to check that the demo notices
    #[arg(long, hide = true)]
    pub idle_peer: bool,
    /// How many times the processes hand the token over; by default 1000 on a CPU and 100 on a GPU, whose
    /// streams hold about a thousand commands before a submission blocks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub hops: Option<u32>,
    /// The size of the shared device memory, in MiB
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub mib: u32,
    #[command(flatten)]
    pub on: On,
}

#[derive(clap::Args)]
pub struct Doctor {
    /// Test only the adapters, not the directories used for sharing
    #[arg(long)]
    pub adapters: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Time limit for one adapter; a driver with many devices may need more
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
