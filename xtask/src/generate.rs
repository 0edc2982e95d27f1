//! `cargo xtask generate`: writes the committed files that are generated from the specification.
use crate::{emit, model::Spec, parse, root};
use std::fs;

/// The limit on generated lines of product code: what repeats for every entry should be a macro instead.
const MOST_LINES: usize = 26_000;

/// Writes every generated file, or with `check` fails and names the files that are out of date.
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
    let lines = product_lines(&outputs);
    if lines > MOST_LINES {
        return Err(format!(
            "{lines} generated lines of product code; at most {MOST_LINES} may be"
        ));
    }
    if !check {
        println!("wrote {} of {} files; {lines} lines of product code", stale.len(), outputs.len());
    } else if stale.is_empty() {
        println!("{} generated files are fresh; {lines} lines of product code", outputs.len());
    } else {
        let files = stale.join(", ");
        return Err(format!(
            "stale: {files}; run `cargo xtask generate` and commit what it writes"
        ));
    }
    Ok(())
}

/// Counts the lines of source files of crates, without tests and C headers.
fn product_lines(outputs: &[emit::Output]) -> usize {
    let product =
        outputs.iter().filter(|o| o.path.starts_with("crates/") && o.path.contains("/src/"));
    product.map(|output| output.text.lines().count()).sum()
}

fn outputs(spec: &Spec) -> Result<Vec<emit::Output>, String> {
    let mut all = emit::sys::files(spec)?;
    all.push(emit::codes::file(spec)?);
    all.extend(emit::api::files(spec)?);
    all.push(emit::request::file(spec)?);
    all.extend(emit::entry::files(spec)?);
    all.extend(emit::header::files(spec));
    all.push(emit::rows::file(spec)?);
    all.push(emit::answers::file(spec)?);
    all.push(emit::mock::file(spec)?);
    all.extend(emit::print::files(spec)?);
    all.push(emit::layers::file(spec)?);
    all.push(emit::effects::file(spec)?);
    all.push(emit::entry_points::file(spec)?);
    Ok(all)
}
