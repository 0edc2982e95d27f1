//! The call that gave or released something, with a backtrace of the place where the program made it.
use std::{
    backtrace::Backtrace,
    fmt::{self, Display},
    sync::Arc,
};

/// A call and the place where it was made.
#[derive(Clone)]
pub struct Moment {
    entry: &'static str,
    from: Arc<Backtrace>,
}
impl Moment {
    /// Captures the current call and its backtrace.
    pub fn now(entry: &'static str) -> Self {
        Self { entry, from: Arc::new(Backtrace::force_capture()) }
    }
}
impl Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = self.from.to_string();
        write!(f, "{} here:\n{}", self.entry, Frames { entry: self.entry, trace: &trace })
    }
}

/// The frames of a backtrace from the caller of the entry on, renumbered from 0.
struct Frames<'t> {
    entry: &'static str,
    trace: &'t str,
}
impl Display for Frames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frames = frames(self.trace);
        let ours = ours(self.entry, &frames);
        for (number, frame) in frames[ours..].iter().enumerate() {
            writeln!(f, "{number:4}: {}", frame.name)?;
            frame.more.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        }
        Ok(())
    }
}
/// A frame as the standard library writes it: `  12: name`, followed by lines with its source location.
struct Frame<'t> {
    name: &'t str,
    more: Vec<&'t str>,
}
fn frames(trace: &str) -> Vec<Frame<'_>> {
    let mut frames: Vec<Frame<'_>> = Vec::new();
    for line in trace.lines() {
        let numbered = line.split_once(": ");
        let numbered = numbered.filter(|(number, _)| number.trim_start().parse::<u32>().is_ok());
        match (numbered, frames.last_mut()) {
            (Some((_, name)), _) => frames.push(Frame { name, more: Vec::new() }),
            (None, Some(last)) => last.more.push(line),
            (None, None) => {}
        }
    }
    frames
}
/// Returns how many leading frames belong to the loader: those up to and including the first consecutive run
/// of entry functions. Where none is found, as in a loader without symbols, it is 0 and all frames are shown.
fn ours(entry: &str, frames: &[Frame<'_>]) -> usize {
    let is_ours = |name: &str| name.replace('_', "").eq_ignore_ascii_case(&entry[2..]);
    let called = |frame: &Frame<'_>| {
        frame.name == entry
            || frame.name.starts_with("ur_loader::entry::")
            // Functions that macros generate appear under the last part of their name, with a path relative
            // to the workspace.
            || (is_ours(frame.name) && frame.more.iter().any(|line| line.contains("src/entry.rs:")))
    };
    let Some(first) = frames.iter().position(called) else { return 0 };
    first + frames[first..].iter().take_while(|frame| called(frame)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "   0: std::backtrace::Backtrace::force_capture\n             at /somewhere:1:2\n   \
        1: ur_loader::layers::calls::context_create\n   2: ur_loader::entry::indirect::context_create\n   \
        3: urContextCreate\n   4: program::make\n             at ./program.c:7\n   5: urContextCreate\n   6: main\n";

    fn shown(entry: &'static str, trace: &str) -> String {
        Frames { entry, trace }.to_string()
    }
    #[test]
    fn frames_begin_at_the_caller_and_those_of_the_program_stay_whatever_their_names() {
        let expected = "   0: program::make\n             at ./program.c:7\n   1: urContextCreate\n   2: main\n";
        assert_eq!(shown("urContextCreate", TRACE), expected);
    }
    #[test]
    fn a_trace_without_names_is_shown_whole() {
        let unnamed = "   0: <unknown>\n   1: main\n";
        assert_eq!(shown("urContextCreate", unnamed), unnamed);
        assert_eq!(shown("urContextCreate", "disabled backtrace"), "");
    }
}
