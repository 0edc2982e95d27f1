//! Writes the summary at the end of a run: one line for each family.
use super::{Counts, Report};
use std::fmt::Write as _;

pub fn text(report: &Report) -> String {
    let mut out =
        format!("{:<22}{:>8}{:>9}{:>8}{:>8}\n", "family", "passed", "skipped", "known", "failed");
    let mut line = |name: &str, c: Counts| {
        let Counts { passed, skipped, known, failed } = c;
        let _ = writeln!(out, "{name:<22}{passed:>8}{skipped:>9}{known:>8}{failed:>8}"); // a String
    };
    for (family, counts) in report.families() {
        line(family, counts);
    }
    line("all", report.total());
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_has_a_line_a_family_and_a_sum() {
        let text = super::text(&super::super::tests::sample());
        let numbers = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(numbers(text.lines().nth(1).unwrap()), ["queue", "1", "1", "1", "1"]);
        assert_eq!(numbers(text.lines().nth(2).unwrap()), ["all", "1", "1", "1", "1"]);
    }
}
