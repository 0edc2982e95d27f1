//! The conformance suite and this folder's C programs, on the adapter over the software driver of `soft-cuda`, or
//! over the machine's (`CAUSEWAY_CUDA=real`).
mod common;
use common::{World, cargo, is_real};
use std::process::{Command, Output};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
/// Judges the adapter's cases that the arguments choose.
fn judge(world: &World, environment: &[(&str, &str)], arguments: &[&str]) -> Option<Output> {
    let mut suite = Command::new(world.suite()?);
    suite.arg("--adapter").arg(world.adapter()).args(arguments);
    suite.envs(environment.iter().copied());
    Some(world.on_driver(&mut suite).output().unwrap())
}
/// Judges the cases that the arguments choose on another device, but for those of ten thousand objects and more: what they
/// count is ours, and they are judged on the device as it is.
fn judge_part(world: &World, environment: &[(&str, &str)], arguments: &[&str]) -> Option<Output> {
    let long = ["--but", "ten thousand", "--but", "hundred thousand"];
    judge(world, environment, &[arguments, &long].concat())
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
fn the_adapter_passes_every_case_that_it_does_not_skip_for_a_reason() {
    let Some(world) = World::new("all") else { return };
    let Some(out) = judge(&world, &[], &[]) else { return };
    assert!(passed(&out) > 1500, "{}", text(&out.stdout));
}

#[test]
fn memory_is_shared_also_from_the_second_of_two_devices_and_by_the_drivers_old_handles() {
    if is_real() {
        return; // what the machine has is judged above
    }
    let Some(world) = World::new("ways") else { return };
    let two = [("SOFT_CUDA_DEVICES", "2")];
    let strangers = [("SOFT_CUDA_DEVICES", "2"), ("SOFT_CUDA_PEER", "0")];
    let legacy = [("UR_CUDA_USM", "legacy")];
    // By old handles not everything crosses: an exporter in another pid namespace, or one that may not be looked
    // at, is out of reach.
    let ways = [
        (&two[..], "1", "ipc_memory"),
        (&strangers, "1", "ipc_memory"),
        (&legacy, "0", "urIPCCloseMemHandleExp"),
    ];
    for (environment, device, filter) in ways {
        let arguments = ["--device", device, "--filter", filter];
        let Some(out) = judge_part(&world, environment, &arguments) else { return };
        assert!(passed(&out) > 5, "{environment:?}: {}", text(&out.stdout));
    }
}

#[test]
fn bytes_get_from_device_to_device_with_a_link_and_without() {
    if is_real() {
        return; // what the machine has is judged above
    }
    let Some(world) = World::new("crossing") else { return };
    for link in ["1", "0"] {
        let environment = [("SOFT_CUDA_DEVICES", "2"), ("SOFT_CUDA_PEER", link)];
        let arguments = ["--filter", "crossing::", "--filter", "chains::"];
        let Some(out) = judge_part(&world, &environment, &arguments) else { return };
        assert_eq!(passed(&out), 7, "{}", text(&out.stdout));
    }
}

#[test]
fn what_a_device_lacks_it_says_and_is_refused_where_it_is_asked_for() {
    if is_real() {
        return; // the machine's driver has what it has
    }
    let Some(world) = World::new("lacks") else { return };
    let [memory, physical, event] = [
        "answers no to UR_DEVICE_INFO_IPC_MEMORY_SUPPORT",
        "answers no to UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT",
        "answers no to UR_DEVICE_INFO_IPC_EVENT_SUPPORT",
    ];
    let legacy = ("UR_CUDA_USM", "legacy");
    // Without descriptors virtual memory is not shared; without virtual memory the old handles share.
    for (lacks, usm, no) in [
        ("ipc", legacy, &[memory][..]),
        ("ipc", ("UR_CUDA_USM", "virtual"), &[]),
        ("descriptors", ("UR_CUDA_USM", "virtual"), &[memory, physical]),
        ("virtual_memory", ("UR_CUDA_USM", "virtual"), &[physical]),
        ("virtual_memory,ipc", ("UR_CUDA_USM", "virtual"), &[memory, physical]),
        ("stream_words", ("UR_CUDA_USM", "virtual"), &[event]),
    ] {
        let environment = [("SOFT_CUDA_LACKS", lacks), usm];
        let mut arguments = vec![];
        for filter in ["urIPCGet", "where the device says so", "virtual_mem::", "usm::"] {
            arguments.extend(["--filter", filter]);
        }
        let Some(out) = judge_part(&world, &environment, &arguments) else { return };
        let (said, count) = (text(&out.stdout), passed(&out));
        assert!(count > 50, "{lacks}: {said}");
        for query in [memory, physical, event] {
            assert_eq!(said.contains(query), no.contains(&query), "{lacks}: {query}\n{said}");
        }
    }
}

/// This folder's C programs.
const PROGRAMS: [&str; 15] = [
    "asides",
    "buffers",
    "capture",
    "command_buffers",
    "events",
    "frees",
    "kernels",
    "lost",
    "memory",
    "peers",
    "programs",
    "refused",
    "sharing",
    "starts",
    "waits",
];
/// Tests of many seconds, to which the number of devices makes no difference, or that use two if there are two.
const LONG: [&str; 2] = [
    "a_pause_of_hours_is_told_far_more_exactly_than_the_driver_tells_it",
    "the_memory_of_a_command_is_the_callers_when_it_is_over_or_refused",
];

#[test]
fn the_c_programs_of_this_folder_run_on_one_device_on_two_and_on_two_without_a_link() {
    if is_real() {
        return; // they are run by themselves there
    }
    let Some(world) = World::new("programs") else { return };
    for (devices, link) in [("1", "1"), ("2", "1"), ("2", "0")] {
        let Some(mut tests) = cargo() else { return };
        tests.args(["test", "--quiet", "--package", "cuda"]);
        for name in PROGRAMS {
            tests.args(["--test", name]);
        }
        tests.args(["--", "--nocapture"]).env("SOFT_CUDA_DEVICES", devices);
        if (devices, link) != ("2", "1") {
            LONG.iter().for_each(|name| _ = tests.args(["--skip", name]));
        }
        tests.env("SOFT_CUDA_PEER", link);
        tests.env("SOFT_CUDA_NAP", "20000"); // streams look at words long after the host has
        let out = world.on_driver(&mut tests).output().unwrap();
        let said = text(&out.stdout) + &text(&out.stderr);
        assert!(out.status.success(), "{said}");
        // With one device the tests that take two say so.
        assert_eq!(said.contains("skipped: it takes 2 devices"), devices == "1", "{said}");
    }
}
