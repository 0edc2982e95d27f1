//! Programs of `examples/sycl/`, compiled by plain g++ against PyPI's SYCL runtime, which finds the GPU by the
//! adapter's name: over the software driver, or over the machine's (`CAUSEWAY_CUDA=real`).
mod common;
use common::{
    World,
    client::{Ran, Runtime, client, end, folder, run, skipped},
    root,
};
use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash as _, Hasher as _},
    path::PathBuf,
    process::Command,
};

const ALONE: &[&str] = &["usm", "virtual_memory", "queues", "buffers", "surface", "garbage"];
const PAIR: &[&str] = &["producer", "consumer"];

/// The programs, compiled where they are not yet; the folder's name says from what.
fn programs(runtime: &Runtime) -> PathBuf {
    let source = |name: &str| root().join(format!("examples/sycl/{name}"));
    let mut key = DefaultHasher::new();
    runtime.include().hash(&mut key);
    fs::read(source("common.hpp")).unwrap().hash(&mut key);
    let names: Vec<_> =
        ALONE.iter().chain(PAIR).map(|n| (n, source(&format!("{n}.cpp")))).collect();
    names.iter().for_each(|(_, file)| fs::read(file).unwrap().hash(&mut key));
    let into = folder().join("build").join(format!("cuda-{:016x}", key.finish()));
    if into.is_dir() {
        return into;
    }
    let half = into.with_extension(std::process::id().to_string());
    fs::create_dir_all(&half).unwrap();
    for (name, file) in names {
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++17", "-O1", "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING", "-isystem"]);
        compiler.arg(runtime.include()).arg("-I").arg(root().join("examples/sycl"));
        compiler.arg(file).arg("-o").arg(half.join(name)).arg("-L").arg(runtime.lib());
        compiler.args(["-lsycl", &format!("-Wl,-rpath,{}", runtime.lib().display())]);
        let out = compiler.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    // Another process may have been as quick: its programs are the same.
    if fs::rename(&half, &into).is_err() {
        fs::remove_dir_all(&half).unwrap();
    }
    into
}
fn fine(name: &str, ran: &Ran) {
    let said = ran.said.lines().last();
    let well = ran.well && said == Some(&format!("{name}: fine"));
    assert!(well, "{name}:\n{}\n{}", ran.said, ran.complained);
}

#[test]
fn every_program_runs_on_the_gpu_that_the_runtime_finds_by_the_adapters_name() {
    let Some(runtime) = Runtime::installed() else { return };
    if Command::new("g++").arg("--version").output().is_err() {
        return skipped("g++ is not installed");
    }
    let Some(world) = World::new("sycl") else { return };
    let programs = programs(&runtime);
    let start = |name: &str| {
        let mut command = client(&programs.join(name));
        command.env("UR_ADAPTERS_SEARCH_PATH", world.folder());
        command.env("ONEAPI_DEVICE_SELECTOR", "cuda:gpu");
        world.on_driver(&mut command);
        command
    };
    ALONE.iter().for_each(|name| fine(name, &run(&mut start(name))));

    let pipes = ["there", "back"]
        .map(|name| programs.with_extension(format!("{name}-{}", std::process::id())));
    assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
    let pair = PAIR.iter().map(|name| start(name).args(&pipes).spawn().unwrap());
    let started: Vec<_> = pair.collect();
    let ended: Vec<_> = started.into_iter().map(end).collect();
    pipes.iter().for_each(|pipe| fs::remove_file(pipe).unwrap());
    let complaints: String = ended.iter().map(|r| r.complained.as_str()).collect();
    for (name, ran) in PAIR.iter().zip(&ended) {
        assert!(ran.well && ran.said == format!("{name}: fine\n"), "{}\n{complaints}", ran.said);
    }
}
