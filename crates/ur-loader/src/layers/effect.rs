//! The types of the table that describes what each call does to its objects and its memory. `lifetime` and
//! `bounds` use it.
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
    /// What it gives to or takes from the caller that is identified by an address and is no object.
    pub holdings: &'static [Holding],
}
/// What an entry does to the objects of one parameter.
pub struct Effect {
    /// The index of the parameter.
    pub param: usize,
    /// The kind of object.
    pub kind: Kind,
    /// What happens to it.
    pub act: Act,
}
/// What happens to an object. A number is the index of the parameter that holds the length of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The object must exist.
    Use,
    /// All objects of the list must exist.
    UseList(usize),
    /// The object must exist and gains a reference.
    Retain,
    /// The object must exist and loses a reference.
    Release,
    /// The caller gets a reference to an object.
    Make,
    /// The caller gets a reference to each object of a list.
    MakeList(usize),
    /// An existing object is passed in and signalled, or a new one is created.
    MakeOrSignal,
    /// The caller gets the handle of an object without a reference.
    Note,
    /// The caller gets the handles of a list without references.
    NoteList(usize),
    /// The caller gets the handles in the answer to a query without references: the parameters with the
    /// query's name and with the size of the answer.
    Answer(usize, usize),
}
/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the handle of that name")]
pub enum Kind {
    Adapter,
    /// A handle in the answer to a query, which may be of any kind.
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
    /// Whether the runtime keeps such an object alive regardless of the program's references.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Device | Self::Platform)
    }
    /// Returns the indefinite article for its name.
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

/// A region of memory that a call touches.
pub enum Span {
    /// USM memory from the address in the parameter.
    Usm {
        /// The parameter with the address.
        param: usize,
        /// The length of the region.
        size: Size,
    },
    /// A region of a buffer.
    Buffer {
        /// The buffer's parameter.
        param: usize,
        /// The parameter with the offset in the buffer.
        from: usize,
        /// The length of the region.
        size: Size,
    },
    /// Rows of a buffer, with gaps between them.
    Rect {
        /// The buffer's parameter.
        param: usize,
        /// The parameters with the origin and the extent of the region.
        block: (usize, usize),
        /// The parameters with the row pitch and the slice pitch; 0 means without gaps.
        pitches: (usize, usize),
    },
    /// A region of an image.
    Image {
        /// The image's parameter.
        param: usize,
        /// The parameters with the origin and the extent of the region.
        block: (usize, usize),
    },
}
/// A number of bytes, computed of parameters given by index.
pub enum Size {
    /// The value of the parameter.
    Bytes(usize),
    /// The product of the two parameters.
    Product(usize, usize),
    /// The number that the parameter points at.
    At(usize),
    /// The number that the first parameter points at, times the value of the second.
    Pitched(usize, usize),
}

/// A resource that is no object and is identified by its address, which the caller gets or gives back.
pub enum Holding {
    /// The caller gets one.
    Gives {
        /// The parameter that points to where its address is written.
        param: usize,
        /// The kind of call that gives it back.
        class: Class,
        /// Its name in reports.
        what: &'static str,
        /// Its length, where the arguments determine it.
        size: Option<Size>,
        /// The parameter with the pool that it is allocated from.
        pool: Option<usize>,
    },
    /// The caller gives one back.
    Takes {
        /// The parameter with its address.
        param: usize,
        /// Its class.
        class: Class,
    },
}
/// A class of resources that one kind of call gives back. Resources of different classes may have the same
/// address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Allocations, which are freed.
    Usm,
    /// Reserved address ranges, which are freed.
    Range,
    /// IPC handles, which are put back.
    Ticket,
    /// Memory opened from IPC handles, which is closed as many times as it was opened.
    Opened,
}

/// A row holds: the entry's name; for each parameter with objects its index, their kind and what happens to
/// them; the memory that the call touches; the resources identified by an address that it gives or takes.
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
