//! `cargo xtask fuzz`: every fuzzer of `fuzz/` for a while, from its committed seeds. What it finds
//! new stays in `fuzz/corpus`, what it breaks in `fuzz/artifacts`; neither is committed.
use crate::root;
use std::{fs, process::Command};

/// Runs those of the fuzzers that are called `only`, or all, each for so many seconds.
pub fn run(only: Option<&str>, seconds: u32) -> Result<(), String> {
    let fuzzers: Vec<String> =
        fuzzers()?.into_iter().filter(|name| only.is_none_or(|only| only == name)).collect();
    if fuzzers.is_empty() {
        return Err(format!("fuzz/Cargo.toml has no fuzzer called {}", only.unwrap_or("anything")));
    }
    for name in &fuzzers {
        println!("== {name}, {seconds} s");
        let corpus = root().join("fuzz/corpus").join(name);
        fs::create_dir_all(&corpus).map_err(|e| format!("{}: {e}", corpus.display()))?;
        let seeds = root().join("fuzz/seeds").join(name);
        let mut fuzz = Command::new("cargo");
        fuzz.current_dir(root().join("fuzz")).args(["+nightly", "fuzz", "run", name]);
        fuzz.arg(&corpus).arg(&seeds);
        fuzz.args(["--", "-print_final_stats=1", "-verbosity=0"]);
        fuzz.arg(format!("-max_total_time={seconds}"));
        for set_by_cargo in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC"] {
            fuzz.env_remove(set_by_cargo); // they would win over `+nightly`
        }
        let status = fuzz.status().map_err(|e| format!("cargo fuzz: {e}"))?;
        if !status.success() {
            return Err(format!("{name}: what broke it is in fuzz/artifacts/{name}"));
        }
    }
    Ok(())
}

/// The names of the fuzzers.
fn fuzzers() -> Result<Vec<String>, String> {
    let path = root().join("fuzz/Cargo.toml");
    let wrong = |why: String| format!("{}: {why}", path.display());
    let text = fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
    let manifest: toml::Table = text.parse().map_err(|e| wrong(format!("{e}")))?;
    let bins = manifest.get("bin").and_then(toml::Value::as_array);
    let names = bins.into_iter().flatten().filter_map(|bin| bin.get("name")?.as_str());
    Ok(names.map(String::from).collect())
}
