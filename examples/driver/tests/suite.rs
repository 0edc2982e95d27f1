//! The conformance suite, judging the example through the C ABI as it judges every adapter.
use std::{
    path::Path,
    process::{Command, Output},
};

fn run(command: &mut Command) -> Output {
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    let failures = said.split("\nfailures:\n").nth(1).unwrap_or(&said);
    assert!(out.status.success(), "{failures}\n{}", String::from_utf8_lossy(&out.stderr));
    out
}
/// What cargo says that it built: the last file of a kind.
fn built(arguments: &[&str], before: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["build", "--message-format", "json"]).args(arguments);
    // The other programs are selected so that nothing is built anew for want of a feature.
    cargo.args(["--package", "causeway-cli", "--package", "ur-conformance", "--package", "xtask"]);
    let said = String::from_utf8_lossy(&run(&mut cargo).stdout).into_owned();
    let (_, last) = said.rsplit_once(before).expect("cargo names what it builds");
    last.split('"').next().expect("a path ends somewhere").to_owned()
}

#[test]
fn the_example_shares_memory_and_events_and_does_all_that_it_says_it_can() {
    let object = built(&["--lib", "--package", "example-driver"], "\"filenames\":[\"");
    let suite = built(&["--bin", "ur-conformance"], "\"executable\":\"");
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("expected.toml");
    let mut judge = Command::new(suite);
    judge.arg("--adapter").arg(object).arg("--expected").arg(known);
    // That a queue does not overtake is found by waiting; what takes long is the same code on every adapter.
    for but in ["overtakes one that waits", "ten thousand objects", "four hundred times"] {
        judge.args(["--but", but]);
    }
    let out = run(&mut judge);
    let said = String::from_utf8_lossy(&out.stdout);
    for family in ["ipc_memory", "ipc_event", "usm", "event", "queue", "enqueue", "command_buffer"]
    {
        let row = said.lines().find(|line| line.starts_with(&format!("{family} ")));
        let passed = row.and_then(|row| row.split_whitespace().nth(1)?.parse::<u32>().ok());
        assert!(passed > Some(20), "{family}: {row:?}");
    }
}
