//! What tests of the example start: its shared object, and programs beside it.
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

#[allow(dead_code, reason = "not every test of this folder starts clients")]
#[path = "../../../../adapters/native-cpu/tests/common/client.rs"]
pub mod client;

/// The root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
/// Runs a program to its end, which is to be a good one.
pub fn run(command: &mut Command) -> Output {
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    let failures = said.split("\nfailures:\n").nth(1).unwrap_or(&said);
    assert!(out.status.success(), "{failures}\n{}", String::from_utf8_lossy(&out.stderr));
    out
}
/// What cargo says that it built: the last file of a kind.
pub fn built(arguments: &[&str], before: &str) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["build", "--message-format", "json"]).args(arguments);
    // The other programs are selected so that nothing is built anew for want of a feature.
    cargo.args(["--package", "causeway-cli", "--package", "ur-conformance", "--package", "xtask"]);
    let said = String::from_utf8_lossy(&run(&mut cargo).stdout).into_owned();
    let (_, last) = said.rsplit_once(before).expect("cargo names what it builds");
    last.split('"').next().expect("a path ends somewhere").to_owned()
}
/// The example's shared object.
pub fn object() -> String {
    built(&["--lib", "--package", "example-driver"], "\"filenames\":[\"")
}
