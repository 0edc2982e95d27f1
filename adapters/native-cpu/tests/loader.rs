//! The adapter behind the reference's loader, `libur_loader.so.0`, with its validation and tracing
//! layers on: what they report of a well-behaved program is exactly what is their own fault.
mod common;
use common::{
    Dist,
    client::{Ran, Runtime, client, run},
    root,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::Command,
};

/// What the layers report falsely, by the entry and the words:
/// - they take the null of an optional pool for a handle;
/// - they note neither physical memory that was opened nor a sub-buffer as a new object, and so
///   miscount its release;
/// - they take a reusable event that is signalled, an input, for a new one of the same address.
const FALSE_REPORTS: &[(&str, &str)] = &[
    ("urUSMDeviceAlloc", "There are no valid references to handle 0"),
    ("urUSMHostAlloc", "There are no valid references to handle 0"),
    ("urUSMSharedAlloc", "There are no valid references to handle 0"),
    ("urVirtualMemMap", "There are no valid references to handle P"),
    ("urIPCClosePhysMemHandleExp", "There are no valid references to handle P"),
    ("urEnqueueEventsWaitWithBarrierExt", "Handle P already exists"),
    ("urEnqueueMemBufferFill", "There are no valid references to handle P"),
    ("urEnqueueMemBufferCopy", "There are no valid references to handle P"),
    ("urEnqueueMemBufferWrite", "There are no valid references to handle P"),
    ("urMemRelease", "Attempting to release nonexistent handle P"),
    ("urAdapterRelease", "Retained -1 reference(s) to handle P"),
];

struct World {
    dist: Dist,
    program: PathBuf,
}

fn world(name: &str) -> Option<World> {
    let runtime = Runtime::installed()?;
    let dist = Dist::build(name);
    let program = dist.0.join("loader");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"]);
    compiler.arg(dist.0.join("include")).arg("-L").arg(runtime.lib());
    compiler.arg(root().join("adapters/native-cpu/tests/clients/loader.c")).arg("-o").arg(&program);
    compiler.arg("-lur_loader").arg(format!("-Wl,-rpath,{}", runtime.lib().display()));
    let out = compiler.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(World { dist, program })
}

impl World {
    fn run(&self, layers: &str, wrong: Option<&str>) -> Ran {
        let mut command = client(&self.program);
        command.env("UR_ADAPTERS_FORCE_LOAD", self.dist.object()).env("UR_ENABLE_LAYERS", layers);
        // The tracing layer works only when something might listen.
        command.env("XPTI_TRACE_ENABLE", "1").args(wrong);
        command.env("UR_LOG_TRACING", "level:info;output:stderr");
        command.env("UR_LOG_VALIDATION", "level:warning;output:stderr");
        let ran = run(&mut command);
        assert!(ran.well && ran.said == "loader: fine\n", "{}\n{}", ran.said, ran.complained);
        ran
    }
}

/// What the validation layer said, without addresses, by the call that it was said in; and the calls
/// that were traced, with their results.
struct Heard {
    reports: BTreeSet<(String, String)>,
    calls: BTreeMap<String, BTreeSet<String>>,
}
fn heard(ran: &Ran) -> Heard {
    let mut heard = Heard { reports: BTreeSet::new(), calls: BTreeMap::new() };
    let mut inside = String::new();
    for line in ran.complained.lines() {
        if let Some(report) = line.strip_prefix("<VALIDATION>") {
            let words: Vec<_> =
                report.split_once("]: ").map_or(report, |(_, words)| words).split(' ').collect();
            // Where a handle is from: shown after a report, and full of addresses.
            if words[0].starts_with('#') || words.ends_with(&["time", "here:"]) {
                continue;
            }
            let anonymous = words.iter().map(|w| if w.starts_with("0x") { "P" } else { w });
            heard.reports.insert((inside.clone(), anonymous.collect::<Vec<_>>().join(" ")));
        } else if let Some(entry) = line.trim_start().strip_prefix("---> ") {
            inside = entry.to_string();
        } else if let Some(call) = line.trim_start().strip_prefix("<--- ") {
            let (entry, result) = (call.split('(').next(), call.rsplit("-> ").next());
            let results = heard.calls.entry(entry.unwrap().to_string()).or_default();
            results.insert(result.unwrap().trim_end_matches(';').to_string());
            inside.clear();
        }
    }
    heard
}

const ALL: &str = "UR_LAYER_FULL_VALIDATION,UR_LAYER_TRACING";

#[test]
fn full_validation_and_tracing_report_nothing_but_what_is_their_own_fault() {
    let Some(world) = world("layers") else { return };
    let heard = heard(&world.run(ALL, None));
    let known: BTreeSet<_> =
        FALSE_REPORTS.iter().map(|(entry, words)| (entry.to_string(), words.to_string())).collect();
    assert_eq!(heard.reports, known);
    assert!(heard.calls.len() > 50, "the tracing layer is off: {:?}", heard.calls);
    for (entry, results) in &heard.calls {
        assert!(results.iter().eq(["UR_RESULT_SUCCESS"]), "{entry}: {results:?}");
    }
}

#[test]
fn the_layers_are_at_work_and_see_a_leak_and_a_null_handle() {
    let Some(world) = world("faults") else { return };
    let leak = heard(&world.run(ALL, Some("leak")));
    let said = |heard: &Heard, words: &str| heard.reports.iter().any(|(_, w)| w == words);
    let retained = "Retained 1 reference(s) to handle P";
    assert!(said(&leak, retained), "{:?}", leak.reports);
    let null = heard(&world.run(ALL, Some("null")));
    assert!(!said(&null, retained), "{:?}", null.reports);
    let refused = &null.calls["urQueueFinish"];
    assert!(refused.contains("UR_RESULT_ERROR_INVALID_NULL_HANDLE"), "{refused:?}");
}

#[test]
fn the_same_program_runs_without_layers_and_with_each_alone() {
    let Some(world) = world("alone") else { return };
    for layer in ["", "UR_LAYER_PARAMETER_VALIDATION", "UR_LAYER_LEAK_CHECKING", "UR_LAYER_TRACING"]
    {
        world.run(layer, None);
    }
    let mut command = client(&world.program);
    command.env("UR_ADAPTERS_SEARCH_PATH", world.dist.adapter());
    // Found by name; the loader's own folder has adapters without devices here, which count too.
    command.env("ONEAPI_DEVICE_SELECTOR", "native_cpu:cpu");
    let ran = run(&mut command);
    assert!(ran.well && ran.said == "loader: fine\n", "{}\n{}", ran.said, ran.complained);
}
