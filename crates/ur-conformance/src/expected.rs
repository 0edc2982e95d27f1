//! The known failures of an adapter with their reasons. A listed case that passes is a failure, because the
//! list is stale.
use crate::case::{Case, Outcome};
use serde::Deserialize;
use std::{collections::HashMap, path::Path};

/// The suite's lists, by the beginning of the shared object's file name.
const LISTS: &[(&str, &str)] = &[
    ("libur_adapter_native_cpu", include_str!("../expected/native_cpu.toml")),
    ("libur_adapter_cuda", include_str!("../expected/cuda.toml")),
    ("libur_adapter_null", include_str!("../expected/null.toml")),
    ("libur_adapter_mock", include_str!("../expected/mock.toml")),
    ("libur_adapter_level_zero_v2", include_str!("../expected/level_zero_v2.toml")),
    ("libur_adapter_opencl", include_str!("../expected/opencl.toml")),
];

/// The cases that are known to fail, with reasons.
#[derive(Debug, Default)]
pub struct Expected(HashMap<String, String>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    known: Vec<Known>,
}
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    case: Option<String>,
    /// Several cases that fail for one reason.
    #[serde(default)]
    cases: Vec<String>,
    why: String,
}

impl Expected {
    /// Returns the suite's list for an adapter; empty if there is none.
    pub fn of(adapter: &Path) -> Result<Self, String> {
        let name = adapter.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let list = LISTS.iter().find(|(stem, _)| name.starts_with(&format!("{stem}.")));
        list.map_or_else(|| Ok(Self::default()), |(stem, text)| Self::parse(stem, text))
    }
    pub fn read(file: &Path) -> Result<Self, String> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|e| format!("{name}: {e}"))?;
        Self::parse(&name, &text)
    }
    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|e| format!("{name}: {e}"))?;
        let mut all = HashMap::new();
        for Known { case, cases, why } in file.known {
            let titles: Vec<_> = case.into_iter().chain(cases).collect();
            if titles.is_empty() || why.trim().is_empty() {
                return Err(format!("{name}: {titles:?} and why they fail: one is missing"));
            }
            for title in titles {
                if all.insert(title.clone(), why.clone()).is_some() {
                    return Err(format!("{name}: {title} is listed twice"));
                }
            }
        }
        Ok(Self(all))
    }
    /// Returns listed titles that no case has.
    pub fn unknown(&self, cases: &[Case]) -> Vec<String> {
        let titles: std::collections::HashSet<_> = cases.iter().map(Case::title).collect();
        self.0.keys().filter(|title| !titles.contains(*title)).cloned().collect()
    }
    /// Returns the outcome that counts, and the reason if it is a known failure.
    pub fn settle(&self, title: &str, found: Outcome) -> (Outcome, Option<String>) {
        let Some(why) = self.0.get(title) else { return (found, None) };
        match found {
            Outcome::Failed(_) => {
                (Outcome::Skipped(format!("known failure: {why}")), Some(why.clone()))
            }
            Outcome::Passed => {
                let stale = format!("passes, though it is listed as a known failure: {why}");
                (Outcome::Failed(stale), None)
            }
            skipped @ Outcome::Skipped(_) => (skipped, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "[[known]]\ncase = 'a'\nwhy = 'it is so'\n";

    #[test]
    fn a_known_failure_is_let_pass_and_an_unexpected_pass_is_not() {
        let expected = Expected::parse("test", LIST).unwrap();
        let (outcome, known) = expected.settle("a", Outcome::Failed("x".into()));
        assert_eq!(outcome, Outcome::Skipped("known failure: it is so".into()));
        assert!(known.is_some());
        let (outcome, _) = expected.settle("a", Outcome::Passed);
        assert!(matches!(outcome, Outcome::Failed(_)));
        let (outcome, _) = expected.settle("b", Outcome::Failed("x".into()));
        assert_eq!(outcome, Outcome::Failed("x".into()));
    }
    #[test]
    fn a_list_gives_reasons_and_names_each_case_once_and_only_cases_that_are_there() {
        assert!(Expected::parse("test", "[[known]]\ncase = 'a'\nwhy = ' '\n").is_err());
        assert!(Expected::parse("test", "[[known]]\nwhy = 'it is so'\n").is_err());
        assert!(Expected::parse("test", &format!("{LIST}{LIST}")).is_err());
        let several = "[[known]]\ncases = ['a', 'b']\nwhy = 'it is so'\n";
        assert_eq!(Expected::parse("test", several).unwrap().unknown(&[]).len(), 2);
        assert!(Expected::parse("test", &format!("{LIST}{several}")).is_err());
        assert_eq!(Expected::parse("test", LIST).unwrap().unknown(&[]), ["a"]);
        for (stem, text) in LISTS {
            let list = Expected::parse(stem, text).unwrap();
            assert!(list.unknown(&crate::case::all()).is_empty(), "{stem}");
        }
    }
}
