//! Commands: what a stream or a graph is told to do. A command is a plain value of one cache line: everything in it was
//! checked before, buffers are addresses, and nothing is allocated to make one.
use crate::{
    Address, Advice, BoxSpan, Error, KeptPattern, Launch, MemoryRequest, Pattern, Range, Result,
    Rows, Types,
};
use std::{cell::Cell, fmt, sync::Arc};
use ur_ipc::arena::Counter;

/// One thing to do. What it waits for and what is wanted to know of it is a [`Submission`](crate::Submission)'s.
#[derive(Debug)]
pub enum Command<'a, D: Types> {
    /// Nothing: its place in the order is its use.
    Barrier,
    /// Copies bytes between any two addresses that the device or the host reaches; the two may overlap.
    Copy {
        /// The first byte that is written.
        to: Address,
        /// The first byte that is read.
        from: Address,
        /// How many; not 0.
        bytes: usize,
    },
    /// Copies rows of `width` bytes.
    Copy2d {
        /// Where they are written.
        to: Rows,
        /// Where they are read.
        from: Rows,
        /// Bytes of a row; at most the pitches.
        width: usize,
        /// How many rows.
        height: usize,
    },
    /// Copies a box of bytes.
    Copy3d(&'a BoxCopy),
    /// Writes a pattern again and again; the range is a multiple of it.
    Fill {
        /// Where.
        to: Range,
        /// What.
        pattern: Pattern<'a>,
    },
    /// Writes a pattern into rows of `width` bytes. It runs on from each row to the next; all rows together are a
    /// multiple of it.
    Fill2d {
        /// Where.
        to: Rows,
        /// Bytes of a row; at most the pitch.
        width: usize,
        /// How many rows.
        height: usize,
        /// What.
        pattern: Pattern<'a>,
    },
    /// Copies pixels as they are.
    ImageCopy(&'a ImageCopy<'a, D>),
    /// Runs a function.
    Launch(&'a Launch<'a, D>),
    /// Calls a function of the host's, which may sleep, but not wait for what comes later in the stream.
    HostCall(HostCall),
    /// Signals an event that is signalled again and again.
    Signal(Signal<'a, D>),
    /// Notes the time when all before it is done.
    Timestamp,
    /// Moves managed memory; a hint.
    Prefetch {
        /// Which.
        range: Range,
        /// Where to.
        to: Location,
    },
    /// Tells how managed memory is going to be used; hints.
    Advise {
        /// Which.
        range: Range,
        /// How.
        advice: Advice,
    },
    /// Allocates memory that may be used behind this command. Its address is known at once.
    AllocAsync {
        /// What is asked for.
        request: MemoryRequest,
        /// Takes what was made.
        made: &'a Handover<D::Allocation>,
    },
    /// Gives back such memory when the stream comes there.
    FreeAsync(&'a Handover<D::Allocation>),
    /// Submits everything that was recorded.
    Graph(&'a D::Graph),
    /// Lets the application put commands of its own into the native stream.
    Native(NativeCall<'a>),
}
impl<D: Types> Clone for Command<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Types> Copy for Command<'_, D> {}
impl<D: Types> Command<'_, D> {
    /// The most bytes that it reads or writes by itself, where that is known: a driver may do little work at once.
    pub fn bytes(&self) -> Option<usize> {
        match self {
            Self::Barrier | Self::Signal(_) | Self::Timestamp => Some(0),
            Self::Copy { bytes, .. } => Some(*bytes),
            Self::Fill { to, .. } => Some(to.bytes()),
            Self::Copy2d { width, height, .. } | Self::Fill2d { width, height, .. } => {
                width.checked_mul(*height)
            }
            Self::Copy3d(copy) => {
                copy.region.iter().try_fold(1, |all: usize, n| all.checked_mul(*n))
            }
            _ => None,
        }
    }
    /// Whether a graph can have it: what is done once, or at once, cannot be recorded.
    pub fn is_recordable(&self) -> bool {
        !matches!(self, Self::AllocAsync { .. } | Self::FreeAsync(_) | Self::Native(_))
    }
}

/// A command that is kept, to be executed again and again, with a copy of what it points at.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are called as the command's are")]
pub enum Recorded {
    /// [`Command::Barrier`].
    Barrier,
    /// [`Command::Copy`].
    Copy { to: Address, from: Address, bytes: usize },
    /// [`Command::Copy2d`].
    Copy2d { to: Rows, from: Rows, width: usize, height: usize },
    /// [`Command::Copy3d`].
    Copy3d(Box<BoxCopy>),
    /// [`Command::Fill`].
    Fill { to: Range, pattern: KeptPattern },
    /// [`Command::Fill2d`].
    Fill2d { to: Rows, width: usize, height: usize, pattern: KeptPattern },
    /// [`Command::Prefetch`].
    Prefetch { range: Range, to: Location },
    /// [`Command::Advise`].
    Advise { range: Range, advice: Advice },
}
impl Recorded {
    /// Keeps a command.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for one whose objects the driver keeps, or that is done
    /// once.
    pub fn of<D: Types>(command: &Command<'_, D>) -> Result<Self> {
        Ok(match *command {
            Command::Barrier => Self::Barrier,
            Command::Copy { to, from, bytes } => Self::Copy { to, from, bytes },
            Command::Copy2d { to, from, width, height } => Self::Copy2d { to, from, width, height },
            Command::Copy3d(copy) => Self::Copy3d(Box::new(*copy)),
            Command::Fill { to, pattern } => Self::Fill { to, pattern: pattern.into() },
            Command::Fill2d { to, width, height, pattern } => {
                Self::Fill2d { to, width, height, pattern: pattern.into() }
            }
            Command::Prefetch { range, to } => Self::Prefetch { range, to },
            Command::Advise { range, advice } => Self::Advise { range, advice },
            _ => return Error::unsupported("recording of this kind of command"),
        })
    }
    /// The command.
    pub fn command<D: Types>(&self) -> Command<'_, D> {
        match *self {
            Self::Barrier => Command::Barrier,
            Self::Copy { to, from, bytes } => Command::Copy { to, from, bytes },
            Self::Copy2d { to, from, width, height } => Command::Copy2d { to, from, width, height },
            Self::Copy3d(ref copy) => Command::Copy3d(copy),
            Self::Fill { to, ref pattern } => Command::Fill { to, pattern: pattern.pattern() },
            Self::Fill2d { to, width, height, ref pattern } => {
                Command::Fill2d { to, width, height, pattern: pattern.pattern() }
            }
            Self::Prefetch { range, to } => Command::Prefetch { range, to },
            Self::Advise { range, advice } => Command::Advise { range, advice },
        }
    }
}

/// A place where a command leaves a value, or takes one: a submission is only lent to the driver.
pub struct Handover<T>(Cell<Option<T>>);
impl<T> Handover<T> {
    /// One with a value to take.
    pub const fn of(value: T) -> Self {
        Self(Cell::new(Some(value)))
    }
    /// Leaves a value.
    pub fn put(&self, value: T) {
        self.0.set(Some(value));
    }
    /// Takes the value, if there is one.
    pub fn take(&self) -> Option<T> {
        self.0.take()
    }
}
impl<T> Default for Handover<T> {
    fn default() -> Self {
        Self(Cell::new(None))
    }
}
impl<T> fmt::Debug for Handover<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handover")
    }
}

/// A box of bytes to copy.
#[derive(Clone, Copy, Debug)]
pub struct BoxCopy {
    /// The memory that is written, and where the box is in it.
    pub to: (Address, BoxSpan),
    /// The memory that is read, and where the box is in it.
    pub from: (Address, BoxSpan),
    /// Width in bytes, rows, slices; none is 0.
    pub region: [usize; 3],
}
/// One end of a copy of pixels.
#[derive(Debug)]
pub enum ImageEnd<'a, D: Types> {
    /// Pixels of an image, from the one with these coordinates on; layers of an array are its last coordinate.
    Image(&'a Arc<D::Image>, [usize; 3]),
    /// Memory: its first byte, bytes from row to row, and from slice or layer to the next. Of an array of rows each row is a
    /// layer.
    Memory(Address, [usize; 2]),
}
impl<D: Types> Clone for ImageEnd<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Types> Copy for ImageEnd<'_, D> {}
/// Pixels to copy; at least one end is an image.
#[derive(Debug)]
pub struct ImageCopy<'a, D: Types> {
    /// Where they are written.
    pub to: ImageEnd<'a, D>,
    /// Where they are read.
    pub from: ImageEnd<'a, D>,
    /// Pixels along each side; none is 0.
    pub region: [usize; 3],
}

/// An event that a stream signals, which is neither made nor used up by that.
#[derive(Debug)]
pub enum Signal<'a, D: Types> {
    /// A word that processes share reaches a value, which was reserved for it. The values of one counter are signalled
    /// in the order in which they were reserved.
    Word(&'a Arc<Counter>, u64),
    /// A point of the driver's own, made by [`Streams::reusable`](crate::Streams::reusable) or imported: its latest signal is this one.
    Point(&'a D::Point),
}
impl<D: Types> Clone for Signal<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Types> Copy for Signal<'_, D> {}

/// Where managed memory is moved to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// The host.
    Host,
    /// The device of the stream.
    Device,
}
/// A function of the host's with two words of its own, which can be called again and again and from any thread. It is
/// opaque: who has one can call it and nothing else, so that the words may be what only the function understands.
#[derive(Clone, Copy)]
pub struct HostCall {
    function: fn([usize; 2]),
    words: [usize; 2],
}
impl HostCall {
    /// `function` is called with `words`.
    pub const fn new(function: fn([usize; 2]), words: [usize; 2]) -> Self {
        Self { function, words }
    }
    /// Calls it on this thread.
    pub fn call(self) {
        (self.function)(self.words);
    }
}
impl fmt::Debug for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostCall")
    }
}

/// A function that is called while its command is submitted, on the submitting thread, when the stream is behind all
/// that the command waits for: what it puts into the native stream comes there.
#[derive(Clone, Copy)]
pub struct NativeCall<'a>(&'a dyn Fn() -> Result<()>);
impl<'a> NativeCall<'a> {
    /// Of this function.
    pub fn new(function: &'a dyn Fn() -> Result<()>) -> Self {
        Self(function)
    }
    /// # Errors
    /// The function's own.
    pub fn call(self) -> Result<()> {
        (self.0)()
    }
}
impl fmt::Debug for NativeCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NativeCall")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Nothing;

    const _: () = assert!(size_of::<Command<'_, Nothing>>() <= 64, "one cache line");
    const _: () = assert!(size_of::<crate::Submission<'_, Nothing>>() <= 80);

    type Any = Command<'static, Nothing>;

    fn at(address: usize) -> Address {
        Address::new(address).unwrap()
    }

    #[test]
    fn a_command_tells_how_much_it_moves() {
        let rows = Rows { start: at(64), pitch: 16 };
        let copy = Any::Copy2d { to: rows, from: rows, width: 10, height: 3 };
        assert_eq!(copy.bytes(), Some(30));
        let to = Range::new(at(64), 12).unwrap();
        let pattern = Pattern::new(&[1, 2, 3, 4], 12).unwrap();
        assert_eq!(Any::Fill { to, pattern }.bytes(), Some(12));
        assert_eq!(Any::Barrier.bytes(), Some(0));
        let endless = Any::Copy2d { to: rows, from: rows, width: 9, height: usize::MAX };
        assert_eq!(endless.bytes(), None);
        let call = Any::HostCall(HostCall::new(|_| (), [0; 2]));
        assert_eq!(call.bytes(), None, "what a function does is not known");
    }
    #[test]
    fn what_is_done_once_is_not_recorded() {
        fn recordable(command: Command<'_, Nothing>) -> bool {
            command.is_recordable()
        }
        let none = Handover::default();
        assert!(!recordable(Command::FreeAsync(&none)));
        let call = || Ok(());
        assert!(!recordable(Command::Native(NativeCall::new(&call))));
        assert!(Any::Barrier.is_recordable());
    }
    #[test]
    fn a_host_call_is_made_as_often_as_it_is_asked_for() {
        use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        static SUM: AtomicUsize = AtomicUsize::new(0);
        let call = HostCall::new(|[one, other]| _ = SUM.fetch_add(one * other, Relaxed), [3, 5]);
        call.call();
        call.call();
        assert_eq!(SUM.load(Relaxed), 30);
        let again = || Err(crate::ErrorKind::Unknown.into());
        assert_eq!(NativeCall::new(&again).call().unwrap_err().kind(), crate::ErrorKind::Unknown);
    }
}
