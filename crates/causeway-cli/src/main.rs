//! The `causeway` command: shows devices, shares a file through device memory, opens what another process
//! shares, and demonstrates all of it. The `causeway` crate does the work; this crate handles arguments and
//! output.

mod args;
mod card;
mod demo;
mod devices;
mod doctor;
mod failure;
mod info;
mod open;
mod output;
mod share;
mod stop;
mod transfer;
mod units;

use args::{Args, Command};
use clap::Parser;
use failure::Failure;
use std::{io::Write, process::ExitCode};

fn main() -> ExitCode {
    let command = Args::parse().command;
    let result = stop::outlive_file_limit().and_then(|()| match command {
        Command::Devices(args) => devices::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Share(args) => share::run(&args),
        Command::Open(args) => open::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::DoctorTrial { adapter, place } => doctor::run_trial(adapter, place),
        Command::DemoPeer { idle } => demo::run_peer(idle),
    });
    match result {
        // The reader closed our output, which is not a failure.
        Ok(()) | Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(Failure::Interrupted) => ExitCode::from(130), // as shells report it: 128 plus the number of SIGINT
        Err(Failure::Said(sentence)) => {
            // If this cannot be written either, the exit code still reports the failure.
            let _ = writeln!(anstream::stderr(), "causeway: {sentence}");
            ExitCode::FAILURE
        }
    }
}
