//! `cargo xtask mutants`: changes the modules on which sharing depends, one expression at a time, and runs
//! the tests that should fail. Changes that no test detects must be justified in `docs/mutants.md`.
use crate::root;
use std::{collections::BTreeSet, fs, process::Command};

type Result<T> = std::result::Result<T, String>;

/// Files of one package, and the tests that should detect changes: the fastest that suffice.
struct Module {
    name: &'static str,
    files: &'static [&'static str],
    tests: &'static [&'static str],
    /// The time limit for a run of the tests, in seconds; many mutants hang.
    patience: u32,
}
const MODULES: [Module; 6] = [
    Module {
        name: "envelope",
        files: &["crates/ur-ipc/src/envelope.rs"],
        tests: &["--lib"],
        patience: 15,
    },
    Module {
        name: "protocol",
        files: &["crates/ur-ipc/src/protocol.rs"],
        tests: &["--lib"],
        patience: 15,
    },
    Module {
        name: "broker",
        files: &["crates/ur-ipc/src/broker.rs"],
        tests: &["--lib", "--test", "opening", "--test", "death", "--test", "hostile"],
        patience: 40,
    },
    Module {
        name: "counts",
        files: &["crates/ur-adapter/src/object.rs"],
        tests: &["--lib", "--test", "objects"],
        patience: 15,
    },
    Module {
        name: "arena",
        files: &[
            "crates/ur-ipc/src/arena/own.rs",
            "crates/ur-ipc/src/arena/mod.rs",
            "crates/ur-ipc/src/arena/counter.rs",
            "crates/ur-ipc/src/arena/slot.rs",
        ],
        tests: &["--lib", "--test", "arena_processes", "--test", "death", "--test", "opening"],
        patience: 40,
    },
    Module {
        name: "completion",
        files: &["crates/ur-cpu/src/engine/completion.rs"],
        tests: &["--lib"],
        patience: 30,
    },
];
const ARGUED: &str = "docs/mutants.md";

/// Tests the module called `only`, or all; fails if a change was not detected and is not justified.
pub fn run(only: Option<&str>) -> Result<()> {
    let modules: Vec<_> = MODULES.iter().filter(|m| only.is_none_or(|o| o == m.name)).collect();
    if modules.is_empty() {
        let names: Vec<_> = MODULES.iter().map(|module| module.name).collect();
        return Err(format!("the modules are {}", names.join(", ")));
    }
    let path = root().join(ARGUED);
    let argued = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut new = Vec::new();
    for module in modules {
        let missed = missed(module)?;
        println!("{}: {} unnoticed", module.name, missed.len());
        new.extend(missed.into_iter().filter(|mutant| !argued.contains(&format!("`{mutant}`"))));
    }
    match new.as_slice() {
        [] => Ok(()),
        some => Err(format!(
            "nobody notices these, and {ARGUED} does not say why that is right:\n  {}",
            some.join("\n  ")
        )),
    }
}

/// Returns the changes that were not detected, without their line numbers, which change over time.
fn missed(module: &Module) -> Result<BTreeSet<String>> {
    let out = root().join("target/mutants").join(module.name);
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let mut mutants = Command::new("cargo");
    mutants.current_dir(root()).args(["mutants", "--jobs", "1", "--colors", "never"]);
    mutants.args(["--timeout", &module.patience.to_string(), "--output"]).arg(&out);
    mutants.args(module.files.iter().flat_map(|file| ["--file", file]));
    // The arguments apply to the build, too; otherwise every test of the package is built for every mutant.
    mutants.args(module.tests.iter().map(|test| format!("--cargo-arg={test}")));
    let status = mutants.status().map_err(|e| format!("cargo: {e}"))?;
    // 2: changes were not detected; 3: tests hung, which counts as detected.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!(
            "cargo mutants: {status}; install it with `cargo install cargo-mutants`"
        ));
    }
    let file = out.join("mutants.out/missed.txt");
    let missed = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(missed.lines().map(placeless).collect())
}

/// `a/b.rs:1:2: replace x` → `b.rs: replace x`
fn placeless(mutant: &str) -> String {
    let (place, change) = mutant.split_once(": ").unwrap_or(("", mutant));
    let file = place.split(':').next().unwrap_or(place);
    format!("{}: {change}", file.rsplit('/').next().unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_is_known_by_file_and_change() {
        let said = "crates/ur-ipc/src/broker.rs:370:48: replace | with & in accept";
        assert_eq!(placeless(said), "broker.rs: replace | with & in accept");
    }
    #[test]
    fn every_file_to_change_is_there() {
        for file in MODULES.iter().flat_map(|module| module.files) {
            assert!(root().join(file).exists(), "{file}");
        }
    }
}
