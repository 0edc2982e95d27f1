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
/// Where Debian's package `pocl-opencl-icd` says what is to be loaded.
const POCL: &str = "/etc/OpenCL/vendors/pocl.icd";

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
