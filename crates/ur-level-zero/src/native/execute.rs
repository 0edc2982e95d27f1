//! Appends the core's commands to command lists.
use super::{
    super::{LevelZero, image, launch},
    list::{BoxPlace3d, List},
};
use ur_hal::{Address, BoxSpan, Command, Error, Hint, Location, Result, Rows};
use ze_sys::*;

/// Rows as one end of a box copy.
pub fn rows(rows: Rows) -> BoxPlace3d {
    BoxPlace3d { at: rows.start.get(), row_pitch: rows.pitch, slice_pitch: 0 }
}
/// A box as one end of a box copy.
pub fn spot((base, span): (Address, BoxSpan)) -> BoxPlace3d {
    BoxPlace3d { at: base.get() + span.start, row_pitch: span.row, slice_pitch: span.slice }
}
/// The driver's advice for setting or unsetting a hint. `None` for hints that the driver does not have.
fn word((hint, on): (Hint, bool)) -> Option<ze_memory_advice_t> {
    let (given, taken_back) = match hint {
        Hint::ReadMostly => (ZE_MEMORY_ADVICE_SET_READ_MOSTLY, ZE_MEMORY_ADVICE_CLEAR_READ_MOSTLY),
        Hint::PreferDevice => {
            (ZE_MEMORY_ADVICE_SET_PREFERRED_LOCATION, ZE_MEMORY_ADVICE_CLEAR_PREFERRED_LOCATION)
        }
        Hint::PreferHost => (
            ZE_MEMORY_ADVICE_SET_SYSTEM_MEMORY_PREFERRED_LOCATION,
            ZE_MEMORY_ADVICE_CLEAR_SYSTEM_MEMORY_PREFERRED_LOCATION,
        ),
        Hint::NonAtomicMostly => {
            (ZE_MEMORY_ADVICE_SET_NON_ATOMIC_MOSTLY, ZE_MEMORY_ADVICE_CLEAR_NON_ATOMIC_MOSTLY)
        }
        Hint::Cached => (ZE_MEMORY_ADVICE_BIAS_CACHED, ZE_MEMORY_ADVICE_BIAS_UNCACHED),
        Hint::AccessedByDevice | Hint::AccessedByHost | Hint::NonCoherent => return None,
    };
    Some(if on { given } else { taken_back })
}
/// Whether the command is exactly one append call, which takes the events to wait for and to signal.
#[inline]
pub fn is_one_append(command: &Command<'_, LevelZero>) -> bool {
    matches!(command, Command::Barrier | Command::Copy { .. } | Command::Launch(_))
}
impl List<'_> {
    /// Appends a command.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for commands that are not appended by this function; else the driver's error.
    #[inline]
    pub fn append(&self, command: &Command<'_, LevelZero>) -> Result<()> {
        match *command {
            Command::Barrier => self.barrier(),
            Command::Timestamp => Ok(()), // only the mark behind it matters
            Command::Launch(launch) => launch::append(self, launch),
            Command::ImageCopy(copy) => image::copy(self, copy),
            Command::Copy { to, from, bytes } => self.copy(to.get(), from.get(), bytes),
            Command::Copy2d { to, from, width, height } => {
                self.copy_region(rows(to), rows(from), (width, height, 1))
            }
            Command::Copy3d(copy) => {
                self.copy_region(spot(copy.to), spot(copy.from), copy.region.into())
            }
            Command::Fill { to, pattern } => {
                self.fill(to.start().get(), pattern.bytes(), to.bytes())
            }
            Command::Fill2d { to, width, height, pattern } => {
                self.fill_2d((to.start.get(), to.pitch), pattern.bytes(), (width, height))
            }
            Command::Prefetch { range, to } => {
                self.prefetch(range.start().get(), range.bytes(), to == Location::Host)
            }
            Command::Advise { range, advice } => advice
                .hints()
                .filter_map(word)
                .try_for_each(|word| self.advise(range.start().get(), range.bytes(), word)),
            _ => Error::unsupported("this kind of command"),
        }
    }
}
