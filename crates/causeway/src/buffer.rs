//! Typed device memory: allocated here, opened from another process, or a view of a mapping.
use crate::{
    Context, Error, ErrorKind, Export, Plain, Policy, Queue, Result, Ticket, ffi,
    ticket::{Contents, Sealed, ValueType},
};
use std::{
    fmt,
    marker::PhantomData,
    ops::{Bound, Range, RangeBounds},
    sync::Arc,
};

/// Values in device memory. Clones and [slices](Self::slice) are views of the same memory, which is freed with the last
/// of them.
///
/// Other processes may share the memory and may write it at any time, so it is never lent as a Rust slice. Values are
/// copied in and out, after everything that was submitted to the queue before. New memory is not cleared: values that
/// were never written are unspecified.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Buffer, Context, Device, Queue};
///
/// let context = Context::new(&Device::first()?)?;
/// let queue = Queue::new(&context)?;
/// let buffer = Buffer::from_slice(&queue, &[1.0_f32, 2.0, 3.0, 4.0])?;
/// buffer.slice(1..3)?.fill(&queue, 0.5)?;
/// assert_eq!(buffer.to_vec(&queue)?, [1.0, 0.5, 0.5, 4.0]);
///
/// // another process could open the middle, and nothing else that is named:
/// let export = buffer.slice(1..3)?.share()?;
/// let middle = context.open(export.ticket())?;
/// assert_eq!(middle.to_vec(&queue)?, [0.5, 0.5]);
/// # Ok(()) }
/// # check().unwrap();
/// ```
pub struct Buffer<T> {
    context: Context,
    memory: Arc<ffi::Memory>,
    /// In bytes.
    offset: usize,
    /// In values; never 0.
    len: usize,
    values: PhantomData<fn() -> T>,
}

impl<T: Plain> Buffer<T> {
    const SIZE: usize = {
        assert!(size_of::<T>() > 0, "values without a size need no memory");
        size_of::<T>()
    };

    /// Allocates device memory for `len` values, whose initial contents are unspecified.
    ///
    /// # Errors
    /// [`ErrorKind::Length`] if `len` is 0 or the size overflows; otherwise the adapter's error.
    pub fn new(context: &Context, len: usize) -> Result<Self> {
        Self::with_policy(context, len, Policy::default())
    }
    /// Like [`new`](Self::new), but `policy` decides which processes may open the memory, and whether they may write
    /// it.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`ErrorKind::Unsupported`] on devices whose driver cannot enforce the policy.
    pub fn with_policy(context: &Context, len: usize, policy: Policy) -> Result<Self> {
        let Some(bytes) = len.checked_mul(Self::SIZE).filter(|&bytes| bytes > 0) else {
            let sentence =
                format!("a buffer of {len} values cannot be: ask for at least one, and fewer");
            return Err(Error::new(ErrorKind::Length, sentence));
        };
        Self::over(context, ffi::Memory::allocate(context.raw(), bytes, policy)?)
    }
    /// Allocates device memory with a copy of `values`.
    ///
    /// # Errors
    /// As [`new`](Self::new) and [`copy_from_slice`](Self::copy_from_slice).
    pub fn from_slice(queue: &Queue, values: &[T]) -> Result<Self> {
        let buffer = Self::new(queue.context(), values.len())?;
        buffer.copy_from_slice(queue, values)?;
        Ok(buffer)
    }
    /// A buffer over the whole of `memory`.
    pub(crate) fn over(context: &Context, memory: Arc<ffi::Memory>) -> Result<Self> {
        let (bytes, values) = (memory.bytes(), PhantomData);
        if !bytes.is_multiple_of(Self::SIZE) || bytes == 0 {
            return Err(remainder(bytes, Self::SIZE));
        }
        Ok(Self { context: context.clone(), memory, offset: 0, len: bytes / Self::SIZE, values })
    }
    /// A view of some of the values.
    ///
    /// # Errors
    /// [`ErrorKind::Length`] if the range is empty or reaches past the end.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let start = match range.start_bound() {
            Bound::Included(&start) => Some(start),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => Some(self.len),
        };
        match (start, end) {
            (Some(start), Some(end)) if start < end && end <= self.len => {
                let offset = self.offset + start * Self::SIZE;
                Ok(Self { offset, len: end - start, ..self.clone() })
            }
            _ => {
                let sentence = format!(
                    "no such slice of {} values: it is empty, or ends after the buffer",
                    self.len
                );
                Err(Error::new(ErrorKind::Length, sentence))
            }
        }
    }
    /// A view of the same bytes as values of another type.
    ///
    /// # Errors
    /// [`ErrorKind::Length`] if the size is not a multiple of theirs, [`ErrorKind::WrongType`] if the memory is not
    /// aligned for them.
    pub fn cast<U: Plain>(&self) -> Result<Buffer<U>> {
        let bytes = self.byte_len();
        if !bytes.is_multiple_of(Buffer::<U>::SIZE) {
            return Err(remainder(bytes, Buffer::<U>::SIZE));
        }
        let (context, memory) = (self.context.clone(), self.memory.clone());
        aligned::<U>(memory.address() + self.offset)?;
        let len = bytes / Buffer::<U>::SIZE;
        Ok(Buffer { context, memory, offset: self.offset, len, values: PhantomData })
    }
    /// The length in bytes.
    pub fn byte_len(&self) -> usize {
        self.len * Self::SIZE
    }
    /// Copies `values` into the buffer after everything on `queue`, and returns when that is done.
    ///
    /// # Errors
    /// [`ErrorKind::Length`] if their number is not the buffer's; [`ErrorKind::ReadOnly`] if the memory is mapped or
    /// was opened for reading only; [`ErrorKind::TimedOut`] if the work on the queue takes longer than the context's
    /// [`patience`](Context::patience), in which case nothing was copied; otherwise the adapter's error.
    pub fn copy_from_slice(&self, queue: &Queue, values: &[T]) -> Result<()> {
        self.same_len(values.len())?;
        queue.write_now(values, self)
    }
    /// Copies the buffer to `values` after everything on `queue`, and returns when that is done.
    ///
    /// # Errors
    /// As [`copy_from_slice`](Self::copy_from_slice).
    pub fn copy_to_slice(&self, queue: &Queue, values: &mut [T]) -> Result<()> {
        self.same_len(values.len())?;
        queue.read_now(self, values)
    }
    /// Copies the buffer to the host after everything on `queue`, and returns when that is done.
    ///
    /// # Errors
    /// As [`copy_from_slice`](Self::copy_from_slice).
    pub fn to_vec(&self, queue: &Queue) -> Result<Vec<T>> {
        let mut values = T::new_vec_zeroed(self.len).map_err(|_| {
            let sentence =
                format!("the host has no {} bytes of memory for a copy", self.byte_len());
            Error::new(ErrorKind::OutOfMemory, sentence)
        })?;
        self.copy_to_slice(queue, &mut values)?;
        Ok(values)
    }
    /// Sets every value to `value`, and returns when that is done.
    ///
    /// # Errors
    /// As [`copy_from_slice`](Self::copy_from_slice).
    pub fn fill(&self, queue: &Queue, value: T) -> Result<()> {
        queue.fill(self, value)?.wait()
    }
    /// The policy with which the memory was allocated; the default policy for memory that was opened or mapped.
    pub fn policy(&self) -> Policy {
        self.memory.policy()
    }
    /// Whether this process may write it; not if it was opened or mapped for reading only.
    pub fn is_writable(&self) -> bool {
        self.memory.is_writable()
    }
    /// Whether another process has the memory open now, of which this buffer may be a part. Until it closes the memory, or
    /// ends, it can pass the ticket on: so an export that is kept as long as this is true still opens there.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the adapter does not know it.
    pub fn is_open_elsewhere(&self) -> Result<bool> {
        self.memory.is_open_elsewhere()
    }
    /// Shares these values with other processes of this user, or with those that its [`policy`](Self::policy) admits.
    ///
    /// The ticket names this range, and [`Context::open`] gives access to no more. However, what the system passes to
    /// the other process may reach further, because memory is shared in pages and pools. So either share only with
    /// processes that you trust with the device's memory, or share [`PhysicalMemory`](crate::PhysicalMemory), which
    /// contains nothing else.
    ///
    /// # Errors
    /// [`ErrorKind::Unsuitable`] for memory that was opened or is mapped; otherwise the adapter's error.
    pub fn share(&self) -> Result<Export<Self>> {
        let sentence = match self.memory.kind() {
            ffi::MemoryKind::Allocated => {
                let contents = Contents { bytes: self.byte_len() as u64, of: ValueType::of::<T>() };
                return Ok(Export::of_memory(self.memory.share(self.offset)?, contents));
            }
            ffi::MemoryKind::Opened => {
                "this buffer was opened from a ticket: the process that allocated it shares it"
            }
            ffi::MemoryKind::Mapped => {
                "this buffer is a view of physical memory: share that (Mapping::physical_memory), and map it in the other process"
            }
        };
        Err(Error::new(ErrorKind::Unsuitable, sentence))
    }
    fn same_len(&self, len: usize) -> Result<()> {
        if self.len == len {
            return Ok(());
        }
        let sentence = format!(
            "{len} values on the host and {} on the device cannot be copied onto each other",
            self.len
        );
        Err(Error::new(ErrorKind::Length, sentence))
    }
}

impl<T> Buffer<T> {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Always false: a buffer has at least one value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }
    /// The address of the first value, for libraries that take addresses. The device can access it while a clone of
    /// this buffer exists; on the CPU, so can the program.
    pub fn address(&self) -> usize {
        self.memory.address() + self.offset
    }
    /// The addresses of the allocation that contains this buffer. The buffer keeps all of it.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn allocation(&self) -> Result<Range<usize>> {
        ffi::Memory::allocation_of(self.context.raw(), self.memory.address())
    }
    pub(crate) fn span(&self) -> Result<ffi::Span> {
        ffi::Span::new(&self.memory, self.offset, self.len * size_of::<T>())
    }
}

/// Checks that an address is aligned for values of the type.
fn aligned<T>(address: usize) -> Result<()> {
    if address.is_multiple_of(align_of::<T>()) {
        return Ok(());
    }
    let sentence = format!(
        "values of type {} must be aligned, and this memory begins elsewhere: slice it at a multiple of {} bytes",
        ValueType::of::<T>(),
        align_of::<T>()
    );
    Err(Error::new(ErrorKind::WrongType, sentence))
}

fn remainder(bytes: usize, size: usize) -> Error {
    let sentence = format!("{bytes} bytes are no whole number of values of {size} bytes");
    Error::new(ErrorKind::Length, sentence)
}

impl<T: Plain> Sealed for Buffer<T> {
    const WORD: &'static str = "mem";
    fn open(context: &Context, ticket: &Ticket<Self>) -> Result<Self> {
        let (handle, contents) = ticket.parts();
        // Any memory can be opened as bytes.
        let (is, wanted) = (contents.map(|contents| contents.of), ValueType::of::<T>());
        if let Some(is) = is.filter(|is| *is != wanted && wanted != ValueType::of::<u8>()) {
            let sentence = format!(
                "this ticket is for values of type {is}, and {wanted} was asked for: open it as a buffer of its own type, or of u8, and cast that"
            );
            return Err(Error::new(ErrorKind::WrongType, sentence));
        }
        let length = contents.map(|contents| usize::try_from(contents.bytes).unwrap_or(usize::MAX));
        if let Some(bytes) = length
            && (!bytes.is_multiple_of(Self::SIZE) || bytes == 0)
        {
            return Err(remainder(bytes, Self::SIZE));
        }
        let memory = ffi::Memory::open(context.raw(), handle, length)?;
        aligned::<T>(memory.address())?;
        Self::over(context, memory)
    }
}
impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        let (context, memory) = (self.context.clone(), self.memory.clone());
        Self { context, memory, offset: self.offset, len: self.len, values: PhantomData }
    }
}
impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.memory.kind() {
            ffi::MemoryKind::Allocated => "allocated here",
            ffi::MemoryKind::Opened => "opened from a ticket",
            ffi::MemoryKind::Mapped => "mapped",
        };
        let (name, len, at) = (std::any::type_name::<T>(), self.len, self.memory.address());
        write!(f, "Buffer<{name}>({len} values at {:#x}, {kind})", at + self.offset)
    }
}
