//! `cargo xtask map`: checks ARCHITECTURE.md against the tree. Its table of unsafe code must name exactly the
//! files that contain some, and it must name every source file of the folders in `ROOMS`.
use crate::{CRATES, root, seam};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

type Result<T> = std::result::Result<T, String>;

const MAP: &str = "ARCHITECTURE.md";
/// The title of the section with the table of unsafe code.
const UNSAFE: &str = "## Where unsafe lives";
/// Folders whose source files the map must name, relative to the folder of the crates.
const ROOMS: [&str; 16] = [
    "causeway-cli/src",
    "causeway-python/src",
    "causeway/src",
    "ur-adapter/src",
    "ur-core/src",
    "ur-core/src/kernels",
    "ur-core/src/memory",
    "ur-core/src/over_driver",
    "ur-cpu/src",
    "ur-cpu/src/engine",
    "ur-cuda/src",
    "ur-ipc/src",
    "ur-ipc/src/arena",
    "ur-level-zero/src",
    "ur-loader/src",
    "ur-mock/src",
];

/// Compares; the error has a line for each difference.
pub fn run() -> Result<()> {
    let map = fs::read_to_string(root().join(MAP)).map_err(|e| format!("{MAP}: {e}"))?;
    let (mut files, mut opted, mut speak) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for folder in CRATES.map(|folder| root().join(folder)) {
        for file in sources(&folder)? {
            let text =
                fs::read_to_string(folder.join(&file)).map_err(|e| format!("{file}: {e}"))?;
            if opts_in(&text) {
                opted.insert(file.clone());
            }
            if seam::speaks_of_ur(&file, &text) {
                speak.insert(file.clone());
            }
            files.insert(file);
        }
    }
    let mut wrong = compare(&patterns(&map)?, &opted, &files);
    wrong.extend(unnamed(&map, &files));
    wrong.extend(seam::grown(&speak));
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("{MAP} and what it says:\n  {}", wrong.join("\n  ")))
    }
}

/// Returns the source files of the crates in a folder, relative to it, without tests.
fn sources(crates: &Path) -> Result<BTreeSet<String>> {
    let (mut folders, mut found) = (vec![crates.to_path_buf()], BTreeSet::new());
    while let Some(folder) = folders.pop() {
        let wrong = |e: std::io::Error| format!("{}: {e}", folder.display());
        for entry in fs::read_dir(&folder).map_err(wrong)? {
            let path: PathBuf = entry.map_err(wrong)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name != "tests" {
                folders.push(path);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let below = path.strip_prefix(crates).unwrap_or(&path);
                found.insert(below.display().to_string());
            }
        }
    }
    Ok(found.into_iter().filter(|file| file.contains("/src/")).collect())
}

/// Whether a file allows unsafe code, as a whole or for an item.
fn opts_in(text: &str) -> bool {
    let attributes = text.split('#').skip(1).filter_map(|rest| {
        let inside = rest.strip_prefix('!').unwrap_or(rest).strip_prefix('[')?;
        let list = inside.strip_prefix("expect(").or_else(|| inside.strip_prefix("allow("))?;
        // The listed lints, without the reason.
        Some(list.split(['"', ']']).next().unwrap_or_default())
    });
    attributes.into_iter().any(|list| list.contains("unsafe_code"))
}

/// Returns the names in the first column of the table of unsafe code, with braces expanded.
fn patterns(map: &str) -> Result<Vec<String>> {
    let (_, section) = map.split_once(UNSAFE).ok_or_else(|| format!("{MAP}: no {UNSAFE:?}"))?;
    let section = section.split("\n## ").next().unwrap_or(section);
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split(" |").next());
    Ok(cells.flat_map(|cell| cell.split('`')).flat_map(written_out).collect())
}
/// Expands `a/{b,c}.rs` to `a/b.rs` and `a/c.rs`; text between two names gives nothing.
fn written_out(name: &str) -> Vec<String> {
    if !name.contains('/') {
        return Vec::new();
    }
    let Some((head, (middle, tail))) =
        name.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?)))
    else {
        return vec![name.to_owned()];
    };
    middle.split(',').flat_map(|one| written_out(&format!("{head}{one}{tail}"))).collect()
}
/// Whether a name of the table stands for the file: the file itself, `folder/*.rs`, or anything below
/// `folder/`.
fn means(pattern: &str, file: &str) -> bool {
    if let Some(folder) = pattern.strip_suffix("*.rs") {
        return file.strip_prefix(folder).is_some_and(|rest| !rest.contains('/'));
    }
    file == pattern || (pattern.ends_with('/') && file.starts_with(pattern))
}
/// Returns files that the table does not list, and entries of the table without a file.
fn compare(table: &[String], opted: &BTreeSet<String>, files: &BTreeSet<String>) -> Vec<String> {
    let unlisted = opted.iter().filter(|file| !table.iter().any(|pattern| means(pattern, file)));
    let unlisted = unlisted.map(|file| format!("{file} has unsafe code and is not listed"));
    let idle = table.iter().filter(|pattern| !opted.iter().any(|file| means(pattern, file)));
    let idle = idle.map(|pattern| match files.iter().any(|file| means(pattern, file)) {
        true => format!("{pattern} is listed and has no unsafe code"),
        false => format!("{pattern} is listed and is not there"),
    });
    unlisted.chain(idle).collect()
}

/// Returns the files that the map must name and does not.
fn unnamed(map: &str, files: &BTreeSet<String>) -> Vec<String> {
    let named: BTreeSet<String> = map
        .split('`')
        .flat_map(|part| if part.contains('{') { written_out(part) } else { vec![part.to_owned()] })
        .filter_map(|name| Some(name.rsplit('/').next()?.to_owned()))
        .collect();
    let in_a_room = |file: &&String| {
        let folder = file.rsplit_once('/').map(|(folder, _)| folder);
        folder.is_some_and(|folder| ROOMS.contains(&folder))
    };
    let is_named = |file: &&String| {
        let name = file.rsplit('/').next().unwrap_or(file);
        ["lib.rs", "main.rs", "mod.rs"].contains(&name) || named.contains(name)
    };
    let missing = files.iter().filter(in_a_room).filter(|file| !is_named(file));
    missing.map(|file| format!("{file} is not named")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(files: &[&str]) -> BTreeSet<String> {
        files.iter().map(|file| (*file).to_string()).collect()
    }
    const TABLE: &str = "# Map\n\n## Where unsafe lives\n\n| file | why |\n|---|---|\n\
        | `a/src/{x,y}.rs`, `a/src/deep/` | words with `unsafe` |\n| `b/src/native/*.rs` | more |\n\n\
        ## Next\n\n| `c/src/lib.rs` | not of it |\n";

    #[test]
    fn the_table_is_read_with_its_braces_folders_and_stars() {
        let table = patterns(TABLE).unwrap();
        assert_eq!(table, ["a/src/x.rs", "a/src/y.rs", "a/src/deep/", "b/src/native/*.rs"]);
        let all = set(&["a/src/x.rs", "a/src/y.rs", "a/src/deep/er/z.rs", "b/src/native/n.rs"]);
        assert_eq!(compare(&table, &all, &all), [""; 0]);
    }
    #[test]
    fn what_is_unlisted_what_needs_no_listing_and_what_is_gone_are_told() {
        let table = patterns(TABLE).unwrap();
        let opted = set(&["a/src/x.rs", "a/src/deep/z.rs", "b/src/native/deeper/n.rs"]);
        let files = set(&["a/src/x.rs", "a/src/y.rs", "a/src/deep/z.rs"]);
        assert_eq!(
            compare(&table, &opted, &files),
            [
                "b/src/native/deeper/n.rs has unsafe code and is not listed",
                "a/src/y.rs is listed and has no unsafe code",
                "b/src/native/*.rs is listed and is not there",
            ]
        );
        assert!(patterns("# Map").unwrap_err().contains("Where unsafe lives"));
    }
    #[test]
    fn a_file_opts_in_by_an_attribute_and_not_by_talking_of_it() {
        assert!(opts_in("//! Doc.\n#![expect(unsafe_code, reason = \"C\")]\n"));
        assert!(opts_in("#![allow(\n    unsafe_code,\n    clippy::x,\n    reason = \"r\"\n)]"));
        assert!(opts_in("fn a() {}\n#[expect(unsafe_code, reason = \"one item\")]\nfn b() {}"));
        assert!(!opts_in("#![forbid(unsafe_code)]"));
        assert!(!opts_in("#![expect(dead_code, reason = \"no unsafe_code\")] // unsafe_code"));
    }
    #[test]
    fn a_file_of_a_room_that_is_not_named_is_told() {
        let map = "`share.rs` `ur-ipc/src/{broker,lease}.rs` broker";
        let files = set(&["ur-ipc/src/share.rs", "ur-ipc/src/lease.rs", "ur-ipc/src/lib.rs"]);
        assert_eq!(unnamed(map, &files), [""; 0]);
        let files = set(&["ur-ipc/src/token.rs", "ze-software/src/token.rs"]);
        assert_eq!(unnamed(map, &files), ["ur-ipc/src/token.rs is not named"]);
    }
    #[test]
    fn the_map_is_true() {
        assert_eq!(run(), Ok(()));
    }
}
