//! Memory allocation and queries about memory: the methods of a [`Driver`](crate::Driver) for memory at an address.
//! They are a separate trait, so that a backend can implement them before its other methods exist.
use crate::{
    Access, Address, Error, ErrorKind, KnownMemory, MemoryRequest, Object, Range, Result, Types,
};
use std::os::fd::OwnedFd;

/// The alignment of the largest type, sixteen numbers of eight bytes.
const LARGEST_TYPE: usize = 128;

/// Memory at an address.
///
/// No method blocks except [`zero`](Self::zero) and [`copy`](Self::copy). All return the driver's error, with the kind
/// that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Allocates: Types {
    /// The largest alignment of memory, in bytes.
    const LARGEST_ALIGNMENT: usize;
    /// The alignment of each row of pitched memory, in bytes.
    const ROW: usize = LARGEST_TYPE;
    /// What an error about a size that is too large adds: how the limit is lifted, if that is possible.
    const SIZE_HINT: &str = "";

    /// The default alignment of memory with this size, in bytes: by default that of the largest type that fits.
    fn natural_alignment(bytes: usize) -> usize {
        LARGEST_TYPE.min(bytes.checked_next_power_of_two().unwrap_or(LARGEST_TYPE))
    }
    /// The size of the device's memory, in bytes. Called for each allocation unless the driver implements
    /// [`largest_allocation`](Self::largest_allocation).
    fn memory_size(device: &Self::Device) -> Result<usize>;
    /// The largest size of one allocation, in bytes. Called for each allocation.
    fn largest_allocation(device: &Self::Device) -> Result<usize> {
        Self::memory_size(device)
    }
    /// Whether the core cuts small allocations out of larger ones where the application has made no pool.
    fn is_pooled() -> bool {
        true
    }
    /// Allocates memory in one piece. All devices of the context that can access it may use it.
    fn allocate(
        context: &Self::Context,
        device: &Self::Device,
        request: MemoryRequest,
    ) -> Result<Self::Allocation>;
    /// Whether [`block`](Self::block) exists.
    const ALLOCATES_BLOCKS: bool = false;
    /// Allocates a block that need not be divided further: the driver's own allocator serves requests of every size.
    /// `None` to take the memory from a pool of the core.
    fn block(context: &Self::Context, request: MemoryRequest) -> Result<Option<Self::Allocation>> {
        let _ = (context, request);
        Ok(None)
    }
    /// Allocates device memory, of a size and an alignment in bytes, with a descriptor of its own, which only those get
    /// whom the core admits. Other processes can only read it if `is_read_only`. Returns
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the driver cannot enforce that.
    fn allocate_guarded(
        device: &Self::Device,
        (bytes, align): (usize, usize),
        is_read_only: bool,
    ) -> Result<Self::Allocation> {
        let _ = (device, bytes, align, is_read_only);
        let why = "a process that opens memory of this device gets the driver's descriptor, with which it can write the memory and pass it on, so no other policy than the default can be enforced: leave the policy out, and processes of the same user can read and write the memory";
        Err(Error::new(ErrorKind::Unsupported, why))
    }
    /// Whether freed memory is reused for other allocations of this process. It is then kept as long as other processes
    /// have it open.
    fn is_reused(memory: &Self::Allocation) -> bool {
        let _ = memory;
        true
    }
    /// Describes memory at an address that was not allocated through this driver; `None` if the driver does not know the
    /// address.
    fn recognise(
        context: &Self::Context,
        at: Address,
    ) -> Result<Option<KnownMemory<Self::Device>>> {
        let _ = (context, at);
        Ok(None)
    }
    /// Fills memory that no command uses with zeros, and waits for completion.
    fn zero(context: &Self::Context, device: &Self::Device, range: Range) -> Result<()>;
    /// Copies memory that no command uses, and waits for completion.
    fn copy(context: &Self::Context, to: Address, from: Address, bytes: usize) -> Result<()>;
    /// Whether freeing the allocation makes the driver wait until the context is idle.
    fn waits_when_freed(memory: &Self::Allocation) -> bool {
        let _ = memory;
        false
    }
}

/// [`Capability::Pinning`](crate::Capability::Pinning): host memory that the application allocated.
pub trait Pins: Types {
    /// Whether commands use what was pinned, so that it must not end before they are complete.
    const IS_USED: bool = true;
    /// What pins memory until it is dropped; `()` if all host memory can be used as it is.
    type Pinned: Object;
    /// Makes host memory known to the driver, for all devices of the context. The memory must stay valid while the
    /// result exists.
    ///
    /// # Errors
    /// Returns the driver's error, with the kind that fits best.
    fn pin(context: &Self::Context, host: Range, access: Access) -> Result<Self::Pinned>;
}

/// The kind of descriptor by which other APIs import memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExternalForm {
    /// A descriptor that only drivers understand.
    Opaque,
    /// A dma-buf.
    DmaBuf,
}
/// Device memory that other programs and APIs can import through a descriptor.
///
/// All methods return the driver's error, with the kind that fits best.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait ExportsMemory: Allocates {
    /// Whether the device exports memory in this form.
    fn exports(device: &Self::Device, form: ExternalForm) -> Result<bool>;
    /// Allocates memory of a size and an alignment in bytes that can be exported in this form.
    fn allocate_exportable(
        context: &Self::Context,
        device: &Self::Device,
        form: ExternalForm,
        bytes_and_align: (usize, usize),
    ) -> Result<Self::Allocation>;
    /// A new descriptor of exportable memory.
    fn descriptor(memory: &Self::Allocation, form: ExternalForm) -> Result<OwnedFd>;
}
