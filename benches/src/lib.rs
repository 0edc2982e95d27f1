//! How the benchmarks measure: a subject and its yardstick alternate many times in the same run; the results
//! are medians, their ratio, and the ratio of the yardstick to itself, which must be about 1 for the result
//! to count.
mod peer;
mod words;

pub use peer::{Peer, Role, answer, asked, role};
pub use words::{Bare, Waiting};

use std::{env, path::PathBuf, process::Command, time::Duration};

/// The result of a benchmark's steps; an error ends the benchmark.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Calls an entry of an adapter's table: `ur!(table, family.entry(arguments))`. An error names the entry and its code.
#[macro_export]
macro_rules! ur {
    ($table:expr, $group:ident.$entry:ident($($argument:expr),* $(,)?)) => {{
        let entry = $table.$group.$entry.ok_or(stringify!($entry))?;
        match unsafe { entry($($argument),*) } {
            ur_result_t::SUCCESS => Ok(()),
            code => Err(format!("{}.{}: {code:?}", stringify!($group), stringify!($entry))),
        }
    }};
}
/// This program once more, in a process whose dynamic linker looks into these folders first: it reads `LD_LIBRARY_PATH` only
/// when a process starts.
///
/// # Errors
/// For a folder whose name no list of folders can hold, and where this program's file is not known.
pub fn again_in(folders: impl IntoIterator<Item = PathBuf>) -> Result<Command> {
    let given = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let before = env::split_paths(&given).filter(|path| !path.as_os_str().is_empty());
    let mut again = Command::new(env::current_exe()?);
    again.env("LD_LIBRARY_PATH", env::join_paths(folders.into_iter().chain(before))?);
    Ok(again)
}

/// Blocks of each kind in a comparison. The number is odd, so that the median is one of them.
pub const BLOCKS: usize = 101;
/// The allowed ratio of the yardstick to itself.
const CONTROL: std::ops::RangeInclusive<f64> = 0.95..=1.05;

/// Returns the median. `times` must not be empty.
pub fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The result of measuring a subject beside a yardstick.
#[derive(Debug)]
pub struct Comparison {
    /// The name of the subject.
    pub what: String,
    /// The median of the subject.
    pub ours: Duration,
    /// The median of the yardstick.
    pub bare: Duration,
    /// The ratio of the yardstick's two series, of which every round has one block each.
    pub control: f64,
}

impl Comparison {
    /// Measures `ours` and `bare` alternately; each call runs one block and returns its time. The yardstick
    /// runs twice in each round, which gives the control.
    ///
    /// # Errors
    /// Returns the first error of a block.
    pub fn of(
        what: impl Into<String>,
        blocks: usize,
        mut ours: impl FnMut() -> Result<Duration>,
        mut bare: impl FnMut() -> Result<Duration>,
    ) -> Result<Self> {
        for _ in 0..3 {
            ours()?;
            bare()?;
        }
        let (mut thing, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
        for block in 0..blocks {
            // The order alternates, so that neither position has an advantage.
            if block % 2 == 0 {
                first.push(bare()?);
                thing.push(ours()?);
                second.push(bare()?);
            } else {
                second.push(bare()?);
                thing.push(ours()?);
                first.push(bare()?);
            }
        }
        let control = median(&mut first).as_secs_f64() / median(&mut second).as_secs_f64();
        first.append(&mut second);
        let (ours, bare) = (median(&mut thing), median(&mut first));
        Ok(Self { what: what.into(), ours, bare, control })
    }
    /// Returns the ratio of the subject to the yardstick.
    pub fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.bare.as_secs_f64()
    }
    /// Prints one line: both medians divided by `per`, the ratio and its limit.
    pub fn report(&self, per: u32, yardstick: &str, at_most: f64) {
        let verdict = match (CONTROL.contains(&self.control), self.ratio() <= at_most) {
            (false, _) => "inconclusive: the yardstick differs from itself",
            (true, true) => "as promised",
            (true, false) => "MORE than promised",
        };
        println!(
            "{:<44} {:>10.3?}  {yardstick} {:>10.3?}  ratio {:.2} (at most {at_most}), control {:.2}: {verdict}",
            self.what,
            self.ours / per,
            self.bare / per,
            self.ratio(),
            self.control,
        );
    }
}

/// Pins this thread, and threads that it starts, to one processor.
///
/// # Errors
/// Returns the kernel's error, for example if there is no such processor.
pub fn pin(cpu: usize) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)?;
    Ok(())
}
/// Returns the number of processors that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
