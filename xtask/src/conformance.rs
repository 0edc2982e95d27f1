//! `cargo xtask conformance`: the suite of `crates/ur-conformance` through the C ABI and our loader, on
//! each of our shared objects and on an adapter of somebody else's; and once more through somebody else's
//! loader, after which every case must have come out the same.
use crate::{
    dist::{self, Request, execute},
    root,
    wheel::{BESIDE, LIBRARIES},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// The adapter that is not ours; without its driver it has no device.
const FOREIGN: &str = "libur_adapter_level_zero_v2.so.0";
/// The loader that is not ours.
const LOADER: &str = "libur_loader.so.0";

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
    let loader = match loader(&reports.join("wheel")) {
        Ok(loader) => Some(loader),
        Err(why) => {
            println!("skipped: {LOADER}: {why}; it comes with {}", LIBRARIES.name);
            None
        }
    };
    let mut failed = Vec::new();
    for adapter in adapters(arguments, &reports)? {
        let name = name(&adapter);
        let ours = Run { suite: &suite, adapter: &adapter, door: None, reports: &reports };
        if !ours.judge()? {
            failed.push(name.clone());
        }
        // The mock dies of every other case, in both.
        if name == "mock" {
            continue;
        }
        let Some(loader) = &loader else { continue };
        let theirs = Run { door: Some(loader), ..ours };
        theirs.judge()?;
        let different = different(&ours.outcomes()?, &theirs.outcomes()?);
        if !different.is_empty() {
            println!("{name}: not the same through {LOADER}:\n{}", different.join("\n"));
            failed.push(format!("{name} through {LOADER}"));
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
        all.retain(|object| !name(object).starts_with("libur_loader"));
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

/// The foreign loader with all that it needs beside it.
fn loader(folder: &Path) -> Result<PathBuf> {
    for (wheel, files) in BESIDE {
        wheel.files(files, folder)?;
    }
    Ok(LIBRARIES.files(&[LOADER], folder)?.join(LOADER))
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

/// One run of the suite.
#[derive(Clone, Copy)]
struct Run<'a> {
    suite: &'a Path,
    adapter: &'a Path,
    /// The loader's shared object; ours if there is none.
    door: Option<&'a PathBuf>,
    reports: &'a Path,
}

impl Run<'_> {
    fn file(&self, end: &str) -> PathBuf {
        let through = if self.door.is_some() { "-through-theirs" } else { "" };
        self.reports.join(format!("{}{through}.{end}", name(self.adapter)))
    }
    /// Whether the adapter is as its list of known failures says; the suite finds that by its name.
    fn judge(&self) -> Result<bool> {
        let name = name(self.adapter);
        let mut command = Command::new(self.suite);
        command.arg("--adapter").arg(self.adapter);
        // What it needs may lie beside it, where no loader would look.
        command.env("LD_LIBRARY_PATH", self.adapter.parent().unwrap_or(self.reports));
        if let Some(door) = self.door {
            command.arg("--through").arg(door);
        }
        // Every known failure of the mock costs a process and most of the time is waiting; adapters
        // that do something have deadlines to keep.
        if name == "mock" {
            command.args(["-j", "8"]);
        }
        command.arg("--html").arg(self.file("html")).arg("--json").arg(self.file("json"));
        let out = command.output().map_err(|e| format!("{}: {e}", self.suite.display()))?;
        let said = String::from_utf8_lossy(&out.stdout);
        let text = self.file("txt");
        fs::write(&text, said.as_bytes()).map_err(|e| format!("{}: {e}", text.display()))?;
        println!("\n{name}{}", if self.door.is_some() { ", through the other loader" } else { "" });
        // A line for each case is for the file; a person wants what failed, and the table.
        let part = match out.status.success() {
            true => said.rfind("\nfamily "),
            false => said.find("\nfailures:"),
        };
        println!("{}", said[part.unwrap_or(0)..].trim());
        eprint!("{}", String::from_utf8_lossy(&out.stderr));
        Ok(out.status.success())
    }
    /// What came of each case.
    fn outcomes(&self) -> Result<BTreeMap<String, String>> {
        let file = self.file("json");
        let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", file.display());
        let text = fs::read_to_string(&file).map_err(|e| wrong(&e))?;
        let report: serde_json::Value = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
        let records = report["records"].as_array().ok_or_else(|| wrong(&"it has no records"))?;
        let word = |of: &serde_json::Value| of.as_str().unwrap_or_default().to_string();
        Ok(records.iter().map(|one| (word(&one["title"]), word(&one["outcome"]))).collect())
    }
}

/// Our loader refuses a null handle, of which an adapter behind the other one may die.
fn is_refused_by_us(title: &str) -> bool {
    ["is INVALID_NULL_HANDLE", "that are refused at once"].iter().any(|part| title.contains(part))
}
/// The cases that did not come out the same.
fn different(ours: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>) -> Vec<String> {
    let titles: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let outcome = |of: &BTreeMap<String, String>, title: &String| {
        of.get(title).cloned().unwrap_or_else(|| "not judged".to_string())
    };
    let both = titles.into_iter().map(|t| (t, outcome(ours, t), outcome(theirs, t)));
    let same = |title: &str, ours: &str, theirs: &str| {
        ours == theirs || (ours == "passed" && theirs == "failed" && is_refused_by_us(title))
    };
    both.filter(|(title, ours, theirs)| !same(title, ours, theirs))
        .map(|(title, ours, theirs)| {
            format!("  {title}: {ours} through ours, {theirs} through theirs")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_is_called_by_what_is_between_the_library_and_its_version() {
        assert_eq!(name(Path::new("/a/libur_adapter_native_cpu.so.0")), "native_cpu");
        assert_eq!(name(Path::new(FOREIGN)), "level_zero_v2");
    }
    #[test]
    fn a_case_that_came_out_otherwise_or_is_missing_is_told() {
        let outcomes = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
            all.iter().map(|(title, of)| ((*title).to_string(), (*of).to_string())).collect()
        };
        let ours = outcomes(&[("a", "passed"), ("b", "passed"), ("c", "skipped")]);
        let theirs = outcomes(&[("a", "passed"), ("b", "failed")]);
        let told = different(&ours, &theirs);
        assert!(told[0].contains("b: passed through ours, failed") && told.len() == 2, "{told:?}");
        assert!(told[1].contains("c: skipped through ours, not judged"), "{told:?}");
    }
}
