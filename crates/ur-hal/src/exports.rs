//! Memory that other programs and APIs import by file descriptors.
use crate::{Memory, Result, Types};
use std::os::fd::OwnedFd;

/// The kinds of descriptors of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DescriptorKind {
    /// A descriptor of no particular kind.
    Opaque,
    /// A dma-buf.
    DmaBuf,
}
/// A driver that can export memory to other programs and APIs.
///
/// No method blocks. All return the driver's error, with the kind that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait ExportsMemory: Types {
    /// Memory that can be exported.
    type Exportable: Memory;
    /// The kinds of descriptors by which a device exports its memory.
    fn descriptor_kinds(device: &Self::Device) -> Result<Vec<DescriptorKind>>;
    /// Allocates memory of a device that can be exported by descriptors of one of these kinds. Its address is a multiple of
    /// `align`.
    fn exportable(
        context: &Self::Context,
        device: &Self::Device,
        kind: DescriptorKind,
        bytes: usize,
        align: usize,
    ) -> Result<Self::Exportable>;
    /// Makes a new descriptor of memory.
    fn descriptor(memory: &Self::Exportable, kind: DescriptorKind) -> Result<OwnedFd>;
}
