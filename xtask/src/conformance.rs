//! `cargo xtask conformance`: the suite of `crates/ur-conformance` through the C ABI, on each of our
//! shared objects and on an adapter of somebody else's.
use crate::{
    dist::{self, Request, execute},
    root,
    wheel::{BESIDE, LIBRARIES},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// The adapter that is not ours; without its driver it has no device.
const FOREIGN: &str = "libur_adapter_level_zero_v2.so.0";

/// What is to be judged.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Judges this adapter (native_cpu, null, level_zero_v2, ...) and not all; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

/// Judges; fails if something failed that is not known to, or is known to and does not.
pub fn run(arguments: &Arguments) -> Result<()> {
    let reports = root().join("target/conformance");
    fs::create_dir_all(&reports).map_err(|e| format!("{}: {e}", reports.display()))?;
    let suite = suite()?;
    let mut failed = Vec::new();
    for adapter in adapters(arguments, &reports)? {
        if !judge(&suite, &adapter, &reports)? {
            failed.push(name(&adapter));
        }
    }
    println!("reports: {}", reports.display());
    match failed.as_slice() {
        [] => Ok(()),
        some => Err(format!("not as expected: {}", some.join(", "))),
    }
}

/// The shared objects, ours first.
fn adapters(arguments: &Arguments, reports: &Path) -> Result<Vec<PathBuf>> {
    let foreign = name(Path::new(FOREIGN));
    let ours: Vec<_> = arguments.only.iter().filter(|name| **name != foreign).cloned().collect();
    let mut all = Vec::new();
    if !ours.is_empty() || arguments.only.is_empty() {
        let out = Some(reports.join("adapters"));
        all = dist::run(&Request { only: ours, out, debug: true })?;
    }
    if arguments.only.is_empty() || arguments.only.contains(&foreign) {
        match fetched(&reports.join("wheel")) {
            Ok(adapter) => all.push(adapter),
            Err(why) => println!("skipped: {foreign}: {why}; it comes with {}", LIBRARIES.name),
        }
    }
    Ok(all)
}

/// The foreign adapter with all that it needs beside it.
fn fetched(folder: &Path) -> Result<PathBuf> {
    for (wheel, files) in BESIDE {
        wheel.files(files, folder)?;
    }
    Ok(LIBRARIES.files(&[FOREIGN], folder)?.join(FOREIGN))
}

/// `libur_adapter_null.so.0` → `null`
fn name(adapter: &Path) -> String {
    let file = adapter.file_name().unwrap_or_default().to_string_lossy();
    let stem = file.trim_start_matches("libur_adapter_");
    stem.split('.').next().unwrap_or(stem).to_string()
}

/// Has cargo build the suite.
fn suite() -> Result<PathBuf> {
    execute(dist::cargo().args(["build", "--quiet", "--package", "ur-conformance"]))?;
    Ok(dist::target().join("debug/ur-conformance"))
}

/// Whether the adapter is as its list of known failures says; the suite finds that by its name.
fn judge(suite: &Path, adapter: &Path, reports: &Path) -> Result<bool> {
    let name = name(adapter);
    let file = |end: &str| reports.join(format!("{name}.{end}"));
    let mut command = Command::new(suite);
    command.arg("--adapter").arg(adapter);
    // What it needs may lie beside it, where no loader would look.
    command.env("LD_LIBRARY_PATH", adapter.parent().unwrap_or(reports));
    // Every known failure of the mock costs a process and most of the time is waiting; adapters
    // that do something have deadlines to keep.
    if name == "mock" {
        command.args(["-j", "8"]);
    }
    command.arg("--html").arg(file("html")).arg("--json").arg(file("json"));
    let out = command.output().map_err(|e| format!("{}: {e}", suite.display()))?;
    let said = String::from_utf8_lossy(&out.stdout);
    fs::write(file("txt"), said.as_bytes()).map_err(|e| format!("{}: {e}", reports.display()))?;
    println!("\n{name}");
    // A line for each case is for the file; a person wants what failed, and the table.
    let part = match out.status.success() {
        true => said.rfind("\nfamily "),
        false => said.find("\nfailures:"),
    };
    println!("{}", said[part.unwrap_or(0)..].trim());
    eprint!("{}", String::from_utf8_lossy(&out.stderr));
    Ok(out.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_is_called_by_what_is_between_the_library_and_its_version() {
        assert_eq!(name(Path::new("/a/libur_adapter_native_cpu.so.0")), "native_cpu");
        assert_eq!(name(Path::new(FOREIGN)), "level_zero_v2");
    }
}
