//! Programs of `examples/sycl/`, compiled by plain g++ against PyPI's SYCL runtime, on the software driver of
//! `ze-software`: through our adapter under both its names, and through the runtime's own two, unmodified.
#[allow(dead_code, reason = "others install other packages")]
#[path = "../../native-cpu/tests/common/client.rs"]
mod client;
mod common;
use client::{ALONE, EXAMPLES, Runtime, client, fine, pair, programs, run, shared, skipped};
use common::{NAMES, World, is_real};
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, Weak},
};

/// What the wheel's adapters need beside the runtime.
const BESIDE: &[&str] = &[
    "umf==1.2.0 --hash=sha256:238d186fdd9e9c0fe1489da95b19b0b79045fe26c4aa98bd0a022a2a3603c195",
    "tcmlib==1.6.0 --hash=sha256:46c2491988bfd18c4733eeb08aca6a386706a497b92cc51d155f37ddea003c14",
];

/// What a program does not get from an adapter of the wheel, and the last that it says then.
type Lack = (&'static str, &'static str);
/// Its pools keep what was freed, and the driver knows it as memory still.
const POOLED: Lack = ("usm", "usm: the kind is another");
/// What the wheel's v2 adapter does not do.
const V2_LACKS: &[Lack] = &[
    POOLED,
    // A signal of a reusable event is not timed as it was submitted.
    ("queues", "queues: a signal's times are not one moment"),
    // Bytes that are no handle are refused with the code of an argument, or opened.
    ("surface", "surface: garbage for memory: refused in another way: "),
    ("garbage", "garbage: memory, forged was opened"),
];
/// What the wheel's v1 adapter does not do.
const V1_LACKS: &[Lack] = &[
    POOLED,
    ("queues", "queues: Context does not support per-event profiling."),
    // It shares memory only.
    ("surface", "surface: an aspect is lacking"),
    ("garbage", "garbage: memory, zeros was opened"),
    ("producer", "producer: Device does not support aspect::ext_oneapi_ipc_physical_memory."),
];

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// All that the tests of this file have in common, and gone with the last of them.
struct Stage {
    world: World,
    runtime: Runtime,
    programs: PathBuf,
}
/// `None`, and it was said why, where there is no network or no compiler.
fn stage() -> Option<Arc<Stage>> {
    static STAGE: Mutex<Weak<Stage>> = Mutex::new(Weak::new());
    shared(&STAGE, || {
        let runtime = Runtime::installed()?;
        let programs = programs(&runtime, &EXAMPLES)?;
        Some(Stage { world: World::new("sycl", &NAMES)?, runtime, programs })
    })
}
impl Stage {
    /// A program on the software driver.
    fn program(&self, name: &str, environment: &[(&str, &str)]) -> Command {
        let mut command = client(&self.programs.join(name));
        self.world.on_driver(&mut command).envs(environment.iter().copied());
        command
    }
    /// The same with one adapter and no other.
    fn forced(&self, adapter: &Path, name: &str, environment: &[(&str, &str)]) -> Command {
        let mut command = self.program(name, environment);
        command.env("UR_ADAPTERS_FORCE_LOAD", adapter);
        command
    }
    fn pair(&self, consumers: usize, start: impl Fn(&str) -> Command) {
        pair(&self.world.drivers(), consumers, start);
    }
    /// Every program, on our adapter under one of its names.
    fn run_all(&self, adapter: &str, environment: &[(&str, &str)]) {
        let adapter = self.world.adapter(adapter);
        let start = |name: &str| self.forced(&adapter, name, environment);
        ALONE.iter().for_each(|name| fine(name, &run(&mut start(name))));
        self.pair(1, start);
    }
    /// A program on an adapter of the wheel.
    fn theirs(&self, beside: &Path, file: &str, name: &str) -> Command {
        let mut command = self.forced(&self.runtime.lib().join(file), name, &[]);
        let folders = [self.world.drivers(), beside.to_path_buf()];
        command.env("LD_LIBRARY_PATH", std::env::join_paths(folders).unwrap());
        command
    }
    /// The programs on an adapter of the wheel: each has to end well, but for those that lack something, which
    /// have to say it.
    fn judge(&self, file: &str, lacks: &[Lack], programs: &[&str]) {
        let beside = match self.runtime.beside("beside", BESIDE) {
            Ok(folder) => folder,
            Err(why) => return skipped(&why),
        };
        for name in programs {
            let mut command = self.theirs(&beside, file, name);
            if *name == "producer" {
                command.args(["/nonexistent", "/nonexistent"]); // it does not get as far as these
            }
            let ran = run(&mut command);
            let Some((_, says)) = lacks.iter().find(|(lacking, _)| lacking == name) else {
                fine(name, &ran);
                continue;
            };
            let complained = ran.complained.lines().any(|line| line.starts_with(says));
            let told = format!("{file}: {name}:\n{}\n{}", ran.said, ran.complained);
            assert!(!ran.well && complained, "it was to say {says:?}\n{told}");
        }
        let mut unpooled = self.theirs(&beside, file, "usm");
        fine("usm", &run(unpooled.env("UR_L0_DISABLE_USM_ALLOCATOR", "1")));
        if !lacks.iter().any(|(name, _)| *name == "producer") {
            self.pair(2, |name| self.theirs(&beside, file, name));
        }
    }
}

#[test]
fn every_program_runs_on_the_adapter_under_both_its_names() {
    let Some(stage) = stage() else { return };
    NAMES.iter().for_each(|name| stage.run_all(name, &[]));
}

#[test]
fn the_runtime_finds_the_adapter_by_its_name() {
    let Some(stage) = stage() else { return };
    let folder = stage.world.adapter("level_zero_v2");
    let folder = folder.parent().unwrap().display().to_string();
    let environment = [
        ("UR_ADAPTERS_SEARCH_PATH", folder.as_str()),
        ("ONEAPI_DEVICE_SELECTOR", "level_zero:gpu"),
    ];
    let start = |name: &str| stage.program(name, &environment);
    ALONE.iter().for_each(|name| fine(name, &run(&mut start(name))));
    stage.pair(1, start);
}

#[test]
fn two_consumers_at_once_follow_one_producer() {
    let Some(stage) = stage() else { return };
    let adapter = stage.world.adapter("level_zero_v2");
    stage.pair(2, |name| stage.forced(&adapter, name, &[]));
}

#[test]
fn the_programs_run_on_batches_and_on_whatever_the_driver_offers() {
    let Some(stage) = stage() else { return };
    let ways: &[&[(&str, &str)]] = &[
        &[("UR_L0_USE_IMMEDIATE_COMMANDLISTS", "0")],
        &[("UR_ENABLE_LOADER_INTERCEPT", "1"), ("ZE_SOFTWARE_DEVICES", "2")],
        &[("ZE_SOFTWARE_IPC", "fd"), ("ZE_SOFTWARE_COUNTER_EVENTS", "core")],
        &[("ZE_SOFTWARE_IPC", "opaque"), ("ZE_SOFTWARE_COUNTER_EVENTS", "zex")],
    ];
    for environment in if is_real() { &ways[..1] } else { ways } {
        stage.run_all("level_zero_v2", environment);
    }
}

#[test]
fn without_counter_based_events_all_but_shared_events_is_there() {
    if is_real() {
        return; // the machine's driver has what it has
    }
    let Some(stage) = stage() else { return };
    let (adapter, without) =
        (stage.world.adapter("level_zero_v2"), [("ZE_SOFTWARE_COUNTER_EVENTS", "none")]);
    for name in ["usm", "virtual_memory", "queues", "buffers"] {
        fine(name, &run(&mut stage.forced(&adapter, name, &without)));
    }
    let ran = run(&mut stage.forced(&adapter, "surface", &without));
    assert_eq!((ran.well, ran.complained.as_str()), (false, "surface: an aspect is lacking\n"));
}

#[test]
fn the_wheels_v2_adapter_runs_them_but_for_what_it_lacks() {
    if is_real() {
        return; // what it lacks there is not known here
    }
    let Some(stage) = stage() else { return };
    stage.judge("libur_adapter_level_zero_v2.so.0", V2_LACKS, &ALONE);
}

#[test]
fn the_wheels_v1_adapter_runs_them_but_for_what_it_lacks() {
    if is_real() {
        return;
    }
    let Some(stage) = stage() else { return };
    let programs = [&ALONE[..], &["producer"]].concat();
    stage.judge("libur_adapter_level_zero.so.0", V1_LACKS, &programs);
}
