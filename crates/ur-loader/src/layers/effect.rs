//! The words that the rows of the entries are written in: what a call does to the objects and the
//! memory that it is given. What follows of it is `lifetime`'s and `bounds`'.
use crate::print::kind::Call;
use std::fmt::{self, Display};

/// What is known of an entry.
pub struct Row {
    /// Its name and its parameters.
    pub call: &'static Call,
    /// What it does to objects.
    pub effects: &'static [Effect],
    /// The memory that it touches.
    pub spans: &'static [Span],
    /// What it gives or takes that is known by an address.
    pub holdings: &'static [Holding],
}
/// What an entry does to the objects of a parameter.
pub struct Effect {
    /// Which parameter.
    pub param: usize,
    /// What kind of object it is.
    pub kind: Kind,
    /// What is done.
    pub act: Act,
}
/// What is done to an object. A number is the parameter that says how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It has to be there.
    Use,
    /// Those of a list have to be there.
    UseList(usize),
    /// It has to be there, and gets one reference more.
    Retain,
    /// It has to be there, and loses a reference.
    Release,
    /// The caller gets a reference to one.
    Make,
    /// The caller gets a reference to each of a list.
    MakeList(usize),
    /// One goes in and is signalled, or one is made.
    MakeOrSignal,
    /// The caller learns of one, without a reference.
    Note,
    /// The caller learns of those in a list.
    NoteList(usize),
    /// The caller learns of what the answer to a query names: the parameters that say the question
    /// and the size of the answer.
    Answer(usize, usize),
}
/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the handle of that name")]
pub enum Kind {
    Adapter,
    /// The answer to a query: it may be of any kind.
    Any,
    CommandBuffer,
    CommandBufferCommand,
    Context,
    Device,
    Event,
    ExecutableGraph,
    ExternalMem,
    ExternalSemaphore,
    Graph,
    Kernel,
    Mem,
    PhysicalMem,
    Platform,
    Program,
    Queue,
    Sampler,
    UsmPool,
}
impl Kind {
    /// Whether the runtime holds one whether or not the program does.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Device | Self::Platform)
    }
    /// The article before its name.
    pub fn article(self) -> &'static str {
        match self.to_string().starts_with(['A', 'E']) {
            true => "an",
            false => "a",
        }
    }
}
impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A part of memory that a call touches.
pub enum Span {
    /// From where the parameter points.
    Usm {
        /// The parameter.
        param: usize,
        /// How long it is.
        size: Size,
    },
    /// Of a buffer.
    Buffer {
        /// The buffer's parameter.
        param: usize,
        /// The parameter that says where in it.
        from: usize,
        /// How long it is.
        size: Size,
    },
    /// Of a buffer, by rows that are further apart than they are long.
    Rect {
        /// The buffer's parameter.
        param: usize,
        /// The parameters that say where the first row begins, and how much there is.
        block: (usize, usize),
        /// Those that say how far rows and slices are apart; 0 says that nothing is between.
        pitches: (usize, usize),
    },
    /// Of an image.
    Image {
        /// The image's parameter.
        param: usize,
        /// The parameters that say where it begins, and how much there is.
        block: (usize, usize),
    },
}
/// How many bytes, by the parameters that say it.
pub enum Size {
    /// So many.
    Bytes(usize),
    /// The two multiplied.
    Product(usize, usize),
    /// As many as the number that the parameter points at.
    At(usize),
    /// So many for each: the parameter that points at how many, and that which says for how many.
    Pitched(usize, usize),
}

/// What the program gets or gives back that is no object, but is known by its address.
pub enum Holding {
    /// The caller gets one.
    Gives {
        /// The parameter that points at where its address goes.
        param: usize,
        /// By what it is given back.
        class: Class,
        /// What it is.
        what: &'static str,
        /// How long it is, where the arguments say it.
        size: Option<Size>,
        /// The parameter with the pool that it is from.
        pool: Option<usize>,
    },
    /// The caller gives one back.
    Takes {
        /// The parameter that is its address.
        param: usize,
        /// Among which it is.
        class: Class,
    },
}
/// Things that one kind of call gives back. Those of two classes may have one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Allocations, which are freed.
    Usm,
    /// Reserved ranges of addresses, which are freed.
    Range,
    /// IPC handles, which are put back.
    Ticket,
    /// Memory that IPC handles have opened, which is closed as often as it was opened.
    Opened,
}

/// Rows: the entry's name; for each parameter with objects which it is, what they are and what is done to them; the
/// memory that the call touches; what it gives or takes that is known by an address.
macro_rules! rows {
    ($($name:ident ($($param:literal $kind:ident: $act:expr),*)
        $(touches [$($span:expr),*])? $(and [$($holding:expr),*])?;)*) => { $(
        pub static $name: Row = Row {
            call: &calls::$name,
            effects: &[$(Effect { param: $param, kind: Kind::$kind, act: $act }),*],
            spans: &[$($($span),*)?],
            holdings: &[$($($holding),*)?],
        };
    )* };
}
pub(super) use rows;
