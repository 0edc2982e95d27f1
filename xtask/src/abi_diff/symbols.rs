//! Compares the names that the two loaders export: a program that is linked with one must find all symbols in
//! the other.
use super::Result;
use crate::{leaf::Object, model::Spec, wheel::LIBRARIES};
use std::{collections::BTreeSet, path::Path, process::Command};

const LOADER: &str = "libur_loader.so.0";

/// Returns the names, with versions, that only one of the loaders exports. For our loader these are the names
/// that `dist` allows, because `dist` fails if an object exports anything else.
pub fn differences(spec: &Spec, work: &Path) -> Result<Vec<String>> {
    let folder = LIBRARIES.files(&[LOADER], &work.join("wheel/lib"))?;
    let theirs = exported(&folder.join(LOADER))?;
    let ours = Object::loader(spec);
    let node = &ours.node;
    let own: BTreeSet<_> = ours.symbols.iter().map(|name| format!("{name}@@{node}")).collect();
    // A tool that prints nothing would give no difference.
    if theirs.len() < 100 {
        return Err(format!("nm finds only {} symbols in {LOADER}", theirs.len()));
    }
    let missing = theirs.difference(&own).map(|name| format!("missing: {name} is not exported"));
    let extra = own.difference(&theirs).map(|name| format!("extra: {name} is exported"));
    Ok(missing.chain(extra).collect())
}

/// Returns the functions that a shared object defines, with their versions.
fn exported(object: &Path) -> Result<BTreeSet<String>> {
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--with-symbol-versions", "--format=posix"]).arg(object);
    let out = nm.output().map_err(|e| format!("nm: {e}; abi-diff needs binutils"))?;
    if !out.status.success() {
        return Err(format!("nm: {}", String::from_utf8_lossy(&out.stderr)));
    }
    let said = String::from_utf8_lossy(&out.stdout);
    let function = |line: &str| {
        let (name, rest) = line.split_once(' ')?;
        matches!(rest.chars().next()?, 'T' | 'W').then(|| name.to_string())
    };
    Ok(said.lines().filter_map(function).collect())
}
