//! The submission of a command: what it waits for, its place in the order, and the completion information that is
//! requested; and the status and times that a point reports.
use crate::{Command, Types};
use ur_ipc::arena::PendingSignal;

/// A command with everything that its submission involves. A driver gets all of it at once, so that it can use a single
/// native call where that takes waits and signals too.
#[derive(Debug)]
pub struct Submission<'a, D: Types> {
    /// The command.
    pub command: &'a Command<'a, D>,
    /// What must be complete before, in addition to what the order requires. If one of these fails, the command is not
    /// run and ends with [`ErrorKind::DependencyFailed`](crate::ErrorKind::DependencyFailed); if one is known to have
    /// failed already, the submission is refused.
    pub waits: &'a [Wait<'a, D>],
    /// Its place among the commands of an out-of-order stream.
    pub order: Order,
    /// The completion information that is requested.
    pub completion: Completion,
    /// The times that are requested; none without a point.
    pub profile: Profile,
    /// Whether the command uses memory that the caller may use again, or free, when the submission is refused.
    pub lends_memory: bool,
}
impl<'a, D: Types> Submission<'a, D> {
    /// A submission without explicit waits and without completion information.
    pub fn new(command: &'a Command<'a, D>) -> Self {
        Self {
            command,
            waits: &[],
            order: Order::Free,
            completion: Completion::None,
            profile: Profile::Off,
            lends_memory: false,
        }
    }
    /// Whether what a driver took of the command must be over when it refuses the rest: see [`wait_for_taken`].
    ///
    /// [`wait_for_taken`]: crate::wait_for_taken
    #[inline]
    pub fn must_be_over(&self) -> bool {
        self.lends_memory || self.completion.is_awaited()
    }
}

/// Something that a command waits for.
#[derive(Debug)]
pub enum Wait<'a, D: Types> {
    /// A command of this process, or the latest signal so far of a point that is signalled repeatedly.
    Point(&'a D::Point),
    /// The end of a command of this process, whether it succeeds or fails: an order without a dependency.
    End(&'a D::Point),
    /// A word in shared memory that reaches a value.
    Word(&'a PendingSignal),
}
impl<D: Types> Clone for Wait<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Types> Copy for Wait<'_, D> {}

/// The place of a command in an out-of-order stream. In an in-order stream all of these are equivalent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// After what it waits for, and after the last barrier.
    Free,
    /// After everything submitted before it.
    AfterAll,
    /// After everything submitted before it and before everything submitted later: a barrier.
    Both,
}
impl Order {
    /// The order of a command that only waits: after everything before it, unless it names what it waits for.
    pub const fn of_wait(names_any: bool) -> Self {
        if names_any { Self::Free } else { Self::AfterAll }
    }
}
/// The completion information that is requested for a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// None. [`Streams::finish`](crate::Streams::finish) reports its failure, once.
    None,
    /// A point, which tells when the command is final.
    Point,
    /// [`Streams::submit`](crate::Streams::submit) returns only when the command is final, and returns its error.
    Done {
        /// Whether a point is requested too.
        point: bool,
    },
}
impl Completion {
    /// Whether a point is requested.
    pub const fn wants_point(self) -> bool {
        matches!(self, Self::Point | Self::Done { point: true })
    }
    /// Whether `submit` returns only when the command is final.
    pub const fn is_awaited(self) -> bool {
        matches!(self, Self::Done { .. })
    }
}
/// Which times of a command are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// None.
    Off,
    /// When it began, and when it ended.
    Phases,
    /// When it ended.
    End,
}

/// The status of a command, which only increases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Status {
    /// The stream has taken it.
    Submitted,
    /// It is being executed, as far as the driver tells.
    Running,
    /// It is done, and its effects are visible.
    Complete,
    /// It failed, or it was not run because something that it depends on failed.
    Failed,
}
impl Status {
    /// Whether the status will not change any more.
    pub fn is_final(self) -> bool {
        self >= Self::Complete
    }
}
/// The times of a command, in nanoseconds of the device's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// When the stream took it; known from then on.
    pub submitted: u64,
    /// When its execution began and ended; known once it is complete. The two are equal if only the end is recorded.
    pub span: Option<(u64, u64)>,
}

/// The priority of a stream's commands relative to other streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priority {
    /// Lower than most.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Higher than most.
    High,
}
/// The description of a requested stream. Requests that a device does not support are treated as hints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamRequest {
    /// Whether commands may execute out of order.
    pub is_out_of_order: bool,
    /// Whether the times of its commands will be requested. Without it submissions request times rarely
    /// ([`Profile`]), for example of timestamps, and the stream has to record those all the same.
    pub is_profiled: bool,
    /// Their priority.
    pub priority: Priority,
    /// Whether commands may be collected until a thread waits for one or calls
    /// [`Streams::flush`](crate::Streams::flush).
    pub is_batched: bool,
    /// Whether it is the driver's default stream, or ordered with it.
    pub default_stream: Option<DefaultStream>,
    /// Which of the device's engines executes it; `None` for any, or several.
    pub engine: Option<u32>,
    /// The core's number for its context: streams of one context have the same number.
    pub context: usize,
    /// Whether each command that may fail has a point that somebody waits for: then no submission is refused for an earlier command's
    /// failure.
    pub is_told_by_points: bool,
}
/// How a stream relates to the driver's default stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultStream {
    /// It is the default stream.
    Is,
    /// It is ordered with the default stream.
    InStep,
}
