//! Programs of `examples/sycl/`, compiled by plain g++ against PyPI's SYCL runtime, on the shared
//! object: in every way in which that runtime's loader finds an adapter.
mod common;
use common::{
    Dist,
    client::{ALONE, EXAMPLES, Program, Runtime, client, fine, pair, programs, run, shared},
    root,
};
use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex, Weak},
};

/// What else runs alone.
const MORE: [Program; 2] = [
    ("surface-20", "examples/sycl/surface.cpp", "20"),
    ("each", "adapters/native-cpu/tests/clients/each.cpp", "17"),
];

/// All that the tests of this file have in common: the runtime, the adapter, the programs.
struct World {
    runtime: Runtime,
    dist: Dist,
    programs: PathBuf,
}
/// Shared by the tests that run at one time, and gone with the last of them. `None`, and it was said
/// why, where there is no network or no C++ compiler.
fn world() -> Option<Arc<World>> {
    static WORLD: Mutex<Weak<World>> = Mutex::new(Weak::new());
    shared(&WORLD, || {
        let runtime = Runtime::installed()?;
        let programs = programs(&runtime, &[&EXAMPLES[..], &MORE].concat())?;
        Some(World { dist: Dist::build("sycl"), runtime, programs })
    })
}

impl World {
    fn program(&self, name: &str, environment: &[(&str, String)]) -> Command {
        let mut command = client(&self.programs.join(name));
        command.envs(environment.iter().map(|(k, v)| (k, v)));
        command
    }
    /// The only adapter, by its path.
    fn forced(&self) -> Vec<(&'static str, String)> {
        vec![("UR_ADAPTERS_FORCE_LOAD", self.dist.object().display().to_string())]
    }
    fn run_all(&self, environment: &[(&str, String)]) {
        for program in ALONE.iter().chain(MORE.iter().map(|(name, ..)| name)) {
            let name = program.split('-').next().unwrap(); // what it calls itself
            fine(name, &run(&mut self.program(program, environment)));
        }
        self.run_pair(environment, 1);
    }
    fn run_pair(&self, environment: &[(&str, String)], consumers: usize) {
        pair(&self.dist.0, consumers, |name| self.program(name, environment));
    }
}

#[test]
fn every_program_runs_on_the_adapter_when_it_is_the_only_one() {
    let Some(world) = world() else { return };
    world.run_all(&world.forced());
}

#[test]
fn two_consumers_at_once_follow_one_producer() {
    let Some(world) = world() else { return };
    world.run_pair(&world.forced(), 2);
}

#[test]
fn the_adapter_is_found_by_its_name_beside_others() {
    let Some(world) = world() else { return };
    let path = [("UR_ADAPTERS_SEARCH_PATH", world.dist.adapter().display().to_string())];
    world.run_all(&path);
    let selected = [path[0].clone(), ("ONEAPI_DEVICE_SELECTOR", "native_cpu:cpu".to_string())];
    world.run_all(&selected);
}

#[test]
fn handles_carry_their_tables_through_the_intercepting_loader() {
    let Some(world) = world() else { return };
    let mut environment = world.forced();
    environment.push(("UR_ENABLE_LOADER_INTERCEPT", "1".to_string()));
    world.run_all(&environment);
}

#[test]
fn the_programs_run_on_either_of_two_adapters_and_beside_a_third() {
    let Some(world) = world() else { return };
    let second = world.dist.0.join("libsecond.so");
    fs::copy(world.dist.object(), &second).unwrap();
    let third = world.runtime.lib().join("libur_adapter_level_zero.so.0");
    let [first, second, third] =
        [world.dist.object(), second, third].map(|p| p.display().to_string());
    // The default device is the first adapter's.
    for order in [[&first, &second, &third], [&third, &second, &first]] {
        let paths = order.map(String::as_str).join(",");
        let environment = [("UR_ADAPTERS_FORCE_LOAD", paths)];
        world.run_all(&environment);
        fine("each", &run(world.program("each", &environment).arg("2")));
    }
}

#[test]
fn presented_as_opencl_the_device_does_the_same() {
    let Some(world) = world() else { return };
    let mut environment = world.forced();
    environment.push(("CAUSEWAY_NATIVE_CPU_BACKEND", "opencl".to_string()));
    environment.push(("ONEAPI_DEVICE_SELECTOR", "opencl:cpu".to_string()));
    world.run_all(&environment);
}

#[test]
fn a_consumer_that_opens_garbage_reads_why_it_was_refused() {
    let Some(world) = world() else { return };
    let ran = run(&mut world.program("garbage", &world.forced()));
    fine("garbage", &ran);
    let refusals: Vec<_> = ran.said.lines().filter(|l| l.ends_with(": invalid")).collect();
    assert_eq!(refusals.len(), 12, "{}", ran.said);
    let reasons: Vec<_> = ran.complained.lines().collect();
    assert_eq!(reasons.len(), refusals.len(), "{}", ran.complained);
    for (reason, refusal) in reasons.iter().zip(&refusals) {
        let expected = match refusal.split(", ").nth(1) {
            Some("cut off: invalid") => "172 bytes",
            Some("put: invalid") if refusal.starts_with("memory") => "withdrawn",
            Some("put: invalid") => "memory",
            _ => "ticket",
        };
        assert!(reason.contains(expected), "{refusal} because {reason}");
    }
}

#[test]
fn devices_without_the_aspects_are_said_to_lack_the_feature() {
    let Some(world) = world() else { return };
    let object = world.dist.0.join("libwithout.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I"]);
    compiler.arg(world.dist.0.join("include"));
    compiler.arg(root().join("adapters/native-cpu/tests/clients/without.c")).arg("-o").arg(&object);
    let out = compiler.arg("-ldl").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let environment = [
        ("UR_ADAPTERS_FORCE_LOAD", object.display().to_string()),
        ("ADAPTER_BEHIND", world.dist.object().display().to_string()),
    ];
    fine("surface", &run(world.program("surface", &environment).arg("without")));
}
