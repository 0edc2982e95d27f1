//! Programs of `examples/sycl` on the example, under the unmodified SYCL runtime of PyPI.
mod common;
use common::client::{Program, Runtime, client, fine, pair, programs, run};
use std::path::Path;

const PROGRAMS: &[Program] = &[
    ("usm", "examples/sycl/usm.cpp", "17"),
    ("virtual_memory", "examples/sycl/virtual_memory.cpp", "17"),
    ("producer", "examples/sycl/producer.cpp", "17"),
    ("consumer", "examples/sycl/consumer.cpp", "17"),
];

#[test]
fn a_producer_and_a_consumer_of_sycl_share_memory_physical_memory_and_events_on_the_example() {
    let Some(runtime) = Runtime::installed() else { return };
    let Some(programs) = programs(&runtime, PROGRAMS) else { return };
    let object = common::object();
    let start = |name: &str| {
        let mut program = client(&programs.join(name));
        program.env("UR_ADAPTERS_FORCE_LOAD", &object);
        program
    };
    for alone in ["usm", "virtual_memory"] {
        fine(alone, &run(&mut start(alone)));
    }
    let pipes = tempfolder();
    pair(&pipes, 1, start);
    std::fs::remove_dir_all(&pipes).unwrap();
}
/// A folder for named pipes.
fn tempfolder() -> std::path::PathBuf {
    let name = format!("causeway-example-{}", std::process::id());
    let folder = std::env::temp_dir().join(Path::new(&name));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
