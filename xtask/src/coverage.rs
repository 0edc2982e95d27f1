//! `cargo xtask coverage`: measures how much of the runtime the conformance suite reaches through the C ABI.
//! The adapter's shared object is built with counters that are mapped from the profile files, so that
//! processes count until they are killed, as the suite's workers and many of its peers are.
use crate::{
    dist::{cargo, execute, suite},
    root,
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// The measured parts: their names and folders.
const PARTS: [(&str, &str); 3] = [
    ("ur-adapter", "crates/ur-adapter/src/"),
    ("ur-ipc", "crates/ur-ipc/src/"),
    ("cpu", "crates/ur-cpu/src/"),
];
const FLAGS: &str = "-Cinstrument-coverage -Cllvm-args=-runtime-counter-relocation";
/// The suite finds the list of known failures by this name.
const ADAPTER: &str = "libur_adapter_native_cpu.so.0";

/// Builds the adapter, runs the suite, and prints the results.
pub fn run() -> Result<()> {
    let tools = tools()?;
    let folder = root().join("target/coverage");
    let profiles = folder.join("profiles");
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |e: std::io::Error| format!("{path}: {e}")
    };
    if profiles.exists() {
        fs::remove_dir_all(&profiles).map_err(io(&profiles))?;
    }
    fs::create_dir_all(&profiles).map_err(io(&profiles))?;
    let adapter = folder.join(ADAPTER);
    fs::copy(instrumented(&folder)?, &adapter).map_err(io(&adapter))?;
    judge(&adapter, &profiles)?;

    let merged = folder.join("all.profdata");
    let mut merge = Command::new(tools.join("llvm-profdata"));
    // A process that was killed while it created its profile leaves an unreadable file.
    merge.args(["merge", "-sparse", "-failure-mode=all"]).arg(&profiles).arg("-o").arg(&merged);
    execute(&mut merge)?;
    let mut report = Command::new(tools.join("llvm-cov"));
    report.arg("report").arg(&adapter).arg(format!("-instr-profile={}", merged.display()));
    let report = report.output().map_err(|e| format!("llvm-cov: {e}"))?;
    if !report.status.success() {
        return Err(format!("llvm-cov: {}", String::from_utf8_lossy(&report.stderr)));
    }
    let report = String::from_utf8_lossy(&report.stdout);
    let file = folder.join("report.txt");
    fs::write(&file, report.as_bytes()).map_err(io(&file))?;
    print!("{}", table(&report)?);
    println!("file by file: {}", file.display());
    Ok(())
}

/// Returns the folder of the toolchain's llvm-profdata and llvm-cov.
fn tools() -> Result<PathBuf> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = |what: &[&str]| {
        let out = Command::new(&rustc).args(what).output().map_err(|e| format!("rustc: {e}"))?;
        Ok::<_, String>(String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let version = said(&["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` does not say for which host it is")?;
    let sysroot = said(&["--print", "sysroot"])?;
    let tools = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin");
    match tools.join("llvm-profdata").exists() {
        true => Ok(tools),
        false => Err("there is no llvm-profdata: `rustup component add llvm-tools`".into()),
    }
}

/// Builds the adapter with counters and returns its file. rustc links it, because it knows what the counters
/// need.
fn instrumented(folder: &Path) -> Result<PathBuf> {
    let target = folder.join("target");
    let mut build = cargo();
    build.args(["rustc", "--quiet", "--package", "native-cpu", "--lib", "--crate-type", "cdylib"]);
    build.args(["--", "-Clink-arg=-Wl,-z,nodelete"]);
    build.env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", &target);
    execute(&mut build)?;
    Ok(target.join("debug/libnative_cpu.so"))
}

/// Runs the suite, whose processes each write a profile.
fn judge(adapter: &Path, profiles: &Path) -> Result<()> {
    let mut suite = Command::new(suite()?);
    suite.arg("--adapter").arg(adapter);
    suite.env("LLVM_PROFILE_FILE", profiles.join("%p-%m%c.profraw"));
    let out = suite.output().map_err(|e| format!("ur-conformance: {e}"))?;
    let said = String::from_utf8_lossy(&out.stdout);
    let total = said.lines().rev().find(|line| line.starts_with("all "));
    println!("the suite (passed, skipped, known failures, failed): {}", total.unwrap_or("crashed"));
    if !out.status.success() {
        println!("something failed; what it reached counts all the same");
    }
    Ok(())
}

/// Sums up the reached lines and functions in a report of llvm-cov.
fn table(report: &str) -> Result<String> {
    let mut text = String::from("| | Lines | Functions |\n| --- | --- | --- |\n");
    for (name, place) in PARTS {
        let (mut lines, mut functions) = ((0, 0), (0, 0));
        for row in report.lines().filter(|row| row.contains(place)) {
            // Columns: file; regions, missed, %; functions, missed, %; lines, missed, %; and so on.
            let words: Vec<_> = row.split_whitespace().collect();
            let number = |at: usize| {
                let word = words.get(at).and_then(|word| word.parse::<u32>().ok());
                word.ok_or_else(|| format!("llvm-cov says something else than it did: {row}"))
            };
            functions = (functions.0 + number(4)?, functions.1 + number(5)?);
            lines = (lines.0 + number(7)?, lines.1 + number(8)?);
        }
        let share = |(all, missed): (u32, u32)| {
            if all == 0 {
                return Err(format!("nothing of {place} is in the report"));
            }
            let percent = 100.0 * f64::from(all - missed) / f64::from(all);
            Ok(format!("{percent:.1} % of {all}"))
        };
        text += &format!("| `{name}` | {} | {} |\n", share(lines)?, share(functions)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_sums_over_files() {
        let row = |file| format!("{file} 9 9 0.00% 4 1 75.00% 100 20 80.00% 0 0 -\n");
        let files = ["crates/ur-adapter/src/a.rs", "crates/ur-ipc/src/b.rs"];
        let more = ["x/crates/ur-cpu/src/c.rs", "crates/ur-cpu/src/d.rs"];
        let other = "crates/ur-null/src/lib.rs";
        let all = files.iter().chain(&more).chain([&other]).map(row).collect::<String>();
        let table = table(&all).unwrap();
        assert!(table.contains("| `ur-ipc` | 80.0 % of 100 | 75.0 % of 4 |"), "{table}");
        assert!(table.contains("| `cpu` | 80.0 % of 200 | 75.0 % of 8 |"), "{table}");
    }
    #[test]
    fn a_part_that_is_not_in_the_report_is_said() {
        assert!(table("").unwrap_err().contains("crates/ur-adapter/src/"));
    }
}
