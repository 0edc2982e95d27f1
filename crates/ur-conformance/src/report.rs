//! The results of a run: for machines in `json` and `junit`, for people in `table` and `html`.
pub mod html;
pub mod json;
pub mod junit;
pub mod table;

use crate::case::{Case, Outcome};
use serde::Serialize;
use std::{collections::BTreeMap, time::Duration};

/// The result of one case.
#[derive(Debug, Serialize)]
pub struct Record {
    pub title: String,
    pub family: String,
    pub entry: String,
    pub rule: String,
    pub name: String,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The reason, if the case failed as the list of known failures says.
    pub known: Option<String>,
    pub seconds: f64,
}
impl Record {
    pub fn new(case: &Case, outcome: Outcome, known: Option<String>, took: Duration) -> Self {
        Self {
            title: case.title(),
            family: case.family.into(),
            entry: case.entry.clone(),
            rule: case.rule.clone(),
            name: case.name.clone(),
            outcome,
            known,
            seconds: took.as_secs_f64(),
        }
    }
}
/// The results of a run, sorted by title.
#[derive(Debug, Serialize)]
pub struct Report {
    pub adapter: String,
    pub records: Vec<Record>,
}
/// The number of cases with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    pub skipped: usize,
    pub known: usize,
    pub failed: usize,
}
impl Counts {
    pub fn add(&mut self, record: &Record) {
        *match (&record.outcome, &record.known) {
            (_, Some(_)) => &mut self.known,
            (Outcome::Passed, _) => &mut self.passed,
            (Outcome::Skipped(_), _) => &mut self.skipped,
            (Outcome::Failed(_), _) => &mut self.failed,
        } += 1;
    }
}
impl Report {
    pub fn families(&self) -> BTreeMap<&str, Counts> {
        let mut families: BTreeMap<&str, Counts> = BTreeMap::new();
        for record in &self.records {
            families.entry(&record.family).or_default().add(record);
        }
        families
    }
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.records.iter().for_each(|record| total.add(record));
        total
    }
}
/// Escapes text for XML and HTML; control characters, which XML does not allow, become spaces.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && c != '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// One case of each outcome.
    pub fn sample() -> Report {
        let record = |name: &str, outcome, known: Option<&str>| Record {
            title: format!("queue::urQueueCreate: {name}"),
            family: "queue".into(),
            entry: "urQueueCreate".into(),
            rule: "a < b".into(),
            name: name.into(),
            outcome,
            known: known.map(Into::into),
            seconds: 0.25,
        };
        let records = vec![
            record("one", Outcome::Passed, None),
            record("two", Outcome::Skipped("no \"device\"".into()), None),
            record("three", Outcome::Failed("1 < 2 \u{1} & so on".into()), None),
            record("four", Outcome::Skipped("known failure: y".into()), Some("y")),
        ];
        Report { adapter: "lib<x>.so".into(), records }
    }
    #[test]
    fn every_outcome_is_counted_in_its_family() {
        let counts = Counts { passed: 1, skipped: 1, known: 1, failed: 1 };
        assert_eq!(sample().total(), counts);
        assert_eq!(sample().families()["queue"], counts);
    }
}
