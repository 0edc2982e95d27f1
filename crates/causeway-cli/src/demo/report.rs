//! The demo's output: one line for each result, under headings.
use crate::failure::{Failure, Result};
use anstyle::{AnsiColor, Style};
use std::{fmt::Display, io::Write};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const HEADING: Style = Style::new().bold();

/// Prints results and counts failed checks.
#[derive(Default)]
pub struct Report {
    mismatches: usize,
}

impl Report {
    /// Prints a line. If the reader has closed the output this is no failure; the exit code still reports the
    /// result.
    fn line(&self, line: impl Display) -> Result<()> {
        let mut stdout = anstream::stdout().lock();
        let written = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
        match written.map_err(|error| Failure::stdout(&error)) {
            Err(Failure::BrokenPipe) => Ok(()),
            other => other,
        }
    }
    /// Prints a heading.
    pub fn heading(&self, what: &str, more: impl Display) -> Result<()> {
        self.line(format_args!("{HEADING}{what:<17}{HEADING:#}{more}"))
    }
    /// Prints a measurement or a fact.
    pub fn fact(&self, what: &str, fact: impl Display) -> Result<()> {
        self.line(format_args!("  {what:<15}{fact}"))
    }
    /// Prints the result of a check.
    pub fn check(&mut self, what: &str, passed: bool, found: impl Display) -> Result<()> {
        let (style, word) = if passed { (GOOD, "ok") } else { (BAD, "MISMATCH") };
        self.mismatches += usize::from(!passed);
        self.line(format_args!("  {what:<15}{style}{word}{style:#}, {found}"))
    }
    /// Ends the report; fails if any check failed.
    pub fn end(self) -> Result<()> {
        match self.mismatches {
            0 => self.line(format_args!("{GOOD}everything was verified{GOOD:#}")),
            1 => Err(Failure::said("1 check of the demo failed: see MISMATCH above")),
            n => Err(Failure::said(format!("{n} checks of the demo failed: see MISMATCH above"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mismatch_fails_the_demo() {
        let mut report = Report::default();
        report.check("this", true, "as it should be").unwrap();
        report.check("that", false, "not as it should be").unwrap();
        assert!(matches!(report.end(), Err(Failure::Said(why)) if why.starts_with("1 check")));
    }
}
