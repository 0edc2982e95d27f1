//! Memory allocation and queries about memory: the methods of a [`Driver`](crate::Driver) for memory at an address.
//! They are a separate trait, so that a backend can implement them before its other methods exist.
use crate::{Access, Address, KnownMemory, MemoryRequest, Object, Range, Result, Types};
use std::sync::Arc;

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
    /// [`Capability::ForeignMemory`](crate::Capability::ForeignMemory): describes memory at an address that was not
    /// allocated through this driver; `None` if the driver does not know the address.
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
    /// What is dropped in place of an allocation that a pool returns.
    fn returned(allocation: Arc<Self::Allocation>) -> impl Send + 'static {
        allocation
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
