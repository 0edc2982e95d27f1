//! `causeway doctor`: opens each adapter that the loader would look for, gets its tables and lists its
//! devices, and reports the results. Each adapter is tried in a process of its own (`trial`), so that one
//! that crashes, exits or hangs is reported and does not affect the others. Then, unless only adapters were
//! requested, it checks the directories that are used for sharing (`sharing`).
mod sharing;
mod trial;

use crate::{
    args,
    failure::{Failure, Result},
};
use serde::{Deserialize, Serialize};
use std::{io::Write, time::Duration};
pub use trial::run as run_trial;
use ur_loader::examine::{self, Candidate};

/// A message of a trial's process about its progress.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    Begins(Step),
    Found(Outcome),
}
/// What is done with an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    Open,
    Ask,
    List,
}
/// The result of trying an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Outcome {
    Missing,
    Needs(String),
    Unusable(String),
    Silent(String),
    Works { platforms: u32, devices: u32 },
}
/// How the process of a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Well,
    Status(i32),
    /// The name of the signal, or its number.
    Signal(String),
    Late(Duration),
}
/// The result of a trial.
#[derive(Debug)]
struct Trial {
    /// The last step that began.
    step: Option<Step>,
    outcome: Option<Outcome>,
    end: End,
}

/// The report on one place of one adapter.
#[derive(Serialize)]
struct Finding<'c> {
    adapter: &'c str,
    place: &'c str,
    /// Whether a program that starts the loader now would load it from there.
    used: bool,
    works: bool,
    finding: String,
}

/// The whole report as JSON.
#[derive(Serialize)]
struct Report<'f> {
    adapters: &'f [Finding<'f>],
    sharing: &'f [sharing::Finding],
}

/// Runs the requested checks and prints the results.
pub fn run(args: &args::Doctor) -> Result<()> {
    let candidates = examine::candidates();
    let adapters = adapters(&candidates, args)?;
    let sharing = if args.adapters { Vec::new() } else { sharing::examine() };
    if args.json {
        let text = match args.adapters {
            true => serde_json::to_string_pretty(&adapters),
            false => {
                serde_json::to_string_pretty(&Report { adapters: &adapters, sharing: &sharing })
            }
        };
        said(&(text.map_err(|e| Failure::said(format!("could not write JSON: {e}")))? + "\n"))?;
    } else {
        said(&sharing::lines(&sharing))?;
        if adapters.iter().any(|finding| finding.used) || sharing.iter().any(|one| one.is_used()) {
            said("* is what programs load that start with this environment\n")?;
        }
    }
    if candidates.is_empty() {
        let why = "there is no adapter to try: the environment names none that is there; see the warnings above";
        return Err(Failure::said(why));
    }
    match adapters.iter().filter(|finding| !finding.works).count() {
        0 if args.adapters => Ok(()),
        0 => sharing::complaint(&sharing).map_or(Ok(()), |complaint| Err(Failure::said(complaint))),
        1 => Err(Failure::said("an adapter does not work: it is named above")),
        count => Err(Failure::said(format!("{count} adapters do not work: they are named above"))),
    }
}
/// Tries every adapter at every place; in text form, prints each result at once.
fn adapters<'c>(candidates: &'c [Candidate], args: &args::Doctor) -> Result<Vec<Finding<'c>>> {
    let patience = Duration::from_secs(args.timeout.into());
    let width = candidates.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
    let mut findings = Vec::new();
    for (number, candidate) in candidates.iter().enumerate() {
        for finding in adapter(number, candidate, patience)? {
            if !args.json {
                let Finding { adapter, place, used, finding, .. } = &finding;
                let mark = if *used { "*" } else { " " };
                // An adapter that was requested by path has the path as its name.
                let place = if place == adapter { "" } else { place };
                let between = if place.is_empty() { "" } else { "  " };
                said(&format!("{mark} {adapter:width$}{between}{place}: {finding}\n"))?;
            }
            findings.push(finding);
        }
    }
    Ok(findings)
}
fn said(text: &str) -> Result<()> {
    let mut stdout = anstream::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::stdout(&error))
}

/// The findings about an adapter: one for each place where a file is, or one that there is none.
fn adapter(number: usize, candidate: &Candidate, patience: Duration) -> Result<Vec<Finding<'_>>> {
    let (mut findings, mut taken) = (Vec::new(), false);
    for (at, place) in candidate.places.iter().enumerate() {
        let trial = trial::start(number, at, patience)?;
        let Some((works, finding)) = judge(&trial) else { continue };
        // The loader uses the first file that opens, even if it fails later.
        let opened = trial.step != Some(Step::Open) || trial.outcome.is_none();
        let used = opened && !taken;
        taken |= opened;
        findings.push(Finding { adapter: &candidate.name, place, used, works, finding });
    }
    if findings.is_empty() {
        let (adapter, place) = (candidate.name.as_str(), "nowhere");
        let finding = format!("there is no file of it; looked at {}", candidate.places.join(", "));
        findings.push(Finding { adapter, place, used: false, works: true, finding });
    }
    Ok(findings)
}

/// Returns whether the adapter works and a sentence about it; `None` for a place without a file.
fn judge(trial: &Trial) -> Option<(bool, String)> {
    let during = match trial.step {
        None => "before it is opened",
        Some(Step::Open) => "while it is opened",
        Some(Step::Ask) => "while it is asked for its tables",
        Some(Step::List) => "while it lists its platforms and devices",
    };
    let end = match &trial.end {
        End::Well => None,
        End::Status(trial::CLOSED) => Some("closes descriptors that are not its own".into()),
        End::Status(status) => Some(format!("ends the process with status {status}")),
        End::Signal(name) => Some(format!("crashes with {name}")),
        End::Late(patience) => Some(format!("does not come back within {} s", patience.as_secs())),
    };
    let (works, said) = match (&trial.outcome, end) {
        (Some(Outcome::Missing), None) => return None,
        (None, None) => (false, format!("ends the process {during}")),
        (None, Some(end)) => (false, format!("{end} {during}")),
        (Some(outcome), None) => judge_outcome(outcome),
        (Some(outcome), Some(end)) => {
            let (_, said) = judge_outcome(outcome);
            (false, format!("{said}; but it {end} when the process is to end"))
        }
    };
    Some((works, said))
}
fn judge_outcome(outcome: &Outcome) -> (bool, String) {
    let counted = |count: u32, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    match outcome {
        Outcome::Missing => (true, "there is no such file".into()),
        // Adapters report this when their driver is not installed.
        Outcome::Needs(what) => {
            (true, format!("does not open, as what it needs is missing: {what}"))
        }
        Outcome::Silent(code) => (true, format!("lists no adapter, as without its driver: {code}")),
        Outcome::Unusable(why) => (false, format!("cannot be used: {why}")),
        Outcome::Works { platforms, devices } => {
            let (platforms, devices) =
                (counted(*platforms, "platform"), counted(*devices, "device"));
            (true, format!("works: {platforms}, {devices}"))
        }
    }
}
