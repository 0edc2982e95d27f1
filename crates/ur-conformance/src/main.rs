//! `ur-conformance`: loads any Unified Runtime adapter through the C ABI and reports, rule by rule, which
//! rules it fulfils.
mod adapter;
mod bench;
mod call;
mod case;
mod entry_path;
mod expected;
mod families;
mod harness;
mod processes;
mod raw;
mod report;
mod rules;
mod spec;
mod worker;

use bench::Subject;
use case::{Case, Outcome};
use clap::{Parser, ValueEnum};
use entry_path::EntryPath;
use expected::Expected;
use harness::Harness;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use report::{Record, Report};
use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Judges a Unified Runtime adapter through the C ABI, rule by rule.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The adapter's shared object.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["list", "uncovered"])]
    adapter: Option<PathBuf>,
    /// The interface to the adapter: this project's loader (ours), the adapter's tables (direct), or the shared object of
    /// a loader; if that is the adapter's own file, the adapter that is linked into the loader is judged.
    #[arg(long, value_name = "DOOR", default_value = "ours")]
    through: EntryPath,
    /// The index of the device, counted over all platforms of the adapter.
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,
    /// Only cases whose family, entry, sentence or rule contains this; may be given several times.
    #[arg(long, value_name = "PATTERN")]
    filter: Vec<String>,
    /// Excludes cases whose family, entry, sentence or rule contains this; may be given several times.
    #[arg(long, value_name = "PATTERN")]
    but: Vec<String>,
    /// Lists the cases and their rules without judging.
    #[arg(long)]
    list: bool,
    /// Writes the outcomes as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the outcomes as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Writes the outcomes as one HTML page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The list of known failures, instead of the suite's list for the adapter's file name.
    #[arg(long, value_name = "FILE")]
    expected: Option<PathBuf>,
    /// Lists the documented errors that no case provokes.
    #[arg(long)]
    uncovered: bool,
    /// With --uncovered: as a Markdown page with the reasons.
    #[arg(long, requires = "uncovered")]
    markdown: bool,
    /// A time limit for every case, below its own limit.
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<u64>,
    /// Never releases the last reference to the adapter, for adapters that cannot be used again in a process afterwards.
    #[arg(long)]
    keep: bool,
    /// How many cases run at the same time: twice as many as there are processors unless this says otherwise, since most
    /// of their time cases wait for other processes
    #[arg(short, value_name = "N")]
    jobs: Option<usize>,
    /// The role of this process; the suite runs itself again.
    #[arg(long, hide = true)]
    role: Option<Role>,
}
#[derive(Clone, Copy, ValueEnum)]
enum Role {
    Worker,
    Peer,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("ur-conformance: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> Result<bool, String> {
    if cli.uncovered {
        let list =
            if cli.markdown { rules::uncovered::markdown() } else { rules::uncovered::text() };
        print!("{list}");
        return Ok(true);
    }
    if cli.list {
        return list(&wanted(&cli)).map(|()| true);
    }
    let adapter = cli.adapter.clone().ok_or("--adapter FILE says what to judge")?;
    let adapter = adapter.canonicalize().map_err(|e| format!("{}: {e}", adapter.display()))?;
    let (device, entry_path, keep) = (cli.device, cli.through.clone(), cli.keep);
    let subject = Subject { adapter, device, entry_path, keep };
    match cli.role {
        Some(Role::Worker) => worker::run(&subject).map(|()| true),
        Some(Role::Peer) => processes::peer(&subject).map(|()| true),
        None => judge(&cli, subject),
    }
}

fn wanted(cli: &Cli) -> Vec<Case> {
    let mut cases = case::all();
    let has_one_of = |case: &Case, parts: &[String]| {
        let title = case.title();
        parts.iter().any(|part| title.contains(part) || case.rule.contains(part))
    };
    cases.retain(|case| cli.filter.is_empty() || has_one_of(case, &cli.filter));
    cases.retain(|case| !has_one_of(case, &cli.but));
    if let Some(most) = cli.deadline.map(Duration::from_secs) {
        cases.iter_mut().for_each(|case| case.deadline = case.deadline.min(most));
    }
    cases
}
fn list(cases: &[Case]) -> Result<(), String> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    for case in cases {
        match writeln!(out, "{}\n    rule: {}", case.title(), case.rule) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => break, // the reader has closed the pipe
            done => done.map_err(|e| format!("the list cannot be written: {e}"))?,
        }
    }
    Ok(())
}

/// Judges all selected cases; returns whether there was no failure except known ones.
fn judge(cli: &Cli, subject: Subject) -> Result<bool, String> {
    let expected = Arc::new(match &cli.expected {
        Some(file) => Expected::read(file)?,
        None => Expected::of(&subject.adapter)?,
    });
    let cases = wanted(cli);
    if cases.is_empty() {
        return Err("no case is chosen: --list names all of them".into());
    }
    let unknown = expected.unknown(&case::all());
    if !unknown.is_empty() {
        return Err(format!("known failures name cases that are not there: {unknown:?}"));
    }
    let records: Arc<Mutex<Vec<Record>>> = Arc::default();
    let (harness, missing) =
        Harness::start(subject.clone(), cli.deadline.map(Duration::from_secs))?;
    if let Some(why) = missing {
        println!("{why}");
    }
    let harness = Arc::new(harness);
    let trials = cases.into_iter().map(|case| {
        let (harness, expected) = (harness.clone(), expected.clone());
        let records = records.clone();
        Trial::ignorable_test(case.title(), move || {
            let began = Instant::now();
            let found = harness.judge(&case);
            let (outcome, known) = expected.settle(&case.title(), found);
            let completion = completion(&outcome);
            let record = Record::new(&case, outcome, known, began.elapsed());
            records.lock().expect("nothing panics with the lock held").push(record);
            completion
        })
    });
    let twice = || std::thread::available_parallelism().map(|processors| 2 * processors.get());
    let test_threads = cli.jobs.or_else(|| twice().ok());
    let arguments = Arguments { test_threads, ..Arguments::default() };
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    drop(harness);
    let mut records = std::mem::take(&mut *records.lock().expect("nobody has it"));
    records.sort_by(|a, b| a.title.cmp(&b.title));
    let report = Report { adapter: subject.adapter.display().to_string(), records };
    println!("{}", report::table::text(&report));
    let files = [
        (&cli.json, report::json::text as fn(&Report) -> String),
        (&cli.junit, report::junit::text),
        (&cli.html, report::html::text),
    ];
    for (file, text) in files {
        if let Some(file) = file {
            std::fs::write(file, text(&report)).map_err(|e| format!("{}: {e}", file.display()))?;
        }
    }
    Ok(!conclusion.has_failed())
}
fn completion(outcome: &Outcome) -> Result<Completion, Failed> {
    match outcome {
        Outcome::Passed => Ok(Completion::Completed),
        Outcome::Skipped(why) => Ok(Completion::ignored_with(why)),
        Outcome::Failed(why) => Err(why.into()),
    }
}
