//! `cargo xtask differential --knobs`: each knob of the software driver makes it do something that Intel's does. The cases that
//! one is about are judged with it and without, through all three adapters; whether theirs survive is recorded.
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
    let name = text("name").ok_or_else(|| format!("{KNOBS}: an entry without name"))?.to_string();
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
