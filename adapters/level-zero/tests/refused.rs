//! A driver that refuses one call: the entry that needed the call fails or the events do, nothing hangs, everything can be
//! released, and what comes afterwards works. On the software driver, which refuses the call that it is told to refuse.
//!
//! The short form refuses a few calls of each function; `CAUSEWAY_REFUSED=all` refuses many more, in more settings.
mod c;
#[path = "c/gate.rs"]
mod gate;
#[path = "c/mixed.rs"]
mod mixed;

use c::VARIABLE;
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::Read as _,
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// How long the program may take, where a hundredth of it would do: who takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(60);
/// Tells the program that it is the one with the refusing driver.
const INSIDE: &str = "CAUSEWAY_TEST_INSIDE";
type Setting = &'static [(&'static str, &'static str)];
const BATCHED: (&str, &str) = ("UR_L0_USE_IMMEDIATE_COMMANDLISTS", "0");
const APART: [(&str, &str); 3] =
    [("ZE_SOFTWARE_DEVICES", "2"), ("ZE_SOFTWARE_PEER", "0"), ("ZE_SOFTWARE_EVENT_POOL", "strict")];
/// Each way in which commands get to the driver.
const SETTINGS: [Setting; 6] = [
    &[],
    &[BATCHED],
    &[("ZE_SOFTWARE_PROFILE", "igpu")],
    &APART,
    &[("ZE_SOFTWARE_PROFILE", "igpu"), BATCHED],
    &[
        ("ZE_SOFTWARE_COUNTER_EVENTS", "none"),
        ("ZE_SOFTWARE_HIDE", "zeCommandListAppendHostFunction"),
    ],
];
/// Out of device memory, and device lost: what passes, and what does not look as if it did.
const CODES: [&str; 2] = ["0x70000003", "0x70000001"];

/// The program of which one call is refused.
#[test]
fn program() {
    if std::env::var_os(INSIDE).is_some() {
        mixed::run();
    }
}
fn start(setting: Setting, more: (&str, &str)) -> Child {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "program", "--nocapture"]).env(INSIDE, "1");
    program.envs(setting.iter().copied()).env(more.0, more.1);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program.spawn().unwrap()
}
/// What it wrote, and why it did not end well.
fn end(mut program: Child) -> (String, Option<String>) {
    let (mut out, mut errors) = (program.stdout.take().unwrap(), program.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut said = String::new();
        let _ = errors.read_to_string(&mut said);
        let _ = out.read_to_string(&mut said);
        said
    });
    let deadline = Instant::now() + DEADLINE;
    let status = loop {
        match program.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if Instant::now() > deadline => break None,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    if status.is_none() {
        program.kill().unwrap();
        program.wait().unwrap();
    }
    let why = match status {
        None => Some("hangs".to_owned()),
        Some(status) if status.success() => None,
        Some(status) => Some(format!("fails, {status}")),
    };
    (reader.join().unwrap(), why)
}
/// How often the program calls each function of the driver.
fn calls(setting: Setting) -> BTreeMap<String, u64> {
    let (said, why) = end(start(setting, ("ZE_SOFTWARE_TRACE", "1")));
    assert_eq!(why, None, "{said}");
    let mut calls = BTreeMap::new();
    for line in said.lines().filter_map(|line| line.strip_prefix("ze-software[")) {
        let name = line.split_whitespace().nth(1).unwrap();
        *calls.entry(name.to_owned()).or_default() += 1;
    }
    assert!(calls.len() > 20, "{said}");
    calls
}
#[test]
fn each_call_of_the_driver_may_be_refused_once_and_nothing_hangs() {
    if std::env::var(VARIABLE).as_deref() != Ok("soft") {
        println!("skipped: the software driver alone does as it is told");
        return;
    }
    let is_long = std::env::var("CAUSEWAY_REFUSED").is_ok_and(|set| set == "all");
    let mut wishes = vec![];
    for setting in &SETTINGS[..if is_long { 6 } else { 4 }] {
        for (name, count) in calls(setting) {
            let few: Vec<_> = if is_long { (1..=32).collect() } else { vec![1, 2, 4, 10] };
            let codes = if is_long { &CODES[..] } else { &CODES[..1] };
            for nth in few.into_iter().filter(|nth| *nth <= count) {
                wishes.extend(codes.iter().map(|code| (*setting, format!("{name}:{nth}={code}"))));
            }
        }
    }
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(String::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((setting, wish)) = wishes.get(next.fetch_add(1, Relaxed)) {
                    let (said, why) = end(start(setting, ("ZE_SOFTWARE_FAIL", wish)));
                    let Some(why) = why else { continue };
                    let mut failures = failures.lock().unwrap();
                    writeln!(failures, "{wish} with {setting:?}: the program {why}\n{said}")
                        .unwrap();
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "of {} programs:\n{failures}", wishes.len());
    println!("{} programs", wishes.len());
}
