//! How a command is submitted: what it waits for, where it stands, what is wanted to know of it; and what is known of it
//! afterwards.
use crate::{Command, Types};
use ur_ipc::arena::Debt;

/// A command on its way into a stream. A driver gets all of it at once, so that it can do with one native call what takes
/// waits and signals along.
#[derive(Debug)]
pub struct Submission<'a, D: Types> {
    /// What is done.
    pub command: &'a Command<'a, D>,
    /// What has to be over before, besides what the order says. If one of them fails the command is not run, and
    /// ends in [`ErrorKind::DependencyFailed`](crate::ErrorKind::DependencyFailed); one that is known to have failed already
    /// is refused.
    pub waits: &'a [Wait<'a, D>],
    /// Where it stands among the commands of an out-of-order stream.
    pub order: Order,
    /// What is wanted to know of it.
    pub completion: Completion,
    /// Which of its times are wanted; nothing without a point.
    pub profile: Profile,
}
impl<'a, D: Types> Submission<'a, D> {
    /// One that waits for nothing by name, and of which nothing is wanted to know.
    pub fn new(command: &'a Command<'a, D>) -> Self {
        Self {
            command,
            waits: &[],
            order: Order::Free,
            completion: Completion::None,
            profile: Profile::Off,
        }
    }
}

/// Something that a command waits for.
#[derive(Debug)]
pub enum Wait<'a, D: Types> {
    /// A command of this process, or the latest signal so far of a point that is signalled again and again.
    Point(&'a D::Point),
    /// A word that processes share has reached a value. Needs
    /// [`Capability::SharedWords`](crate::Capability::SharedWords).
    Word(&'a Debt),
}
impl<D: Types> Clone for Wait<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Types> Copy for Wait<'_, D> {}

/// Where a command stands in an out-of-order stream. In an in-order one all of them mean the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Behind what it waits for, and behind the last barrier.
    Free,
    /// Behind everything before it.
    AfterAll,
    /// The same, and before everything after it: a barrier.
    Both,
}
impl Order {
    /// That of a command which does nothing but wait: behind everything, unless it names what it waits for.
    pub const fn of_wait(names_any: bool) -> Self {
        if names_any { Self::Free } else { Self::AfterAll }
    }
}
/// What is wanted to know of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Nothing. That it failed is told by [`Streams::finish`](crate::Streams::finish), once.
    None,
    /// When it is over: a point is made.
    Point,
    /// That it is over when [`Streams::submit`](crate::Streams::submit) returns, which returns its failure.
    Done {
        /// Whether its point is wanted, too.
        point: bool,
    },
}
impl Completion {
    /// Whether a point is wanted.
    pub const fn wants_point(self) -> bool {
        matches!(self, Self::Point | Self::Done { point: true })
    }
    /// Whether `submit` returns when the command is over.
    pub const fn is_awaited(self) -> bool {
        matches!(self, Self::Done { .. })
    }
}
/// Which times of a command are noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// None.
    Off,
    /// When it began, and when it ended.
    Phases,
    /// When it ended.
    End,
}

/// How far a command has come. Only ever grows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Status {
    /// The stream has it.
    Submitted,
    /// It is being executed, as far as the driver tells.
    Running,
    /// It is done, and what it did can be seen.
    Complete,
    /// It failed, or something that it depends on did and it was not run.
    Failed,
}
impl Status {
    /// Whether nothing more will happen.
    pub fn is_final(self) -> bool {
        self >= Self::Complete
    }
}
/// When what happened, in nanoseconds of the device's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// When the stream got it; known from then on.
    pub submitted: u64,
    /// When its execution began and ended, once it is complete. The two are equal where only the end is noted.
    pub span: Option<(u64, u64)>,
}

/// How urgent the commands of a stream are beside those of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priority {
    /// Less than most.
    Low,
    /// As most.
    #[default]
    Normal,
    /// More than most.
    High,
}
/// A stream as it is asked for. What a device does not have is a hint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamRequest {
    /// Whether commands may overtake each other.
    pub is_out_of_order: bool,
    /// How urgent they are.
    pub priority: Priority,
    /// Whether commands may be collected until a thread waits for one or calls [`Streams::flush`](crate::Streams::flush).
    pub is_batched: bool,
    /// Whether it is the driver's default stream, or kept in order with it.
    pub default_stream: Option<DefaultStream>,
    /// Which of the device's engines runs it; `None`: any, or several.
    pub engine: Option<u32>,
    /// The number by which the core knows its context: streams of one context have the same.
    pub context: usize,
}
/// What a stream has to do with the driver's default stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultStream {
    /// It is that stream.
    Is,
    /// It is kept in order with it.
    InStep,
}
