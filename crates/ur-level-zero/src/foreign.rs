//! Memory that other code in this process, such as a library or the application, allocated from the driver.
//! It is shared by the driver's IPC handle, like memory of this adapter. We are not told when it is freed:
//! that is recognised by the number that the driver gives to each allocation.
use super::{
    DriverDevice, LevelZero,
    context::DriverContext,
    device,
    native::{context::NativeContext, ipc::Handle, memory},
    registry::registry,
    share::payload_of,
};
use std::sync::Arc;
use ur_hal::{Address, Error, ErrorKind, Foreign, KnownMemory, MemoryKind, Range, Result, Travels};
use ur_ipc::Payload;
use ze_sys::*;

/// One allocation of other code that was shared.
#[derive(Clone, Debug)]
pub struct Shared {
    range: Range,
    /// The driver's number of the allocation.
    id: u64,
    /// The context in which it is queried.
    context: Arc<NativeContext>,
    /// Valid until the memory is freed.
    handle: Arc<Handle>,
}
impl Foreign<LevelZero> for Shared {
    fn of(
        context: &DriverContext,
        known: &KnownMemory<Arc<DriverDevice>>,
        _: Address,
    ) -> Result<(Self, Travels)> {
        let (range, context) = (known.range, Arc::clone(context.native()));
        let base = range.start().get() as u64;
        let gone = || {
            Error::new(ErrorKind::InvalidValue, "the memory was freed while it was being shared")
        };
        let device = known.device.as_ref().ok_or_else(gone)?;
        let id = memory::known(&context, base)?.ok_or_else(gone)?.id;
        let handle = Arc::new(Handle::of(&context, base)?);
        let payload = payload_of(&handle, 0, range.bytes());
        Ok((Self { range, id, context, handle }, (payload, device.uuid())))
    }
    fn range(&self) -> Range {
        self.range
    }
    fn is_same(&self, other: &Self) -> bool {
        self.id == other.id
    }
    fn is_there(&self, _: Address) -> bool {
        let there = memory::known(&self.context, self.range.start().get() as u64);
        there.is_ok_and(|there| there.is_some_and(|there| there.id == self.id))
    }
    fn is_unchanged(&self, context: &DriverContext, at: Address) -> bool {
        Arc::ptr_eq(context.native(), &self.context) && self.is_there(at)
    }
    fn payload(&self) -> Option<Payload> {
        Some(payload_of(&self.handle, 0, self.range.bytes()))
    }
}
/// What the driver reports for an address that is not in memory of this adapter.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn recognise(
    context: &DriverContext,
    at: Address,
) -> Result<Option<KnownMemory<Arc<DriverDevice>>>> {
    if registry().claims.find(at.get()).is_some() {
        return Ok(None); // memory of this adapter that is in no allocation
    }
    let known = memory::known(context.native(), at.get() as u64)?;
    let Some(known) = known else { return Ok(None) };
    let kind = match known.kind {
        ZE_MEMORY_TYPE_SHARED => MemoryKind::Managed,
        ZE_MEMORY_TYPE_DEVICE => MemoryKind::Device,
        _ => MemoryKind::Host,
    };
    let base = Address::new(known.base as usize).ok_or(ErrorKind::Unknown)?;
    let range = Range::new(base, known.bytes)?;
    Ok(Some(KnownMemory { range, kind, device: known.device.and_then(device::with_handle) }))
}
