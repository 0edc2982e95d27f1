//! `cargo xtask conformance`: runs the suite of `crates/ur-conformance` through the C ABI and our loader on
//! each of our shared objects and on an adapter of the SYCL distribution; then once more through the
//! distribution's loader, where every case must have the same outcome. With `--shipped` the same comparison
//! is made for the shipped Level Zero adapters on our software driver.
use crate::{
    differential::{self, PROFILES},
    dist::{self, Request},
    opencl, root,
    wheel::{BESIDE, LIBRARIES},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// The shipped adapter that is judged without a driver, so that it has no device.
const FOREIGN: &str = "libur_adapter_level_zero_v2.so.0";
/// The shipped loader.
const LOADER: &str = "libur_loader.so.0";

/// What to judge.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Judges only this adapter (native_cpu, null, level_zero_v2, ...); may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Judges only the shipped Level Zero adapters, on the software driver, through both loaders
    #[arg(long, conflicts_with = "only")]
    shipped: bool,
    /// Judges only our Level Zero adapter, on the software driver with the profile of each family of Intel devices
    #[arg(long, conflicts_with_all = ["only", "shipped"])]
    profiles: bool,
    /// Judges only our OpenCL adapter, on Intel's runtime (installed by pip) and on PoCL, if the system has it
    #[arg(long, conflicts_with_all = ["only", "shipped", "profiles"])]
    opencl: bool,
    /// Leaves out the cases that take most of the time: deaths of processes, and counts of a thousand and more
    #[arg(long, conflicts_with_all = ["shipped", "profiles"])]
    short: bool,
}
/// Cases that a short run leaves out. Full runs on the other backends include them.
const LONG: [&str; 6] =
    ["exits after", "killed after", "stopped in the middle", "thousand", "four hundred", "1,024"];
/// The shipped adapters, and the value that selects each where both are available.
const SHIPPED: [(&str, &str); 2] = [(FOREIGN, "1"), ("libur_adapter_level_zero.so.0", "0")];
/// Cases that they are not judged by: null handles, which our loader refuses and which crash them.
const BUT: [&str; 2] = ["nothing is written", "are refused at once"];
/// Cases of these adapters whose outcome differs between the loaders, with the reasons.
const EXPLAINED: [(&str, &str); 6] = [
    ("another thread's failure does not change", "what fails there is a null handle"),
    ("a callback is set, hears or not", "a null handle is among what it hears of"),
    ("eight threads retain and release", "a null handle is refused at its end"),
    ("a count without a list is", "ours reads the first of the list to know whose it is"),
    ("a list of no events is", "likewise"),
    ("out-of-order queue overtakes", "theirs asks a byte of its stack that it never wrote"),
];

/// Judges; fails if a case failed that is not known to fail, or passed although it is known to fail.
pub fn run(arguments: &Arguments) -> Result<()> {
    let reports = root().join("target/conformance");
    fs::create_dir_all(&reports).map_err(|e| format!("{}: {e}", reports.display()))?;
    let suite = dist::suite()?;
    if arguments.profiles {
        return profiles(&suite, &reports);
    }
    if arguments.opencl {
        return over_opencl(&suite, &reports, arguments.short);
    }
    let loader = match loader(&reports.join("wheel")) {
        Ok(loader) => Some(loader),
        Err(why) => {
            println!("skipped: {LOADER}: {why}; it comes with {}", LIBRARIES.name);
            None
        }
    };
    if arguments.shipped {
        let loader = loader.ok_or("without the other loader there is nothing to compare")?;
        return shipped(&suite, &loader, &reports);
    }
    let mut failed = Vec::new();
    for adapter in adapters(arguments, &reports)? {
        let name = name(&adapter);
        let ours = Run { is_short: arguments.short, ..Run::new(&suite, &adapter, &reports) };
        if !ours.judge()? {
            failed.push(name.clone());
        }
        // The mock crashes in every other case, through both loaders.
        if name == "mock" {
            continue;
        }
        let Some(loader) = &loader else { continue };
        let theirs = Run { door: Some(loader), ..ours };
        theirs.judge()?;
        let different = different(&ours.outcomes()?, &theirs.outcomes()?);
        if !different.is_empty() {
            println!("{name}: not the same through {LOADER}:\n{}", different.join("\n"));
            failed.push(format!("{name} through {LOADER}"));
        }
    }
    println!("reports: {}", reports.display());
    match failed.as_slice() {
        [] => Ok(()),
        some => Err(format!("not as expected: {}", some.join(", "))),
    }
}

/// Judges our Level Zero adapter under each profile of the software driver.
fn profiles(suite: &Path, reports: &Path) -> Result<()> {
    let driver = differential::driver(&reports.join("driver"))?;
    let (only, out) = (vec!["level_zero_v2".to_string()], Some(reports.join("adapters")));
    let all = dist::run(&Request { only, out, debug: true, ..Request::default() })?;
    let adapter = all.iter().find(|object| name(object) == "level_zero_v2");
    let adapter = adapter.ok_or("the Level Zero adapter was not built")?;
    let mut wrong = Vec::new();
    for profile in PROFILES {
        let driver = Some((driver.as_path(), "1"));
        let run = Run { driver, profile: Some(profile), ..Run::new(suite, adapter, reports) };
        if !run.judge()? {
            wrong.push(profile);
        }
    }
    match wrong.as_slice() {
        [] => Ok(()),
        some => Err(format!("not as expected: {}", some.join(", "))),
    }
}

/// Judges our OpenCL adapter on the available drivers. Fails if there are none, because nothing would be
/// judged.
fn over_opencl(suite: &Path, reports: &Path, is_short: bool) -> Result<()> {
    let (only, out) = (vec!["opencl".to_string()], Some(reports.join("adapters")));
    let all = dist::run(&Request { only, out, debug: true, ..Request::default() })?;
    let adapter = all.iter().find(|object| name(object) == "opencl");
    let adapter = adapter.ok_or("the OpenCL adapter was not built")?;
    let mut drivers = vec![];
    match opencl::intel(&root().join("target/opencl/venv"), reports) {
        Ok(driver) => drivers.push(driver),
        Err(why) => println!("skipped: Intel's runtime: {why}"),
    }
    match opencl::pocl(reports)? {
        Some(driver) => drivers.push(driver),
        None => println!("skipped: PoCL: apt-get install pocl-opencl-icd ocl-icd-libopencl1"),
    }
    if drivers.is_empty() {
        return Err("there is no driver of OpenCL to judge the adapter on".into());
    }
    let mut wrong = vec![];
    for driver in &drivers {
        let opencl = Some(driver);
        let run = Run { opencl, is_short, ..Run::new(suite, adapter, reports) };
        let is_fine = run.judge()?;
        let passed = run.outcomes()?.values().filter(|outcome| *outcome == "passed").count();
        // Without the driver nearly all cases are skipped, which does not count as success.
        if !is_fine || passed < 1000 {
            wrong.push(format!("{} ({passed} passed)", driver.name));
        }
    }
    match wrong.as_slice() {
        [] => Ok(()),
        some => Err(format!("not as expected: {}", some.join(", "))),
    }
}

/// Judges the shipped adapters through both loaders. A case with different outcomes is judged again, because
/// these adapters have races.
fn shipped(suite: &Path, loader: &PathBuf, reports: &Path) -> Result<()> {
    let driver = differential::driver(&reports.join("driver"))?;
    let folder = LIBRARIES.files(&SHIPPED.map(|(file, _)| file), &reports.join("wheel"))?;
    let mut wrong = Vec::new();
    for (file, chosen) in SHIPPED {
        let adapter = folder.join(file);
        let driver = Some((driver.as_path(), chosen));
        let ours = Run { driver, ..Run::new(suite, &adapter, reports) };
        let theirs = Run { door: Some(loader), ..ours };
        let mut titles = Vec::new();
        for round in 0..3 {
            if round > 0 && titles.is_empty() {
                break;
            }
            let [ours, theirs] = [ours, theirs].map(|run| run.compare(&titles));
            let (ours, theirs) = (ours?, theirs?);
            println!("{}: {} cases", name(&adapter), ours.len());
            titles = unlike(&ours, &theirs);
            titles.retain(|title| !EXPLAINED.iter().any(|(part, _)| title.contains(part)));
        }
        wrong.extend(titles.into_iter().map(|title| format!("  {}: {title}", name(&adapter))));
    }
    match wrong.as_slice() {
        [] => Ok(()),
        some => Err(format!("not the same through {LOADER}:\n{}", some.join("\n"))),
    }
}
/// Returns the titles of cases with different outcomes.
fn unlike(ours: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>) -> Vec<String> {
    let all: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    all.into_iter().filter(|title| ours.get(*title) != theirs.get(*title)).cloned().collect()
}

/// Returns the shared objects, ours first.
fn adapters(arguments: &Arguments, reports: &Path) -> Result<Vec<PathBuf>> {
    let foreign = name(Path::new(FOREIGN));
    let ours: Vec<_> = arguments.only.iter().filter(|name| **name != foreign).cloned().collect();
    let mut all = Vec::new();
    if !ours.is_empty() || arguments.only.is_empty() {
        let out = Some(reports.join("adapters"));
        all = dist::run(&Request { only: ours, out, debug: true, ..Request::default() })?;
        all.retain(|object| !name(object).starts_with("libur_loader"));
    }
    if arguments.only.is_empty() || arguments.only.contains(&foreign) {
        match fetched(&reports.join("wheel")) {
            Ok(adapter) => all.push(adapter),
            Err(why) => println!("skipped: {foreign}: {why}; it comes with {}", LIBRARIES.name),
        }
    }
    Ok(all)
}

/// Returns the shipped adapter, with all libraries that it needs beside it.
fn fetched(folder: &Path) -> Result<PathBuf> {
    for (wheel, files) in BESIDE {
        wheel.files(files, folder)?;
    }
    Ok(LIBRARIES.files(&[FOREIGN], folder)?.join(FOREIGN))
}

/// Returns the shipped loader, with all libraries that it needs beside it.
fn loader(folder: &Path) -> Result<PathBuf> {
    for (wheel, files) in BESIDE {
        wheel.files(files, folder)?;
    }
    Ok(LIBRARIES.files(&[LOADER], folder)?.join(LOADER))
}

/// `libur_adapter_null.so.0` → `null`
fn name(adapter: &Path) -> String {
    let file = adapter.file_name().unwrap_or_default().to_string_lossy();
    let stem = file.trim_start_matches("libur_adapter_");
    stem.split('.').next().unwrap_or(stem).to_string()
}

/// A run of the suite.
#[derive(Clone, Copy)]
struct Run<'a> {
    suite: &'a Path,
    adapter: &'a Path,
    /// The loader's shared object; `None` for our loader.
    door: Option<&'a PathBuf>,
    /// The folder of the driver that replaces the system's, and the value that selects the adapter.
    driver: Option<(&'a Path, &'a str)>,
    /// The profile of the software driver, if one is used.
    profile: Option<&'a str>,
    /// The OpenCL driver, if one is used.
    opencl: Option<&'a opencl::Driver>,
    /// Leaves out the cases that take long.
    is_short: bool,
    reports: &'a Path,
}

impl<'a> Run<'a> {
    /// A run through our loader without a driver.
    fn new(suite: &'a Path, adapter: &'a Path, reports: &'a Path) -> Self {
        let (door, driver, profile, opencl) = (None, None, None, None);
        Self { suite, adapter, door, driver, profile, opencl, is_short: false, reports }
    }
    fn file(&self, end: &str) -> PathBuf {
        let through = if self.door.is_some() { "-through-theirs" } else { "" };
        let on = if self.driver.is_some() { "-on-software" } else { "" };
        let like = self.profile.map(|profile| format!("-{profile}")).unwrap_or_default();
        let over = self.opencl.map(|driver| format!("-{}", driver.name)).unwrap_or_default();
        self.reports.join(format!("{}{on}{like}{over}{through}.{end}", name(self.adapter)))
    }
    /// Returns the command that runs the suite on the adapter through the loader.
    fn command(&self) -> Result<Command> {
        let mut command = Command::new(self.suite);
        command.arg("--adapter").arg(self.adapter).arg("--json").arg(self.file("json"));
        // Libraries that it needs may be beside it, where the dynamic linker does not search.
        let beside = self.adapter.parent().unwrap_or(self.reports);
        command.env("LD_LIBRARY_PATH", beside);
        opencl::none(&mut command, self.reports)?;
        if let Some(opencl) = self.opencl {
            opencl.choose(&mut command);
            command
                .env_remove("LD_LIBRARY_PATH")
                .envs(opencl.libraries.iter().map(|folder| ("LD_LIBRARY_PATH", folder)));
        }
        if let Some((driver, chosen)) = self.driver {
            let folders = format!("{}:{}", driver.display(), beside.display());
            command.env("LD_LIBRARY_PATH", folders).env("UR_LOADER_USE_LEVEL_ZERO_V2", chosen);
        }
        if let Some(profile) = self.profile {
            command.env("ZE_SOFTWARE_PROFILE", profile);
        }
        if let Some(door) = self.door {
            command.arg("--through").arg(door);
        }
        Ok(command)
    }
    /// Returns the outcomes of the cases with these titles, or of all. Failures are allowed here, because
    /// other runs judge them.
    fn compare(&self, titles: &[String]) -> Result<BTreeMap<String, String>> {
        let mut command = self.command()?;
        // The adapter cannot be obtained again in a process that released it, and some of its calls hang.
        command.args(["-j", "8", "--keep", "--deadline", "10"]);
        BUT.iter().for_each(|but| {
            command.args(["--but", but]);
        });
        titles.iter().for_each(|title| {
            command.args(["--filter", title]);
        });
        let _old = fs::remove_file(self.file("json"));
        let out = command.output().map_err(|e| format!("{}: {e}", self.suite.display()))?;
        let said = String::from_utf8_lossy(&out.stderr);
        self.outcomes().map_err(|e| format!("{e}\n{said}"))
    }
    /// Whether the outcomes match the list of known failures, which the suite finds by the adapter's name.
    fn judge(&self) -> Result<bool> {
        let name = name(self.adapter);
        let mut command = self.command()?;
        // Each known failure of the mock costs a process, and most of the time is spent waiting; other
        // adapters have deadlines to meet and run alone.
        if name == "mock" {
            command.args(["-j", "8"]);
        }
        if self.is_short {
            LONG.iter().for_each(|part| {
                command.args(["--but", part]);
            });
        }
        command.arg("--html").arg(self.file("html"));
        let out = command.output().map_err(|e| format!("{}: {e}", self.suite.display()))?;
        let said = String::from_utf8_lossy(&out.stdout);
        let text = self.file("txt");
        fs::write(&text, said.as_bytes()).map_err(|e| format!("{}: {e}", text.display()))?;
        let on = self.opencl.map(|driver| format!(" on {}", driver.name)).unwrap_or_default();
        println!(
            "\n{name}{on}{}",
            if self.door.is_some() { ", through the other loader" } else { "" }
        );
        // The output for each case is in the file; print only the failures and the table.
        let part = match out.status.success() {
            true => said.rfind("\nfamily "),
            false => said.find("\nfailures:"),
        };
        println!("{}", said[part.unwrap_or(0)..].trim());
        eprint!("{}", String::from_utf8_lossy(&out.stderr));
        Ok(out.status.success())
    }
    /// Returns the outcome of each case.
    fn outcomes(&self) -> Result<BTreeMap<String, String>> {
        let file = self.file("json");
        let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", file.display());
        let text = fs::read_to_string(&file).map_err(|e| wrong(&e))?;
        let report: serde_json::Value = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
        let records = report["records"].as_array().ok_or_else(|| wrong(&"it has no records"))?;
        let word = |of: &serde_json::Value| of.as_str().unwrap_or_default().to_string();
        Ok(records.iter().map(|one| (word(&one["title"]), word(&one["outcome"]))).collect())
    }
}

/// Whether the case passes a null handle, which our loader refuses, and which may crash an adapter behind the
/// other loader.
fn is_refused_by_us(title: &str) -> bool {
    ["is INVALID_NULL_HANDLE", "that are refused at once"].iter().any(|part| title.contains(part))
}
/// Returns the cases with different outcomes.
fn different(ours: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>) -> Vec<String> {
    let titles: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let outcome = |of: &BTreeMap<String, String>, title: &String| {
        of.get(title).cloned().unwrap_or_else(|| "not judged".to_string())
    };
    let both = titles.into_iter().map(|t| (t, outcome(ours, t), outcome(theirs, t)));
    let same = |title: &str, ours: &str, theirs: &str| {
        ours == theirs || (ours == "passed" && theirs == "failed" && is_refused_by_us(title))
    };
    both.filter(|(title, ours, theirs)| !same(title, ours, theirs))
        .map(|(title, ours, theirs)| {
            format!("  {title}: {ours} through ours, {theirs} through theirs")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_is_called_by_what_is_between_the_library_and_its_version() {
        assert_eq!(name(Path::new("/a/libur_adapter_native_cpu.so.0")), "native_cpu");
        assert_eq!(name(Path::new(FOREIGN)), "level_zero_v2");
    }
    #[test]
    fn a_case_that_came_out_otherwise_or_is_missing_is_told() {
        let outcomes = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
            all.iter().map(|(title, of)| ((*title).to_string(), (*of).to_string())).collect()
        };
        let ours = outcomes(&[("a", "passed"), ("b", "passed"), ("c", "skipped")]);
        let theirs = outcomes(&[("a", "passed"), ("b", "failed")]);
        let told = different(&ours, &theirs);
        assert!(told[0].contains("b: passed through ours, failed") && told.len() == 2, "{told:?}");
        assert!(told[1].contains("c: skipped through ours, not judged"), "{told:?}");
    }
}
