//! Enqueues the core's commands in a stream.
use super::{
    super::{
        Family,
        driver::{
            Dialect,
            layout::{Copy3d, CopyEnd},
        },
        image,
    },
    stream::Stream,
};
use ur_hal::{Address, BoxSpan, Command, Error, Hint, Location, Result, Rows};

/// `CU_DEVICE_CPU`: the host in place of a device number.
const HOST: i32 = -1;

fn number(at: Address) -> u64 {
    at.get() as u64
}
fn rows(rows: Rows) -> (u64, usize) {
    (number(rows.start), rows.pitch)
}
fn end((base, span): (Address, BoxSpan)) -> CopyEnd {
    CopyEnd::memory(number(base) + span.start as u64, span.row, span.slice / span.row)
}
/// The driver's number for setting a hint, and whether it concerns the host; unsetting it is the next number.
/// `None` for hints that the driver does not have.
fn word(hint: Hint) -> Option<(i32, bool)> {
    Some(match hint {
        Hint::ReadMostly => (1, false),
        Hint::PreferDevice => (3, false),
        Hint::PreferHost => (3, true),
        Hint::AccessedByDevice => (5, false),
        Hint::AccessedByHost => (5, true),
        Hint::NonAtomicMostly | Hint::Cached | Hint::NonCoherent => return None,
    })
}

impl<D: Dialect> Stream<D> {
    /// Enqueues a command in the stream, which belongs to the device with this number.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for commands that are not enqueued by this function; else the driver's error.
    #[inline]
    pub fn execute(&self, command: &Command<'_, Family<D>>, device: i32) -> Result<()> {
        match *command {
            Command::Barrier | Command::Timestamp => Ok(()), // only the point behind it matters
            Command::Copy { to, from, bytes } => self.copy(number(to), number(from), bytes),
            Command::Copy2d { to, from, width, height } => {
                self.copy_2d(rows(to), rows(from), (width, height))
            }
            Command::Copy3d(copy) => {
                self.copy_3d(&Copy3d::new(end(copy.to), end(copy.from), copy.region))
            }
            Command::Fill { to, pattern } => {
                self.fill(number(to.start()), pattern.bytes(), to.bytes())
            }
            Command::Fill2d { to, width, height, pattern } => {
                self.fill_2d(rows(to), pattern.bytes(), (width, height))
            }
            Command::ImageCopy(copy) => image::copy(self, copy),
            Command::Launch(launch) => self.launch(launch),
            Command::HostCall(call) if self.captured_by().is_some() => self.capture_call(call),
            Command::HostCall(call) => {
                let call = call.clone();
                self.host_fn(move || call.call())
            }
            Command::Prefetch { range, to } => {
                let to = if to == Location::Host { HOST } else { device };
                self.prefetch(number(range.start()), range.bytes(), to)
            }
            Command::Advise { range, advice } => {
                for (hint, on) in advice.hints() {
                    let Some((given, is_host)) = word(hint) else { continue };
                    let (word, about) =
                        (given + i32::from(!on), if is_host { HOST } else { device });
                    self.advise(number(range.start()), range.bytes(), word, about)?;
                }
                Ok(())
            }
            _ => Error::unsupported("this kind of command"),
        }
    }
}
