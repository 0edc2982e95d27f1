//! The parts of a command: its dependencies, its work, and the signal at its end. Queues decide when it runs.
use super::completion::{Completion, Failure};
use crate::bytes::{self, Planes};
use std::{any::Any, fmt, panic::AssertUnwindSafe, sync::Arc};
pub(crate) use ur_hal::Order;
use ur_hal::{Address, Command, Error, ErrorKind, HostCall, Profile, Result, Rows, Types};
use ur_ipc::arena::{Counter, PendingSignal, Progress};

/// Something that a command waits for, captured at submission.
#[derive(Clone, Debug)]
pub(crate) enum Dependency {
    /// A command of this process.
    Local(Arc<Completion>),
    /// The end of a command of this process, whether it succeeded or failed.
    End(Arc<Completion>),
    /// A pending signal of a shared event, of this or another process.
    Shared(PendingSignal),
}
impl Dependency {
    /// Checks that it is complete or will be.
    ///
    /// # Errors
    /// As for [`Completion::check_fork`].
    fn check_fork(&self) -> Result<()> {
        match self {
            Self::Local(completion) | Self::End(completion) => Ok(completion.check_fork()?),
            Self::Shared(_) => Ok(()), // the core refuses an inherited event
        }
    }
    /// The result; `None` while it is pending.
    pub(crate) fn outcome(&self) -> Option<Result<(), Failure>> {
        match self {
            Self::Local(completion) => completion.outcome(),
            Self::End(completion) => completion.outcome().map(|_| Ok(())),
            Self::Shared(debt) => ended(debt.progress()),
        }
    }
    /// Waits until it is complete, and returns the result.
    ///
    /// # Errors
    /// Returns why it failed.
    pub(crate) fn wait(&self) -> Result<(), Failure> {
        match self {
            Self::Local(completion) => completion.wait(),
            Self::End(completion) => completion.wait().or(Ok(())),
            Self::Shared(debt) => {
                ended(debt.wait(None)).expect("a wait without a deadline ends when its debt does")
            }
        }
    }
}
/// The progress of a pending signal as a result; `None` while it is pending.
pub(super) fn ended(progress: Progress) -> Option<Result<(), Failure>> {
    match progress {
        Progress::Pending => None,
        Progress::Complete => Some(Ok(())),
        Progress::Failed => Some(Err(Failure::debtor_gone())),
    }
}

/// The dependencies that were not complete when a command was submitted. A single one needs no allocation.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    first: Option<Dependency>,
    rest: Vec<Dependency>,
}
impl Dependencies {
    /// Adds a dependency, unless it is complete.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if it has failed; as for [`Completion::check_fork`].
    pub(crate) fn add(&mut self, one: Dependency) -> Result<()> {
        match one.outcome() {
            Some(Ok(())) => return Ok(()),
            Some(Err(why)) => return Err(failed(&why)),
            None => one.check_fork()?,
        }
        match self.first {
            None => self.first = Some(one),
            Some(_) => self.rest.push(one),
        }
        Ok(())
    }
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &Dependency> {
        self.first.iter().chain(&self.rest)
    }
    /// Waits for one after the other; calls `pending` before each wait for a dependency that is not complete.
    ///
    /// # Errors
    /// Returns why the first failed one failed.
    #[inline]
    pub(super) fn wait(&self, mut pending: impl FnMut()) -> Result<(), Failure> {
        let mut wait = |one: &Dependency| {
            one.outcome().unwrap_or_else(|| {
                pending();
                one.wait()
            })
        };
        match &self.first {
            None => Ok(()),
            Some(first) => wait(first).and_then(|()| self.rest.iter().try_for_each(wait)),
        }
    }
}

/// The error for waiting for a failed command, or depending on it.
pub(crate) fn failed(why: &Failure) -> Error {
    let error = Error::new(ErrorKind::DependencyFailed, why.to_string());
    if why.is_debtor_gone() { error.because(ur_ipc::ErrorKind::ExporterGone) } else { error }
}

/// The pattern of a fill; up to 16 bytes need no allocation.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// The number of bytes used, and the bytes.
    Short(u8, [u8; 16]),
    /// More than 16 bytes.
    Long(Box<[u8]>),
}
impl Pattern {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        // Patterns of the size of a number are stored as one number: a single 16-byte store can be forwarded
        // to the later load, several smaller ones cannot.
        let number = match *bytes {
            [a] => a.into(),
            [a, b] => u16::from_le_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]).into(),
            _ => {
                let mut short = [0; 16];
                match short.get_mut(..bytes.len()) {
                    Some(start) => start.copy_from_slice(bytes),
                    None => return Self::Long(bytes.into()),
                }
                u128::from_le_bytes(short)
            }
        };
        Self::Short(bytes.len() as u8, number.to_le_bytes())
    }
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(count, bytes) => &bytes[..usize::from(*count)],
            Self::Long(bytes) => bytes,
        }
    }
}

/// The work of a command.
pub enum Work {
    /// Nothing; only its place in the order matters.
    Barrier,
    /// Copies bytes; the ranges may overlap.
    Copy { to: Address, from: Address, bytes: usize },
    /// Fills with repetitions of a pattern; `bytes` is a multiple of its length.
    Fill { to: Address, pattern: Pattern, bytes: usize },
    /// Copies rows.
    Copy2d { to: Rows, from: Rows, width: usize, height: usize },
    /// Fills rows with a pattern that continues from each row to the next; the total size is a multiple of
    /// its length.
    Fill2d { to: Rows, pattern: Pattern, width: usize, height: usize },
    /// Other work, and what must be kept until it is done.
    Keeping(Box<Work>, Arc<dyn Any + Send + Sync>),
    /// Calls a function of the application.
    Host(HostCall),
    /// Any other work.
    Run(Box<dyn FnOnce() -> Result<()> + Send>),
}

/// Up to this many bytes are copied on the submitting thread, because waking another thread takes longer.
const QUICK_BYTES: usize = 16 << 10;

impl Work {
    /// Whether [`plain`](Self::plain) accepts the command.
    #[inline(always)] // a constant if the kind is known
    pub(crate) const fn is_plain<T: Types>(command: &Command<'_, T>) -> bool {
        use Command::*;
        matches!(
            command,
            Barrier
                | Signal(_)
                | Timestamp
                | Prefetch { .. }
                | Advise { .. }
                | Copy { .. }
                | Copy2d { .. }
                | Fill { .. }
                | Fill2d { .. }
                | HostCall(_)
        )
    }
    /// The work of a plain command, with copies of its data. Not a `Result`, because unwrapping one costs
    /// more than a barrier.
    ///
    /// # Panics
    /// If the command [is not plain](Self::is_plain).
    #[inline(always)] // if the kind is known, the code for others is eliminated
    pub(crate) fn plain<T: Types>(command: &Command<'_, T>) -> Self {
        match *command {
            // Memory does not migrate, so hints have no effect; timestamps are those of the completion.
            Command::Barrier
            | Command::Signal(_)
            | Command::Timestamp
            | Command::Prefetch { .. }
            | Command::Advise { .. } => Self::Barrier,
            Command::Copy { to, from, bytes } => Self::Copy { to, from, bytes },
            Command::Copy2d { to, from, width, height } => Self::Copy2d { to, from, width, height },
            Command::Fill { to, pattern } => {
                let pattern = Pattern::new(pattern.bytes());
                Self::Fill { to: to.start(), pattern, bytes: to.bytes() }
            }
            Command::Fill2d { to, width, height, pattern } => {
                let pattern = Pattern::new(pattern.bytes());
                Self::Fill2d { to, pattern, width, height }
            }
            Command::HostCall(call) => Self::Host(call.clone()),
            _ => unreachable!("asked before"),
        }
    }
    /// The work of a command that uses no objects.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for commands that are not made by this function.
    pub(crate) fn of<T: Types>(command: &Command<'_, T>) -> Result<Self> {
        match *command {
            Command::Copy3d(copy) => {
                Ok(Self::of_box(Planes::of(copy.to)?, Planes::of(copy.from)?, copy.region))
            }
            ref command if Self::is_plain(command) => Ok(Self::plain(command)),
            _ => Error::unsupported("this kind of command"),
        }
    }
    /// A copy of a box. With one plane it is a copy of rows, which needs no allocation.
    pub(crate) fn of_box(to: Planes, from: Planes, [width, height, depth]: [usize; 3]) -> Self {
        if depth == 1 {
            return Self::Copy2d { to: to.rows(), from: from.rows(), width, height };
        }
        Self::Run(Box::new(move || {
            bytes::copy_3d(to, from, width, height, depth);
            Ok(())
        }))
    }
    /// Whether doing it takes less time than passing it to another thread.
    pub(super) fn is_quick(&self) -> bool {
        match self {
            Self::Barrier => true,
            Self::Copy { bytes, .. } | Self::Fill { bytes, .. } => *bytes <= QUICK_BYTES,
            Self::Copy2d { width, height, .. } | Self::Fill2d { width, height, .. } => {
                width.checked_mul(*height).is_some_and(|bytes| bytes <= QUICK_BYTES)
            }
            Self::Keeping(work, _) => work.is_quick(),
            Self::Host(_) | Self::Run(_) => false,
        }
    }
    /// Whether it calls functions of the application, which may block.
    pub(super) fn may_sleep(&self) -> bool {
        match self {
            Self::Host(_) => true,
            Self::Keeping(work, _) => work.may_sleep(),
            _ => false,
        }
    }
    /// Does the work on this thread.
    #[inline]
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Barrier => Ok(()),
            work => work.run_slowly(),
        }
    }
    fn run_slowly(self) -> Result<(), Failure> {
        match self {
            Self::Barrier => {}
            Self::Copy { to, from, bytes } => bytes::copy(to, from, bytes),
            Self::Fill { to, pattern, bytes } => bytes::fill(to, pattern.bytes(), bytes),
            Self::Copy2d { to, from, width, height } => bytes::copy_2d(to, from, width, height),
            Self::Fill2d { to, pattern, width, height } => {
                bytes::fill_2d(to, pattern.bytes(), width, height);
            }
            Self::Keeping(work, _kept) => return work.run(),
            Self::Host(function) => function.call(),
            Self::Run(run) => return run_call(run),
        }
        Ok(())
    }
}
impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Barrier => "Barrier",
            Self::Copy { .. } => "Copy",
            Self::Fill { .. } => "Fill",
            Self::Copy2d { .. } => "Copy2d",
            Self::Fill2d { .. } => "Fill2d",
            Self::Keeping(..) => "Keeping",
            Self::Host(_) => "Host",
            Self::Run(_) => "Run",
        })
    }
}
/// Calls `call`. A panic fails the command but does not end the thread.
fn run_call(call: impl FnOnce() -> Result<()>) -> Result<(), Failure> {
    match std::panic::catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => done.map_err(|error| Failure::new(error.to_string())),
        Err(panic) => {
            // Dropping the payload could panic again, so it is leaked.
            std::mem::forget(panic);
            Err(Failure::new("a command panicked; its other effects are unknown"))
        }
    }
}

/// The value with which a shared event is signalled.
#[derive(Clone, Debug)]
pub(crate) struct OwedSignal {
    pub(crate) counter: Arc<Counter>,
    pub(crate) value: u64,
}

/// A command for submission to a queue.
#[derive(Debug)]
pub(crate) struct Submission {
    /// What it does.
    pub(crate) work: Work,
    /// The signal for other processes at its end. Signals are given in the order of the commands.
    pub(crate) owed: Option<OwedSignal>,
    /// Its order relative to the other commands of the queue.
    pub(crate) order: Order,
    /// The times to be recorded.
    pub(crate) profile: Profile,
    /// Whether a completion is wanted.
    pub(crate) want: bool,
}
#[cfg(test)]
impl Submission {
    /// A command without a completion, and without order relative to others.
    pub(crate) fn new(work: Work) -> Self {
        Self { work, owed: None, order: Order::Free, profile: Profile::Off, want: false }
    }
}
