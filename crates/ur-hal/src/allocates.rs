//! How a driver allocates memory, and what it knows of memory: the verbs of a [`Driver`](crate::Driver) that are about
//! memory at an address. They are a trait of their own, so that a backend has them whose other verbs are not written yet.
use crate::{Address, KnownMemory, MemoryRequest, Result, Types};

/// Memory at an address.
///
/// No verb blocks. All return the driver's own failures, with the kind that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Allocates: Types {
    /// Memory in one piece. All devices of the context that can reach it may use it.
    fn allocate(
        context: &Self::Context,
        device: &Self::Device,
        request: MemoryRequest,
    ) -> Result<Self::Allocation>;
    /// [`Capability::ForeignMemory`](crate::Capability::ForeignMemory): what is at an address that this driver did not give
    /// us; `None` for what it does not know.
    fn recognise(
        context: &Self::Context,
        at: Address,
    ) -> Result<Option<KnownMemory<Self::Device>>> {
        let _ = (context, at);
        Ok(None)
    }
}
