//! How the benchmarks measure: a thing and its yardstick in turn, in the same run, many times; medians and their
//! ratio; and the yardstick against itself, which must come out as 1 or nothing was learnt.
mod peer;
mod words;

pub use peer::{Peer, Role, answer, asked, role};
pub use words::{Bare, Waiting};

use std::time::Duration;

/// What an error is here: a sentence, and the benchmark is over.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Blocks of each kind in one comparison. Odd, so that the median is one of them.
pub const BLOCKS: usize = 101;
/// How far the yardstick may be from itself.
const CONTROL: std::ops::RangeInclusive<f64> = 0.95..=1.05;

/// The middle one. `times` is not empty.
pub fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A thing measured beside a yardstick.
#[derive(Debug)]
pub struct Comparison {
    /// What was measured.
    pub what: String,
    /// Median of the thing.
    pub ours: Duration,
    /// Median of the yardstick.
    pub bare: Duration,
    /// The yardstick's odd blocks against its even ones.
    pub control: f64,
}

impl Comparison {
    /// Measures `ours` and `bare` in turn, each of which does one block and says what it took. The yardstick runs
    /// twice a round, which makes the control.
    ///
    /// # Errors
    /// What a block says.
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
            // The order turns round, so that what comes first has no advantage.
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
    /// How many times the yardstick the thing takes.
    pub fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.bare.as_secs_f64()
    }
    /// One line for people: both medians for each of `per`, the ratio and what it should be.
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

/// Keeps this thread, and threads that it starts, on one processor, if there is such a one.
///
/// # Errors
/// What the kernel says.
pub fn pin(cpu: usize) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)?;
    Ok(())
}
/// Processors that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
