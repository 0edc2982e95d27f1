//! `cargo xtask level-zero-card`: what a person with an Intel GPU runs, once, and whose report they send back. The
//! conformance suite in five settings of the environment, the situations in which Intel's driver is not as the
//! specification says as programs, and how fast the adapter is beside the wheel's v2. `docs/level-zero-hardware.md` says
//! what each of them is for.
use crate::{
    differential,
    dist::{self, Request},
    root,
};
use std::{
    fmt::Write as _,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

type Result<T> = std::result::Result<T, String>;

/// How it is run.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// On our software driver, to see that all of it works where there is no card
    #[arg(long)]
    software: bool,
    /// Seconds and rounds are a tenth of what they are else
    #[arg(long)]
    short: bool,
    /// Runs what is called so, or has it in its name; may be given more than once
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// Where the report and the logs go; target/level-zero-card if not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

type Environment = &'static [(&'static str, &'static str)];
const UNPOOLED: (&str, &str) = ("UR_L0_DISABLE_USM_ALLOCATOR", "1");
/// The settings under which all of the suite is run.
const SETTINGS: [(&str, Environment); 5] = [
    ("batched", &[("UR_L0_USE_IMMEDIATE_COMMANDLISTS", "0")]),
    ("no counter-based events", &[("UR_L0_USE_DRIVER_COUNTER_BASED_EVENTS", "0")]),
    ("no USM pool", &[UNPOOLED]),
    ("no copy offload", &[("UR_L0_V2_FORCE_DISABLE_COPY_OFFLOAD", "1")]),
    ("loader interception", &[("ZE_ENABLE_LOADER_INTERCEPT", "1")]),
];
/// What one situation is seen by.
enum By {
    /// Cases of the suite: parts of their names.
    Suite(&'static [&'static str]),
    /// One test of `adapters/level-zero/tests`: its file, its name.
    Test(&'static str, &'static str),
    /// The cases, and no descriptor may be closed that is not open: the process is traced.
    Traced(&'static [&'static str]),
    /// The cases, so many times.
    Again(&'static [&'static str], u32),
}
/// A situation: its name, what it is seen by, and the environment.
struct Situation(&'static str, By, Environment);
/// In the order of `docs/level-zero-hardware.md`.
const SITUATIONS: &[Situation] = &[
    Situation("descriptors given to imports", By::Traced(&["ipc_physical", "ipc_memory"]), &[]),
    Situation(
        "fill against query",
        By::Test("queues", "a_thread_asks_for_events_and_finishes_while_another_one_fills"),
        &[],
    ),
    Situation(
        "waits for a peer beside copies",
        By::Test("engines", "a_thread_that_waits_for_a_signal_holds_up_no_copy_of_another_queue"),
        &[],
    ),
    Situation(
        "copies beside a queue that waits for a peer",
        By::Test(
            "peers",
            "a_queue_that_waits_for_another_process_holds_up_no_copy_of_another_queue",
        ),
        &[],
    ),
    Situation(
        "copies beside a queue that the host holds up",
        By::Test(
            "engines",
            "copies_behind_what_the_host_holds_up_hold_up_no_copy_of_another_queue",
        ),
        &[],
    ),
    Situation(
        "an exporter that has ended before the signaller",
        By::Test(
            "peers",
            "no_list_waits_for_an_event_whose_exporter_has_ended_though_its_signaller_lives",
        ),
        &[],
    ),
    Situation(
        "SIGKILL of the exporter",
        By::Again(&["the exporter that owes the signal is killed"], 100),
        &[],
    ),
    Situation("waits across devices", By::Suite(&["crossing::"]), &[]),
    Situation("memory of other processes", By::Suite(&["ipc_memory"]), &[]),
    Situation(
        "a buffer of 6 GiB",
        By::Test("programs", "a_kernel_writes_the_end_of_a_large_buffer"),
        &[("UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS", "1")],
    ),
    Situation(
        "device time beside the host's clock",
        By::Test(
            "queues",
            "time_passes_on_the_device_as_on_the_host_and_times_of_commands_lie_in_it",
        ),
        &[],
    ),
    Situation("memory that the driver pooled", By::Suite(&["ipc_memory"]), &[UNPOOLED]),
    Situation("offsets and access of mappings", By::Suite(&["virtual_mem", "physical_mem"]), &[]),
    Situation(
        "capabilities are what can be done",
        By::Suite(&["where the device says so", "device::"]),
        &[],
    ),
    Situation("platforms and devices that work", By::Suite(&["platform::", "device::"]), &[]),
    Situation("ends of commands that signal nothing", By::Suite(&["queue::", "event::"]), &[]),
    Situation("out-of-order queues", By::Suite(&["out-of-order", "overtake"]), &[]),
    Situation(
        "hierarchy COMPOSITE",
        By::Suite(&["device::", "context::", "ipc_memory"]),
        &[("ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE")],
    ),
    Situation(
        "hierarchy FLAT",
        By::Suite(&["device::", "context::", "ipc_memory"]),
        &[("ZE_FLAT_DEVICE_HIERARCHY", "FLAT")],
    ),
    Situation(
        "hierarchy COMBINED",
        By::Suite(&["device::", "context::", "ipc_memory"]),
        &[("ZE_FLAT_DEVICE_HIERARCHY", "COMBINED")],
    ),
    Situation(
        "pid namespaces and who may look into whom",
        By::Suite(&["namespace", "dumpable"]),
        &[],
    ),
];

/// What one part came to.
struct Outcome {
    name: String,
    passed: bool,
    told: String,
    took: Duration,
}
struct Card {
    adapter: PathBuf,
    suite: PathBuf,
    /// The folder of the software driver, if it stands for the machine's.
    driver: Option<PathBuf>,
    out: PathBuf,
    /// Of seconds and rounds, this one's part is left.
    less: u32,
}

/// Runs all parts, also after one has failed, and writes the report.
///
/// # Errors
/// If something cannot be built or written, and if a part failed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let out = arguments.out.clone().unwrap_or_else(|| dist::target().join("level-zero-card"));
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let (only, to) = (vec!["level_zero_v2".to_string()], Some(out.join("adapter")));
    let all = dist::run(&Request { only, out: to, debug: true, ..Request::default() })?;
    let is_it = |object: &&PathBuf| object.ends_with("libur_adapter_level_zero_v2.so.0");
    let adapter = all.iter().find(is_it).ok_or("the adapter was not built")?.clone();
    let driver =
        arguments.software.then(|| differential::driver(&out.join("driver"))).transpose()?;
    let less = if arguments.short { 10 } else { 1 };
    let card = Card { adapter, suite: dist::suite()?, driver, out, less };
    let asked = |name: &str| {
        arguments.only.is_empty() || arguments.only.iter().any(|part| name.contains(part.as_str()))
    };
    let mut outcomes = vec![];
    for (name, environment) in SETTINGS {
        let name = format!("the suite, {name}");
        if asked(&name) {
            outcomes.push(card.part(&name, |log| card.judge(&[], environment, log)));
        }
    }
    for Situation(name, by, environment) in SITUATIONS {
        if asked(name) {
            outcomes.push(card.part(name, |log| card.see(by, environment, log)));
        }
    }
    if asked("speed beside the wheel's v2") {
        outcomes.push(card.part("speed beside the wheel's v2", |log| card.measure(log)));
    }
    let report = card.report(&outcomes)?;
    println!("\nreport: {}\nsend that folder back, please", report.display());
    let failed = outcomes.iter().filter(|one| !one.passed).count();
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} parts failed", outcomes.len())) }
}

impl Card {
    fn part(&self, name: &str, work: impl FnOnce(&Path) -> Result<String>) -> Outcome {
        println!("== {name}");
        let file: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let start = Instant::now();
        let done = work(&self.out.join(format!("{file}.txt")));
        let (passed, told) = (done.is_ok(), done.unwrap_or_else(|why| why));
        let took = start.elapsed();
        println!(
            "   {} {told} ({:.0} s)",
            if passed { "ok:" } else { "FAILED:" },
            took.as_secs_f32()
        );
        Outcome { name: name.to_string(), passed, told, took }
    }
    /// A command on the driver that is asked for, whose output goes to `log`.
    fn on_driver(
        &self,
        command: &mut Command,
        environment: Environment,
        log: &Path,
    ) -> Result<bool> {
        command.envs(environment.iter().copied());
        if let Some(driver) = &self.driver {
            command.env("LD_LIBRARY_PATH", driver);
        }
        let said = |e: std::io::Error| format!("{}: {e}", log.display());
        let file = File::options().create(true).append(true).open(log).map_err(said)?;
        command.stdout(file.try_clone().map_err(said)?).stderr(file).stdin(Stdio::null());
        let program = command.get_program().display().to_string();
        command.status().map(|status| status.success()).map_err(|e| format!("{program}: {e}"))
    }
    fn judge(&self, filters: &[&str], environment: Environment, log: &Path) -> Result<String> {
        self.judge_by(Command::new(&self.suite), filters, environment, log)
    }
    /// Judges the cases with `filters` in their names, or all; how many passed.
    fn judge_by(
        &self,
        mut command: Command,
        filters: &[&str],
        environment: Environment,
        log: &Path,
    ) -> Result<String> {
        let _old = fs::remove_file(log);
        command.arg("--adapter").arg(&self.adapter);
        if environment.contains(&UNPOOLED) {
            // Each allocation that is shared has a descriptor of its own then.
            command.args(["--but", "ten thousand allocations"]);
        }
        filters.iter().for_each(|filter| {
            command.args(["--filter", filter]);
        });
        let passed = self.on_driver(&mut command, environment, log)?;
        let text = text(log)?;
        let count = text.lines().find(|line| line.starts_with("all ")).unwrap_or("no table");
        let count = count.split_whitespace().collect::<Vec<_>>().join(" ");
        if passed {
            Ok(format!("{count} (passed, skipped, known, failed)"))
        } else {
            Err(failures(&text))
        }
    }
    fn see(&self, by: &By, environment: Environment, log: &Path) -> Result<String> {
        match by {
            By::Suite(filters) => self.judge(filters, environment, log),
            By::Again(filters, rounds) => {
                let rounds = (rounds / self.less).max(1);
                for round in 0..rounds {
                    self.judge(filters, environment, log)
                        .map_err(|why| format!("round {round}: {why}"))?;
                }
                Ok(format!("{rounds} rounds of {}", filters.join(", ")))
            }
            By::Traced(filters) => self.trace(filters, environment, log),
            By::Test(file, name) => self.test(file, name, environment, log),
        }
    }
    /// One test of the adapter's own, in the time that it is given.
    fn test(&self, file: &str, name: &str, environment: Environment, log: &Path) -> Result<String> {
        let _old = fs::remove_file(log);
        let mut test = dist::cargo();
        test.args(["test", "--quiet", "--package", "level-zero", "--test", file, "--"]);
        test.args(["--exact", name, "--nocapture"]);
        let real = if self.driver.is_some() { "soft" } else { "real" };
        test.env("CAUSEWAY_LEVEL_ZERO", real)
            .env("CAUSEWAY_CARD_SECONDS", (60 / self.less).to_string());
        test.env("CAUSEWAY_CARD_GIB", "6").env("ZE_SOFTWARE_MEMORY", "8192");
        let passed = self.on_driver(&mut test, environment, log)?;
        let text = text(log)?;
        if !passed || !text.contains("1 passed") {
            return Err(text
                .lines()
                .filter(|line| line.contains("panicked") || line.contains("error"))
                .collect::<Vec<_>>()
                .join("; "));
        }
        let skipped = text.lines().find(|line| line.starts_with("skipped: "));
        Ok(skipped.unwrap_or("passed").to_string())
    }
    /// The cases under strace: no descriptor is closed that is not open.
    fn trace(&self, filters: &[&str], environment: Environment, log: &Path) -> Result<String> {
        if Command::new("strace").arg("-V").output().is_err() {
            let told = self.judge(filters, environment, log)?;
            return Ok(format!("{told}; strace is not there: descriptors were not watched"));
        }
        let trace = log.with_extension("strace");
        let mut command = Command::new("strace");
        command.args(["-f", "-e", "trace=close", "-o"]).arg(&trace).arg(&self.suite);
        // Who is traced cannot be stopped as those cases want it, nor answers in time that it has no descriptor left.
        command.args(["--but", "stopped in the middle", "--but", "without a descriptor left"]);
        let told = self.judge_by(command, filters, environment, log)?;
        let bad = text(&trace)?.lines().filter(|line| line.contains("EBADF")).count();
        let _large = fs::remove_file(&trace);
        match bad {
            0 => Ok(format!("{told}; no descriptor was closed twice")),
            bad => Err(format!("{bad} descriptors were closed that were not open")),
        }
    }
    fn measure(&self, log: &Path) -> Result<String> {
        let _old = fs::remove_file(log);
        let mut bench = dist::cargo();
        bench.args(["bench", "--quiet", "--package", "causeway-benches", "--bench", "level_zero"]);
        if self.driver.is_none() {
            bench.env("CAUSEWAY_LEVEL_ZERO", "real");
        }
        match self.on_driver(&mut bench, &[], log)? {
            true => Ok("see below".to_string()),
            false => Err(text(log)?.lines().last().unwrap_or("it says nothing").to_string()),
        }
    }
    /// What was seen, on what machine.
    fn report(&self, outcomes: &[Outcome]) -> Result<PathBuf> {
        let mut page = String::from("# Level Zero on a card\n\n");
        for (what, said) in self.machine() {
            let _fits = writeln!(page, "- {what}: {said}");
        }
        page += "\n| part | outcome | what it says | seconds |\n|---|---|---|---:|\n";
        for Outcome { name, passed, told, took } in outcomes {
            let word = if *passed { "passed" } else { "FAILED" };
            let told = told.replace('|', "/").replace('\n', " ");
            let _fits = writeln!(page, "| {name} | {word} | {told} | {:.0} |", took.as_secs_f32());
        }
        if let Ok(speed) = text(&self.out.join("speed-beside-the-wheel-s-v2.txt")) {
            let _fits = write!(page, "\n## Speed\n\n```\n{}\n```\n", speed.trim());
        }
        let file = self.out.join("report.md");
        fs::write(&file, page).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(file)
    }
    fn machine(&self) -> Vec<(&'static str, String)> {
        let line = |file: &str| text(Path::new(file)).map(|text| text.trim().to_string());
        let said = |program: &str, arguments: &[&str]| {
            let out = Command::new(program).args(arguments).current_dir(root()).output();
            let out = out.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_string());
            out.unwrap_or_else(|e| e.to_string())
        };
        let or = |told: Result<String>| told.unwrap_or_else(|_| "not there".to_string());
        let cards = fs::read_dir("/sys/class/drm").into_iter().flatten().flatten();
        let cards = cards.filter_map(|card| {
            let uevent = text(&card.path().join("device/uevent")).ok()?;
            let told = |key: &str| uevent.lines().find_map(|line| line.strip_prefix(key));
            Some(format!("{} {}", told("DRIVER=")?, told("PCI_ID=")?))
        });
        let mut cards: Vec<_> = cards.collect();
        cards.sort();
        cards.dedup();
        vec![
            (
                "driver",
                if self.driver.is_some() { "ze-software".into() } else { "the machine's".into() },
            ),
            ("the loader", said("sh", &["-c", "ldconfig -p | grep -m1 libze_loader || echo none"])),
            (
                "Intel's driver",
                said("sh", &["-c", "ldconfig -p | grep -m1 libze_intel_gpu || echo none"]),
            ),
            (
                "its packages",
                said(
                    "sh",
                    &[
                        "-c",
                        "dpkg -l 2>/dev/null | grep -E 'libze|level-zero|intel-opencl' | awk '{print $2, $3}' | tr '\\n' ';'",
                    ],
                ),
            ),
            ("cards", cards.join(", ")),
            ("kernel", or(line("/proc/sys/kernel/osrelease"))),
            ("who may look into whom (Yama)", or(line("/proc/sys/kernel/yama/ptrace_scope"))),
            ("user namespaces", or(line("/proc/sys/user/max_user_namespaces"))),
            ("commit", said("git", &["rev-parse", "HEAD"])),
        ]
    }
}
fn text(file: &Path) -> Result<String> {
    let mut bytes = vec![];
    let read = File::open(file).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
/// The names of the cases that failed, of what the suite printed.
fn failures(text: &str) -> String {
    let last = text.rsplit_once("\nfailures:\n").map_or("", |(_, last)| last);
    let names = last.lines().map(str::trim).take_while(|line| !line.starts_with("test result"));
    let names: Vec<_> = names.filter(|line| !line.is_empty()).collect();
    match names.as_slice() {
        [] => text.lines().last().unwrap_or("it says nothing").to_string(),
        some => some.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_by_its_names_and_else_by_the_last_line() {
        let text = "x\nfailures:\n\n---- a: b ----\nwhy\n\n\nfailures:\n    a: b\n    c: d\n\ntest result: FAILED. 1 passed\n";
        assert_eq!(failures(text), "a: b; c: d");
        assert_eq!(failures("one\nno adapter"), "no adapter");
    }
    #[test]
    fn the_report_says_of_each_part_what_came_of_it() {
        let out = std::env::temp_dir().join(format!("causeway-card-{}", std::process::id()));
        fs::create_dir_all(&out).unwrap();
        let (adapter, suite) = (PathBuf::from("adapter"), PathBuf::from("suite"));
        let card = Card { adapter, suite, driver: Some(out.clone()), out: out.clone(), less: 10 };
        let good = card.part("what works", |_| Ok("all of it".to_string()));
        let bad = card.part("what does not", |_| Err("case a | case b".to_string()));
        let page = fs::read_to_string(card.report(&[good, bad]).unwrap()).unwrap();
        fs::remove_dir_all(&out).unwrap();
        assert!(page.contains("- driver: ze-software\n"), "{page}");
        assert!(page.contains("| what works | passed | all of it | 0 |"), "{page}");
        assert!(page.contains("| what does not | FAILED | case a / case b | 0 |"), "{page}");
    }
    #[test]
    fn tests_that_are_named_are_there() {
        for Situation(name, by, _) in SITUATIONS {
            if let By::Test(file, test) = by {
                let file = root().join(format!("adapters/level-zero/tests/{file}.rs"));
                let source = fs::read_to_string(file).unwrap();
                assert!(source.contains(&format!("fn {test}()")), "{name}: {test}");
            }
        }
    }
}
