//! A worker process: judges cases that it reads line by line, and may crash or hang without harm to the
//! suite.
use crate::{
    adapter::Adapter,
    bench::{Bench, Subject},
    case::{self, Outcome, Stop},
};
use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The prefix of answers, which distinguishes them from lines that the adapter prints.
pub const MARK: &str = "@@";
/// The first answer; the time before it does not count for any case.
pub const READY: &str = "ready";
/// Asked like a case: whether there is the device that is to be judged.
pub const DEVICE: &str = "the device that is judged";

/// Reads titles from the standard input and answers each with its outcome, until the input ends.
pub fn run(subject: &Subject) -> Result<(), String> {
    let adapter: &'static Adapter =
        Box::leak(Box::new(Adapter::load(&subject.adapter, &subject.entry_path)?));
    std::panic::set_hook(Box::new(|_| {})); // the panic message is part of the outcome
    let cases: HashMap<_, _> = case::all().into_iter().map(|case| (case.title(), case)).collect();
    println!("{MARK}{READY}");
    for line in std::io::stdin().lines() {
        let title = line.map_err(|e| format!("the suite cannot be heard: {e}"))?;
        let bench = || Bench::new(adapter, subject.clone());
        let outcome = match cases.get(&title) {
            Some(case) => judge(|| (case.judge)(&bench())),
            None if title == DEVICE => judge(|| bench().device().map(drop)),
            None => Outcome::Failed(format!("there is no case {title}")),
        };
        let answer = serde_json::to_string(&outcome).expect("an outcome is plain data");
        println!("{MARK}{answer}");
    }
    Ok(())
}

fn judge(run: impl FnOnce() -> Result<(), Stop>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(Stop::Skipped(why))) => Outcome::Skipped(why),
        Ok(Err(Stop::Failed(why))) => Outcome::Failed(why),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Outcome::Failed(format!("panicked: {}", text.unwrap_or_default()))
        }
    }
}
