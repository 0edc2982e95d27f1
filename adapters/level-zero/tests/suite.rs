//! The conformance suite and this folder's C programs, on the adapter under both its names, over the software driver of
//! `ze-software` or the machine's (`CAUSEWAY_LEVEL_ZERO=real`).
mod common;
use common::{NAMES, World, cargo, is_real};
use std::{
    process::{Command, Output},
    sync::{Arc, Mutex, Weak},
};
use ur_lock::locked;

/// What all tests of this file use, built once for those that wait for it.
fn world() -> Option<Arc<World>> {
    static SHARED: Mutex<Weak<World>> = Mutex::new(Weak::new());
    let mut shared = locked(&SHARED);
    if let Some(world) = shared.upgrade() {
        return Some(world);
    }
    let world = Arc::new(World::new("suite", &NAMES)?);
    *shared = Arc::downgrade(&world);
    Some(world)
}

/// Whether this is `cargo xtask ci --long`.
fn is_long() -> bool {
    std::env::var_os("CAUSEWAY_LONG").is_some()
}
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
/// Judges the cases that the arguments choose, of the adapter under one of its names.
fn judge(
    world: &World,
    name: &str,
    environment: &[(&str, &str)],
    arguments: &[&str],
) -> Option<Output> {
    // One at a time: the suite's cases have deadlines, and use all processors there are.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = locked(&TURN);
    let mut suite = Command::new(world.suite()?);
    suite.arg("--adapter").arg(world.adapter(name)).args(arguments);
    suite.envs(environment.iter().copied());
    Some(world.on_driver(&mut suite).output().unwrap())
}
/// Judges the cases that the arguments choose on another driver or device, but for those of ten thousand objects and
/// more: what they count is ours, and they are judged on the driver as it is.
fn judge_part(world: &World, environment: &[(&str, &str)], arguments: &[&str]) -> Option<Output> {
    let long = ["--but", "ten thousand", "--but", "hundred thousand"];
    judge(world, NAMES[1], environment, &[arguments, &long].concat())
}
/// The arguments that choose the cases in whose name is any of these.
fn filters<'a>(parts: &[&'a str]) -> Vec<&'a str> {
    parts.iter().flat_map(|part| ["--filter", part]).collect()
}
/// Every case passed or was skipped or is known, and some passed.
fn passed(out: &Output) -> usize {
    let said = text(&out.stdout);
    let failures = said.split("\nfailures:\n").nth(1).unwrap_or(&said);
    assert!(out.status.success(), "{failures}\n{}", text(&out.stderr));
    let all = said.lines().find_map(|l| l.strip_prefix("all "));
    all.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
/// As `passed`, and of the cases in whose name is any of these parts more than `least` passed, for each part.
fn each_passed(out: &Output, parts: &[&str], least: usize) {
    passed(out);
    let said = text(&out.stdout);
    let well = |line: &&str| line.starts_with("test ") && line.ends_with("... ok");
    for part in parts {
        let count = said.lines().filter(well).filter(|line| line.contains(part)).count();
        assert!(count > least, "{part}: {count} passed: {said}");
    }
}

#[test]
fn the_adapter_passes_every_case_that_it_does_not_skip_for_a_reason() {
    let Some(world) = world() else { return };
    let [first, second] = NAMES;
    // One source: under its first name what the name could change is judged.
    for (name, filter, least) in
        [(second, "", 1500), (first, "adapter::", 20), (first, "ipc::", 50)]
    {
        let Some(out) = judge(&world, name, &[], &["--filter", filter]) else { return };
        assert!(passed(&out) > least, "{}", text(&out.stdout));
    }
}

const NO_IMPORTS: (&str, &str) = ("ZE_SOFTWARE_LACKS", "imports");

#[test]
fn memory_is_shared_from_other_devices_and_by_each_kind_of_the_drivers_handles() {
    if is_real() {
        return; // what the machine has is judged above
    }
    let Some(world) = world() else { return };
    let strangers = [("ZE_SOFTWARE_DEVICES", "2"), ("ZE_SOFTWARE_PEER", "0")];
    let descriptors = [("ZE_SOFTWARE_IPC", "fd")];
    let parts = [("ZE_SOFTWARE_SUBDEVICES", "2")];
    let owned = [("ZE_SOFTWARE_IMPORT_FD", "owned")];
    let unpooled = [("UR_L0_DISABLE_USM_ALLOCATOR", "1")];
    // What Intel's driver does on Xe2, and what it has cut from more.
    let old = [("ZE_SOFTWARE_IPC", "xe2-old")];
    let cut = [
        ("ZE_SOFTWARE_IPC", "xe2-new"),
        ("ZE_SOFTWARE_POOL", "2"),
        ("UR_L0_DISABLE_USM_ALLOCATOR", "1"),
    ];
    let imported = [("ZE_SOFTWARE_IPC", "xe2-new"), ("ZE_SOFTWARE_IMPORT_FD", "owned")];
    // By its handle, where the driver imports no memory by descriptor: as before it was tried so.
    let [by_number, by_process, by_old] =
        ["fd", "opaque", "xe2-old"].map(|ipc| [("ZE_SOFTWARE_IPC", ipc), NO_IMPORTS]);
    for (environment, device, filter) in [
        (&strangers[..], "1", "ipc_memory"),
        (&descriptors, "0", "urIPCCloseMemHandleExp"),
        (&parts, "0", "urIPCOpenPhysMemHandleExp"),
        (&owned, "0", "physical"),
        (&unpooled, "0", "urUSMFree"),
        (&old, "0", "urIPCOpenMemHandleExp"),
        (&cut, "0", "urIPCOpenMemHandleExp"),
        (&imported, "0", "urIPCOpenMemHandleExp"),
        (&by_number, "0", "urIPCOpenMemHandleExp"),
        (&by_process, "0", "urIPCOpenMemHandleExp"),
        (&by_old, "0", "urIPCOpenMemHandleExp"),
    ] {
        let mut but = vec![];
        if environment.contains(&NO_IMPORTS) {
            but.extend(["killed after", "exits after"]); // they take long
        }
        if environment == by_old {
            but.extend(["CAP_SYS_PTRACE", "pid"]); // it looks into the exporter, which not everybody may or can
        }
        let but: Vec<_> = but.into_iter().flat_map(|part| ["--but", part]).collect();
        let arguments = [&["--device", device, "--filter", filter][..], &but].concat();
        // How many descriptors ten thousand allocations take depends on the driver; without our pool it keeps one for each.
        let out = match environment == imported {
            true => judge(&world, NAMES[1], environment, &arguments),
            false => judge_part(&world, environment, &arguments),
        };
        let Some(out) = out else { return };
        assert!(passed(&out) > 5, "{environment:?}: {}", text(&out.stdout));
    }
}

/// A test of many seconds, to which neither the devices nor the kinds of handles make a difference.
const LONG: &str = "a_command_that_lies_in_a_batch_is_not_done_because_another_thread_finishes";

#[test]
fn the_c_programs_of_this_folder_run_on_one_device_and_on_two() {
    if is_real() {
        return; // they are run by themselves there
    }
    let Some(world) = world() else { return };
    // The first four usually.
    let ways: [&[(&str, &str)]; 7] = [
        &[
            ("ZE_SOFTWARE_IPC", "xe2-old"),
            ("ZE_SOFTWARE_POOL", "1"),
            ("ZE_SOFTWARE_IMPORT_FD", "owned"),
            ("ZE_SOFTWARE_SHARED_ENGINES", "1"),
        ],
        &[
            ("ZE_SOFTWARE_PEER", "0"),
            ("ZE_SOFTWARE_DEVICES", "2"),
            ("ZE_SOFTWARE_EVENT_POOL", "strict"),
        ],
        &[
            ("ZE_SOFTWARE_HOST_NAMES", "0"),
            ("ZE_SOFTWARE_CHECK_THREADS", "1"),
            ("ZE_SOFTWARE_TIMER", "19200000"),
            ("ZE_SOFTWARE_GLOBAL_BITS", "36:100"),
            ("ZE_SOFTWARE_KERNEL_BITS", "32"),
        ],
        &[("ZE_SOFTWARE_SUBDEVICES", "2"), ("ZE_SOFTWARE_DEVICES", "2")],
        &[("ZE_SOFTWARE_IPC", "opaque"), ("ZE_SOFTWARE_IMPORT_FD", "owned")],
        &[("ZE_SOFTWARE_IPC", "fd"), ("ZE_SOFTWARE_DEVICES", "2")],
        &[
            ("ZE_SOFTWARE_DEVICES", "2"),
            ("ZE_SOFTWARE_EVENT_POOL", "strict"),
            ("UR_L0_USE_DRIVER_COUNTER_BASED_EVENTS", "0"),
        ],
    ];
    let ways = if is_long() { &ways[..] } else { &ways[..4] };
    for (number, environment) in ways.iter().copied().enumerate() {
        let Some(mut tests) = cargo() else { return };
        tests.args(["test", "--quiet", "--package", "level-zero"]);
        for name in [
            "buffers",
            "command_buffers",
            "crossing",
            "devices",
            "engines",
            "fork",
            "lost",
            "memory",
            "peers",
            "programs",
            "queues",
            "refused_commands",
            "sharing",
        ] {
            tests.args(["--test", name]);
        }
        tests.args(["--", "--nocapture"]).env("CAUSEWAY_LEVEL_ZERO", "soft");
        if number != 0 {
            tests.args(["--skip", LONG]);
        }
        tests.envs(environment.iter().copied());
        let out = world.on_driver(&mut tests).output().unwrap();
        let said = text(&out.stdout) + &text(&out.stderr);
        assert!(out.status.success(), "{environment:?} {said}");
        // With one device the tests that take two say so.
        let is_one = !environment.contains(&("ZE_SOFTWARE_DEVICES", "2"));
        assert_eq!(said.contains("skipped: it takes 2 devices"), is_one, "{said}");
        let has_parts = environment.contains(&("ZE_SOFTWARE_SUBDEVICES", "2"));
        assert_eq!(said.contains("skipped: the device has no parts"), !has_parts, "{said}");
    }
}

/// `CAUSEWAY_REFUSED=all` refuses more calls, for some minutes.
#[test]
fn whatever_call_the_driver_refuses_nothing_hangs() {
    if is_real() {
        return; // the machine's driver refuses what it refuses
    }
    let Some(world) = world() else { return };
    let Some(mut tests) = cargo() else { return };
    tests.args(["test", "--quiet", "--package", "level-zero", "--test", "refused"]);
    let out = world.on_driver(tests.env("CAUSEWAY_LEVEL_ZERO", "soft")).output().unwrap();
    assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
}

#[test]
fn a_driver_without_counter_based_events_has_all_but_shared_events() {
    if is_real() {
        return; // the machine's driver has what it has
    }
    let Some(world) = world() else { return };
    let without = [("ZE_SOFTWARE_COUNTER_EVENTS", "none")];
    // Both the family of the events that are shared and its own are chosen by the first of these.
    let families = ["event::", "queue::", "reusable_events", "threads", "command_buffer"];
    let Some(out) = judge_part(&world, &without, &filters(&families)) else { return };
    each_passed(&out, &families, 10);
    let no = "answers no to UR_DEVICE_INFO_IPC_EVENT_SUPPORT";
    assert!(text(&out.stdout).contains(no), "{}", text(&out.stdout));
}

#[test]
fn what_a_driver_lacks_its_devices_say_and_is_refused_where_it_is_asked_for() {
    if is_real() {
        return; // the machine's driver has what it has
    }
    let Some(world) = world() else { return };
    let [memory, physical, event] = [
        "answers no to UR_DEVICE_INFO_IPC_MEMORY_SUPPORT",
        "answers no to UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT",
        "answers no to UR_DEVICE_INFO_IPC_EVENT_SUPPORT",
    ];
    for (lacks, no) in [
        ("ipc", &[memory, event][..]),
        ("descriptors", &[physical]),
        ("virtual_memory", &[physical]),
        ("ipc,descriptors,virtual_memory", &[memory, physical, event]),
    ] {
        let arguments =
            filters(&["urIPCGet", "where the device says so", "virtual_mem::", "usm::"]);
        let environment = [("ZE_SOFTWARE_LACKS", lacks)];
        let Some(out) = judge_part(&world, &environment, &arguments) else { return };
        let (said, count) = (text(&out.stdout), passed(&out));
        assert!(count > 50, "{lacks}: {said}");
        for query in [memory, physical, event] {
            assert_eq!(said.contains(query), no.contains(&query), "{lacks}: {query}\n{said}");
        }
    }
}

#[test]
fn a_driver_that_shares_events_one_way_shares_none() {
    if is_real() {
        return; // the machine's driver has what it has
    }
    let Some(world) = world() else { return };
    let one_way = [("ZE_SOFTWARE_COUNTER_EVENTS", "snapshots")];
    let arguments = filters(&["ipc_event", "reusable_events"]);
    let Some(out) = judge_part(&world, &one_way, &arguments) else { return };
    assert!(passed(&out) > 10, "{}", text(&out.stdout));
    let no = "answers no to UR_DEVICE_INFO_IPC_EVENT_SUPPORT";
    assert!(text(&out.stdout).contains(no), "{}", text(&out.stdout));
}

#[test]
fn events_are_shared_by_the_specifications_names_and_by_the_older_ones() {
    if is_real() {
        return;
    }
    let Some(world) = world() else { return };
    for names in ["core", "zex"] {
        let only = [("ZE_SOFTWARE_COUNTER_EVENTS", names)];
        let arguments = ["--filter", "ipc_event"];
        let Some(out) = judge_part(&world, &only, &arguments) else { return };
        assert!(passed(&out) > 70, "{names}: {}", text(&out.stdout));
    }
}

#[test]
fn nobody_asks_the_driver_about_an_event_whose_exporter_has_ended_or_waits_in_a_copy_engine() {
    if is_real() {
        return; // the machine's driver is as it is
    }
    let Some(world) = world() else { return };
    let strict = [("ZE_SOFTWARE_IPC_DEAD", "abort"), ("ZE_SOFTWARE_SHARED_ENGINES", "1")];
    let arguments = ["--filter", "ipc_event"];
    let Some(out) = judge_part(&world, &strict, &arguments) else { return };
    assert!(passed(&out) > 70, "{}", text(&out.stdout));
}

#[test]
fn extension_functions_get_the_drivers_handles_and_not_the_loaders() {
    if is_real() {
        return; // the machine's loader is as it is
    }
    let Some(world) = world() else { return };
    let wraps = [("ZE_SOFTWARE_WRAPS", "1"), ("ZE_SOFTWARE_COUNTER_EVENTS", "zex")];
    let arguments = filters(&["urUSMImportExp", "urEventWait", "urUSMHost"]);
    let Some(out) = judge_part(&world, &wraps, &arguments) else { return };
    assert!(passed(&out) > 10, "{}", text(&out.stdout));
}

#[test]
fn times_are_right_by_clocks_that_are_not_in_nanoseconds_and_come_round() {
    if is_real() {
        return; // the machine's clock is as it is
    }
    let Some(world) = world() else { return };
    let clock = [
        ("ZE_SOFTWARE_TIMER", "19200000"),
        ("ZE_SOFTWARE_GLOBAL_BITS", "36:100"),
        ("ZE_SOFTWARE_KERNEL_BITS", "32"),
    ];
    let families = ["rofiling", "imestamp"];
    let Some(out) = judge_part(&world, &clock, &filters(&families)) else { return };
    each_passed(&out, &families, 3);
}

#[test]
fn a_driver_and_a_device_that_fail_are_left_out_and_the_others_work() {
    if is_real() {
        return; // the machine's drivers are as they are
    }
    let Some(world) = world() else { return };
    let broken = [
        ("ZE_SOFTWARE_DEVICES", "2"),
        ("ZE_SOFTWARE_BROKEN_DEVICE", "0"),
        ("ZE_SOFTWARE_BROKEN_DRIVER", "1"),
    ];
    let families = ["platform::", "device::", "queue::"];
    let Some(out) = judge_part(&world, &broken, &filters(&families)) else { return };
    each_passed(&out, &families, 30); // without any device ten cases of a family pass
}

#[test]
fn one_thread_at_a_time_appends_to_a_list_and_asks_it_whether_it_is_done() {
    if is_real() {
        return; // the machine's driver does not look
    }
    let Some(world) = world() else { return };
    let checked = [("ZE_SOFTWARE_CHECK_THREADS", "1")];
    let families = ["threads", "queue::"];
    let Some(out) = judge_part(&world, &checked, &filters(&families)) else { return };
    each_passed(&out, &families, 10);
}

#[test]
fn the_adapter_works_on_what_intels_devices_and_drivers_are_like() {
    if is_real() {
        return; // the machine's device is what it is
    }
    let Some(world) = world() else { return };
    // All of the suite under each: `cargo xtask conformance --profiles`.
    let few = &["rofiling", "ipc_physical", "physical_mem", "threads::"][..];
    let more = &["queue::", "ipc_", "rofiling", "physical_mem", "virtual_mem", "threads::"][..];
    // The others usually by `differential --short --profile` alone.
    let all = [("bmg", more, 100), ("igpu", few, 60), ("pvc", few, 60)];
    let count = if is_long() { all.len() } else { 1 };
    for (profile, families, least) in all.into_iter().take(count) {
        let environment = [("ZE_SOFTWARE_PROFILE", profile)];
        let arguments = filters(families);
        let Some(out) = judge_part(&world, &environment, &arguments) else { return };
        assert!(passed(&out) > least, "{profile}: {}", text(&out.stdout));
    }
}

#[test]
fn queues_that_submit_in_batches_do_the_same() {
    let Some(world) = world() else { return };
    let batched = [("UR_L0_USE_IMMEDIATE_COMMANDLISTS", "0")];
    let families = ["enqueue::", "event::", "queue::", "host_task", "command_buffer", "threads"];
    let Some(out) = judge_part(&world, &batched, &filters(&families)) else { return };
    each_passed(&out, &families, 3);
}

#[test]
fn devices_that_do_not_reach_each_other_wait_for_each_other_and_exchange_bytes() {
    if is_real() {
        return; // the machine's devices are as they are
    }
    let Some(world) = world() else { return };
    let apart = [
        ("ZE_SOFTWARE_DEVICES", "2"),
        ("ZE_SOFTWARE_PEER", "0"),
        ("ZE_SOFTWARE_EVENT_POOL", "strict"),
    ];
    let arguments = filters(&["crossing::", "chains::"]);
    let Some(out) = judge_part(&world, &apart, &arguments) else { return };
    assert!(passed(&out) > 6, "{}", text(&out.stdout));
}
