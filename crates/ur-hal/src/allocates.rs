//! Memory allocation and queries about memory: the methods of a [`Driver`](crate::Driver) for memory at an address.
//! They are a separate trait, so that a backend can implement them before its other methods exist.
use crate::{Access, Address, KnownMemory, MemoryRequest, Object, Range, Result, Types};

/// Memory at an address.
///
/// No method blocks. All return the driver's error, with the kind that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Allocates: Types {
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
