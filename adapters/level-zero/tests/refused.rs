//! A driver that refuses one call: the entry that needed the call fails or the events do, nothing hangs, everything can be
//! released, and what comes afterwards works. On the software driver, which refuses the call that it is told to refuse.
//!
//! The short form refuses a few calls of each function; `CAUSEWAY_REFUSED=all` refuses many more, in more settings.
mod c;
#[path = "c/calls.rs"]
mod calls;
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
use ur_sys::ur_result_t as R;

/// How many commands of two queues wait for one another.
const COMMANDS: usize = 3000;
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
/// A program whose two queues wait for each other's last command, `COMMANDS` times in all.
#[test]
fn ping_pong() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let zero = c::Zero::new().unwrap();
    let (there, from) = (zero.device_memory(4096), zero.device_memory(4096));
    let queues = [calls::queue(&zero, Default::default()), zero.queue];
    let mut last = calls::barrier(zero.queue, &[]);
    for number in 0..COMMANDS {
        let next = calls::copy(queues[number % 2], (there, from), &[last]);
        calls::let_go(std::mem::replace(&mut last, next));
        if number % 50 == 49 {
            queues.iter().for_each(|queue| assert_eq!(call!(queue.finish(*queue)), R::SUCCESS));
        }
    }
    calls::let_go(last);
    calls::release(queues[0]);
    [there, from].into_iter().for_each(|at| zero.free(at));
}
fn start(program: &str, setting: Setting, more: (&str, &str)) -> Child {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", program, "--nocapture"]).env(INSIDE, "1");
    again.envs(setting.iter().copied()).env(more.0, more.1);
    again.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    again.spawn().unwrap()
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
fn calls(program: &str, setting: Setting) -> BTreeMap<String, u64> {
    let (said, why) = end(start(program, setting, ("ZE_SOFTWARE_TRACE", "1")));
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
        for (name, count) in calls("program", setting) {
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
                    let (said, why) = end(start("program", setting, ("ZE_SOFTWARE_FAIL", wish)));
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
#[test]
fn events_are_used_again_however_commands_get_to_the_driver() {
    if std::env::var(VARIABLE).as_deref() != Ok("soft") {
        println!("skipped: the software driver alone tells what it was asked for");
        return;
    }
    for setting in &SETTINGS {
        let calls = calls("ping_pong", setting);
        let made = |(name, _): &(&String, &u64)| {
            ["zeEventCreate", "zeEventCounterBasedCreate", "zexCounterBasedEventCreate2"]
                .contains(&name.as_str())
        };
        let made: u64 = calls.iter().filter(made).map(|(_, count)| count).sum();
        assert!(made < COMMANDS as u64 / 4, "{made} events with {setting:?}");
    }
}
