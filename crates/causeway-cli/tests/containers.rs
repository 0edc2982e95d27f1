//! Processes in containers that hide `/proc`, `/sys` or both share with processes that see them.
mod common;

use common::*;
use std::process::{Command, Stdio};

/// Returns a command line that hides these folders from the program that follows; `None` where the system
/// does not permit that.
fn without(folders: &str) -> Option<Vec<String>> {
    let hide = format!(
        "for folder in {folders}; do mount -t tmpfs none $folder || exit 77; done; exec \"$0\" \"$@\""
    );
    [&["unshare", "--mount"][..], &["unshare", "--map-root-user", "--mount"]].into_iter().find_map(
        |unshare| {
            let words = unshare.iter().copied().chain(["sh", "-c", &hide]);
            let words: Vec<_> = words.map(str::to_owned).collect();
            let mut tried = Command::new(&words[0]);
            tried.args(&words[1..]).arg("true").stderr(Stdio::null());
            tried.status().is_ok_and(|ended| ended.success()).then_some(words)
        },
    )
}
fn causeway_by(by: &[String], args: &[&str]) -> Command {
    let Some((first, more)) = by.split_first() else { return causeway(args) };
    let mut command = Command::new(first);
    command.args(more).arg(env!("CARGO_BIN_EXE_causeway")).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn what_a_container_hides_keeps_nobody_from_sharing() {
    let directory = Directory::new();
    let bytes = contents(5000);
    let file = directory.file("in", &bytes);
    let here = Vec::new();
    for folders in ["/proc", "/sys", "/proc /sys"] {
        let Some(there) = without(folders) else {
            println!("skipped: the system permits nobody here to hide {folders}");
            continue;
        };
        for (exporter, importer) in [(&here, &there), (&there, &here), (&there, &there)] {
            let sharer = Sharer::of(&mut causeway_by(exporter, &["share", &file]));
            let opened = causeway_by(importer, &["open", &sharer.ticket, "-o", "-"]);
            let opened = finish({ opened }.spawn().unwrap());
            assert!(opened.status.success(), "{folders}: {}", stderr(&opened));
            assert!(opened.stdout == bytes, "{folders}");
        }
    }
}
