//! Commands: the operations that a stream executes or a graph records. A command is a plain value of one cache line.
//! Everything in it has been checked, buffers have been resolved to addresses, and building one allocates nothing.
use crate::{
    Address, Advice, BoxSpan, Error, KeptLaunch, KeptPattern, Launch, MemoryRequest, Pattern,
    Range, Result, Rows, Types,
};
use std::{
    cell::Cell,
    fmt,
    sync::{Arc, Condvar, Mutex},
};
use ur_ipc::arena::Counter;
use ur_lock::{locked, unpoisoned};

/// One operation. What it waits for, and what completion information is requested, is in its
/// [`Submission`](crate::Submission).
#[derive(Debug)]
pub enum Command<'a, D: Types> {
    /// Does nothing; only its place in the order matters.
    Barrier,
    /// Copies bytes between any two addresses that the device or the host can access; the two may overlap.
    Copy {
        /// The first byte to write.
        to: Address,
        /// The first byte to read.
        from: Address,
        /// How many bytes; not 0.
        bytes: usize,
    },
    /// Copies rows of `width` bytes.
    Copy2d {
        /// The rows to write.
        to: Rows,
        /// The rows to read.
        from: Rows,
        /// Bytes of each row; at most the pitches.
        width: usize,
        /// How many rows.
        height: usize,
    },
    /// Copies a box of bytes.
    Copy3d(&'a BoxCopy),
    /// Writes a pattern repeatedly; the range is a multiple of the pattern.
    Fill {
        /// The range to fill.
        to: Range,
        /// The pattern.
        pattern: Pattern<'a>,
    },
    /// Writes a pattern into rows of `width` bytes. It continues from each row to the next; all rows together are a
    /// multiple of the pattern.
    Fill2d {
        /// The rows to fill.
        to: Rows,
        /// Bytes of each row; at most the pitch.
        width: usize,
        /// How many rows.
        height: usize,
        /// The pattern.
        pattern: Pattern<'a>,
    },
    /// Copies pixels without conversion.
    ImageCopy(&'a ImageCopy<&'a Arc<D::Image>>),
    /// Runs a function.
    Launch(&'a Launch<'a, D>),
    /// Calls a host function, which may sleep, but must not wait for later commands of the stream.
    HostCall(&'a HostCall),
    /// Signals an event that is signalled repeatedly.
    Signal(Signal<'a, D>),
    /// Records the time when all earlier commands are complete.
    Timestamp,
    /// Moves managed memory; a hint.
    Prefetch {
        /// The memory to move.
        range: Range,
        /// Where it is moved to.
        to: Location,
    },
    /// Advises how managed memory will be used; hints.
    Advise {
        /// The memory.
        range: Range,
        /// The hints.
        advice: Advice,
    },
    /// Allocates memory that later commands may use. Its address is known at once.
    AllocAsync {
        /// The requested memory.
        request: MemoryRequest,
        /// Receives the allocation.
        made: &'a Handover<D::Allocation>,
    },
    /// Frees such memory when the stream reaches this command.
    FreeAsync(&'a Handover<D::Allocation>),
    /// Lets the application put its own commands into the native stream.
    Native(NativeCall<'a>),
}
impl<D: Types> Clone for Command<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Types> Copy for Command<'_, D> {}
impl<D: Types> Command<'_, D> {
    /// The largest number of bytes that it reads or writes, if that is known. A driver may execute small commands at
    /// once.
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
    /// Whether a graph can contain it: commands that run once only, or during submission, cannot be recorded.
    pub fn is_recordable(&self) -> bool {
        !matches!(self, Self::AllocAsync { .. } | Self::FreeAsync(_) | Self::Native(_))
    }
}

/// A stored command that can be executed repeatedly. It owns copies of what the command refers to.
#[derive(Debug)]
#[expect(missing_docs, reason = "fields are called as the command's are")]
pub enum Recorded<D: Types> {
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
    /// [`Command::ImageCopy`].
    ImageCopy(ImageCopy<Arc<D::Image>>),
    /// [`Command::Launch`].
    Launch(KeptLaunch<D>),
    /// [`Command::HostCall`].
    HostCall(HostCall),
    /// [`Command::Prefetch`].
    Prefetch { range: Range, to: Location },
    /// [`Command::Advise`].
    Advise { range: Range, advice: Advice },
}
impl<D: Types> Recorded<D> {
    /// Stores a command.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a command that runs only once, for a signal, and for a
    /// timestamp.
    pub fn of(command: &Command<'_, D>) -> Result<Self> {
        Ok(match *command {
            Command::Barrier => Self::Barrier,
            Command::Copy { to, from, bytes } => Self::Copy { to, from, bytes },
            Command::Copy2d { to, from, width, height } => Self::Copy2d { to, from, width, height },
            Command::Copy3d(copy) => Self::Copy3d(Box::new(*copy)),
            Command::Fill { to, pattern } => Self::Fill { to, pattern: pattern.into() },
            Command::Fill2d { to, width, height, pattern } => {
                Self::Fill2d { to, width, height, pattern: pattern.into() }
            }
            Command::ImageCopy(copy) => Self::ImageCopy(copy.map(|image| Arc::clone(image))),
            Command::Launch(launch) => Self::Launch(KeptLaunch::of(launch)),
            Command::HostCall(call) => Self::HostCall(call.clone()),
            Command::Prefetch { range, to } => Self::Prefetch { range, to },
            Command::Advise { range, advice } => Self::Advise { range, advice },
            _ => return Error::unsupported("recording of this kind of command"),
        })
    }
    /// The launch, if it is one.
    pub fn launch(&self) -> Option<&KeptLaunch<D>> {
        match self {
            Self::Launch(launch) => Some(launch),
            _ => None,
        }
    }
    /// Passes the stored command to `to`.
    pub fn lend<R>(&self, to: impl FnOnce(&Command<'_, D>) -> R) -> R {
        let command = match *self {
            Self::ImageCopy(ref copy) => {
                return to(&Command::ImageCopy(&copy.map(|image| image)));
            }
            Self::Launch(ref launch) => {
                return launch.lend(|launch| to(&Command::Launch(launch)));
            }
            Self::Barrier => Command::Barrier,
            Self::Copy { to, from, bytes } => Command::Copy { to, from, bytes },
            Self::Copy2d { to, from, width, height } => Command::Copy2d { to, from, width, height },
            Self::Copy3d(ref copy) => Command::Copy3d(copy),
            Self::Fill { to, ref pattern } => Command::Fill { to, pattern: pattern.pattern() },
            Self::Fill2d { to, width, height, ref pattern } => {
                Command::Fill2d { to, width, height, pattern: pattern.pattern() }
            }
            Self::HostCall(ref call) => Command::HostCall(call),
            Self::Prefetch { range, to } => Command::Prefetch { range, to },
            Self::Advise { range, advice } => Command::Advise { range, advice },
        };
        to(&command)
    }
}

/// A cell through which a command passes a value to or from the driver, because a submission is only borrowed.
pub struct Handover<T>(Cell<Option<T>>);
impl<T> Handover<T> {
    /// A cell that holds a value.
    pub const fn of(value: T) -> Self {
        Self(Cell::new(Some(value)))
    }
    /// Stores a value.
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
/// Pixels to copy. `I` refers to an image.
#[derive(Clone, Copy, Debug)]
pub struct ImageCopy<I> {
    /// The image; if the other end is an image, too, the pixels go to this one.
    pub image: I,
    /// The first pixel there; the last coordinate counts the layers of an array.
    pub origin: [usize; 3],
    /// Pixels in each dimension; none is 0.
    pub region: [usize; 3],
    /// Where the pixels come from, or go to.
    pub other: ImageEnd<I>,
}
/// The other end of a copy of pixels. Of memory: its first byte, then the bytes from one row to the next, and from one
/// slice or layer to the next. In a 1D array each row is a layer.
#[derive(Clone, Copy, Debug)]
pub enum ImageEnd<I> {
    /// Pixels come from another image, starting at these coordinates.
    FromImage(I, [usize; 3]),
    /// Pixels come from memory.
    FromMemory(Address, [usize; 2]),
    /// Pixels go to memory.
    ToMemory(Address, [usize; 2]),
}
impl<I> ImageCopy<I> {
    /// The same copy, with other references to the images.
    pub fn map<'a, J>(&'a self, reference: impl Fn(&'a I) -> J) -> ImageCopy<J> {
        let other = match &self.other {
            ImageEnd::FromImage(image, at) => ImageEnd::FromImage(reference(image), *at),
            ImageEnd::FromMemory(at, pitches) => ImageEnd::FromMemory(*at, *pitches),
            ImageEnd::ToMemory(at, pitches) => ImageEnd::ToMemory(*at, *pitches),
        };
        let Self { image, origin, region, .. } = self;
        ImageCopy { image: reference(image), origin: *origin, region: *region, other }
    }
}

/// An event that a stream signals; signalling neither creates nor consumes it.
#[derive(Debug)]
pub enum Signal<'a, D: Types> {
    /// A word in shared memory reaches a value that was reserved for this signal. The values of one counter are
    /// signalled in the order in which they were reserved.
    Word(&'a Arc<Counter>, u64),
    /// A point of the driver, made by [`Streams::reusable`](crate::Streams::reusable) or imported; this becomes its
    /// latest signal.
    Point(&'a D::Point),
}
impl<D: Types> Clone for Signal<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Types> Copy for Signal<'_, D> {}

/// A destination for managed memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// The host.
    Host,
    /// The device of the stream.
    Device,
}
/// A host function with two argument words. It can be called repeatedly and from any thread. Its fields are private, so
/// that a holder can only call it; the words may be meaningful to the function alone.
#[derive(Clone)]
pub struct HostCall {
    function: fn([usize; 2]),
    words: [usize; 2],
    calls: Arc<Calls>,
}
/// The calls of a function that threads are in; executions of several graphs may call the same one at the same time.
#[derive(Default)]
struct Calls {
    now: Mutex<Running>,
    ended: Condvar,
}
#[derive(Default)]
struct Running {
    count: usize,
    is_withdrawn: bool,
}
/// One of these calls.
struct CallGuard<'a>(&'a Calls);
impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        let mut now = locked(&self.0.now);
        now.count -= 1;
        if now.is_withdrawn {
            self.0.ended.notify_all(); // nobody else waits, and it is a call of the system
        }
    }
}
impl HostCall {
    /// A call of `function` with `words`.
    pub fn new(function: fn([usize; 2]), words: [usize; 2]) -> Self {
        Self { function, words, calls: Arc::default() }
    }
    /// Calls the function on this thread, unless the call was withdrawn.
    pub fn call(&self) {
        let mut now = locked(&self.calls.now);
        if now.is_withdrawn {
            return;
        }
        now.count += 1;
        drop(now);
        let _call = CallGuard(&self.calls);
        (self.function)(self.words);
    }
    /// Sees to it that the function is not called from now on, whoever has a clone of this: for a command that was refused,
    /// of which the driver may have taken the call. Waits for calls that have begun.
    pub fn withdraw(&self) {
        let mut now = locked(&self.calls.now);
        now.is_withdrawn = true;
        let is_called = |now: &mut Running| now.count > 0;
        drop(unpoisoned(self.calls.ended.wait_while(now, is_called)));
    }
}
impl fmt::Debug for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostCall")
    }
}

/// A function that is called during submission, on the submitting thread, once the stream is ordered after everything
/// that the command waits for. What it puts into the native stream is thus executed at that place.
#[derive(Clone, Copy)]
pub struct NativeCall<'a>(&'a dyn Fn() -> Result<()>);
impl<'a> NativeCall<'a> {
    /// Wraps a function.
    pub fn new(function: &'a dyn Fn() -> Result<()>) -> Self {
        Self(function)
    }
    /// Calls the function.
    ///
    /// # Errors
    /// Returns the function's error.
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
        let call = HostCall::new(|_| (), [0; 2]);
        let call = Command::<Nothing>::HostCall(&call);
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
    #[test]
    fn threads_call_one_function_at_the_same_time_and_it_is_withdrawn_when_both_are_back() {
        use std::sync::{
            Barrier,
            atomic::{AtomicUsize, Ordering::SeqCst},
        };
        static MET: Barrier = Barrier::new(3);
        static BACK: AtomicUsize = AtomicUsize::new(0);
        let call = HostCall::new(
            |_| {
                MET.wait(); // each needs the other
                MET.wait();
                std::thread::yield_now();
                BACK.fetch_add(1, SeqCst);
            },
            [0; 2],
        );
        std::thread::scope(|scope| {
            let _both = [(); 2].map(|()| scope.spawn(|| call.call()));
            MET.wait();
            let withdrawn = scope.spawn(|| {
                call.withdraw();
                BACK.load(SeqCst)
            });
            MET.wait();
            assert_eq!(withdrawn.join().unwrap(), 2);
        });
        call.call();
        assert_eq!(BACK.load(SeqCst), 2);
    }
}
