//! Programs of `examples/sycl/`, compiled by plain g++ against PyPI's SYCL runtime, which finds the GPU by the
//! adapter's name: over the software driver, or over the machine's (`CAUSEWAY_CUDA=real`).
mod common;
use common::{
    World,
    client::{ALONE, EXAMPLES, Runtime, client, fine, pair, programs, run},
};

#[test]
fn every_program_runs_on_the_gpu_that_the_runtime_finds_by_the_adapters_name() {
    let Some(runtime) = Runtime::installed() else { return };
    let Some(programs) = programs(&runtime, &EXAMPLES) else { return };
    let Some(world) = World::new("sycl") else { return };
    let start = |name: &str| {
        let mut command = client(&programs.join(name));
        command.env("UR_ADAPTERS_SEARCH_PATH", world.folder());
        command.env("ONEAPI_DEVICE_SELECTOR", "cuda:gpu");
        world.on_driver(&mut command);
        command
    };
    ALONE.iter().for_each(|name| fine(name, &run(&mut start(name))));
    pair(world.folder(), 1, start);
}
