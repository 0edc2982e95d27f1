//! `cargo xtask fuzz`: runs every fuzzer of `fuzz/` for some time from its committed seeds, several at a time
//! if requested. New inputs stay in `fuzz/corpus` and crashes in `fuzz/artifacts`; neither is committed.
use crate::root;
use std::{
    fs,
    process::Command,
    sync::Mutex,
    thread::{self, ScopedJoinHandle},
};

/// What to run.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Runs only this fuzzer
    only: Option<String>,
    /// Seconds for each fuzzer
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// How many run at the same time
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
}

/// Builds and runs the selected fuzzers; fails if one found a fault.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let only = arguments.only.as_deref();
    let fuzzers: Vec<String> =
        fuzzers()?.into_iter().filter(|name| only.is_none_or(|only| only == name)).collect();
    if fuzzers.is_empty() {
        return Err(format!("fuzz/Cargo.toml has no fuzzer called {}", only.unwrap_or("anything")));
    }
    let built = cargo_fuzz("build").args(only).status().map_err(|e| format!("cargo fuzz: {e}"))?;
    if !built.success() {
        return Err("the fuzzers do not build".into());
    }
    let waiting = Mutex::new(fuzzers.iter());
    let next = || waiting.lock().expect("nobody panics with it").next();
    let work = || -> Result<(), String> {
        while let Some(name) = next() {
            fuzz(name, arguments.seconds)?;
        }
        Ok(())
    };
    let ended: Vec<_> = thread::scope(|threads| {
        let all: Vec<_> = (0..arguments.jobs).map(|_| threads.spawn(work)).collect();
        all.into_iter().map(ScopedJoinHandle::join).collect()
    });
    let wrong = |one: thread::Result<Result<(), String>>| match one {
        Ok(result) => result.err(),
        Err(_) => Some("the task panicked".into()),
    };
    let wrong: Vec<_> = ended.into_iter().filter_map(wrong).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Runs a fuzzer that is built.
fn fuzz(name: &str, seconds: u32) -> Result<(), String> {
    println!("== {name}, {seconds} s");
    let corpus = root().join("fuzz/corpus").join(name);
    fs::create_dir_all(&corpus).map_err(|e| format!("{}: {e}", corpus.display()))?;
    let seeds = root().join("fuzz/seeds").join(name);
    let mut fuzz = cargo_fuzz("run");
    fuzz.arg(name).arg(&corpus).arg(&seeds);
    fuzz.args(["--", "-print_final_stats=1", "-verbosity=0"]);
    fuzz.arg(format!("-max_total_time={seconds}"));
    let status = fuzz.status().map_err(|e| format!("cargo fuzz: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{name}: what broke it is in fuzz/artifacts/{name}")),
    }
}

/// Returns a subcommand of cargo-fuzz, with the profile that builds fastest.
fn cargo_fuzz(subcommand: &str) -> Command {
    let mut fuzz = Command::new("cargo");
    fuzz.current_dir(root().join("fuzz")).args(["+nightly", "fuzz", subcommand, "--dev"]);
    for set_by_cargo in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC"] {
        fuzz.env_remove(set_by_cargo); // they would override `+nightly`
    }
    fuzz
}

/// Returns the names of the fuzzers.
fn fuzzers() -> Result<Vec<String>, String> {
    let path = root().join("fuzz/Cargo.toml");
    let wrong = |why: String| format!("{}: {why}", path.display());
    let text = fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
    let manifest: toml::Table = text.parse().map_err(|e| wrong(format!("{e}")))?;
    let bins = manifest.get("bin").and_then(toml::Value::as_array);
    let names = bins.into_iter().flatten().filter_map(|bin| bin.get("name")?.as_str());
    Ok(names.map(String::from).collect())
}
