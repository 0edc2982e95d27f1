//! `cargo xtask differential`: the suite on our software Level Zero driver, through our adapters and
//! through the wheel's, side by side. Ours has to do what the suite asks; each case that theirs does not
//! do belongs to a group that says why.
use crate::{
    dist::{self, Request, execute},
    root,
    wheel::{BESIDE, LIBRARIES},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// What the wheel's adapters are asked for: refusals that the specification lists are left out, since
/// theirs leave those to the loader (group "arguments"), and each ends a process.
const BUT: &str = "nothing is written";
const GROUPS: &str = "crates/ur-conformance/expected/level_zero_differences.toml";
/// The names of both adapters, and what chooses each where both could be had.
const FACES: [(&str, &str); 2] =
    [("libur_adapter_level_zero_v2.so.0", "1"), ("libur_adapter_level_zero.so.0", "0")];

/// Why some cases differ.
#[derive(Debug, Default, PartialEq, Eq)]
struct Group {
    name: String,
    whose: String,
    why: String,
    families: Vec<String>,
    titles: Vec<String>,
    reasons: Vec<String>,
}
/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    family: String,
    outcome: String,
    why: String,
}
type Outcomes = BTreeMap<String, Record>;

/// Runs both and compares; fails if ours failed, or theirs without a reason.
///
/// # Errors
/// Something cannot be built, fetched or run; a case of ours failed; a case of theirs is in no group.
pub fn run() -> Result<()> {
    let reports = root().join("target/conformance");
    let ours = reports.join("adapters");
    let driver = driver(&reports.join("driver"))?;
    let suite = suite()?;
    dist::run(&Request {
        only: vec!["level_zero".into(), "level_zero_v2".into()],
        out: Some(ours.clone()),
        debug: true,
    })?;
    let groups = groups(&read(&root().join(GROUPS))?)?;
    let theirs = fetched(&reports.join("wheel"))?;
    let mut columns = Vec::new();
    for (whose, folder) in [("ours", &ours), ("theirs", &theirs)] {
        for (file, chosen) in FACES {
            let json = reports.join(format!("{file}.{whose}.json"));
            let mut command = Command::new(&suite);
            command.arg("--adapter").arg(folder.join(file)).arg("--json").arg(&json);
            command.args(["-j", "8", "--but", BUT]);
            if whose == "theirs" {
                // It cannot be had again in a process that released it once, and some of it hangs.
                command.args(["--keep", "--deadline", "10"]);
            }
            let beside = format!("{}:{}", driver.display(), folder.display());
            command.env("LD_LIBRARY_PATH", beside).env("UR_LOADER_USE_LEVEL_ZERO_V2", chosen);
            let out = command.output().map_err(|e| format!("{}: {e}", suite.display()))?;
            if !json.is_file() {
                return Err(format!("{file}: {}", String::from_utf8_lossy(&out.stderr)));
            }
            columns.push((format!("{whose}: {file}"), outcomes(&read(&json)?)?));
            fs::remove_file(&json).map_err(|e| format!("{}: {e}", json.display()))?;
        }
    }
    let (table, wrong) = compare(&columns, &groups);
    let page = reports.join("level_zero.md");
    fs::write(&page, table).map_err(|e| format!("{}: {e}", page.display()))?;
    println!("side by side: {}", page.display());
    if wrong.is_empty() { Ok(()) } else { Err(format!("unexplained:\n{}", wrong.join("\n"))) }
}
fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}
/// The software driver under the name that adapters open.
fn driver(folder: &Path) -> Result<PathBuf> {
    execute(dist::cargo().args(["build", "--quiet", "--package", "ze-software"]))?;
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (from, to) =
        (dist::target().join("debug/libze_software.so"), folder.join("libze_loader.so.1"));
    fs::copy(&from, to).map_err(|e| format!("{}: {e}", from.display()))?;
    Ok(folder.into())
}
fn suite() -> Result<PathBuf> {
    execute(dist::cargo().args(["build", "--quiet", "--package", "ur-conformance"]))?;
    Ok(dist::target().join("debug/ur-conformance"))
}
fn fetched(folder: &Path) -> Result<PathBuf> {
    for (wheel, files) in BESIDE {
        wheel.files(files, folder)?;
    }
    LIBRARIES.files(&FACES.map(|(file, _)| file), folder)
}
fn groups(text: &str) -> Result<Vec<Group>> {
    let table: toml::Table = text.parse().map_err(|e| format!("{GROUPS}: {e}"))?;
    let all = table.get("group").and_then(toml::Value::as_array).ok_or("no groups")?;
    all.iter().map(group).collect()
}
fn group(value: &toml::Value) -> Result<Group> {
    let text = |key: &str| {
        let text = value.get(key).and_then(toml::Value::as_str);
        text.map(str::to_owned).ok_or_else(|| format!("{GROUPS}: a group without {key}"))
    };
    let list = |key: &str| {
        let all = value.get(key).and_then(toml::Value::as_array).into_iter().flatten();
        all.filter_map(|one| one.as_str().map(str::to_owned)).collect()
    };
    Ok(Group {
        name: text("name")?,
        whose: text("whose")?,
        why: text("why")?,
        families: list("families"),
        titles: list("titles"),
        reasons: list("reasons"),
    })
}
impl Group {
    fn explains(&self, title: &str, record: &Record) -> bool {
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
fn compare(columns: &[(String, Outcomes)], groups: &[Group]) -> (String, Vec<String>) {
    let titles: BTreeSet<&String> = columns.iter().flat_map(|(_, all)| all.keys()).collect();
    let mut page = String::from("# Level Zero, side by side on the software driver\n\n");
    let (mut rows, mut wrong) = (String::new(), Vec::new());
    let mut counts = BTreeMap::<&str, usize>::new();
    for title in titles {
        let records: Vec<_> = columns.iter().map(|(_, all)| all.get(title)).collect();
        let outcome =
            |record: &Option<&Record>| record.map_or("-", |r| r.outcome.as_str()).to_owned();
        let outcomes: Vec<_> = records.iter().map(outcome).collect();
        if outcomes.iter().all(|one| *one == outcomes[0]) && outcomes[0] != "failed" {
            continue;
        }
        let mut named = BTreeSet::new();
        for ((column, _), record) in columns.iter().zip(&records) {
            let Some(record) = record.filter(|record| record.outcome == "failed") else { continue };
            let found = groups.iter().find(|group| group.explains(title, record));
            match found.filter(|_| !column.starts_with("ours")) {
                Some(group) => {
                    named.insert(group.name.as_str());
                }
                None => wrong.push(format!("{column}: {title}: {}", record.why)),
            }
        }
        named.iter().for_each(|name| *counts.entry(name).or_default() += 1);
        let named: Vec<_> = named.into_iter().collect();
        let _written =
            writeln!(rows, "| {title} | {} | {} |", outcomes.join(" | "), named.join(", "));
    }
    for group in groups {
        let count = counts.get(group.name.as_str()).copied().unwrap_or(0);
        let _written =
            writeln!(page, "* **{}** ({}, {count} cases): {}", group.name, group.whose, group.why);
    }
    let names: Vec<_> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let line = "|---".repeat(names.len() + 2);
    let _written = writeln!(page, "\n| case | {} | group |\n{line}|\n{rows}", names.join(" | "));
    (page, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, outcome: &str, why: &str) -> (String, Outcomes) {
        let (family, outcome, why) = ("queue".into(), outcome.into(), why.into());
        (name.into(), [("queue::a: b".into(), Record { family, outcome, why })].into())
    }
    fn explained() -> Vec<Group> {
        vec![Group { name: "crashes".into(), reasons: vec!["crashed".into()], ..Group::default() }]
    }

    #[test]
    fn a_failure_of_theirs_is_explained_by_its_group_and_only_by_it() {
        let crashed = column("theirs", "failed", "the process crashed");
        let all = [column("ours", "passed", ""), crashed];
        let (page, wrong) = compare(&all, &explained());
        assert!(page.contains("| queue::a: b | passed | failed | crashes |"), "{page}");
        assert_eq!(wrong, Vec::<String>::new());
        let all = [column("ours", "passed", ""), column("theirs", "failed", "wrong")];
        assert_eq!(compare(&all, &explained()).1.len(), 1);
    }
    #[test]
    fn a_failure_of_ours_is_explained_by_nothing() {
        let all = [column("ours", "failed", "crashed"), column("theirs", "passed", "")];
        assert_eq!(compare(&all, &explained()).1.len(), 1);
    }
    #[test]
    fn the_groups_can_be_read_and_the_page_of_the_docs_has_each() {
        let all = groups(&read(&root().join(GROUPS)).unwrap()).unwrap();
        let page = read(&root().join("docs/level-zero-differences.md")).unwrap();
        for group in all {
            assert!(page.contains(&group.name), "{}", group.name);
        }
    }
}
