//! Memory of a driver: allocation requests, and facts of memory allocated elsewhere; and native handles.
use crate::{ImageDesc, Range, SamplerDesc, Types};

/// Where memory is located, and which side accesses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryKind {
    /// In the device's memory.
    Device,
    /// In pinned host memory, which the device accesses in place.
    Host,
    /// Where it is used: the driver migrates it. Only where [`UsmSupport::shared`](crate::UsmSupport::shared) says so.
    Managed,
}
/// A request for an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRequest {
    /// Where the memory is to be located.
    pub kind: MemoryKind,
    /// The least size in bytes; not 0.
    pub bytes: usize,
    /// The alignment of its address in bytes: a power of two.
    pub align: usize,
    /// Whether other processes will open it. A driver that can share all of its memory ignores this.
    pub is_shareable: bool,
}
/// The permitted access to mapped or pinned memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// No access.
    None,
    /// Read only.
    Read,
    /// Read and write.
    ReadWrite,
}
/// The granularity of lengths and addresses of virtual memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granularity {
    /// What they must be multiples of.
    pub minimum: usize,
    /// What they should be multiples of.
    pub recommended: usize,
}

/// What a driver knows of memory that was allocated by other code in this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownMemory<Device> {
    /// The whole allocation.
    pub range: Range,
    /// Where it is located.
    pub kind: MemoryKind,
    /// The device on which it is located; `None` for host memory.
    pub device: Option<Device>,
}

/// The driver's native handle of one of its objects: a pointer or an index, opaque above the driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NativeHandle(pub u64);

/// An object whose native handle is queried.
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

/// The kind of object that a native handle refers to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum NativeKind {
    Context,
    Stream,
    Point,
    Module,
    /// An image that is said to be like this.
    Image(ImageDesc),
    Sampler,
}
/// An object made from a native handle.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is what its type says")]
pub enum Adopted<D: Types> {
    /// A context and the devices that it is for.
    Context(D::Context, Vec<D::Device>),
    Stream(D::Stream),
    Point(D::Point),
    /// The module on each device that it is for.
    Modules(Vec<(D::Device, D::Module)>),
    Image(D::Image),
    /// A sampler, and its description if the driver knows it.
    Sampler(D::Sampler, Option<SamplerDesc>),
}
