//! The conformance suite, judging the example through the C ABI as it judges every adapter.
mod common;
use common::{built, object, run};
use std::{path::Path, process::Command};

#[test]
fn the_example_shares_memory_and_events_and_does_all_that_it_says_it_can() {
    let object = object();
    let suite = built(&["--bin", "ur-conformance"], "\"executable\":\"");
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("expected.toml");
    let mut judge = Command::new(suite);
    judge.arg("--adapter").arg(object).arg("--expected").arg(known);
    // That a queue does not overtake is found by waiting; what takes long is the same code on every adapter.
    for but in [
        "overtakes one that waits",
        "overtake one that waits",
        "while another one's turn has not come",
        "ten thousand objects",
        "four hundred times",
    ] {
        judge.args(["--but", but]);
    }
    let out = run(&mut judge);
    let said = String::from_utf8_lossy(&out.stdout);
    for family in [
        "ipc_memory",
        "ipc_physical",
        "ipc_event",
        "usm",
        "event",
        "queue",
        "enqueue",
        "command_buffer",
        "graph",
    ] {
        let row = said.lines().find(|line| line.starts_with(&format!("{family} ")));
        let passed = row.and_then(|row| row.split_whitespace().nth(1)?.parse::<u32>().ok());
        assert!(passed > Some(20), "{family}: {row:?}");
    }
}
