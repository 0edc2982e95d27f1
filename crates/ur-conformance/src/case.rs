//! A case: one rule of one entry, and the function that judges it.
use crate::bench::Bench;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "why", rename_all = "lowercase")]
pub enum Outcome {
    Passed,
    /// Something that the case needs is missing.
    Skipped(String),
    Failed(String),
}
/// Why a case ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    Skipped(String),
    Failed(String),
}
impl Stop {
    pub fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped(why.into())
    }
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }
}
pub type Verdict<T = ()> = Result<T, Stop>;

type Judge = Box<dyn Fn(&Bench) -> Verdict + Send + Sync>;

/// One rule of the specification for one entry.
pub struct Case {
    pub family: &'static str,
    /// The C name of the entry, or of several entries.
    pub entry: String,
    /// The rule in the specification or in the sharing rules.
    pub rule: String,
    /// The rule as a sentence, which is unique among the cases of an entry.
    pub name: String,
    /// The time limit.
    pub deadline: Duration,
    pub judge: Judge,
}
impl Case {
    pub fn new(
        family: &'static str,
        entry: impl Into<String>,
        rule: impl Into<String>,
        name: impl Into<String>,
        judge: impl Fn(&Bench) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        let (entry, rule, name) = (entry.into(), rule.into(), name.into());
        let deadline = Duration::from_secs(60);
        Self { family, entry, rule, name, deadline, judge: Box::new(judge) }
    }
    /// Raises the time limit, for cases that repeat something thousands of times or start many processes,
    /// which takes seconds each with a GPU driver.
    pub fn long(mut self) -> Self {
        self.deadline = Duration::from_secs(180);
        self
    }
    /// Family, entry and sentence, which filters, reports and lists of known failures use.
    pub fn title(&self) -> String {
        format!("{}::{}: {}", self.family, self.entry, self.name)
    }
}

/// Returns all cases, in the same order in every process of the suite.
pub fn all() -> Vec<Case> {
    let mut cases = crate::rules::cases();
    cases.extend(crate::families::cases());
    cases.extend(crate::processes::cases());
    cases
}

/// Lists cases of a family: `entry, rule, "sentence", function;` for each.
#[macro_export]
macro_rules! cases {
    ($family:literal; $($entry:literal, $rule:literal, $name:literal, $judge:expr;)*) => {
        vec![$($crate::case::Case::new($family, $entry, $rule, $name, $judge)),*]
    };
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn no_two_cases_have_one_title_and_every_case_names_an_entry_of_the_specification() {
        let mut titles = HashSet::new();
        for case in super::all() {
            assert!(titles.insert(case.title()), "twice: {}", case.title());
            for entry in case.entry.split([',', ' ']).filter(|word| word.starts_with("ur")) {
                let known = crate::spec::Spec::get().entry(entry).is_some();
                assert!(known || entry.starts_with("urGet"), "{entry} is no entry");
            }
        }
    }
}
