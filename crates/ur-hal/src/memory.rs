//! Memory that a driver gives: what is asked for, what is known of memory of others, what other processes are given.
use crate::{Range, Types};

/// Where memory lies, and who reaches it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryKind {
    /// In the device's memory.
    Device,
    /// In the host's memory, pinned: the device reaches it in place.
    Host,
    /// Wherever it is used: the driver moves it. Needs
    /// [`Capability::ManagedMemory`](crate::Capability::ManagedMemory).
    Managed,
}
/// What is asked of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRequest {
    /// Where it is to lie.
    pub kind: MemoryKind,
    /// At least so many bytes; not 0.
    pub bytes: usize,
    /// What its address is a multiple of: a power of two, at most
    /// [`largest_alignment`](crate::DeviceFacts::largest_alignment).
    pub align: usize,
    /// Whether other processes are to open it. A driver that can share all of its memory takes no notice.
    pub is_shareable: bool,
}
/// What may be done with mapped or pinned memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nothing.
    None,
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}
/// What lengths and addresses of virtual memory are multiples of, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granularity {
    /// What they have to be multiples of.
    pub minimum: usize,
    /// What they had better be multiples of.
    pub recommended: usize,
}

/// What a driver knows of memory that other code in this process allocated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownMemory<Device> {
    /// The whole of the allocation.
    pub range: Range,
    /// Where it lies.
    pub kind: MemoryKind,
    /// Whose memory it is; `None` for the host's.
    pub device: Option<Device>,
}

/// What another process is to be given. The payload is the driver's; envelope, broker, leases and access are
/// `ur_ipc`'s, and who may ask is the core's.
#[derive(Debug)]
pub enum Export<'a, D: Types> {
    /// Memory of the driver's.
    Memory(&'a D::Allocation),
    /// Memory that other code in this process allocated.
    Known(&'a D::Context, &'a KnownMemory<D::Device>),
    /// Physical memory.
    Physical(&'a D::Physical),
}
impl<D: Types> Clone for Export<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Types> Copy for Export<'_, D> {}

/// The driver's own number for one of its objects: a pointer or an index, never looked into above the driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NativeHandle(pub u64);

/// An object whose native handle is asked for.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is what its type says")]
pub enum NativeObject<'a, D: Types> {
    Device(&'a D::Device),
    Context(&'a D::Context),
    Stream(&'a D::Stream),
    Point(&'a D::Point),
    Module(&'a D::Module),
    Function(&'a D::Function),
    Image(&'a D::Image),
    Sampler(&'a D::Sampler),
    Physical(&'a D::Physical),
}

/// Which kind of object a native handle is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum NativeKind {
    Context,
    Stream,
    Point,
    Module,
    Function,
    Image,
    Sampler,
    Allocation,
}
/// An object made of a native handle.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is what its type says")]
pub enum Adopted<D: Types> {
    /// With the devices that it is for.
    Context(D::Context, Vec<D::Device>),
    Stream(D::Stream),
    Point(D::Point),
    Module(D::Module),
    Function(D::Function),
    Image(D::Image),
    Sampler(D::Sampler),
    Allocation(D::Allocation),
}
