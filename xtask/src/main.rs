//! The project's own tasks. `cargo xtask help` lists them.
mod abi_diff;
mod ci;
mod conformance;
mod coverage;
mod cycles;
mod differential;
mod dist;
mod dpnp;
mod emit;
mod fuzz;
mod generate;
mod gpu_bundle;
mod leaf;
mod level_zero_card;
mod map;
mod model;
mod mutants;
mod names;
mod opencl;
mod parse;
mod python;
mod seam;
mod wheel;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The project's own tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}
#[derive(Subcommand)]
enum Task {
    /// Runs all checks that a change must pass
    Ci(ci::Arguments),
    /// Writes the files that are generated from spec/
    Generate {
        /// Writes nothing; fails if a file is out of date
        #[arg(long)]
        check: bool,
    },
    /// Checks that ARCHITECTURE.md names the existing files and those with unsafe code, and that no further files of
    /// backends use UR
    Map,
    /// Prints which files of a crate import each other, and fails if there are more than allowed
    Cycles,
    /// Compares include/ and ur-sys with the headers that Unified Runtime ships
    AbiDiff {
        /// A folder that contains unified-runtime/ur_api.h; by default the headers of the wheel, which is downloaded once
        #[arg(long, value_name = "DIR")]
        reference: Option<std::path::PathBuf>,
    },
    /// Runs the fuzzers of fuzz/, each for a while
    Fuzz(fuzz::Arguments),
    /// Judges our adapters, and a shipped one, with the conformance suite
    Conformance(conformance::Arguments),
    /// Runs the SYCL programs with kernels of examples/sycl, which share memory, on our OpenCL adapter
    SyclKernels {
        /// Runs the commands of the README, unchanged, in a new environment
        #[arg(long)]
        readme: bool,
    },
    /// Compares the results of dpnp from PyPI on our OpenCL adapter and on the SYCL runtime's own
    Dpnp(dpnp::Arguments),
    /// Compares our Level Zero adapter with the wheel's two, all on our software driver, or our OpenCL adapter with the loader's own
    Differential(differential::Arguments),
    /// Tries the Level Zero adapter on an Intel GPU, and writes a report to send back
    LevelZeroCard(level_zero_card::Arguments),
    /// Packs everything that a machine with a GPU and no other software needs to run all tests
    GpuBundle(gpu_bundle::Arguments),
    /// Measures how much of the runtime the conformance suite reaches through the C ABI
    Coverage,
    /// Changes the modules on which sharing depends, and reports changes that no test detects
    Mutants {
        /// Changes only this module (envelope, protocol, broker, counts, arena, completion)
        only: Option<String>,
    },
    /// Links the adapters' shared objects and puts the headers beside them
    Dist(dist::Request),
    /// Builds the Python module as a wheel into target/wheels/
    Wheel(python::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Ci(arguments) => ci::run(&arguments),
        Task::Generate { check } => generate::run(check),
        Task::AbiDiff { reference } => abi_diff::run(reference),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Conformance(arguments) => conformance::run(&arguments),
        Task::SyclKernels { readme } => sycl_kernels(readme),
        Task::Dpnp(arguments) => opencl_adapter()
            .and_then(|folder| dpnp::run(&arguments, root(), &folder.join(opencl::ADAPTER))),
        Task::Differential(arguments) => differential::run(&arguments),
        Task::LevelZeroCard(arguments) => level_zero_card::run(&arguments),
        Task::Map => map::run(),
        Task::Cycles => cycles::run(),
        Task::Coverage => coverage::run(),
        Task::Mutants { only } => mutants::run(only.as_deref()),
        Task::GpuBundle(arguments) => gpu_bundle::run(&arguments),
        Task::Wheel(arguments) => python::run(&arguments),
        Task::Dist(request) => dist::run(&request).map(|_| ()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the SYCL programs with kernels, of two processes each, on the adapter as it is built for tests or as
/// users build it.
fn sycl_kernels(as_the_readme_says: bool) -> Result<(), String> {
    if as_the_readme_says {
        return opencl::as_the_readme_says(root());
    }
    let adapters = opencl_adapter()?;
    opencl::programs(root(), &root().join("target/opencl/venv"), &adapters)
}
/// Builds the adapters for tests, including the one for OpenCL; returns their folder.
fn opencl_adapter() -> Result<std::path::PathBuf, String> {
    let adapters = root().join("target/conformance/adapters");
    let (only, out) = (["opencl", "native_cpu"].map(String::from).to_vec(), Some(adapters.clone()));
    dist::run(&dist::Request { only, out, debug: true, ..dist::Request::default() })?;
    Ok(adapters)
}

/// The folders with the workspace's crates: products, their shared objects, and software drivers for tests.
const CRATES: [&str; 3] = ["crates", "adapters", "testing"];

/// The repository's root, regardless of the working directory.
fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository")
}
