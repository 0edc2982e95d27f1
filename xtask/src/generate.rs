//! `cargo xtask generate`: from the specification to the files that are committed.
use crate::{emit, model::Spec, parse, root};
use std::fs;

/// Writes every generated file, or with `check` names those that are stale.
pub fn run(check: bool) -> Result<(), String> {
    let spec = parse::spec(&root().join("spec"))?;
    let mut stale = Vec::new();
    let outputs = outputs(&spec)?;
    for output in &outputs {
        let path = root().join(&output.path);
        if fs::read_to_string(&path).is_ok_and(|text| text == output.text) {
            continue;
        }
        if !check {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            }
            fs::write(&path, &output.text).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        stale.push(output.path.as_str());
    }
    match (check, stale.as_slice()) {
        (true, [_, ..]) => Err(format!(
            "stale: {}; run `cargo xtask generate` and commit what it writes",
            stale.join(", ")
        )),
        (true, []) => Ok(println!("{} generated files are fresh", outputs.len())),
        (false, written) => Ok(println!("wrote {} of {} files", written.len(), outputs.len())),
    }
}

fn outputs(spec: &Spec) -> Result<Vec<emit::Output>, String> {
    let mut all = emit::sys::files(spec)?;
    all.push(emit::codes::file(spec)?);
    all.extend(emit::api::files(spec)?);
    all.extend(emit::entry::files(spec)?);
    all.extend(emit::header::files(spec));
    Ok(all)
}
