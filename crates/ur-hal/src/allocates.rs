//! Memory allocation and queries about memory: the methods of a [`Driver`](crate::Driver) for memory at an address.
//! They are a separate trait, so that a backend can implement them before its other methods exist.
use crate::{Address, KnownMemory, MemoryRequest, Result, Types};

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
