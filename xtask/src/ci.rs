//! `cargo xtask ci`: all checks before a change is accepted, step by step, with a table at the end. A step
//! whose tool is missing is reported as skipped, never as passed.
use crate::root;
use std::{
    collections::VecDeque,
    fs,
    io::{BufRead as _, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};
use ur_lock::locked;

/// A step of the checks.
struct Step {
    name: &'static str,
    command: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    when: When,
    /// Runs concurrently with the step before it: both use one processor most of the time and have no time
    /// limits inside.
    beside: bool,
    /// A command that must succeed for the step to be possible, and advice if it fails.
    needs: Option<(&'static [&'static str], &'static str)>,
}

/// Which form of the checks has a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum When {
    /// Also the quick one.
    Always,
    /// Not the quick one: it needs another toolchain, a download or minutes.
    Usually,
    /// The long one alone.
    Long,
}

/// The time without a line of output after which a step counts as hanging: several times what the longest silent
/// part of any step takes. How long a step may take in all is not limited, because processors differ.
const PATIENCE: Duration = Duration::from_mins(15);

const PLAIN: Step =
    Step { name: "", command: &[], env: &[], when: When::Always, beside: false, needs: None };
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
    Step { name: "the map is true", command: &["cargo", "xtask", "map"], ..PLAIN },
    Step {
        name: "no more files import each other",
        command: &["cargo", "xtask", "cycles"],
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
        name: "the Python module (pytest)",
        command: &["cargo", "xtask", "wheel", "--test"],
        when: When::Usually,
        needs: Some((
            &[
                "python3",
                "-m",
                "pip",
                "install",
                "--quiet",
                "--dry-run",
                "--ignore-installed",
                "maturin",
                "numpy",
                "pytest",
                "pytest-xdist",
                "mypy",
            ],
            "Python 3.10 or newer, and a pip that can fetch maturin, numpy, pytest, pytest-xdist and mypy",
        )),
        ..PLAIN
    },
    Step {
        name: "every interleaving of the event protocol (loom)",
        command: &["cargo", "test", "--package", "ur-ipc", "--release", "--test", "loom"],
        env: &[
            ("RUSTFLAGS", "--cfg loom"),
            ("CARGO_TARGET_DIR", "target/loom"),
            ("CARGO_PROFILE_RELEASE_LTO", "off"),
            ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
            ("CARGO_PROFILE_RELEASE_DEBUG", "none"),
        ],
        when: When::Usually,
        ..PLAIN
    },
    Step {
        name: "undefined behaviour, Stacked Borrows (Miri)",
        command: &[
            "cargo",
            "+nightly",
            "miri",
            "test",
            "--package",
            "ur-adapter",
            "--lib",
            "--tests",
        ],
        env: &[("MIRIFLAGS", "-Zmiri-permissive-provenance -Zmiri-disable-isolation")],
        when: When::Usually,
        beside: true,
        needs: Some(MIRI),
    },
    Step {
        name: "undefined behaviour, Tree Borrows (Miri)",
        command: &[
            "cargo",
            "+nightly",
            "miri",
            "test",
            "--package",
            "ur-adapter",
            "--lib",
            "--tests",
        ],
        env: &[(
            "MIRIFLAGS",
            "-Zmiri-permissive-provenance -Zmiri-disable-isolation -Zmiri-tree-borrows",
        )],
        when: When::Usually,
        beside: true,
        needs: Some(MIRI),
    },
    // loom's models run in another step, and its coroutines are not threads that sanitizers know.
    Step {
        name: "memory errors and leaks (AddressSanitizer)",
        command: &[
            "cargo",
            "+nightly",
            "test",
            "--package",
            "ur-cpu",
            "--package",
            "ur-cuda",
            "--package",
            "ur-level-zero",
            "--package",
            "ur-core",
            "--package",
            "ur-mock",
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
            // Relative to the packages' folders, in which tests run.
            ("LSAN_OPTIONS", "suppressions=../../xtask/sanitizers/leaks.txt"),
        ],
        when: When::Usually,
        needs: Some(NIGHTLY),
        ..PLAIN
    },
    // Without the tests across processes: ThreadSanitizer cannot see synchronization through another process,
    // and it gives up after a fork.
    Step {
        name: "data races (ThreadSanitizer)",
        command: &[
            "cargo",
            "+nightly",
            "test",
            "-Zbuild-std",
            "--package",
            "ur-cpu",
            "--package",
            "ur-core",
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
        when: When::Usually,
        needs: Some(NIGHTLY),
        ..PLAIN
    },
    Step {
        name: "data races in the backends of GPUs (ThreadSanitizer)",
        command: &[
            "cargo",
            "+nightly",
            "test",
            "-Zbuild-std",
            "--package",
            "ur-cuda",
            "--package",
            "ur-level-zero",
            "--target",
            "host-tuple",
            "--no-fail-fast",
            "--lib",
            "--",
            "--skip",
            "model",
        ],
        env: &[("RUSTFLAGS", "-Zsanitizer=thread"), ("CARGO_TARGET_DIR", "target/tsan")],
        when: When::Long,
        needs: Some(NIGHTLY),
        ..PLAIN
    },
    Step {
        name: "what others may send (fuzzing)",
        command: &["cargo", "xtask", "fuzz", "--seconds", "8", "--jobs", "2"],
        when: When::Usually,
        needs: Some((
            &["cargo", "+nightly", "fuzz", "--version"],
            "`cargo install cargo-fuzz`, and the nightly toolchain",
        )),
        ..PLAIN
    },
    Step {
        name: "every adapter through the C ABI and both loaders, in part (conformance --short)",
        command: &["cargo", "xtask", "conformance", "--short"],
        when: When::Usually,
        ..PLAIN
    },
    Step {
        name: "every adapter through the C ABI and both loaders (conformance)",
        command: &["cargo", "xtask", "conformance"],
        when: When::Long,
        ..PLAIN
    },
    Step {
        name: "OpenCL on the drivers of others, in part (conformance --opencl --short)",
        command: &["cargo", "xtask", "conformance", "--opencl", "--short"],
        when: When::Usually,
        needs: Some((&["python3", "-m", "venv", "--help"], "Python 3 with venv and pip")),
        ..PLAIN
    },
    Step {
        name: "SYCL kernels of two processes on the same memory (sycl-kernels)",
        command: &["cargo", "xtask", "sycl-kernels"],
        when: When::Usually,
        needs: Some((
            &["sh", "-c", "g++ --version && make --version && python3 -m venv --help"],
            "g++, make, and Python 3 with venv and pip",
        )),
        ..PLAIN
    },
    Step {
        name: "Level Zero on what Intel's small devices are like, in part (differential --profile igpu --short)",
        command: &["cargo", "xtask", "differential", "--short", "--profile", "igpu"],
        when: When::Usually,
        needs: Some((&["python3", "-m", "pip", "--version"], "Python 3 with pip")),
        ..PLAIN
    },
    Step {
        name: "Level Zero on what Intel's large devices are like, in part (differential --profile pvc --short)",
        command: &["cargo", "xtask", "differential", "--short", "--profile", "pvc"],
        when: When::Long,
        needs: Some((&["python3", "-m", "pip", "--version"], "Python 3 with pip")),
        ..PLAIN
    },
    Step {
        name: "Level Zero beside the reference's adapters, in part (differential --short)",
        command: &["cargo", "xtask", "differential", "--short"],
        when: When::Usually,
        needs: Some((&["python3", "-m", "pip", "--version"], "Python 3 with pip")),
        ..PLAIN
    },
    Step {
        name: "what is run on a card, in part and on the software driver (level-zero-card)",
        command: &[
            "cargo",
            "xtask",
            "level-zero-card",
            "--software",
            "--short",
            "--only",
            "platforms",
            "--only",
            "offsets",
            "--only",
            "a buffer of 6 GiB",
        ],
        when: When::Usually,
        ..PLAIN
    },
    Step {
        name: "the ABI is the reference's",
        command: &["cargo", "xtask", "abi-diff"],
        when: When::Usually,
        needs: Some((&["python3", "-m", "pip", "--version"], "Python 3 with pip")),
        ..PLAIN
    },
    Step {
        name: "the demo",
        command: &["cargo", "run", "--release", "--quiet", "--bin", "causeway", "--", "demo"],
        // Optimised less than for users, which builds faster and does not change the behaviour.
        env: &[
            ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
            ("CARGO_PROFILE_RELEASE_LTO", "off"),
            ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
            ("CARGO_PROFILE_RELEASE_DEBUG", "none"),
        ],
        when: When::Usually,
        ..PLAIN
    },
];

enum Outcome {
    Passed,
    /// With the lines that show what failed.
    Failed(Vec<String>),
    Skipped(&'static str),
}

/// Tells tests that they run in the long form of the checks.
const LONG: &str = "CAUSEWAY_LONG";

/// What to check.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Leaves out what needs another toolchain, a download or minutes
    #[arg(long)]
    quick: bool,
    /// Also what adds an hour: the long forms of tests, and steps that repeat on other devices what is judged on one
    #[arg(long, conflicts_with = "quick")]
    long: bool,
    /// Only the steps whose names contain this; may be given more than once
    #[arg(long, value_name = "PART", conflicts_with = "quick")]
    only: Vec<String>,
}
impl Arguments {
    fn chooses(&self, step: &Step) -> bool {
        let named = |part: &String| step.name.contains(part.as_str());
        let latest = match (self.quick, self.long) {
            (true, _) => When::Always,
            (_, true) => When::Long,
            _ => When::Usually,
        };
        match self.only.as_slice() {
            [] => step.when <= latest,
            only => only.iter().any(named),
        }
    }
}

/// Runs all selected steps, even after one has failed; fails if any failed.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let steps: Vec<&Step> = STEPS.iter().filter(|step| arguments.chooses(step)).collect();
    if steps.is_empty() {
        return Err(format!("no step is called {}", arguments.only.join(" or ")));
    }
    let mut rows = Vec::new();
    for together in steps.chunk_by(|_, next| next.beside) {
        rows.extend(at_once(together, arguments.long));
    }
    println!();
    rows.iter().for_each(|(name, outcome, took)| row(name, outcome, *took));
    for (name, outcome, _) in &rows {
        if let Outcome::Failed(said) = outcome {
            println!("\n{name}:");
            said.iter().for_each(|line| println!("  {line}"));
        }
    }
    let count = |f: fn(&Outcome) -> bool| rows.iter().filter(|r| f(&r.1)).count();
    let failed = count(|o| matches!(o, Outcome::Failed(_)));
    let passed = count(|o| matches!(o, Outcome::Passed));
    let skipped = count(|o| matches!(o, Outcome::Skipped(_)));
    println!("\nsteps: {passed} passed, {failed} failed, {skipped} skipped");
    match failed {
        0 => Ok(()),
        n => Err(format!("{n} of {} steps failed", rows.len())),
    }
}

/// Runs the steps concurrently; returns each one's outcome and duration.
fn at_once(steps: &[&Step], is_long: bool) -> Vec<(&'static str, Outcome, Duration)> {
    let timed = |step: &Step| {
        println!("\n== {}: {}", step.name, step.command.join(" "));
        let start = Instant::now();
        let outcome = one(step, is_long);
        let took = start.elapsed();
        clear(step);
        (step.name, outcome, took)
    };
    thread::scope(|threads| {
        let running: Vec<_> =
            steps.iter().map(|step| (step, threads.spawn(|| timed(step)))).collect();
        let ended = running.into_iter().map(|(step, thread)| {
            let lost =
                |_| (step.name, Outcome::Failed(vec!["the task panicked".into()]), Duration::ZERO);
            thread.join().unwrap_or_else(lost)
        });
        ended.collect()
    })
}

/// Removes a target folder of gigabytes that no other step uses.
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
        Outcome::Failed(_) => println!("FAILED   {seconds:7.1} s  {name}"),
        Outcome::Skipped(why) => println!("skipped              {name}: needs {why}"),
    }
}

fn one(step: &Step, is_long: bool) -> Outcome {
    if let Some((probe, remedy)) = step.needs
        && !command(probe)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    {
        return Outcome::Skipped(remedy);
    }
    let mut command = command(step.command);
    command.envs(is_long.then_some((LONG, "1"))).envs(step.env.iter().copied());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::Failed(vec![format!("{}: {error}", step.command[0])]),
    };
    let heard = Arc::new(Mutex::new(Instant::now()));
    let [hears, hears_too] = [(); 2].map(|()| Arc::clone(&heard));
    let [said, complained] = [
        child
            .stdout
            .take()
            .map(|pipe| thread::spawn(move || pass_on(pipe, std::io::stdout(), &hears))),
        child
            .stderr
            .take()
            .map(|pipe| thread::spawn(move || pass_on(pipe, std::io::stderr(), &hears_too))),
    ];
    let readers: Vec<_> = [said, complained].into_iter().flatten().collect();
    let ended = within(PATIENCE, &heard, &mut child);
    if ended.is_err() {
        // Descendants that were not found may still hold the pipes open.
        wait_until(Duration::from_secs(10), || readers.iter().all(|reader| reader.is_finished()));
    }
    let lines = readers.into_iter().filter(|reader| ended.is_ok() || reader.is_finished());
    let telling: Vec<String> = lines.flat_map(|reader| reader.join()).flatten().collect();
    match ended {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(_) => Outcome::Failed(telling),
        Err(why) => Outcome::Failed([why, telling].concat()),
    }
}

/// Waits for `child` to end. If nothing was `heard` of it for longer than `patience`, kills it with all its
/// descendants, and returns an error with what was running.
fn within(
    patience: Duration,
    heard: &Mutex<Instant>,
    child: &mut Child,
) -> Result<ExitStatus, Vec<String>> {
    loop {
        if let Some(ended) = child.try_wait().transpose() {
            return ended.map_err(|error| vec![error.to_string()]);
        }
        if locked(heard).elapsed() > patience {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let mut said = vec![format!("printed nothing for {} s; it was running:", patience.as_secs())];
    for pid in offspring(child.id()) {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        said.push(format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " ")));
        let _gone = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    }
    let _gone = child.wait();
    Err(said)
}
/// Waits until `done` returns true; returns whether it did in time.
fn wait_until(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > patience {
            return false;
        }
        thread::sleep(Duration::from_millis(50));
    }
    true
}
/// Returns a process and all its descendants.
fn offspring(root: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // After the name, which may contain any character, come the state and the parent's id.
    let parent = |pid: &u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let all: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent(&pid)?))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&of) = found.get(next) {
        found.extend(all.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

/// Forwards the output of a step as it comes, and returns the lines that show failures: readers look at the
/// table at the end of a long log first, and should find the reason there.
fn pass_on(pipe: impl Read, mut to: impl std::io::Write, heard: &Mutex<Instant>) -> Vec<String> {
    const MOST: usize = 36;
    let (mut telling, mut tail, mut after) = (Vec::new(), VecDeque::new(), 0);
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        *locked(heard) = Instant::now();
        let _unheard = to.write_all(&line).and_then(|()| to.write_all(b"\n"));
        let line: String = String::from_utf8_lossy(&line).chars().take(300).collect();
        after = if tells(&line) { 3 } else { after - i32::from(after > 0) };
        if after > 0 && telling.len() < MOST && !line.trim().is_empty() {
            telling.push(line.clone());
        }
        tail.push_back(line);
        if tail.len() > 4 {
            tail.pop_front();
        }
    }
    let _unheard = to.flush();
    if telling.is_empty() { tail.into() } else { telling }
}
fn tells(line: &str) -> bool {
    let marks = [
        "panicked at",
        "... FAILED",
        "error: ",
        "error[",
        "ERROR: ",
        "WARNING: ThreadSan",
        "has been running for over",
    ];
    // The last two are pytest's: what a test raised, and its name.
    let starts = ["error", "E   ", "FAILED "];
    marks.iter().any(|mark| line.contains(mark))
        || starts.iter().any(|start| line.starts_with(start))
}

/// Returns a command that runs in the repository's root, with the toolchain that the step names.
fn command(words: &[&str]) -> Command {
    // This program is built already, with other settings than those below, which would build it once more.
    let (program, arguments) = match (words, std::env::current_exe()) {
        (["cargo", "xtask", rest @ ..], Ok(this)) => (this.into_os_string(), rest),
        _ => (words[0].into(), &words[1..]),
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    // A checkout that is built once needs neither; both are most of a build's size.
    command.envs([("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "none")]);
    // Steps must not depend on the OpenCL drivers of the machine; a step that needs some names them.
    command.env("OCL_ICD_VENDORS", "/nonexistent").env_remove("OCL_ICD_FILENAMES");
    if words[0] == "cargo" && words.get(1) == Some(&"+nightly") {
        // The cargo that runs this task sets it, and it would override `+nightly`.
        command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Mutex<Instant> {
        Mutex::new(Instant::now())
    }
    #[test]
    fn what_tells_of_a_failure_is_kept_and_everything_is_passed_on() {
        let log = "test one ... ok\ntest two ... FAILED\n\n---- two stdout ----\n\
                   thread 'two' panicked at src/two.rs:3:5:\nassertion failed: a == b\n  left: 1\n";
        let mut heard = Vec::new();
        let told = pass_on(log.as_bytes(), &mut heard, &now());
        assert_eq!(heard, log.as_bytes());
        assert_eq!(told.first().unwrap(), "test two ... FAILED");
        assert!(told.iter().any(|line| line.contains("assertion failed: a == b")), "{told:?}");
        assert!(!told.iter().any(|line| line.contains("one")), "{told:?}");
    }
    #[test]
    fn what_pytest_says_of_a_failure_is_kept() {
        let log = ".F.  [100%]\n>   assert line\nE   AssertionError: it ended with -9\n\nx.py:5: AssertionError\n\
                   FAILED x.py::test_a - AssertionError: it ended with -9\nassert None is not None\n1 failed\n";
        let told = pass_on(log.as_bytes(), Vec::new(), &now());
        assert_eq!(told.first().unwrap(), "E   AssertionError: it ended with -9");
        assert!(told.iter().any(|line| line.starts_with("FAILED x.py::test_a")), "{told:?}");
    }
    #[test]
    fn what_hangs_is_ended_with_all_that_it_started_and_named() {
        let mut hanging = Command::new("sh").args(["-c", "sleep 98765 & wait"]).spawn().unwrap();
        assert!(wait_until(PATIENCE, || offspring(hanging.id()).len() == 2), "no child of it");
        let all = offspring(hanging.id());
        let said = within(Duration::ZERO, &now(), &mut hanging).unwrap_err();
        assert!(said.iter().any(|line| line.ends_with("sleep 98765 ")), "{said:?}");
        let is_gone = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.map_or(true, |stat| stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
        };
        assert!(wait_until(Duration::from_secs(10), || all.iter().all(is_gone)), "{all:?}");
    }
    #[test]
    fn steps_that_run_beside_one_another_are_all_told_of_and_wait_for_each_other() {
        // Each waits for a file that the other creates, so that they can only succeed concurrently.
        let here = std::env::temp_dir().join(format!("causeway-ci-{}", std::process::id()));
        fs::create_dir(&here).unwrap();
        let script = |mine: &str, its: &str| {
            let [mine, its] = [mine, its].map(|name| here.join(name).display().to_string());
            let wait =
                format!("for n in $(seq 600); do [ -e {its} ] && exit; sleep 0.1; done; exit 1");
            &*vec!["sh", "-c", &*format!("touch {mine}; {wait}").leak()].leak()
        };
        let (a, b) = (script("a", "b"), script("b", "a"));
        let steps =
            [Step { name: "a", command: a, ..PLAIN }, Step { name: "b", command: b, ..PLAIN }];
        let rows = at_once(&[&steps[0], &steps[1]], false);
        let well = |row: &(&str, Outcome, Duration)| matches!(row.1, Outcome::Passed);
        assert!(rows.iter().all(well));
        assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), ["a", "b"]);
        fs::remove_dir_all(here).unwrap();
    }
    #[test]
    fn what_takes_longer_than_its_silence_may_is_not_disturbed_while_it_prints() {
        let mut slow = Command::new("sh");
        slow.args(["-c", "for n in $(seq 30); do echo; sleep 0.1; done"]).stdout(Stdio::piped());
        let mut slow = slow.spawn().unwrap();
        let (heard, lines) = (now(), slow.stdout.take().unwrap());
        thread::scope(|threads| {
            threads.spawn(|| pass_on(lines, std::io::sink(), &heard));
            assert!(within(Duration::from_secs(2), &heard, &mut slow).unwrap().success());
        });
    }
    #[test]
    fn a_failure_that_says_nothing_known_is_told_by_its_last_lines() {
        let told = pass_on(&b"1\n2\n3\n4\n5\n"[..], Vec::new(), &now());
        assert_eq!(told, ["2", "3", "4", "5"]);
    }
}
