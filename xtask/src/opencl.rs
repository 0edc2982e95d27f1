//! Drivers of OpenCL that a run is pinned to: Intel's runtime for CPUs, in an environment of Python's under `target/`, and
//! PoCL, if the system has it. No run depends on what else lies on the machine.
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// Intel's runtime and what it needs, as pip asks for them.
const INTEL: &str = "\
intel-opencl-rt==2026.2.0 --hash=sha256:6b6215a420598b4999ee01caca6d5cbe106aa4155c46c52377619c5aafce9f67
intel-cmplr-lib-rt==2026.2.0 --hash=sha256:9f713083073a820d2496a6da8e8d4f3482aba6640f74521d25ea48dcebe72748
tbb==2023.2.0 --hash=sha256:7d80615b6e970f11671fa05b6eaa9483ac864fbfe525ac280271a78b37870b7c
";
/// The SYCL runtime with its compiler of kernels, and what it needs beside those.
const SYCL: &str = "\
intel-sycl-rt==2026.2.0 --hash=sha256:ad920da1ffcb43edbc03422a7c85094997e6d578f9ab534743442af70bcbfaa1
intel-cmplr-lib-ur==2026.2.0 --hash=sha256:0d0a5099aa2e1e38375b509c2a8182e719ed74aa656b2a800ddf6cfbd3384b80
umf==1.2.0 --hash=sha256:238d186fdd9e9c0fe1489da95b19b0b79045fe26c4aa98bd0a022a2a3603c195
";
/// Where Debian's package `pocl-opencl-icd` says what is to be loaded.
const POCL: &str = "/etc/OpenCL/vendors/pocl.icd";

/// Our adapter in a folder of adapters.
pub const ADAPTER: &str = "opencl/libur_adapter_opencl.so.0";

/// A driver, and how an ICD loader finds it and no other.
#[derive(Debug)]
pub struct Driver {
    pub name: &'static str,
    /// What is to be in front on the path of libraries.
    pub libraries: Option<PathBuf>,
    vendors: PathBuf,
    file: Option<PathBuf>,
}
impl Driver {
    /// Has a program find this driver. The path of libraries is the caller's to set.
    pub fn choose(&self, command: &mut Command) {
        none_of_the_machines(command, &self.vendors);
        if let Some(file) = &self.file {
            command.env("OCL_ICD_FILENAMES", file);
        }
    }
}
/// An ICD loader looks into `vendors` and nowhere else.
fn none_of_the_machines(command: &mut Command, vendors: &Path) {
    command.env("OCL_ICD_VENDORS", vendors);
    command.env_remove("OCL_ICD_FILENAMES").env_remove("OPENCL_VENDOR_PATH");
}
/// Has a program find no driver.
///
/// # Errors
/// The folder `reports` cannot be written to.
pub fn none(command: &mut Command, reports: &Path) -> Result<()> {
    none_of_the_machines(command, &folder(reports, "no-opencl")?);
    Ok(())
}
fn folder(reports: &Path, name: &str) -> Result<PathBuf> {
    let made = reports.join(name);
    fs::create_dir_all(&made).map_err(|e| format!("{}: {e}", made.display()))?;
    Ok(made)
}

/// Intel's runtime in an environment of Python's, installed now if it is not there yet.
///
/// # Errors
/// Python or pip is missing, or the packages cannot be fetched or are not what they were.
pub fn intel(environment: &Path, reports: &Path) -> Result<Driver> {
    install(environment, "runtime", INTEL)?;
    let libraries = environment.join("lib");
    let file = Some(libraries.join("libintelocl.so"));
    let vendors = folder(reports, "no-opencl")?;
    Ok(Driver { name: "intel", libraries: Some(libraries), vendors, file })
}
/// The programs of `examples/sycl` with kernels, and those of which each process is on another adapter, built and run on Intel's
/// runtime: the unmodified SYCL runtime over the adapters of a folder.
///
/// # Errors
/// What is needed cannot be fetched or built; a program fails.
pub fn programs(root: &Path, environment: &Path, adapters: &Path) -> Result<()> {
    install(environment, "runtime", INTEL)?;
    install(environment, "sycl", SYCL)?;
    let mut make = Command::new("make");
    make.args(["-j2", "-C"]).arg(root.join("examples/sycl")).args(["kernels", "across"]);
    for (name, folder) in [("SYCL", environment), ("DIST", adapters)] {
        make.arg(format!("{name}={}", folder.display()));
    }
    execute(&mut make)
}
/// The commands by which the README takes a user of SYCL from nothing to the programs with kernels, as they stand there.
pub fn first_commands(readme: &str) -> Result<Vec<String>> {
    let block = |text: &str| -> Option<String> {
        let after = text.split_once("## SYCL\n")?.1.split_once("```sh\n")?.1;
        Some(after.split_once("```")?.0.to_owned())
    };
    let lines = block(readme).ok_or("README.md has no commands under \"## SYCL\"")?;
    Ok(lines
        .lines()
        .map(|line| line.split(" #").next().unwrap_or(line).trim().to_owned())
        .collect())
}
/// Runs exactly what the README says, with an environment that is made anew.
///
/// # Errors
/// A command fails.
pub fn as_the_readme_says(root: &Path) -> Result<()> {
    let file = root.join("README.md");
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    for (old, built) in [("target/venv", "an environment"), ("target/examples-sycl", "programs")] {
        match fs::remove_dir_all(root.join(old)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{old} ({built}): {error}"));
            }
            _ => {}
        }
    }
    for line in first_commands(&text)? {
        println!("$ {line}");
        execute(Command::new("sh").args(["-ec", &line]).current_dir(root))?;
    }
    Ok(())
}
/// Installs packages into an environment of Python's, once; `name` is that of the note that says so.
///
/// # Errors
/// Python or pip is missing, or the packages cannot be fetched or are not what they were.
pub fn install(environment: &Path, name: &str, packages: &str) -> Result<()> {
    let note = environment.join(format!("{name}.txt"));
    if fs::read_to_string(&note).is_ok_and(|has| has == packages) {
        return Ok(());
    }
    if !environment.join("bin/python3").exists() {
        execute(Command::new("python3").args(["-m", "venv"]).arg(environment))?;
    }
    let wanted = environment.join("wanted.txt");
    fs::write(&wanted, packages).map_err(|e| format!("{}: {e}", wanted.display()))?;
    println!("installing into {} (once): {name}", environment.display());
    let mut pip = Command::new(environment.join("bin/python3"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    execute(pip.args(["--require-hashes", "--only-binary", ":all:", "-r"]).arg(&wanted))?;
    fs::rename(&wanted, &note).map_err(|e| format!("{}: {e}", note.display()))
}
fn execute(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let status = command.status().map_err(|e| format!("{program}: {e}; Python 3 is needed"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed ({status})")) }
}
/// PoCL; `None` where the system does not have it.
///
/// # Errors
/// The folder `reports` cannot be written to.
pub fn pocl(reports: &Path) -> Result<Option<Driver>> {
    let Ok(what) = fs::read(POCL) else { return Ok(None) };
    let vendors = folder(reports, "pocl")?;
    let file = vendors.join("pocl.icd");
    fs::write(&file, what).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(Some(Driver { name: "pocl", libraries: None, vendors, file: None }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, ffi::OsStr};

    #[test]
    fn the_readme_has_three_commands_for_users_of_sycl() {
        let readme = include_str!("../../README.md");
        let all = first_commands(readme).unwrap();
        assert_eq!(all.len(), 3, "{all:?}");
        for (line, part) in all.iter().zip(["pip install", "cargo xtask dist", "make -C"]) {
            assert!(line.contains(part), "{line}");
        }
        assert!(first_commands("# Another page\n").is_err());
    }
    #[test]
    fn a_run_sees_the_driver_that_it_is_given_or_none_and_never_the_machines() {
        let here = std::env::temp_dir().join(format!("causeway-opencl-{}", std::process::id()));
        let machine = || {
            let mut command = Command::new("env");
            command.env("OCL_ICD_FILENAMES", "/a.so").env("OPENCL_VENDOR_PATH", "/b");
            command
        };
        let told = |command: &Command| -> BTreeMap<_, _> {
            let all = command.get_envs();
            all.map(|(name, value)| (name.to_owned(), value.map(OsStr::to_owned))).collect()
        };
        let mut command = machine();
        none(&mut command, &here).unwrap();
        let told_none = told(&command);
        let vendors = told_none[OsStr::new("OCL_ICD_VENDORS")].as_ref().unwrap();
        assert_eq!(fs::read_dir(vendors).unwrap().count(), 0);
        for removed in ["OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH"] {
            assert_eq!(told_none[OsStr::new(removed)], None);
        }
        let file = Some(PathBuf::from("/own.so"));
        let driver = Driver { name: "own", libraries: None, vendors: here.clone(), file };
        let mut command = machine();
        driver.choose(&mut command);
        let told_own = told(&command);
        assert_eq!(told_own[OsStr::new("OCL_ICD_FILENAMES")].as_deref(), Some("/own.so".as_ref()));
        assert_eq!(told_own[OsStr::new("OCL_ICD_VENDORS")].as_deref(), Some(here.as_os_str()));
        fs::remove_dir_all(here).unwrap();
    }
}
