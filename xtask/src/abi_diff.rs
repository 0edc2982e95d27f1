//! `cargo xtask abi-diff`: proves that the headers and `ur-sys` have the ABI of the shipped Unified Runtime.
//! A C compiler evaluates both sets of headers, and no result may differ; the two loaders must export the
//! same names. `ze-sys` is compared with Level Zero's headers in the same way.
mod facts;
mod level_zero;
mod scan;
mod symbols;

use crate::{emit, leaf::Object, model::Spec, parse, root, wheel::RUNTIME};
use facts::{Facts, Headers, run as run_program};
use std::{
    fs,
    path::{Path, PathBuf},
};

type Result<T> = std::result::Result<T, String>;

const HEADERS: [&str; 3] = ["ur_api.h", "ur_ddi.h", "ur_print.h"];

/// Compares everything; `reference` is a folder that contains `unified-runtime/ur_api.h` and the other
/// headers.
pub fn run(reference: Option<PathBuf>) -> Result<()> {
    let work = root().join("target/abi");
    let spec = parse::spec(&root().join("spec"))?;
    let level_zero = match level_zero::ask(&work, &root().join("crates/ze-sys"))? {
        Err(why) => format!("skipped: Level Zero's headers: {why}"),
        Ok(said) => match differences(&said.rust, &said.c, "ze-sys").as_slice() {
            [] => format!("{}, no difference", said.sentence),
            some => {
                let (count, package) = (some.len(), level_zero::PACKAGE);
                return Err(format!("{count} differences from {package}:\n{}", some.join("\n")));
            }
        },
    };
    let exports = symbols::differences(&spec, &work)?;
    let reference = match reference {
        Some(given) => given,
        None => fetched(&work)?,
    };
    let report = compare(&root().join("include"), &reference, &work)?;
    let rust = rust_differences(&spec, &report.ours, &work)?;
    let differences: Vec<_> = report.differences.into_iter().chain(rust).chain(exports).collect();
    match differences.as_slice() {
        [] => {
            println!("{} facts of the ABI, no difference", report.ours.len());
            println!("{level_zero}");
            println!(
                "{} symbols of the loader, no difference",
                Object::loader(&spec).symbols.len()
            );
            Ok(())
        }
        some => Err(format!("{} differences from the reference:\n{}", some.len(), some.join("\n"))),
    }
}

struct Report {
    ours: Facts,
    differences: Vec<String>,
}

/// Compares the headers in `ours` with those in `reference`; the programs for it are written to `work`.
fn compare(ours: &Path, reference: &Path, work: &Path) -> Result<Report> {
    let theirs = Headers::read(reference, &work.join("reference"))?;
    let mine = Headers::read(ours, &work.join("ours"))?;
    let (facts, expected) = (mine.facts()?, theirs.facts()?);
    // A scanner that finds nothing would report no difference.
    if expected.len() < 1000 {
        return Err(format!(
            "{}: only {} facts; is it the folder?",
            reference.display(),
            expected.len()
        ));
    }
    let differences = differences(&facts, &expected, "ours");
    if differences.is_empty() {
        mine.redeclares(&theirs)?;
        mine.compile_as_cpp()?;
    }
    Ok(Report { ours: facts, differences })
}

/// Returns the facts that only one side has, and those with different values.
fn differences(ours: &Facts, expected: &Facts, whose: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (name, value) in expected {
        match ours.get(name) {
            None => out.push(format!("missing: {name} (reference: {value})")),
            Some(own) if own != value => {
                out.push(format!("{name}: {whose} {own}, reference {value}"))
            }
            Some(_) => {}
        }
    }
    let extra = ours.iter().filter(|(name, _)| !expected.contains_key(*name));
    out.extend(extra.map(|(name, value)| format!("extra: {name} ({whose}: {value})")));
    out
}

/// Compares the layouts and values of `ur-sys` with those of C.
fn rust_differences(spec: &Spec, c: &Facts, work: &Path) -> Result<Vec<String>> {
    let package = work.join("layout");
    fs::create_dir_all(&package).map_err(|e| format!("{}: {e}", package.display()))?;
    let manifest = format!(
        "[package]\nname = \"layout\"\nedition = \"2024\"\n\n[[bin]]\nname = \"layout\"\npath = \"main.rs\"\n\n\
         [dependencies]\nur-sys = {{ path = {:?} }}\n\n[workspace]\n",
        root().join("crates/ur-sys")
    );
    let write = |name: &str, text: &str| {
        fs::write(package.join(name), text).map_err(|e| format!("{}: {e}", package.display()))
    };
    write("Cargo.toml", &manifest)?;
    write("main.rs", &emit::layout::program(spec))?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let manifest = package.join("Cargo.toml").display().to_string();
    let target = package.join("target").display().to_string();
    let arguments =
        ["run", "--quiet", "--offline", "--manifest-path", &manifest, "--target-dir", &target];
    let said = run_program(&cargo, arguments.map(String::from))?;
    let facts: Facts = said
        .lines()
        .filter_map(|l| l.split_once(" = "))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    // Only facts that exist in Rust: no C macros, and no enumerators that only fix the width of C's enums.
    let told = |name: &&String| {
        let kinds = ["size of ", "alignment of ", "offset of ", "value of "];
        let (said, of) = match kinds.iter().find_map(|k| name.strip_prefix(k)) {
            Some(of) => (true, of),
            None => (false, ""),
        };
        said && !of.ends_with("_FORCE_UINT32")
            && !of.contains('(')
            && !of.contains("_params_t")
            && is_rust(name, spec)
    };
    let expected =
        c.iter().filter(|(name, _)| told(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
    Ok(differences(&facts, &expected, "ur-sys"))
}
/// `ur-sys` has no member sizes, and no strings and masks, which are macros in C.
fn is_rust(name: &str, spec: &Spec) -> bool {
    let member = name.starts_with("size of ") && name.contains('.');
    let text = spec.constants.iter().any(|k| name.ends_with(&k.c));
    let mask = name.ends_with("_FLAGS_MASK");
    !(member || text || mask)
}

/// Returns the reference's headers, extracted from the wheel, which is downloaded once.
fn fetched(work: &Path) -> Result<PathBuf> {
    let include = work.join("wheel/include");
    RUNTIME.files(&HEADERS, &include.join("unified-runtime")).map_err(|e| {
        format!("{e}\nabi-diff needs {}; unpack it yourself and say --reference DIR", RUNTIME.name)
    })?;
    Ok(include)
}

#[cfg(test)]
mod tests;
