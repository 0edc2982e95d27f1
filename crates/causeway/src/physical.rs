//! Physical memory, and the ranges of addresses to which it is mapped.
use crate::{
    Buffer, Context, Error, ErrorKind, Export, Plain, Result, Ticket, ffi, ticket::Sealed,
};
use std::{fmt, sync::Arc};

/// Memory without an address: [map](Self::map) it to use it, in this and other processes at the same time. Clones are
/// the same memory.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Context, Device, PhysicalMemory, Queue, Rights};
///
/// let context = Context::new(&Device::first()?)?;
/// let queue = Queue::new(&context)?;
/// let memory = PhysicalMemory::shareable(&context, 10_000)?;
/// let export = memory.share()?;
///
/// // usually in another process:
/// let opened = context.open(export.ticket())?;
/// let here = memory.map(Rights::ReadWrite)?;
/// let there = opened.map(Rights::Read)?;
/// here.buffer::<u32>()?.fill(&queue, 42)?;
/// assert_eq!(there.buffer::<u32>()?.slice(..3)?.to_vec(&queue)?, [42, 42, 42]);
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone)]
pub struct PhysicalMemory {
    context: Context,
    raw: Arc<ffi::Physical>,
    is_shareable: bool,
}

/// What commands may do with a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rights {
    /// Read it.
    Read,
    /// Read and write it.
    ReadWrite,
}

impl PhysicalMemory {
    /// Allocates at least `bytes` for this process only; [`size`](Self::size) returns the actual number, a multiple of
    /// the context's [`granularity`](Context::granularity).
    ///
    /// # Errors
    /// [`ErrorKind::Length`] if `bytes` is 0 or the size overflows; otherwise the adapter's error.
    pub fn new(context: &Context, bytes: usize) -> Result<Self> {
        Self::make(context, bytes, false)
    }
    /// Like [`new`](Self::new), but the memory can be [shared](Self::share) with other processes.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn shareable(context: &Context, bytes: usize) -> Result<Self> {
        Self::make(context, bytes, true)
    }
    fn make(context: &Context, bytes: usize, shareable: bool) -> Result<Self> {
        let unit = context.granularity()?.max(1);
        let Some(bytes) = bytes.checked_next_multiple_of(unit).filter(|&bytes| bytes > 0) else {
            let sentence = format!(
                "{bytes} bytes of physical memory cannot be: ask for at least one, and fewer"
            );
            return Err(Error::new(ErrorKind::Length, sentence));
        };
        let raw = ffi::Physical::new(context.raw(), bytes, shareable)?;
        Ok(Self { context: context.clone(), raw, is_shareable: shareable })
    }
    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.raw.bytes()
    }
    /// Maps all of it to new addresses.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn map(&self, rights: Rights) -> Result<Mapping> {
        let memory = ffi::Memory::map(&self.raw, rights == Rights::ReadWrite)?;
        Ok(Mapping { of: self.clone(), memory, rights })
    }
    /// Shares all of the memory, and nothing else, with other processes of this user. Memory that was opened may be
    /// shared again.
    ///
    /// # Errors
    /// [`ErrorKind::Unsuitable`] unless it is [`shareable`](Self::shareable); otherwise the adapter's error.
    pub fn share(&self) -> Result<Export<Self>> {
        if !self.is_shareable {
            let sentence = "this physical memory is for this process alone: create it with PhysicalMemory::shareable to share it";
            return Err(Error::new(ErrorKind::Unsuitable, sentence));
        }
        Ok(Export::new(self.raw.share()?))
    }
}
impl Sealed for PhysicalMemory {
    const WORD: &'static str = "phys";
    fn open(context: &Context, ticket: &Ticket<Self>) -> Result<Self> {
        let raw = ffi::Physical::open(context.raw(), ticket.as_bytes())?;
        Ok(Self { context: context.clone(), raw, is_shareable: true })
    }
}
impl fmt::Debug for PhysicalMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PhysicalMemory({} bytes)", self.size())
    }
}

/// A range of addresses to which physical memory is mapped. It is unmapped when it and all its buffers are dropped; the
/// memory lives at least as long.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Context, Device, ErrorKind, PhysicalMemory, Queue, Rights};
///
/// let context = Context::new(&Device::first()?)?;
/// let queue = Queue::new(&context)?;
/// let memory = PhysicalMemory::new(&context, 4096)?;
/// let (writer, reader) = (memory.map(Rights::ReadWrite)?, memory.map(Rights::Read)?);
/// writer.buffer::<u8>()?.slice(..4)?.copy_from_slice(&queue, b"same")?;
/// assert_eq!(reader.buffer::<u8>()?.slice(..4)?.to_vec(&queue)?, b"same");
///
/// let error = reader.buffer()?.fill(&queue, 0_u8).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::ReadOnly);
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone)]
pub struct Mapping {
    of: PhysicalMemory,
    memory: Arc<ffi::Memory>,
    rights: Rights,
}
impl Mapping {
    /// The whole mapping as values.
    ///
    /// # Errors
    /// [`ErrorKind::Length`] if the size is not a multiple of theirs.
    pub fn buffer<T: Plain>(&self) -> Result<Buffer<T>> {
        Buffer::over(&self.of.context, self.memory.clone())
    }
    /// The mapped memory.
    pub fn physical_memory(&self) -> &PhysicalMemory {
        &self.of
    }
    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.memory.bytes()
    }
    /// What commands may do with it.
    pub fn rights(&self) -> Rights {
        self.rights
    }
}
impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes, {:?})", self.size(), self.rights)
    }
}
