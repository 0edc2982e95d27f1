//! The `causeway` command: shows devices, shares a file through device memory, opens what another process shares,
//! and demonstrates all of it. What it does is done by the `causeway` crate; here are arguments, words and numbers.

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
        // Whoever reads our output has had enough: no failure of ours.
        Ok(()) | Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(Failure::Interrupted) => ExitCode::from(130), // as a shell says it: 128 and the number of SIGINT
        Err(Failure::Said(sentence)) => {
            // If even this cannot be written, the exit code still tells.
            let _ = writeln!(anstream::stderr(), "causeway: {sentence}");
            ExitCode::FAILURE
        }
    }
}
