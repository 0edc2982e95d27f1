//! Runs the command as real processes and checks their output and exit codes.
mod common;

use causeway::{Context, Device};
use common::*;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

#[test]
fn devices_are_a_table_for_people_and_json_for_programs() {
    let table = run(&["devices"]);
    assert!(table.status.success(), "{}", stderr(&table));
    assert!(stdout(&table).starts_with('#') && stdout(&table).lines().count() >= 3);

    let json = run(&["devices", "--json"]);
    let devices: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let first = &devices[0];
    assert_eq!(first["device"], 0);
    assert_eq!(first["shares_memory"], true);
    assert!(first["global_memory"].as_u64().unwrap() > 0);
    assert!(stdout(&table).contains(first["name"].as_str().unwrap().trim()));
}

#[test]
fn a_file_shared_in_one_process_is_written_by_another() {
    let directory = Directory::new();
    let bytes = contents((20 << 20) + 77);
    let sharer = Sharer::start(&[&directory.file("in", &bytes)]);
    let (out, hashed) = (directory.path("out"), run(&["open", &sharer.ticket]));
    let written = run(&["open", &sharer.ticket, "-o", &out]);
    assert!(written.status.success(), "{}", stderr(&written));
    assert!(fs::read(&out).unwrap() == bytes, "other bytes");
    assert!(written.stdout.is_empty());
    assert!(stderr(&written).contains("/s)"), "no throughput: {}", stderr(&written));
    assert_eq!(stdout(&hashed).trim(), sha256(&bytes));
}

#[test]
fn a_ticket_may_come_by_pipe_and_the_contents_leave_by_pipe() {
    let directory = Directory::new();
    let bytes = contents(4099);
    let sharer = Sharer::start(&[&directory.file("in", &bytes)]);
    let mut opener = causeway(&["open", "-", "-o", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    writeln!(opener.stdin.take().unwrap(), "{}", sharer.ticket).unwrap();
    let output = finish(opener);
    assert!(output.stdout == bytes, "other bytes: {}", stderr(&output));
}

#[test]
fn after_the_sharer_is_killed_a_ticket_opens_nothing_and_says_why() {
    let directory = Directory::new();
    let mut sharer = Sharer::start(&[&directory.file("in", b"some bytes")]);
    sharer.signal(Signal::KILL);
    assert!(!sharer.end().success());
    let out = directory.path("out");
    let output = run(&["open", &sharer.ticket, "-o", &out]);
    assert_says(&output, "");
    assert!(!Path::new(&out).exists());
}

#[test]
fn ctrl_c_ends_sharing_well_and_withdraws_the_ticket() {
    let directory = Directory::new();
    let mut sharer = Sharer::start(&[&directory.file("in", b"some bytes")]);
    sharer.signal(Signal::INT);
    assert!(sharer.end().success());
    assert_says(&run(&["open", &sharer.ticket]), "");
}

/// Waits until a command has installed its handler for Ctrl-C.
fn wait_until_noticed(child: &Child) {
    let (status, deadline) = (format!("/proc/{}/status", child.id()), Instant::now() + PATIENCE);
    let caught = || {
        let status = fs::read_to_string(&status).unwrap();
        let signals = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(signals.trim(), 16).unwrap() & 1 << (Signal::INT.as_raw() - 1) != 0
    };
    while !caught() {
        assert!(Instant::now() < deadline, "{}", fs::read_to_string(&status).unwrap());
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a command's main thread sleeps in this function of the kernel, or sleeps at all where the kernel does not tell in
/// which.
fn wait_until_blocked(child: &Child, place: &str) {
    let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (function, stat) = (read("wchan"), read("stat"));
        let is_asleep = stat.rsplit_once(')').unwrap().1.trim_start().starts_with('S');
        if is_asleep && (function == "0" || function.contains(place)) {
            return;
        }
        assert!(Instant::now() < deadline, "it is not in {place}, but in {function:?}: {stat}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn one_ctrl_c_ends_commands_that_wait_for_the_other_end_of_a_pipe() {
    let directory = Directory::new();
    let sharer = Sharer::start(&[&directory.file("in", &contents(3 << 20))]);
    let pipe = directory.0.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let nobody_writes = causeway(&["share", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let nobody_opens =
        causeway(&["open", &sharer.ticket, "-o", pipe.to_str().unwrap()]).spawn().unwrap();
    let nobody_reads = causeway(&["open", &sharer.ticket, "-o", "-"]).spawn().unwrap();
    let mut all = [nobody_writes, nobody_opens, nobody_reads];
    all.iter().for_each(wait_until_noticed);
    for (child, place) in all.iter().zip(["pipe_read", "wait_for_partner", "pipe_write"]) {
        wait_until_blocked(child, place);
    }
    for child in &all {
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
    }
    let deadline = Instant::now() + PATIENCE;
    for child in &mut all {
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    child.kill().unwrap();
                    panic!("it does not end: {:?}", child.wait());
                }
                None => thread::sleep(Duration::from_millis(20)),
            }
        };
        assert_eq!(status.code(), Some(130));
    }
}

#[test]
fn once_is_over_when_it_was_taken_once() {
    let directory = Directory::new();
    let bytes = contents(100_000);
    let mut sharer = Sharer::start(&["--once", &directory.file("in", &bytes)]);
    let output = run(&["open", &sharer.ticket, "--hash"]);
    assert_eq!(stdout(&output).trim(), sha256(&bytes), "{}", stderr(&output));
    assert!(sharer.end().success());
    assert_says(&run(&["open", &sharer.ticket]), "");
}

#[test]
fn once_is_not_over_when_an_opener_failed() {
    let directory = Directory::new();
    let bytes = contents(50);
    let mut sharer = Sharer::start(&["--once", &directory.file("in", &bytes)]);
    let nowhere = directory.path("no/such/directory");
    assert_says(&run(&["open", &sharer.ticket, "-o", &nowhere]), "could not write");
    let output = run(&["open", &sharer.ticket]);
    assert_eq!(stdout(&output).trim(), sha256(&bytes), "{}", stderr(&output));
    assert!(sharer.end().success());
}

#[test]
fn files_that_cannot_be_shared_are_refused_by_name() {
    let directory = Directory::new();
    let empty = directory.file("empty", b"");
    assert_says(&run(&["share", &empty]), "empty: there is nothing to share");
    assert_says(&run(&["share", &directory.path("absent")]), "could not open");
    assert_says(&run(&["share", directory.0.to_str().unwrap()]), "is a directory");
}

#[test]
fn what_a_pipe_gives_is_shared_when_it_has_ended() {
    let bytes = contents((3 << 20) + 5);
    let directory = Directory::new();
    let fifo = directory.path("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
        .unwrap();
    let (to, all) = (fifo.clone(), bytes.clone());
    let writer = thread::spawn(move || fs::write(to, all).unwrap());
    let sharer = Sharer::start(&[&fifo]);
    writer.join().unwrap();
    let hashed = run(&["open", &sharer.ticket]);
    assert_eq!(stdout(&hashed).trim(), sha256(&bytes), "{}", stderr(&hashed));

    let file = fs::File::open(directory.file("in", &bytes)).unwrap();
    let sharer = Sharer::of(causeway(&["share", "-"]).stdin(file));
    let hashed = run(&["open", &sharer.ticket]);
    assert_eq!(stdout(&hashed).trim(), sha256(&bytes), "{}", stderr(&hashed));
    assert!(stderr(&hashed).contains("copied and hashed in"), "{}", stderr(&hashed));
}

#[test]
fn a_file_of_the_kernels_is_shared_although_it_has_no_length() {
    let sharer = Sharer::start(&["/proc/version"]);
    let hashed = run(&["open", &sharer.ticket]);
    let is = fs::read("/proc/version").unwrap();
    assert_eq!(stdout(&hashed).trim(), sha256(&is), "{}", stderr(&hashed));
}

#[test]
fn a_ticket_for_an_event_opens_no_memory() {
    let context = Context::new(&Device::first().unwrap()).unwrap();
    let export = context.create_shared_event().unwrap().share().unwrap();
    let output = run(&["open", &export.ticket().to_string()]);
    assert_says(&output, "this ticket is an event; memory was asked for");
}

#[test]
fn a_text_that_is_no_ticket_is_called_so() {
    assert_says(&run(&["open", "hello"]), "this is no ticket");
    assert_says(&run(&["open", "-"]), "ended before a ticket came");
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    let directory = Directory::new();
    let file = directory.file("in", b"x");
    assert_says(&run(&["share", &file, "--device", "99"]), "there is no device 99");
}

#[test]
fn the_demo_verifies_every_byte_and_every_hop() {
    let output = run(&["demo", "--hops", "51", "--mib", "3"]);
    let said = stdout(&output);
    assert!(output.status.success(), "{said}{}", stderr(&output));
    assert!(said.contains("51 of 51 hops"), "{said}");
    assert!(said.ends_with("everything was verified\n"), "{said}");
    assert_eq!(said.matches("ok, ").count(), 6, "{said}");
}

#[test]
fn the_demo_fails_if_its_second_process_writes_nothing_and_says_it_did() {
    let output = run(&["demo", "--hops", "2", "--mib", "2", "--idle-peer"]);
    assert_says(&output, "2 checks of the demo failed");
    let said = stdout(&output);
    assert_eq!(said.matches("there to here  MISMATCH").count(), 2, "{said}");
    assert_eq!(said.matches("here to there  ok").count(), 2, "{said}");
}

#[test]
fn a_backend_has_one_name_in_arguments_tables_and_json() {
    let json = run(&["devices", "--json", "--backend", "native_cpu"]);
    let devices: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(devices[0]["backend"], "native_cpu");
    let table = stdout(&run(&["devices", "--backend", "native_cpu"]));
    assert!(table.contains("through native_cpu"), "{table}");
    let info = run(&["info", "--json", "--backend", "native_cpu", "--device", "0"]);
    let platforms: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!(platforms[0]["backend"], "native_cpu");
    assert_says(&run(&["devices", "--backend", "hip"]), "no device is driven through hip");
    let unknown = run(&["info", "--backend", "cpu"]);
    assert!(stderr(&unknown).contains("there are native_cpu, cuda, hip, level_zero, opencl"));
}

#[test]
fn the_selector_that_hides_devices_is_named() {
    let selected = |selector: &str, args: &[&str]| {
        finish(causeway(args).env("ONEAPI_DEVICE_SELECTOR", selector).spawn().unwrap())
    };
    let all = selected("native_cpu:*", &["devices"]);
    assert!(stderr(&all).contains("ONEAPI_DEVICE_SELECTOR=native_cpu:*"), "{}", stderr(&all));
    let none = selected("cuda:*", &["demo"]);
    let said = stderr(&none);
    assert!(!none.status.success() && said.contains("ONEAPI_DEVICE_SELECTOR is cuda:*"), "{said}");
}

#[test]
fn a_selector_that_selects_nothing_lists_nothing_and_a_wrong_one_is_an_error() {
    let selected = |selector: &str| {
        let mut command = causeway(&["devices"]);
        let output = finish(command.env("ONEAPI_DEVICE_SELECTOR", selector).spawn().unwrap());
        assert_eq!(output.status.code(), Some(1), "{selector}: {}", stdout(&output));
        assert_eq!(stdout(&output), "", "{selector}");
        stderr(&output)
    };
    // A device that does not exist, of an adapter that does; and malformed selectors.
    let said = selected("native_cpu:7");
    assert!(said.contains("ONEAPI_DEVICE_SELECTOR is native_cpu:7"), "{said}");
    for (wrong, why) in [("x:;:", "\"x\" is no backend"), ("native_cpu", "has no colon")] {
        let said = selected(wrong);
        let last = said.lines().last().unwrap();
        assert!(last.starts_with("causeway: ONEAPI_DEVICE_SELECTOR selects nothing: "), "{said}");
        assert!(last.contains(why), "{said}");
    }
    let said = selected("native_cpu:*;!*:*");
    assert!(said.contains("no device was found"), "{said}");
}

#[test]
fn the_demo_fails_if_its_second_process_dies() {
    let mut demo = causeway(&["demo", "--mib", "512"]).spawn().unwrap();
    let mut heading = String::new();
    let mut from = BufReader::new(demo.stdout.take().unwrap());
    from.read_line(&mut heading).unwrap();
    let second = heading.trim().rsplit(' ').next().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(second).unwrap(), Signal::KILL).unwrap();
    assert_says(&finish(demo), "the second process ended too early (signal: 9");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child = causeway(&["devices", "--json"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = finish(child);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
}

#[test]
fn info_shows_every_property_of_every_platform_and_device_for_people_and_programs() {
    let json = run(&["info", "--json"]);
    assert!(json.status.success(), "{}", stderr(&json));
    let platforms: Vec<serde_json::Value> = serde_json::from_str(&stdout(&json)).unwrap();
    let devices: Vec<_> = platforms.iter().flat_map(|p| p["devices"].as_array().unwrap()).collect();
    let all = Device::all().unwrap();
    assert_eq!(devices.len(), all.len());
    for (device, found) in devices.iter().zip(&all) {
        let properties = device["properties"].as_object().unwrap();
        assert!(properties.len() > 100, "{} properties", properties.len());
        assert_eq!(properties["max_compute_units"], found.compute_units().unwrap());
        assert_eq!(properties["global_mem_size"], found.global_memory().unwrap());
        assert!(properties["uuid"].as_str().unwrap().len() == 32);
        assert_eq!(device["sharing"]["memory"], found.shares_memory().unwrap());
    }
    let people = run(&["info"]);
    assert!(people.status.success(), "{}", stderr(&people));
    let text = stdout(&people);
    for words in ["Platform 0: ", "Device 0: ", "max_compute_units", "Memory: shared with other"] {
        assert!(text.contains(words), "{words} is missing:\n{text}");
    }
}
#[test]
fn info_of_one_device_is_of_that_device_alone() {
    let one = run(&["info", "--json", "--device", "0"]);
    let platforms: Vec<serde_json::Value> = serde_json::from_str(&stdout(&one)).unwrap();
    assert_eq!(platforms.len(), 1);
    assert_eq!(platforms[0]["devices"].as_array().unwrap().len(), 1);
    assert_says(&run(&["info", "--device", "4711"]), "there is no device 4711");
}
