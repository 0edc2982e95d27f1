//! What processes offer each other of memory.
use super::{objects::Contexts, usm_pool::HasUsm};
use crate::memory::allocation::{Allocation, Memory};
use ur_adapter::error::Result;
use ur_hal::{Export, Travels};
use ur_ipc::{Access, Kind, Offer};

/// An export with the fields that do not depend on the payload. `range`: offset and length in bytes.
pub(super) fn offer<D: Contexts>(
    kind: Kind,
    object: u64,
    (payload, device): Travels,
    range: (usize, usize),
    size: usize,
) -> Offer {
    Offer {
        kind,
        backend: D::BACKEND as u16,
        device,
        object,
        offset: range.0 as u64,
        length: range.1 as u64,
        size: size as u64,
        payload,
        access: Access::SameUser,
    }
}
/// Marks an allocation as shared; returns what other processes need to open it.
///
/// # Errors
/// `INVALID_VALUE` for memory that cannot be shared. Returns the driver's error, mapped as in `error.rs`.
pub fn export<D: HasUsm>(found: &Allocation<D::Memory>) -> Result<Travels> {
    let refused = |why| ur_hal::Error::new(ur_hal::ErrorKind::InvalidValue, why);
    let memory = found.expose();
    if let Some(ordered) = memory.and_then(Memory::as_ordered) {
        let memory = ordered.memory();
        let memory = memory.as_ref().ok_or_else(|| refused("the memory was freed"))?;
        return Ok(D::export(Export::Memory(memory, 0))?);
    }
    let opened = || refused("memory that was opened is shared by its exporter");
    let (memory, offset) = memory.and_then(Memory::within).ok_or_else(opened)?;
    Ok(D::export(Export::Memory(memory, offset))?)
}
