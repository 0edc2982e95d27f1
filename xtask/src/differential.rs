//! `cargo xtask differential`: the suite on our software Level Zero driver, through our adapter and
//! through the wheel's two, side by side. Ours has to do what the suite asks; each case that theirs does not
//! do belongs to a group that says why. `--knobs` says which of the three survive what Intel's driver does.
use crate::{
    dist::{self, Request, execute},
    opencl, root,
    wheel::{BESIDE, LIBRARIES},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Instant,
};

type Result<T> = std::result::Result<T, String>;

/// What the software driver is like under `ZE_SOFTWARE_PROFILE`.
pub const PROFILES: [&str; 3] = ["igpu", "bmg", "pvc"];
/// What nobody is asked for here: refusals that the specification lists. Theirs leave those to the
/// loader (group "arguments"), and each would end a process.
const BUT: &str = "nothing is written";
const GROUPS: &str = "crates/ur-conformance/expected/level_zero_differences.toml";
const OPENCL_GROUPS: &str = "crates/ur-conformance/expected/opencl_differences.toml";
/// The loader of the wheel, into which an OpenCL adapter is linked.
const LOADER: &str = "libur_loader.so.0";
/// What is compared: a name, whose it is, the file, and what chooses it where both could be had. Ours is one
/// adapter under two names; that the first name does the same is judged by that crate's own tests.
static COLUMNS: [Column; 3] = [
    Column { name: "ours", is_ours: true, file: "libur_adapter_level_zero_v2.so.0", chosen: "1" },
    Column {
        name: "theirs, v2",
        is_ours: false,
        file: "libur_adapter_level_zero_v2.so.0",
        chosen: "1",
    },
    Column {
        name: "theirs, v1",
        is_ours: false,
        file: "libur_adapter_level_zero.so.0",
        chosen: "0",
    },
];
struct Column {
    name: &'static str,
    is_ours: bool,
    file: &'static str,
    chosen: &'static str,
}
/// Seconds for a case of theirs that hangs: there it is given up, and a case that only is slow is not.
const HANGS: &str = "10";
/// Seconds for every other case of theirs, however busy the machine is.
const OTHERS: &str = "60";

/// How often a case of theirs that failed without a reason is judged again; one of ours is once.
const AGAIN: usize = 3;

/// Seconds for all cases of an adapter: a part that takes longer hangs.
const ALL: &str = "600";

/// What is to be compared.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Judges everything so often, and says what did not come out the same each time
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    repeat: usize,
    /// On the software driver as a family of Intel's devices is (igpu, bmg, pvc); may be given more than once
    #[arg(long, value_name = "FAMILY", value_parser = PROFILES)]
    profile: Vec<String>,
    /// Judges queues, reusable events, virtual memory and what is shared, and no more
    #[arg(long)]
    short: bool,
    /// Judges under each knob of the software driver (or those with PART in their names) the cases that it is about: which of
    /// the three survives it
    #[arg(long, value_name = "PART", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with_all = ["repeat", "profile", "short"])]
    knobs: Option<String>,
    /// Our OpenCL adapter and the one that is linked into the wheel's loader, on Intel's runtime for CPUs
    #[arg(long, conflicts_with_all = ["repeat", "profile", "short", "knobs"])]
    opencl: bool,
}
/// The families of the short form.
const SHORT: [&str; 5] =
    ["queue::", "reusable_events::", "ipc_memory::", "ipc_event::", "virtual_mem::"];

/// Why some cases differ.
#[derive(Debug, Default, PartialEq, Eq)]
struct Group {
    name: String,
    whose: String,
    why: String,
    /// Part of the column's name; empty: every column of theirs.
    adapter: String,
    families: Vec<String>,
    titles: Vec<String>,
    reasons: Vec<String>,
}
/// What is said beforehand: the groups, and lists of parts of titles.
#[derive(Debug, Default)]
struct Table {
    groups: Vec<Group>,
    /// Cases of theirs that do not end.
    hangs: Vec<String>,
    /// Cases of theirs that come out one way or another, and why.
    flips: Vec<(String, String)>,
    /// Cases that ours has to skip and theirs does, and why.
    skips: Vec<(String, String)>,
}
/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    family: String,
    outcome: String,
    why: String,
}
type Outcomes = BTreeMap<String, Record>;

/// All that a comparison runs.
struct Bench {
    suite: PathBuf,
    driver: PathBuf,
    ours: PathBuf,
    theirs: PathBuf,
    reports: PathBuf,
    table: Table,
    /// What the software driver is like.
    profile: Option<String>,
    is_short: bool,
}

/// Runs all and compares; fails if ours failed, or theirs without a reason.
///
/// # Errors
/// Something cannot be built, fetched or run; a case of ours failed, or was skipped where theirs passed and
/// nobody says why; a case of theirs is in no group; with repetitions, one did not come out the same each time.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.opencl {
        return opencl();
    }
    let bench = Bench::ready(arguments.short)?;
    if let Some(part) = &arguments.knobs {
        return knobs::run(&bench, part);
    }
    let profiles = arguments.profile.iter().map(|profile| Some(profile.as_str()));
    let none = arguments.profile.is_empty().then_some(None);
    let mut wrong = Vec::new();
    for profile in profiles.chain(none) {
        let like = profile.map(|profile| format!("{profile}: ")).unwrap_or_default();
        let unexplained = bench.on(profile)?.rounds(arguments.repeat)?;
        wrong.extend(unexplained.into_iter().map(|line| format!("{like}{line}")));
    }
    match wrong.as_slice() {
        [] => Ok(()),
        lines => Err(format!("{} unexplained:\n{}", lines.len(), lines.join("\n"))),
    }
}
/// Compares our OpenCL adapter with the one that the wheel's loader has linked into it.
fn opencl() -> Result<()> {
    let reports = root().join("target/conformance");
    let (suite, adapters) = (dist::suite()?, reports.join("adapters"));
    let (only, out) = (vec!["opencl".into()], Some(adapters.clone()));
    dist::run(&Request { only, out, debug: true, ..dist::Request::default() })?;
    let wheel = reports.join("wheel");
    for (one, files) in BESIDE {
        one.files(files, &wheel)?;
    }
    let loader = LIBRARIES.files(&[LOADER], &wheel)?.join(LOADER);
    let driver = opencl::intel(&root().join("target/opencl/venv"), &reports)?;
    let judge = |name: &str, adapter: &Path, rest: &[&OsStr]| -> Result<Outcomes> {
        let json = reports.join(format!("differential-opencl-{name}.json"));
        if json.is_file() {
            fs::remove_file(&json).map_err(|e| format!("{}: {e}", json.display()))?;
        }
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", ALL]).arg(&suite).arg("--adapter").arg(adapter);
        command.arg("--json").arg(&json).args(["--but", BUT, "--but", "are refused at once"]);
        driver.choose(&mut command);
        let folders = driver.libraries.iter().chain([&wheel]);
        let folders = std::env::join_paths(folders).map_err(|e| e.to_string())?;
        command.args(rest).env("LD_LIBRARY_PATH", folders);
        let out = command.output().map_err(|e| format!("{}: {e}", suite.display()))?;
        let said = || String::from_utf8_lossy(&out.stderr).into_owned();
        outcomes(&read(&json).map_err(|e| format!("{}: {e}: {}", adapter.display(), said()))?)
    };
    let ours = judge("ours", &adapters.join(opencl::ADAPTER), &[])?;
    // It cannot be had again in a process that released it once.
    let rest = ["--keep", "--deadline", OTHERS, "--through"].map(OsStr::new);
    let theirs = judge("theirs", &loader, &[&rest[..], &[loader.as_os_str()]].concat())?;
    let columns = [("ours", ours), ("theirs", theirs)];
    for (name, outcomes) in &columns {
        let count = |what: &str| outcomes.values().filter(|r| r.outcome == what).count();
        let [passed, failed, skipped] = ["passed", "failed", "skipped"].map(count);
        println!("{name}: {passed} passed, {failed} failed, {skipped} skipped");
    }
    let table = Table::parse(&read(&root().join(OPENCL_GROUPS))?, None)?;
    let (page, unexplained) = compare(&columns, &table);
    let file = reports.join("opencl.md");
    let page = page.replacen(
        "# Level Zero, side by side on the software driver",
        "# OpenCL, side by side on Intel's runtime",
        1,
    );
    fs::write(&file, page).map_err(|e| format!("{}: {e}", file.display()))?;
    println!("side by side: {}", file.display());
    match unexplained.as_slice() {
        [] => Ok(()),
        some => Err(format!("{} unexplained:\n{}", some.len(), some.join("\n"))),
    }
}
impl Bench {
    fn ready(is_short: bool) -> Result<Self> {
        let reports = root().join("target/conformance");
        let adapters = reports.join("adapters");
        let (driver, suite) = (driver(&reports.join("driver"))?, dist::suite()?);
        dist::run(&Request {
            only: vec!["level_zero_v2".into()],
            out: Some(adapters.clone()),
            debug: true,
            ..dist::Request::default()
        })?;
        let ours = adapters.join("level_zero_v2");
        let theirs = fetched(&reports.join("wheel"))?;
        let table = Table::parse(&read(&root().join(GROUPS))?, None)?;
        Ok(Self { suite, driver, ours, theirs, reports, table, profile: None, is_short })
    }
    /// The same on what a family of devices is like.
    fn on(&self, profile: Option<&str>) -> Result<Self> {
        let [suite, driver, ours, theirs, reports] =
            [&self.suite, &self.driver, &self.ours, &self.theirs, &self.reports].map(Clone::clone);
        let table = Table::parse(&read(&root().join(GROUPS))?, profile)?;
        let (profile, is_short) = (profile.map(String::from), self.is_short);
        Ok(Self { suite, driver, ours, theirs, reports, table, profile, is_short })
    }
    /// What nobody explains, of so many rounds.
    fn rounds(&self, count: usize) -> Result<BTreeSet<String>> {
        let (mut rounds, mut wrong) = (Vec::new(), BTreeSet::new());
        for _ in 0..count.max(1) {
            let round = self.round()?;
            let (page, unexplained) = compare(&round, &self.table);
            let like =
                self.profile.as_ref().map(|profile| format!("-{profile}")).unwrap_or_default();
            let file = self.reports.join(format!("level_zero{like}.md"));
            fs::write(&file, page).map_err(|e| format!("{}: {e}", file.display()))?;
            println!("side by side: {}", file.display());
            wrong.extend(unexplained);
            rounds.push(round);
        }
        wrong.extend(changed(&rounds, &self.table));
        Ok(wrong)
    }
    /// Each column's outcomes. All are judged at the same time, since most of the time theirs wait.
    fn round(&self) -> Result<Vec<(&'static str, Outcomes)>> {
        let first = |column: &'static Column| {
            let began = Instant::now();
            let outcomes =
                if column.is_ours { self.judge_ours(column) } else { self.judge_theirs(column) };
            (outcomes, began.elapsed().as_secs())
        };
        let all = thread::scope(|threads| {
            let running: Vec<_> =
                COLUMNS.iter().map(|column| threads.spawn(move || first(column))).collect();
            running.into_iter().map(|one| one.join()).collect::<Vec<_>>()
        });
        let mut columns = Vec::new();
        for (column, ended) in COLUMNS.iter().zip(all) {
            let name = column.name;
            let (outcomes, took) = ended.map_err(|_| format!("{name}: its run panicked"))?;
            let mut outcomes = outcomes?;
            self.judge_again(column, &mut outcomes)?;
            let count = |what: &str| outcomes.values().filter(|r| r.outcome == what).count();
            let [passed, failed, skipped] = ["passed", "failed", "skipped"].map(count);
            println!("{name}: {passed} passed, {failed} failed, {skipped} skipped in {took} s");
            columns.push((name, outcomes));
        }
        Ok(columns)
    }
    fn judge_ours(&self, column: &Column) -> Result<Outcomes> {
        self.judge(column, "all", &["--but", BUT])
    }
    /// What hangs does so beside the rest: it takes time and no processor.
    fn judge_theirs(&self, column: &Column) -> Result<Outcomes> {
        let part = |name, deadline, jobs, chooses: &'static str| {
            // It cannot be had again in a process that released it once.
            let mut arguments = vec!["--keep", "--deadline", deadline, "-j", jobs, "--but", BUT];
            for title in &self.table.hangs {
                arguments.extend([chooses, title]);
            }
            self.judge(column, name, &arguments)
        };
        let (hangs, rest) = thread::scope(|threads| {
            let hangs = threads.spawn(|| part("hangs", HANGS, "16", "--filter"));
            let rest = part("rest", OTHERS, "4", "--but");
            (hangs.join(), rest)
        });
        let mut all = rest?;
        all.extend(hangs.map_err(|_| "the run of what hangs panicked")??);
        Ok(all)
    }
    /// What failed and has no reason is judged again, alone: if it does not fail one of
    /// them, that is no difference, but an outcome that is not the same each time. It is told, and stays on the
    /// page. (That ours does what it should each time is judged by that crate's own tests.)
    fn judge_again(&self, column: &Column, outcomes: &mut Outcomes) -> Result<()> {
        let name = column.name;
        for _ in 0..if column.is_ours { 1 } else { AGAIN } {
            let unexplained = |(title, record): &(&String, &mut Record)| {
                record.outcome == "failed" && !self.table.explains(name, title, record)
            };
            let failed: Vec<_> = outcomes.iter_mut().filter(unexplained).collect();
            if failed.is_empty() {
                return Ok(());
            }
            let mut arguments = vec!["-j", "1", "--but", BUT];
            if !column.is_ours {
                arguments.extend(["--keep", "--deadline", OTHERS]);
            }
            for (title, _) in &failed {
                arguments.extend(["--filter", title]);
            }
            let again = self.judge(column, "again", &arguments)?;
            for (title, record) in failed {
                if again.get(title).is_some_and(|now| now.outcome != "failed") {
                    println!("{name}: {title}: not the same twice: {}", record.why);
                    record.outcome = "now and then".into();
                }
            }
        }
        Ok(())
    }
    /// Judges a part of the cases, which the arguments `rest` choose.
    fn judge(&self, column: &Column, part: &str, rest: &[&str]) -> Result<Outcomes> {
        let mut environment = vec![];
        let mut rest = rest.to_vec();
        if let Some(profile) = &self.profile {
            environment.push(("ZE_SOFTWARE_PROFILE", profile.as_str()));
        }
        if self.is_short && !rest.contains(&"--filter") {
            SHORT.iter().for_each(|family| rest.extend(["--filter", family]));
        }
        self.judge_in(&environment, column, part, &rest)
    }
    /// The same in this environment.
    fn judge_in(
        &self,
        environment: &[(&str, &str)],
        column: &Column,
        part: &str,
        rest: &[&str],
    ) -> Result<Outcomes> {
        let adapter = if column.is_ours { &self.ours } else { &self.theirs }.join(column.file);
        let json = self.reports.join(format!("differential-{}-{part}.json", column.name));
        if json.is_file() {
            fs::remove_file(&json).map_err(|e| format!("{}: {e}", json.display()))?;
        }
        let mut suite = Command::new("timeout");
        suite
            .args(["--kill-after=5", ALL])
            .arg(&self.suite)
            .arg("--adapter")
            .arg(&adapter)
            .arg("--json")
            .arg(&json)
            .args(rest);
        let beside = format!("{}:{}", self.driver.display(), self.theirs.display());
        suite.env("LD_LIBRARY_PATH", beside).env("UR_LOADER_USE_LEVEL_ZERO_V2", column.chosen);
        suite.envs(environment.iter().copied());
        let out = suite.output().map_err(|e| format!("{}: {e}", self.suite.display()))?;
        if out.status.code() == Some(124) {
            return Err(format!("{}: not over after {ALL} s ({part})", adapter.display()));
        }
        let said = || String::from_utf8_lossy(&out.stderr).into_owned();
        let text = read(&json).map_err(|e| format!("{}: {e}: {}", adapter.display(), said()))?;
        fs::remove_file(&json).map_err(|e| format!("{}: {e}", json.display()))?;
        outcomes(&text)
    }
}
fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}
/// The software driver under the name that adapters open.
pub(crate) fn driver(folder: &Path) -> Result<PathBuf> {
    execute(dist::cargo().args(["build", "--quiet", "--package", "ze-software"]))?;
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (from, to) =
        (dist::target().join("debug/libze_software.so"), folder.join("libze_loader.so.1"));
    fs::copy(&from, to).map_err(|e| format!("{}: {e}", from.display()))?;
    Ok(folder.into())
}
fn fetched(folder: &Path) -> Result<PathBuf> {
    for (wheel, files) in BESIDE {
        wheel.files(files, folder)?;
    }
    let files = COLUMNS.iter().filter(|column| !column.is_ours).map(|column| column.file);
    LIBRARIES.files(&files.collect::<Vec<_>>(), folder)
}
impl Table {
    /// What it says always, and what it says of `profile`.
    fn parse(text: &str, profile: Option<&str>) -> Result<Self> {
        let table: toml::Table = text.parse().map_err(|e| format!("{GROUPS}: {e}"))?;
        let all = |key: &str| table.get(key).and_then(toml::Value::as_array).into_iter().flatten();
        let is_meant = |one: &&toml::Value| {
            let of = one.get("profile").and_then(toml::Value::as_str);
            of.is_none() || of == profile
        };
        let of = |key: &str| all(key).filter(is_meant);
        let reason = |one| Ok((said(one, "title")?, said(one, "why")?));
        Ok(Self {
            groups: of("group").map(group).collect::<Result<_>>()?,
            hangs: of("hang").map(|one| said(one, "title")).collect::<Result<_>>()?,
            flips: of("flip").map(reason).collect::<Result<_>>()?,
            skips: of("skip").map(reason).collect::<Result<_>>()?,
        })
    }
    /// The first group that a failure belongs to. A failure of ours belongs to none.
    fn group(&self, column: &str, title: &str, record: &Record) -> Option<&Group> {
        let found = self.groups.iter().find(|group| group.explains(column, title, record));
        found.filter(|_| column != "ours")
    }
    /// Whether a failure belongs to a group, or is of a case that comes out one way or another.
    fn explains(&self, column: &str, title: &str, record: &Record) -> bool {
        let is_flip = column != "ours" && known(&self.flips, title);
        is_flip || self.group(column, title, record).is_some()
    }
}
/// Whether one of the parts is in the title.
fn known(list: &[(String, String)], title: &str) -> bool {
    list.iter().any(|(part, _)| title.contains(part))
}
fn said(value: &toml::Value, key: &str) -> Result<String> {
    let text = value.get(key).and_then(toml::Value::as_str);
    text.map(str::to_owned).ok_or_else(|| format!("{GROUPS}: an entry without {key}"))
}
fn group(value: &toml::Value) -> Result<Group> {
    let list = |key: &str| {
        let all = value.get(key).and_then(toml::Value::as_array).into_iter().flatten();
        all.filter_map(|one| one.as_str().map(str::to_owned)).collect()
    };
    Ok(Group {
        name: said(value, "name")?,
        whose: said(value, "whose")?,
        why: said(value, "why")?,
        adapter: value.get("adapter").map_or(Ok(String::new()), |_| said(value, "adapter"))?,
        families: list("families"),
        titles: list("titles"),
        reasons: list("reasons"),
    })
}
impl Group {
    fn explains(&self, column: &str, title: &str, record: &Record) -> bool {
        if !column.contains(&self.adapter) {
            return false;
        }
        let family = self.families.is_empty() || self.families.contains(&record.family);
        let part_of = |text: &str, parts: &[String]| parts.iter().any(|part| text.contains(part));
        family && (part_of(title, &self.titles) || part_of(&record.why, &self.reasons))
    }
}
fn outcomes(json: &str) -> Result<Outcomes> {
    let report: Value = serde_json::from_str(json).map_err(|e| format!("a report: {e}"))?;
    let records = report["records"].as_array().ok_or("a report without records")?;
    let text = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
    let one = |record: &Value| {
        let (family, why) = (text(record, "family"), text(record, "why"));
        (text(record, "title"), Record { family, outcome: text(record, "outcome"), why })
    };
    Ok(records.iter().map(one).collect())
}
/// The page, and what nobody explained.
fn compare(columns: &[(&str, Outcomes)], table: &Table) -> (String, Vec<String>) {
    let titles: BTreeSet<&String> = columns.iter().flat_map(|(_, all)| all.keys()).collect();
    let (mut rows, mut wrong) = (String::new(), Vec::new());
    let mut counts = BTreeMap::<&str, usize>::new();
    for title in titles {
        let records: Vec<_> = columns.iter().map(|(_, all)| all.get(title)).collect();
        let outcome =
            |record: &Option<&Record>| record.map_or("-", |r| r.outcome.as_str()).to_owned();
        let outcomes: Vec<_> = records.iter().map(outcome).collect();
        let mut named = BTreeSet::new();
        for ((column, _), record) in columns.iter().zip(&records) {
            let Some(record) = record.filter(|record| record.outcome == "failed") else { continue };
            named.extend(table.group(column, title, record).map(|group| group.name.as_str()));
            if !table.explains(column, title, record) {
                wrong.push(format!("{column}: {title}: {}", record.why));
            }
        }
        if outcomes.iter().all(|one| *one == outcomes[0]) && outcomes[0] != "failed" {
            continue;
        }
        let is_lacking = outcomes[0] == "skipped" && outcomes.iter().any(|one| one == "passed");
        if is_lacking && !known(&table.skips, title) {
            let why = records[0].map_or("", |record| record.why.as_str());
            wrong.push(format!("ours skips what theirs does: {title}: {why}"));
        }
        named.iter().for_each(|name| *counts.entry(name).or_default() += 1);
        let mut named: Vec<_> = named.into_iter().collect();
        named.extend(known(&table.flips, title).then_some("now and then"));
        let _written =
            writeln!(rows, "| {title} | {} | {} |", outcomes.join(" | "), named.join(", "));
    }
    let count = |group: &Group| counts.get(group.name.as_str()).copied().unwrap_or(0);
    (page(columns, table, &rows, count), wrong)
}
fn page(
    columns: &[(&str, Outcomes)],
    table: &Table,
    rows: &str,
    count: impl Fn(&Group) -> usize,
) -> String {
    let mut page = String::from("# Level Zero, side by side on the software driver\n\n");
    for group in &table.groups {
        let (name, whose, why, count) = (&group.name, &group.whose, &group.why, count(group));
        let _written = writeln!(page, "* **{name}** ({whose}, {count} cases): {why}");
    }
    for (title, why) in &table.flips {
        let _written = writeln!(page, "* one way or another, \"{title}\": {why}");
    }
    for (title, why) in &table.skips {
        let _written = writeln!(page, "* skipped by ours, \"{title}\": {why}");
    }
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let line = "|---".repeat(names.len() + 2);
    let _written = writeln!(page, "\n| case | {} | group |\n{line}|\n{rows}", names.join(" | "));
    page
}
/// What did not come out the same in each round, and is not known to.
fn changed(rounds: &[Vec<(&str, Outcomes)>], table: &Table) -> Vec<String> {
    let mut seen = BTreeMap::<(&str, &String), BTreeSet<&str>>::new();
    for (column, outcomes) in rounds.iter().flatten() {
        for (title, record) in outcomes {
            seen.entry((column, title)).or_default().insert(&record.outcome);
        }
    }
    let unknown =
        seen.iter().filter(|((_, title), all)| all.len() > 1 && !known(&table.flips, title));
    let text = |((column, title), all): (&(&str, &String), &BTreeSet<&str>)| {
        let all: Vec<_> = all.iter().copied().collect();
        format!("{column}: {title}: {}, from run to run", all.join(" and "))
    };
    unknown.map(text).collect()
}

/// `cargo xtask differential --knobs`: each knob of the software driver makes it do something that Intel's does. The cases that
/// one is about are judged with it and without, through all three adapters; whether theirs survive is recorded.
mod knobs {
    use super::{Bench, COLUMNS, Column, Outcomes, Result, read, root};
    use std::{collections::BTreeMap, thread};

    const KNOBS: &str = "crates/ur-conformance/expected/level_zero_knobs.toml";

    /// One knob, or several that belong together.
    #[derive(Debug)]
    struct Knob {
        name: String,
        environment: Vec<(String, String)>,
        /// What is set in both runs.
        around: Vec<(String, String)>,
        /// Further arguments of the suite.
        arguments: Vec<String>,
        /// Parts of titles.
        cases: Vec<String>,
        /// Whether everything may fail, as long as it ends by itself.
        is_about_ends: bool,
        /// What theirs come to, by the last word of the column's name.
        theirs: BTreeMap<String, String>,
    }
    /// What a knob does to an adapter: the worst thing first.
    const WORST: [(&str, &str); 2] =
        [("ends the process", "the process crashed"), ("hangs", "not over after")];

    /// Those with `part` in their names.
    pub(super) fn run(bench: &Bench, part: &str) -> Result<()> {
        let mut wrong = Vec::new();
        let all = parse(&read(&root().join(KNOBS))?)?;
        for knob in all.into_iter().filter(|knob| knob.name.contains(part)) {
            let mut line = format!("{:<32}", knob.name);
            let all = thread::scope(|threads| {
                let knob = &knob;
                let one = |column| threads.spawn(move || judge(bench, column, knob));
                let running: Vec<_> = COLUMNS.iter().map(one).collect();
                running.into_iter().map(|one| one.join()).collect::<Vec<_>>()
            });
            for (column, found) in COLUMNS.iter().zip(all) {
                let found = found.map_err(|_| format!("{}: its run panicked", column.name))??;
                line += &format!(" {}: {};", column.name, found.text());
                let expected = match column.is_ours {
                    true => "survives",
                    false => knob.theirs.get(short(column)).map_or("(not said)", String::as_str),
                };
                if found.verdict != expected {
                    wrong.push(format!(
                        "{}: {}: {}, and not: {expected}",
                        knob.name,
                        column.name,
                        found.text()
                    ));
                }
            }
            println!("{line}");
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(format!("not as {KNOBS} says:\n{}", wrong.join("\n")))
        }
    }
    fn short(column: &Column) -> &str {
        column.name.rsplit(' ').next().unwrap_or(column.name)
    }
    #[derive(Debug)]
    struct Found {
        verdict: String,
        judged: usize,
        worse: Vec<String>,
    }
    impl Found {
        fn text(&self) -> String {
            let first = self.worse.first().map(|one| format!(", first {one}")).unwrap_or_default();
            format!("{} ({} of {} worse{first})", self.verdict, self.worse.len(), self.judged)
        }
    }
    /// Whether what passes without the knob passes with it.
    fn judge(bench: &Bench, column: &Column, knob: &Knob) -> Result<Found> {
        let mut arguments = vec!["--but", super::BUT];
        if !column.is_ours {
            arguments.extend(["--keep", "--deadline", super::HANGS, "-j", "8"]);
            for title in &bench.table.hangs {
                arguments.extend(["--but", title]); // with the knob and without
            }
        }
        knob.cases.iter().for_each(|case| arguments.extend(["--filter", case]));
        arguments.extend(knob.arguments.iter().map(String::as_str));
        let run = |with: bool| {
            let all = knob.around.iter().chain(knob.environment.iter().filter(|_| with));
            let environment: Vec<_> =
                all.map(|(name, value)| (name.as_str(), value.as_str())).collect();
            bench.judge_in(&environment, column, "knob", &arguments)
        };
        let (without, with) = (run(false)?, run(true)?);
        Ok(compare(&without, &with, knob.is_about_ends))
    }
    fn compare(without: &Outcomes, with: &Outcomes, is_about_ends: bool) -> Found {
        let is_worse = |title: &String, why: &str| {
            without.get(title).is_none_or(|before| before.outcome == "passed")
                && (!is_about_ends || WORST.iter().any(|(_, part)| why.contains(part)))
        };
        let failed =
            with.iter().filter(|(title, now)| now.outcome == "failed" && is_worse(title, &now.why));
        let worse: Vec<_> = failed.collect();
        let bad = |part: &str| worse.iter().any(|(_, now)| now.why.contains(part));
        let verdict = WORST.iter().find(|(_, part)| bad(part)).map_or("is wrong", |(word, _)| word);
        let verdict = if worse.is_empty() { "survives" } else { verdict }.to_string();
        let judged = with.values().filter(|now| now.outcome != "skipped").count();
        let worse = worse.iter().map(|(title, now)| format!("{title}: {}", now.why)).collect();
        Found { verdict: if judged == 0 { "is not asked".into() } else { verdict }, judged, worse }
    }
    fn parse(text: &str) -> Result<Vec<Knob>> {
        let table: toml::Table = text.parse().map_err(|e| format!("{KNOBS}: {e}"))?;
        let all = table.get("knob").and_then(toml::Value::as_array).into_iter().flatten();
        all.map(knob).collect()
    }
    fn knob(value: &toml::Value) -> Result<Knob> {
        let text = |key: &str| value.get(key).and_then(toml::Value::as_str);
        let name =
            text("name").ok_or_else(|| format!("{KNOBS}: an entry without name"))?.to_string();
        let pairs = |key: &str| -> Vec<(String, String)> {
            let table = value.get(key).and_then(toml::Value::as_table).into_iter().flatten();
            table.filter_map(|(key, one)| Some((key.clone(), one.as_str()?.to_string()))).collect()
        };
        let list = |key: &str| -> Vec<String> {
            let all = value.get(key).and_then(toml::Value::as_array).into_iter().flatten();
            all.filter_map(|one| Some(one.as_str()?.to_string())).collect()
        };
        Ok(Knob {
            environment: pairs("set"),
            around: pairs("around"),
            arguments: list("arguments"),
            cases: list("cases"),
            is_about_ends: value.get("ends").is_some(),
            theirs: pairs("theirs").into_iter().collect(),
            name,
        })
    }

    #[cfg(test)]
    mod tests {
        use super::{super::Record, *};

        fn outcomes(outcome: &str, why: &str) -> Outcomes {
            let record = Record { family: "a".into(), outcome: outcome.into(), why: why.into() };
            [("a::b".to_string(), record)].into()
        }
        #[test]
        fn only_what_passes_without_the_knob_counts_and_the_worst_of_it_is_told() {
            let (passed, wrong) = (outcomes("passed", ""), outcomes("failed", "3 and not 4"));
            let verdict = |a: &Outcomes, b: &Outcomes, ends| compare(a, b, ends).verdict;
            assert_eq!(verdict(&passed, &passed, false), "survives");
            assert_eq!(verdict(&wrong, &wrong, false), "survives");
            assert_eq!(verdict(&passed, &wrong, false), "is wrong");
            assert_eq!(verdict(&passed, &wrong, true), "survives");
            let (crashed, hung) = (
                outcomes("failed", "the process crashed: signal 6"),
                outcomes("failed", "not over after 10 s"),
            );
            assert_eq!(verdict(&passed, &crashed, true), "ends the process");
            assert_eq!(verdict(&passed, &hung, false), "hangs");
            assert_eq!(verdict(&passed, &outcomes("skipped", ""), false), "is not asked");
        }
        #[test]
        fn the_list_names_both_of_theirs_under_each_knob_and_the_page_of_the_docs_has_each() {
            let page = read(&root().join("docs/level-zero-differences.md")).unwrap();
            let all = parse(&read(&root().join(KNOBS)).unwrap()).unwrap();
            assert!(all.len() > 15);
            for knob in all {
                assert_eq!(
                    knob.theirs.keys().map(String::as_str).collect::<Vec<_>>(),
                    ["v1", "v2"],
                    "{}",
                    knob.name
                );
                let cell = |name: &str| knob.theirs[name].clone();
                let row = format!("| `{}` | {} | {} |", knob.name, cell("v2"), cell("v1"));
                assert!(page.contains(&row), "{row}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &'static str, outcome: &str, why: &str) -> (&'static str, Outcomes) {
        let (family, outcome, why) = ("queue".into(), outcome.into(), why.into());
        (name, [("queue::a: b".into(), Record { family, outcome, why })].into())
    }
    fn explained() -> Table {
        let reasons = vec!["crashed".into()];
        let groups = vec![Group { name: "crashes".into(), reasons, ..Group::default() }];
        Table { groups, ..Table::default() }
    }

    #[test]
    fn a_failure_of_theirs_is_explained_by_its_group_and_only_by_it() {
        let crashed = column("theirs", "failed", "the process crashed");
        let all = [column("ours", "passed", ""), crashed];
        let (page, wrong) = compare(&all, &explained());
        assert!(page.contains("| queue::a: b | passed | failed | crashes |"), "{page}");
        assert_eq!(wrong, Vec::<String>::new());
        let all = [column("ours", "passed", ""), column("theirs", "failed", "wrong")];
        assert_eq!(compare(&all, &explained()).1, ["theirs: queue::a: b: wrong"]);
        let mut table = explained();
        table.flips.push(("a: b".into(), "its threads race".into()));
        assert_eq!(compare(&all, &table).1, Vec::<String>::new());
        let ours = [column("ours", "failed", "wrong"), column("theirs", "failed", "wrong")];
        assert_eq!(compare(&ours, &table).1, ["ours: queue::a: b: wrong"]);
        let mut table = explained();
        table.groups[0].adapter = "v1".into();
        let all = |name| [column("ours", "passed", ""), column(name, "failed", "crashed")];
        assert_eq!(compare(&all("theirs, v1"), &table).1, Vec::<String>::new());
        assert_eq!(compare(&all("theirs, v2"), &table).1.len(), 1);
    }
    #[test]
    fn what_ours_skips_and_theirs_does_is_told_unless_it_is_known() {
        let all = [column("ours", "skipped", "it has none"), column("theirs", "passed", "")];
        let told = compare(&all, &explained()).1;
        assert_eq!(told, ["ours skips what theirs does: queue::a: b: it has none"]);
        let mut table = explained();
        table.skips.push(("a: b".into(), "hardware has none".into()));
        assert_eq!(compare(&all, &table).1, Vec::<String>::new());
    }
    #[test]
    fn a_failure_of_ours_is_explained_by_nothing() {
        let all = [column("ours", "failed", "crashed"), column("theirs", "passed", "")];
        assert_eq!(compare(&all, &explained()).1, ["ours: queue::a: b: crashed"]);
    }
    #[test]
    fn a_case_that_comes_out_otherwise_in_another_round_is_told_unless_it_is_known_to() {
        let rounds = [vec![column("theirs", "passed", "")], vec![column("theirs", "failed", "a")]];
        let mut table = explained();
        let told = changed(&rounds, &table);
        assert_eq!(told, ["theirs: queue::a: b: failed and passed, from run to run"]);
        table.flips.push(("a: b".into(), "its threads race".into()));
        assert_eq!(changed(&rounds, &table), Vec::<String>::new());
        assert_eq!(changed(&rounds[..1], &explained()), Vec::<String>::new());
    }
    #[test]
    fn the_table_can_be_read_and_the_page_of_the_docs_says_all_of_it() {
        let text = read(&root().join(GROUPS)).unwrap();
        let page = read(&root().join("docs/level-zero-differences.md")).unwrap();
        for profile in [None].into_iter().chain(PROFILES.map(Some)) {
            let table = Table::parse(&text, profile).unwrap();
            let names = table.groups.iter().map(|group| &group.name);
            let titles = table.flips.iter().chain(&table.skips).map(|(title, _)| title);
            for text in names.chain(&table.hangs).chain(titles) {
                assert!(page.contains(text), "{text}");
            }
            assert!(!table.hangs.is_empty());
        }
    }
}
