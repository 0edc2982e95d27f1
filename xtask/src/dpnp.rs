//! `cargo xtask dpnp`: runs dpnp and dpctl from PyPI, unmodified, on our OpenCL adapter and on the one that
//! is linked into the SYCL runtime. It compares the results one by one and the outcomes of dpnp's own tests;
//! and two processes compute on one dpnp array.
use crate::opencl;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// What to run.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// A Python environment with the packages of xtask/dpnp/packages.txt; without it, one is created (3 GB)
    #[arg(long, value_name = "DIR")]
    environment: Option<PathBuf>,
    /// Runs these tests of dpnp (sum, linalg, ...) on both, instead of sort, bitwise and logic; may be given more than once
    #[arg(long, value_name = "NAME")]
    tests: Vec<String>,
}

/// The adapter under the SYCL runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Adapter {
    Theirs,
    Ours,
}
/// What all runs share.
struct Bench<'a> {
    scripts: PathBuf,
    environment: PathBuf,
    adapter: &'a Path,
    into: PathBuf,
}

/// Runs and compares everything; `adapter` is our adapter's shared object.
///
/// # Errors
/// Fails if the packages cannot be installed, or if something differs or does not run.
pub fn run(arguments: &Arguments, root: &Path, adapter: &Path) -> Result<()> {
    let (scripts, into) = (root.join("xtask/dpnp"), root.join("target/dpnp"));
    fs::create_dir_all(&into).map_err(|e| format!("{}: {e}", into.display()))?;
    let environment = match &arguments.environment {
        Some(own) => own.canonicalize().map_err(|e| format!("{}: {e}", own.display()))?,
        None => {
            let file = scripts.join("packages.txt");
            let packages =
                fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            opencl::install(&into.join("venv"), "dpnp", &packages)?;
            into.join("venv")
        }
    };
    let bench = Bench { scripts, environment, adapter, into };
    let mut wrong = vec![];
    let mut note = |what: &str, done: Result<()>| {
        if let Err(why) = done {
            wrong.push(format!("{what}: {why}"));
        }
    };
    note("results", bench.results());
    note("an array of two processes", bench.share());
    let usual = ["sort", "bitwise", "logic"].map(String::from);
    let tests = if arguments.tests.is_empty() { &usual[..] } else { &arguments.tests };
    for name in tests {
        note(&format!("dpnp's tests of {name}"), bench.own_tests(name));
    }
    match wrong.as_slice() {
        [] => Ok(()),
        some => Err(some.join("\n")),
    }
}
impl Bench<'_> {
    /// Returns a Python command with one of the adapters under its SYCL runtime, on Intel's OpenCL driver of
    /// the environment.
    fn python(&self, adapter: Adapter) -> Command {
        let mut python = Command::new(self.environment.join("bin/python3"));
        let libraries = self.environment.join("lib");
        python.env("OCL_ICD_FILENAMES", libraries.join("libintelocl.so"));
        python.env("OCL_ICD_VENDORS", "/nonexistent").env("LD_LIBRARY_PATH", libraries);
        python.env_remove("ONEAPI_DEVICE_SELECTOR").env_remove("UR_ADAPTERS_FORCE_LOAD");
        match adapter {
            Adapter::Theirs => python.env("ONEAPI_DEVICE_SELECTOR", "opencl:cpu"),
            Adapter::Ours => python.env("UR_ADAPTERS_FORCE_LOAD", self.adapter),
        };
        python
    }
    fn script(&self, adapter: Adapter, name: &str, arguments: &[&Path]) -> Result<()> {
        execute(self.python(adapter).arg(self.scripts.join(name)).args(arguments))
    }
    fn results(&self) -> Result<()> {
        let [theirs, ours] = ["theirs.npz", "ours.npz"].map(|name| self.into.join(name));
        self.script(Adapter::Theirs, "results.py", &[&theirs])?;
        self.script(Adapter::Ours, "results.py", &[&ours])?;
        self.script(Adapter::Ours, "compare.py", &[&theirs, &ours])
    }
    fn share(&self) -> Result<()> {
        let library = self.into.join("libdpnp_ipc.so");
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++17", "-O2", "-shared", "-fPIC"]);
        compiler.arg("-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING").arg("-isystem");
        compiler.arg(self.environment.join("include")).arg(self.scripts.join("ipc.cpp"));
        compiler.arg("-L").arg(self.environment.join("lib")).args(["-lsycl", "-o"]).arg(&library);
        execute(&mut compiler)?;
        self.script(Adapter::Ours, "share.py", &[&library])
    }
    fn own_tests(&self, name: &str) -> Result<()> {
        let report = |whose| self.into.join(format!("{name}-{whose}.xml"));
        for (adapter, whose) in [(Adapter::Theirs, "theirs"), (Adapter::Ours, "ours")] {
            let file = report(whose);
            if file.exists() {
                fs::remove_file(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            }
            let mut pytest = self.python(adapter);
            pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs"]);
            pytest.arg(format!("dpnp.tests.test_{name}"));
            pytest.arg("--junitxml").arg(&file).current_dir(&self.into);
            // Tests may fail; the comparison reports those that fail only on one.
            let _outcomes = execute(&mut pytest);
        }
        self.script(Adapter::Ours, "outcomes.py", &[&report("theirs"), &report("ours")])
    }
}
fn execute(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let status = command.status().map_err(|e| format!("{program}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed ({status})")) }
}
