//! `cargo xtask ci`: everything that must hold before a change lands, step by step, with a table
//! at the end. A step whose tool is missing says so and counts as skipped, never as passed.
use crate::root;
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// One thing that must hold.
struct Step {
    name: &'static str,
    command: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// Left out by `--quick`: needs another toolchain, a download or minutes.
    slow: bool,
    /// What must succeed for the step to be possible, and what to do about it.
    needs: Option<(&'static [&'static str], &'static str)>,
}

const PLAIN: Step = Step { name: "", command: &[], env: &[], slow: false, needs: None };
const MIRI: (&[&str], &str) = (
    &["cargo", "+nightly", "miri", "--version"],
    "`rustup component add miri rust-src --toolchain nightly`",
);

const NIGHTLY: (&[&str], &str) = (
    &["cargo", "+nightly", "test", "-Zbuild-std", "--help"],
    "`rustup component add rust-src --toolchain nightly`",
);

const STEPS: &[Step] = &[
    Step { name: "formatting", command: &["cargo", "fmt", "--all", "--check"], ..PLAIN },
    Step {
        name: "generated files are fresh",
        command: &["cargo", "xtask", "generate", "--check"],
        ..PLAIN
    },
    Step {
        name: "lints",
        command: &["cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        ..PLAIN
    },
    Step {
        name: "documentation",
        command: &["cargo", "doc", "--workspace", "--no-deps", "--quiet"],
        env: &[("RUSTDOCFLAGS", "-D warnings")],
        ..PLAIN
    },
    Step { name: "tests", command: &["cargo", "test", "--workspace", "--no-fail-fast"], ..PLAIN },
    Step {
        name: "every interleaving of the event protocol (loom)",
        command: &["cargo", "test", "--package", "ur-ipc", "--release", "--test", "loom"],
        env: &[("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", "target/loom")],
        slow: true,
        ..PLAIN
    },
    Step {
        name: "undefined behaviour, Stacked Borrows (Miri)",
        command: &["cargo", "+nightly", "miri", "test", "--package", "ur-adapter"],
        env: &[("MIRIFLAGS", "-Zmiri-permissive-provenance -Zmiri-disable-isolation")],
        slow: true,
        needs: Some(MIRI),
    },
    Step {
        name: "undefined behaviour, Tree Borrows (Miri)",
        command: &["cargo", "+nightly", "miri", "test", "--package", "ur-adapter"],
        env: &[(
            "MIRIFLAGS",
            "-Zmiri-permissive-provenance -Zmiri-disable-isolation -Zmiri-tree-borrows",
        )],
        slow: true,
        needs: Some(MIRI),
    },
    // loom's models are run elsewhere, and its generators are not threads that sanitizers know.
    Step {
        name: "memory errors and leaks (AddressSanitizer)",
        command: &[
            "cargo",
            "+nightly",
            "test",
            "--package",
            "ur-adapters",
            "--target",
            "host-tuple",
            "--no-fail-fast",
            "--lib",
            "--tests",
            "--",
            "--skip",
            "model",
        ],
        env: &[
            ("RUSTFLAGS", "-Zsanitizer=address"),
            ("CARGO_TARGET_DIR", "target/asan"),
            // From where tests run: their packages.
            ("LSAN_OPTIONS", "suppressions=../../xtask/sanitizers/leaks.txt"),
        ],
        slow: true,
        needs: Some(NIGHTLY),
    },
    // Without the tests across processes: what is ordered by way of another process is no order
    // that ThreadSanitizer can see, and after a fork it gives up.
    Step {
        name: "data races (ThreadSanitizer)",
        command: &[
            "cargo",
            "+nightly",
            "test",
            "-Zbuild-std",
            "--package",
            "ur-adapters",
            "--target",
            "host-tuple",
            "--no-fail-fast",
            "--lib",
            "--test",
            "buffers",
            "--test",
            "command_buffers",
            "--test",
            "command_updates",
            "--test",
            "graphs",
            "--test",
            "images",
            "--test",
            "kernels",
            "--test",
            "launches",
            "--test",
            "overlap",
            "--test",
            "pools",
            "--test",
            "queues",
            "--test",
            "threads",
            "--test",
            "usm_async",
            "--",
            "--skip",
            "model",
        ],
        env: &[("RUSTFLAGS", "-Zsanitizer=thread"), ("CARGO_TARGET_DIR", "target/tsan")],
        slow: true,
        needs: Some(NIGHTLY),
    },
    Step {
        name: "what others may send (fuzzing)",
        command: &["cargo", "xtask", "fuzz", "--seconds", "60"],
        env: &[],
        slow: true,
        needs: Some((
            &["cargo", "+nightly", "fuzz", "--version"],
            "`cargo install cargo-fuzz`, and the nightly toolchain",
        )),
    },
    Step {
        name: "every adapter through the C ABI (conformance)",
        command: &["cargo", "xtask", "conformance"],
        slow: true,
        ..PLAIN
    },
    Step {
        name: "the ABI is the reference's",
        command: &["cargo", "xtask", "abi-diff"],
        slow: true,
        needs: Some((&["python3", "-m", "pip", "--version"], "Python 3 with pip")),
        ..PLAIN
    },
    Step {
        name: "the demo",
        command: &["cargo", "run", "--release", "--quiet", "--bin", "causeway", "--", "demo"],
        slow: true,
        ..PLAIN
    },
];

enum Outcome {
    Passed,
    Failed,
    Skipped(&'static str),
}

/// Runs every step, also after one has failed; fails if one has.
pub fn run(quick: bool) -> Result<(), String> {
    let mut rows = Vec::new();
    for step in STEPS.iter().filter(|s| !(quick && s.slow)) {
        println!("\n== {}: {}", step.name, step.command.join(" "));
        let start = Instant::now();
        rows.push((step.name, one(step), start.elapsed()));
        clear(step);
    }
    println!();
    rows.iter().for_each(|(name, outcome, took)| row(name, outcome, *took));
    let count = |f: fn(&Outcome) -> bool| rows.iter().filter(|r| f(&r.1)).count();
    let failed = count(|o| matches!(o, Outcome::Failed));
    let passed = count(|o| matches!(o, Outcome::Passed));
    let skipped = count(|o| matches!(o, Outcome::Skipped(_)));
    println!("\nsteps: {passed} passed, {failed} failed, {skipped} skipped");
    match failed {
        0 => Ok(()),
        n => Err(format!("{n} of {} steps failed", rows.len())),
    }
}

/// Gives back the gigabytes of a build that no other step uses.
fn clear(step: &Step) {
    for (_, folder) in step.env.iter().filter(|(name, _)| *name == "CARGO_TARGET_DIR") {
        if let Err(error) = std::fs::remove_dir_all(root().join(folder))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("{folder}: not removed: {error}");
        }
    }
}

fn row(name: &str, outcome: &Outcome, took: Duration) {
    let seconds = took.as_secs_f32();
    match outcome {
        Outcome::Passed => println!("passed   {seconds:7.1} s  {name}"),
        Outcome::Failed => println!("FAILED   {seconds:7.1} s  {name}"),
        Outcome::Skipped(why) => println!("skipped              {name}: needs {why}"),
    }
}

fn one(step: &Step) -> Outcome {
    if let Some((probe, remedy)) = step.needs
        && !command(probe)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    {
        return Outcome::Skipped(remedy);
    }
    let status = command(step.command).envs(step.env.iter().copied()).status();
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(_) => Outcome::Failed,
        Err(error) => {
            eprintln!("{}: {error}", step.command[0]);
            Outcome::Failed
        }
    }
}
/// A command in the repository's root, with the toolchain that the step names and no other.
fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(root());
    // A checkout that is built once needs neither; both are most of a build's size.
    command.envs([("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "none")]);
    if words[0] == "cargo" && words.get(1) == Some(&"+nightly") {
        // Set by the cargo that runs this task; it would win over `+nightly`.
        command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    }
    command
}
