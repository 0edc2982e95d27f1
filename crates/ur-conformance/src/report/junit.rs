//! Writes the outcomes as JUnit XML, which CI systems display.
use super::{Report, escape};
use crate::case::Outcome;
use std::fmt::Write as _;

pub fn text(report: &Report) -> String {
    let total = report.total();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String does not fail.
    let _ = writeln!(
        out,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
        escape(&report.adapter),
        report.records.len(),
        total.failed,
        total.skipped + total.known,
    );
    for record in &report.records {
        let _ = write!(
            out,
            "  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            escape(&record.family),
            escape(&format!("{}: {}", record.entry, record.name)),
            record.seconds,
        );
        let _ = match &record.outcome {
            Outcome::Passed => writeln!(out, "/>"),
            Outcome::Skipped(why) => {
                writeln!(out, "><skipped message=\"{}\"/></testcase>", escape(why))
            }
            Outcome::Failed(why) => {
                let (why, rule) = (escape(why), escape(&record.rule));
                writeln!(out, "><failure message=\"{why}\">{rule}</failure></testcase>")
            }
        };
    }
    out.push_str("</testsuite>\n");
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_xml_has_a_case_each_and_nothing_unescaped() {
        let text = super::text(&super::super::tests::sample());
        assert_eq!(text.matches("<testcase ").count(), 4);
        assert!(text.contains("failures=\"1\" skipped=\"2\""), "{text}");
        assert!(text.contains("<failure message=\"1 &lt; 2   &amp; so on\">a &lt; b</failure>"));
        assert!(text.contains("name=\"lib&lt;x&gt;.so\""));
    }
}
