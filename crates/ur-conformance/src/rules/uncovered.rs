//! The documented errors that no case provokes, with reasons: the list that `--uncovered` prints, and the
//! page that is stored as `UNCOVERED.md`.
use super::code;
use crate::spec::{Entry, Fault, Spec, When};
use std::{collections::BTreeMap, fmt::Write as _};

/// A documented error without a case.
struct Missing {
    entry: &'static str,
    code: String,
    /// The condition in the words of the specification; `None` where it only names the code.
    words: Option<&'static str>,
}
/// Why an error with a condition in words has no case: its entry, the words, the reason.
const IN_WORDS: &[(&str, &str, &str)] = &[(
    "urBindlessImagesImageGetInfoExp",
    "the given size is too small to hold the answer",
    "the entry takes no size: nothing that is passed can be too small",
)];
/// Why an error without a condition has no case; the reason for all others is `GUESS`.
const NAMED: &[(&str, &str)] = &[
    (
        "UR_RESULT_ERROR_OUT_OF_HOST_MEMORY",
        "the process would have to run out of memory, and the suite with it",
    ),
    (
        "UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
        "how much a device holds until it refuses is the device's own matter",
    ),
    (
        "UR_RESULT_ERROR_OUT_OF_RESOURCES",
        "what a device runs out of, and when, is the device's own matter",
    ),
    ("UR_RESULT_ERROR_DEVICE_LOST", "the device would have to break"),
    (
        "UR_RESULT_ERROR_OBJECT_ALLOCATION_FAILURE",
        "the process would have to run out of memory, and the suite with it",
    ),
];
const GUESS: &str = "the specification does not say when: a case would judge a guess";

fn missing() -> Vec<Missing> {
    let cases: Vec<_> = crate::case::all().into_iter().map(|c| (c.entry, c.rule)).collect();
    let is_of =
        |of: &str, entry: &Entry| of.split([',', ' ']).any(|name| name == entry.name.as_str());
    let mut all = Vec::new();
    for entry in Spec::get().tables.iter().flat_map(|table| &table.entries) {
        let rules: Vec<_> =
            cases.iter().filter(|(of, _)| is_of(of, entry)).map(|(_, rule)| rule).collect();
        let mut add = |fault: &Fault, words, looked_for: &str| {
            if !rules.iter().any(|rule| rule.contains(looked_for)) {
                all.push(Missing { entry: &entry.name, code: code(&fault.code).0, words });
            }
        };
        for fault in &entry.errors {
            match &fault.when {
                When::Words(words) => add(fault, Some(words.as_str()), words),
                When::Unsaid => add(fault, None, &code(&fault.code).0),
                // Each of these has a case that is generated from it.
                When::Holds(_) => {}
            }
        }
    }
    all
}
/// One line for each error.
pub fn text() -> String {
    let mut out = String::new();
    for Missing { entry, code, words } in missing() {
        let _ = writeln!(
            out,
            "{entry}: {code}: {}",
            words.unwrap_or("(the specification does not say when)")
        );
    }
    out
}
/// The page that is stored beside the sources.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Documented errors without a case\n\nPrinted by `ur-conformance --uncovered --markdown`; a test compares. Every \
         condition on parameters that\nthe specification writes down has a case, which is made from it.\n\n## Said in \
         words\n\n| Entry | Error | When | Why there is no case |\n| --- | --- | --- | --- |\n",
    );
    let mut named: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for Missing { entry, code, words } in missing() {
        let Some(words) = words else {
            let entries = named.entry(code).or_default();
            if !entries.contains(&entry) {
                entries.push(entry);
            }
            continue;
        };
        let known = IN_WORDS.iter().find(|(of, said, _)| *of == entry && *said == words);
        let why = known.map_or("**nobody has said why**", |(_, _, why)| why);
        let _ = writeln!(out, "| `{entry}` | `{code}` | {words} | {why} |"); // a String
    }
    out += "\n## Named, and not said when\n\n| Error | Why there is no case | Entries |\n| --- | --- | --- |\n";
    for (code, entries) in named {
        let why = NAMED.iter().find(|(of, _)| *of == code).map_or(GUESS, |(_, why)| why);
        let list: Vec<_> = entries.iter().map(|entry| format!("`{entry}`")).collect();
        let _ = writeln!(out, "| `{code}` | {why} | {} |", list.join(", ")); // a String
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_page_says_what_is_uncovered_now_and_why() {
        let now = super::markdown();
        assert!(
            !now.contains("nobody has said why"),
            "an error in words has neither case nor reason:\n{now}"
        );
        let kept = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/UNCOVERED.md"));
        let print = "cargo run -p ur-conformance -- --uncovered --markdown > UNCOVERED.md";
        assert!(
            kept.is_ok_and(|kept| kept == now),
            "the page is stale; in crates/ur-conformance: {print}"
        );
    }
}
