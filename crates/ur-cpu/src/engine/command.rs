//! What a command is made of: what must come first, what it does, what it signals. When it runs
//! is its queue's affair.
use super::completion::{Completion, Failure};
use crate::native::{self, Planes};
use std::{any::Any, fmt, panic::AssertUnwindSafe, sync::Arc};
use ur_adapter::error::{Error, ErrorCode, Reason, Result};
pub(crate) use ur_hal::Order;
use ur_hal::{Address, Command, HostCall, Profile, Rows, Types};
use ur_ipc::arena::{Counter, PendingSignal, Progress};

/// Something a command waits for, captured when the command was submitted.
#[derive(Clone, Debug)]
pub(crate) enum Dependency {
    /// A command of this process.
    Local(Arc<Completion>),
    /// A signal that whoever signalled a shared event owes, here or in another process.
    Shared(PendingSignal),
}
impl Dependency {
    /// How it ended; `None` while it has not.
    pub(crate) fn outcome(&self) -> Option<Result<(), Failure>> {
        match self {
            Self::Local(completion) => completion.outcome(),
            Self::Shared(debt) => ended(debt.progress()),
        }
    }
    /// Sleeps until it has ended; how it did.
    ///
    /// # Errors
    /// Why it failed.
    pub(crate) fn wait(&self) -> Result<(), Failure> {
        match self {
            Self::Local(completion) => completion.wait(),
            Self::Shared(debt) => {
                ended(debt.wait(None)).expect("a wait without a deadline ends when its debt does")
            }
        }
    }
}
/// A debt's progress as an outcome; `None` while it is pending.
pub(super) fn ended(progress: Progress) -> Option<Result<(), Failure>> {
    match progress {
        Progress::Pending => None,
        Progress::Complete => Some(Ok(())),
        Progress::Failed => Some(Err(Failure::debtor_gone())),
    }
}

/// The dependencies that had not ended when a command was submitted. One takes no allocation.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    first: Option<Dependency>,
    rest: Vec<Dependency>,
}
impl Dependencies {
    /// One more, unless it is complete.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if it has failed.
    pub(crate) fn add(&mut self, one: Dependency) -> Result<()> {
        match one.outcome() {
            Some(Ok(())) => {}
            Some(Err(why)) => return Err(failed(&why)),
            None if self.first.is_none() => self.first = Some(one),
            None => self.rest.push(one),
        }
        Ok(())
    }
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &Dependency> {
        self.first.iter().chain(&self.rest)
    }
    /// Waits for one after the other; `pending` is called before each that is.
    ///
    /// # Errors
    /// Why the first that failed did.
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

/// What C is told of a failed command that somebody waits for or depends on.
pub(crate) fn failed(why: &Failure) -> Error {
    let error = Error::new(ErrorCode::InEventListExecStatus, why.to_string());
    if why.is_debtor_gone() { error.because(Reason::ExporterGone) } else { error }
}

/// The bytes of a fill; up to 16 take no allocation.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// So many of the array.
    Short(u8, [u8; 16]),
    /// More than 16.
    Long(Box<[u8]>),
}
impl Pattern {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        // Those that have a length of a number are stored as one: a store of 16 bytes is read back sooner than several.
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

/// What a command does.
pub enum Work {
    /// Nothing: its place in the order is its use.
    Barrier,
    /// Copies bytes; the ranges may overlap.
    Copy { to: Address, from: Address, bytes: usize },
    /// Repeats a pattern; `bytes` is a multiple of its length.
    Fill { to: Address, pattern: Pattern, bytes: usize },
    /// Copies rows.
    Copy2d { to: Rows, from: Rows, width: usize, height: usize },
    /// Fills rows with a pattern that runs on from each to the next; all their bytes are a multiple of it.
    Fill2d { to: Rows, pattern: Pattern, width: usize, height: usize },
    /// Another, and what stays until it is done.
    Keeping(Box<Work>, Arc<dyn Any + Send + Sync>),
    /// Calls a function of the application's, which can be done again and again too.
    Host(HostCall),
    /// Anything else that can be done again and again, at the same time too.
    Run(Arc<dyn Fn() -> Result<()> + Send + Sync>),
    /// Anything else.
    Call(Box<dyn FnOnce() -> Result<()> + Send>),
}

/// So few bytes are copied by the calling thread sooner than another one is woken.
const QUICK_BYTES: usize = 16 << 10;

impl Work {
    /// Whether a command is one that [`plain`](Self::plain) takes.
    #[inline(always)] // where the kind is known, so is this
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
    /// What a plain command does, with a copy of what it points at. Not a `Result`, since taking it out of one costs more
    /// than a barrier does.
    ///
    /// # Panics
    /// For a command that [is not plain](Self::is_plain).
    #[inline(always)] // where the kind is known, the others are gone
    pub(crate) fn plain<T: Types>(command: &Command<'_, T>) -> Self {
        match *command {
            // Memory is where it is used, and the times of any command can be asked for.
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
            Command::HostCall(call) => Self::Host(call),
            _ => unreachable!("asked before"),
        }
    }
    /// What a command does that uses no objects.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for kinds of commands that come here by other ways.
    pub(crate) fn of<T: Types>(command: &Command<'_, T>) -> Result<Self> {
        match *command {
            Command::Copy3d(copy) => {
                Ok(Self::of_box(Planes::of(copy.to)?, Planes::of(copy.from)?, copy.region))
            }
            ref command if Self::is_plain(command) => Ok(Self::plain(command)),
            _ => Error::unsupported("this kind of command"),
        }
    }
    /// A copy of boxes; flat ones are copies of rows, which take no allocation.
    pub(crate) fn of_box(to: Planes, from: Planes, [width, height, depth]: [usize; 3]) -> Self {
        if depth == 1 {
            return Self::Copy2d { to: to.rows(), from: from.rows(), width, height };
        }
        Self::Run(Arc::new(move || {
            native::copy_3d(to, from, width, height, depth);
            Ok(())
        }))
    }
    /// The same once more; `None` for what can be done once only.
    pub(crate) fn again(&self) -> Option<Self> {
        Some(match self {
            Self::Barrier => Self::Barrier,
            Self::Copy { to, from, bytes } => Self::Copy { to: *to, from: *from, bytes: *bytes },
            Self::Fill { to, pattern, bytes } => {
                Self::Fill { to: *to, pattern: pattern.clone(), bytes: *bytes }
            }
            Self::Copy2d { to, from, width, height } => {
                Self::Copy2d { to: *to, from: *from, width: *width, height: *height }
            }
            Self::Fill2d { to, pattern, width, height } => {
                Self::Fill2d { to: *to, pattern: pattern.clone(), width: *width, height: *height }
            }
            Self::Keeping(work, kept) => Self::Keeping(Box::new(work.again()?), Arc::clone(kept)),
            Self::Host(function) => Self::Host(*function),
            Self::Run(run) => Self::Run(Arc::clone(run)),
            Self::Call(_) => return None,
        })
    }
    /// Whether handing it to another thread costs more than doing it.
    pub(super) fn is_quick(&self) -> bool {
        match self {
            Self::Barrier => true,
            Self::Copy { bytes, .. } | Self::Fill { bytes, .. } => *bytes <= QUICK_BYTES,
            Self::Copy2d { width, height, .. } | Self::Fill2d { width, height, .. } => {
                width.checked_mul(*height).is_some_and(|bytes| bytes <= QUICK_BYTES)
            }
            Self::Keeping(work, _) => work.is_quick(),
            Self::Host(_) | Self::Run(_) | Self::Call(_) => false,
        }
    }
    /// Whether it calls functions of the application's, which may wait for others.
    pub(super) fn may_sleep(&self) -> bool {
        match self {
            Self::Host(_) | Self::Call(_) => true,
            Self::Keeping(work, _) => work.may_sleep(),
            _ => false,
        }
    }
    /// Does it, on this thread.
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
            Self::Copy { to, from, bytes } => native::copy(to, from, bytes),
            Self::Fill { to, pattern, bytes } => native::fill(to, pattern.bytes(), bytes),
            Self::Copy2d { to, from, width, height } => native::copy_2d(to, from, width, height),
            Self::Fill2d { to, pattern, width, height } => {
                native::fill_2d(to, pattern.bytes(), width, height);
            }
            Self::Keeping(work, _kept) => return work.run(),
            Self::Host(function) => function.call(),
            Self::Run(run) => return run_call(|| run()),
            Self::Call(call) => return run_call(call),
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
            Self::Call(_) => "Call",
        })
    }
}
/// A panic ends the command, not the thread that all later commands need.
fn run_call(call: impl FnOnce() -> Result<()>) -> Result<(), Failure> {
    match std::panic::catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => done.map_err(|error| Failure::new(error.to_string())),
        Err(panic) => {
            // Dropping what it carries may panic in turn; a leak is the lesser harm.
            std::mem::forget(panic);
            Err(Failure::new("a command panicked; its other effects are unknown"))
        }
    }
}

/// A value owed to a shared event.
#[derive(Clone, Debug)]
pub(crate) struct OwedSignal {
    pub(crate) counter: Arc<Counter>,
    pub(crate) value: u64,
}

/// One command, as it is handed to a queue.
#[derive(Debug)]
pub(crate) struct Submission {
    /// What it does.
    pub(crate) work: Work,
    /// What other processes wait for. It is paid in the order of the commands.
    pub(crate) owed: Option<OwedSignal>,
    /// Where it stands among its queue's commands.
    pub(crate) order: Order,
    /// The times that will be asked for.
    pub(crate) profile: Profile,
    /// Whether somebody will ask how far it has come.
    pub(crate) want: bool,
}
impl Submission {
    /// A command without an event, free among others.
    pub(crate) fn new(work: Work) -> Self {
        Self { work, owed: None, order: Order::Free, profile: Profile::Off, want: false }
    }
}
