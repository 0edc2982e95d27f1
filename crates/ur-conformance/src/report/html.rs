//! Writes the outcomes as one self-contained page: first the totals, then failures, then every family.
use super::{Counts, Record, Report, escape};
use crate::case::Outcome;
use std::fmt::Write as _;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:68rem;margin:2rem auto;padding:0 1rem;\
color:#1a1a1a;background:#fff}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .6rem;\
vertical-align:top;border-bottom:1px solid #ddd}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\
summary{cursor:pointer;font-weight:600;margin:.8rem 0}.passed{color:#17692b}.skipped{color:#6b6b6b}\
.failed{color:#a81414;font-weight:600}.known{color:#8a5a00}code{font-size:.92em}.rule,.why{color:#555;font-size:.9em}\
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#16181b}td,th{border-color:#34383d}.passed{color:#7bd88f}\
.skipped{color:#a0a0a0}.failed{color:#ff8080}.known{color:#e5b567}.rule,.why{color:#b0b0b0}}";

pub fn text(report: &Report) -> String {
    let (name, total) = (escape(&report.adapter), report.total());
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Conformance of {name}</title>\n<style>{STYLE}</style>\n\
         <h1>Conformance</h1>\n<p><code>{name}</code></p>\n<p>{}</p>\n",
        sentence(total)
    );
    out.push_str(&families(report));
    let failed: Vec<_> =
        report.records.iter().filter(|r| matches!(r.outcome, Outcome::Failed(_))).collect();
    if !failed.is_empty() {
        out.push_str("<h2>What failed</h2>\n");
        out.push_str(&records(&failed));
    }
    out.push_str("<h2>Every case</h2>\n");
    for (family, counts) in report.families() {
        let of: Vec<_> = report.records.iter().filter(|r| r.family == family).collect();
        let heading = format!("{} · {}", escape(family), sentence(counts));
        let table = records(&of);
        // Writing to a String does not fail.
        let _ = writeln!(out, "<details><summary>{heading}</summary>\n{table}</details>");
    }
    out.push_str("</html>\n");
    out
}
fn sentence(c: Counts) -> String {
    let Counts { passed, skipped, known, failed } = c;
    let known = if known == 0 { String::new() } else { format!(", {known} failed as known") };
    let class = if failed == 0 { "passed" } else { "failed" };
    format!(
        "{passed} passed, {skipped} skipped{known}, <span class=\"{class}\">{failed} failed</span>"
    )
}
fn families(report: &Report) -> String {
    let mut out = String::from(
        "<table><tr><th>Family<th class=\"n\">passed<th class=\"n\">skipped<th class=\"n\">known\
         <th class=\"n\">failed</tr>\n",
    );
    for (family, Counts { passed, skipped, known, failed }) in report.families() {
        let class = if failed == 0 { "n" } else { "n failed" };
        let family = escape(family);
        let _ = writeln!(
            out,
            "<tr><td>{family}<td class=\"n\">{passed}<td class=\"n\">{skipped}<td class=\"n\">{known}\
             <td class=\"{class}\">{failed}</tr>"
        );
    }
    out + "</table>\n"
}
fn records(records: &[&Record]) -> String {
    let mut out = String::from("<table><tr><th>Outcome<th>Entry<th>Case</tr>\n");
    for record in records {
        let (class, why) = match (&record.outcome, &record.known) {
            (_, Some(why)) => ("known", Some(why)),
            (Outcome::Passed, _) => ("passed", None),
            (Outcome::Skipped(why), _) => ("skipped", Some(why)),
            (Outcome::Failed(why), _) => ("failed", Some(why)),
        };
        let why = why.map(|why| format!("<br><span class=\"why\">{}</span>", escape(why)));
        let (entry, name, rule) =
            (escape(&record.entry), escape(&record.name), escape(&record.rule));
        let _ = writeln!(
            out,
            "<tr><td class=\"{class}\">{class}<td><code>{entry}</code><td>{name}\
             <br><span class=\"rule\">{rule}</span>{}</tr>",
            why.unwrap_or_default()
        );
    }
    out + "</table>\n"
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_says_what_failed_before_all_else_and_escapes_what_it_quotes() {
        let page = super::text(&super::super::tests::sample());
        let failed = page.find("What failed").unwrap();
        assert!(failed < page.find("Every case").unwrap());
        assert!(page[failed..].contains("1 &lt; 2"));
        assert!(!page.contains("lib<x>"));
    }
}
