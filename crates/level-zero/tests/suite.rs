//! The conformance suite and this folder's C programs, on the adapter under both its names, over the software driver of
//! `ze-software` or the machine's (`CAUSEWAY_LEVEL_ZERO=real`).
mod common;
use common::{NAMES, World, cargo, is_real};
use std::process::{Command, Output};

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
    let mut suite = Command::new(world.suite()?);
    suite.arg("--adapter").arg(world.adapter(name)).args(arguments);
    suite.envs(environment.iter().copied());
    Some(world.on_driver(&mut suite).output().unwrap())
}
/// Every case passed or was skipped or is known, and some passed.
fn passed(out: &Output) -> usize {
    let said = text(&out.stdout);
    let failures = said.split("\nfailures:\n").nth(1).unwrap_or(&said);
    assert!(out.status.success(), "{failures}\n{}", text(&out.stderr));
    let all = said.lines().find_map(|l| l.strip_prefix("all "));
    all.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn the_adapter_passes_every_case_that_it_does_not_skip_for_a_reason_under_both_names() {
    let Some(world) = World::new("all", &NAMES) else { return };
    for name in NAMES {
        let Some(out) = judge(&world, name, &[], &[]) else { return };
        assert!(passed(&out) > 1500, "{}", text(&out.stdout));
    }
}

#[test]
fn memory_is_shared_from_other_devices_and_by_each_kind_of_the_drivers_handles() {
    if is_real() {
        return; // what the machine has is judged above
    }
    let Some(world) = World::new("ways", &["level_zero_v2"]) else { return };
    let two = [("ZE_SOFTWARE_DEVICES", "2")];
    let strangers = [("ZE_SOFTWARE_DEVICES", "2"), ("ZE_SOFTWARE_PEER", "0")];
    let descriptors = [("ZE_SOFTWARE_IPC", "fd")];
    let parts = [("ZE_SOFTWARE_SUBDEVICES", "2")];
    let unpooled = [("UR_L0_DISABLE_USM_ALLOCATOR", "1")];
    for (environment, device, filter) in [
        (&two[..], "1", "ipc_memory"),
        (&two, "1", "ipc_physical"),
        (&strangers, "1", "ipc_memory"),
        (&descriptors, "0", "ipc_memory"),
        (&parts, "0", "ipc_memory"),
        (&unpooled, "0", "usm"),
    ] {
        let arguments = ["--device", device, "--filter", filter];
        let Some(out) = judge(&world, "level_zero_v2", environment, &arguments) else { return };
        assert!(passed(&out) > 5, "{environment:?}: {}", text(&out.stdout));
    }
}

#[test]
fn the_c_programs_of_this_folder_run_on_one_device_and_on_two() {
    if is_real() {
        return; // they are run by themselves there
    }
    let Some(world) = World::new("programs", &[]) else { return };
    let ways = [
        [("ZE_SOFTWARE_IPC", "opaque"), ("ZE_SOFTWARE_DEVICES", "1")],
        [("ZE_SOFTWARE_IPC", "fd"), ("ZE_SOFTWARE_DEVICES", "2")],
        [("ZE_SOFTWARE_PEER", "0"), ("ZE_SOFTWARE_DEVICES", "2")],
        [("ZE_SOFTWARE_SUBDEVICES", "2"), ("ZE_SOFTWARE_DEVICES", "2")],
    ];
    for environment in ways {
        let Some(mut tests) = cargo() else { return };
        tests.args(["test", "--quiet", "--package", "level-zero"]);
        for name in ["buffers", "devices", "memory", "programs", "sharing"] {
            tests.args(["--test", name]);
        }
        tests.args(["--", "--nocapture"]).envs(environment).env("CAUSEWAY_LEVEL_ZERO", "soft");
        let out = world.on_driver(&mut tests).output().unwrap();
        let said = text(&out.stdout) + &text(&out.stderr);
        assert!(out.status.success(), "{environment:?} {said}");
        // With one device the tests that take two say so.
        let is_one = environment.contains(&("ZE_SOFTWARE_DEVICES", "1"));
        assert_eq!(said.contains("skipped: it takes 2 devices"), is_one, "{said}");
    }
}

#[test]
fn a_driver_without_counter_based_events_has_all_but_shared_events() {
    if is_real() {
        return; // the machine's driver has what it has
    }
    let Some(world) = World::new("pooled", &["level_zero_v2"]) else { return };
    let without = [("ZE_SOFTWARE_COUNTER_EVENTS", "none")];
    for family in ["event::", "queue::", "reusable_events", "threads", "command_buffer"] {
        let arguments = ["--filter", family];
        let Some(out) = judge(&world, "level_zero_v2", &without, &arguments) else { return };
        assert!(passed(&out) > 10, "{family}: {}", text(&out.stdout));
        // Both the family of the events that are shared and its own are chosen by the first of these.
        let says_no = text(&out.stdout).contains("answers no to UR_DEVICE_INFO_IPC_EVENT_SUPPORT");
        assert!(says_no || family != "event::", "{}", text(&out.stdout));
    }
}

#[test]
fn events_are_shared_by_the_specifications_names_and_by_the_older_ones() {
    if is_real() {
        return;
    }
    let Some(world) = World::new("names", &["level_zero_v2"]) else { return };
    for names in ["core", "zex"] {
        let only = [("ZE_SOFTWARE_COUNTER_EVENTS", names)];
        let arguments = ["--filter", "ipc_event"];
        let Some(out) = judge(&world, "level_zero_v2", &only, &arguments) else { return };
        assert!(passed(&out) > 70, "{names}: {}", text(&out.stdout));
    }
}
