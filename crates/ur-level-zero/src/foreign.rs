//! Memory that other code in this process, such as a library or the application, allocated from the driver.
//! It is shared by the driver's IPC handle, like memory of this adapter. We are not told when it is freed:
//! that is recognised by the number that the driver gives to each allocation.
use super::{
    Context, DriverDevice, LevelZero,
    context::DriverContext,
    device,
    driver::RawDevice,
    native::{
        context::NativeContext,
        ipc::Handle,
        memory::{self, Known},
    },
    registry::registry,
    share::payload_of,
};
use std::sync::{Arc, Mutex, MutexGuard};
use ur_adapter::{
    error::{ErrorCode, Result},
    memory::UsmPtr,
    object::{Backend, Borrowed},
    share::Located,
};
use ur_core::{
    memory::{objects::next_object, of_others::OfOthers},
    over_driver::share::offer,
};
use ur_hal::{KnownMemory, MemoryKind, Range};
use ur_ipc::{Kind, Offer};
use ur_lock::locked;
use ze_sys::*;

/// What was shared of memory that other code allocated, by object number.
pub(super) type All = Mutex<OfOthers<Shared>>;
/// One allocation of other code.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    base: u64,
    bytes: usize,
    /// The driver's number of the allocation.
    id: u64,
    /// The context in which it is queried.
    context: Arc<NativeContext>,
    /// Valid until the memory is freed.
    handle: Arc<Handle>,
}
fn all() -> MutexGuard<'static, OfOthers<Shared>> {
    locked(&registry().foreign)
}
/// The device with this driver handle: a root device or a sub-device.
fn device_of(raw: Option<RawDevice>) -> Option<Arc<DriverDevice>> {
    raw.and_then(device::with_handle)
}

/// What the driver reports for `at`; `None` for memory of this adapter.
fn known(context: &DriverContext, at: UsmPtr) -> Result<Option<Known>> {
    match registry().claims.has(at.addr()) {
        true => Ok(None), // memory of this adapter that is in no allocation
        false => Ok(memory::known(context.native(), at.addr() as u64)?),
    }
}
/// The object number for an allocation of other code, and the handle with which others open it. Ends the
/// exports of memory that was freed there before.
fn object_of(context: &Context, known: &Known) -> Result<(u64, Arc<Handle>)> {
    let Known { base, bytes, id, .. } = *known;
    let same = |one: &Shared| (one.base, one.id) == (base, id);
    let (gone, found) = {
        let mut all = all();
        let (found, stale): (Vec<_>, Vec<_>) =
            all.touching(base, bytes).partition(|(_, one)| same(one));
        let found = found.first().map(|(object, one)| (*object, Arc::clone(&one.handle)));
        let stale: Vec<_> = stale.into_iter().map(|(object, _)| object).collect();
        let gone: Vec<_> =
            stale.into_iter().filter_map(|object| Some((object, all.remove(object)?))).collect();
        (gone, found)
    };
    gone.iter().for_each(|(object, _)| ur_adapter::share::freed(*object, Kind::Memory));
    drop(gone); // calls the driver, so outside the lock
    if let Some(found) = found {
        return Ok(found);
    }
    let context = Arc::clone(context.native());
    let handle = Arc::new(Handle::of(&context, base)?);
    let (object, there) = (next_object(Backend::LevelZero), Arc::clone(&handle));
    all().insert(object, base, bytes, Shared { base, bytes, id, context, handle });
    Ok((object, there))
}

/// Looks up memory that is in no allocation of this adapter.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn locate(context: Borrowed<'_, Context>, at: UsmPtr) -> Result<Located<Offer>> {
    let Some(known) = known(context.driver(), at)? else { return Ok(Located::Nobodys) };
    match known.kind {
        ZE_MEMORY_TYPE_SHARED => return Ok(Located::Shared),
        ZE_MEMORY_TYPE_DEVICE => {}
        _ => return Ok(Located::Host),
    }
    let Some(device) = device_of(known.device) else { return Ok(Located::Nobodys) };
    if !context.has(&device) {
        return Ok(Located::OtherContext);
    }
    let (object, handle) = object_of(&context, &known)?;
    let payload = payload_of(&handle, 0, known.bytes);
    let offset = at.addr() - known.base as usize;
    let range = (offset, known.bytes.saturating_sub(offset));
    Ok(Located::Device(offer::<LevelZero>(
        Kind::Memory,
        object,
        (payload, device.uuid()),
        range,
        known.bytes,
    )))
}
/// Whether the memory of `object` is still the allocation that was shared.
pub(super) fn is_live(object: u64) -> bool {
    let Some(shared) = all().get(object).cloned() else { return false };
    let there = memory::known(&shared.context, shared.base);
    there.is_ok_and(|there| there.is_some_and(|there| there.id == shared.id))
}
/// The address and the length in bytes of a shared object; `None` if it was freed.
pub(super) fn find(object: u64) -> Option<(UsmPtr, usize)> {
    let shared = all().get(object).cloned()?; // the lock is not held during driver queries
    Some((UsmPtr::from_addr(shared.base as usize).filter(|_| is_live(object))?, shared.bytes))
}
/// What the driver reports for an address that is not in memory of this adapter.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn recognise(
    context: &DriverContext,
    at: UsmPtr,
) -> Result<Option<KnownMemory<Arc<DriverDevice>>>> {
    let Some(known) = known(context, at)? else { return Ok(None) };
    let kind = match known.kind {
        ZE_MEMORY_TYPE_SHARED => MemoryKind::Managed,
        ZE_MEMORY_TYPE_DEVICE => MemoryKind::Device,
        _ => MemoryKind::Host,
    };
    let base = UsmPtr::from_addr(known.base as usize).ok_or(ErrorCode::Unknown)?;
    let range = Range::new(base.into(), known.bytes)?;
    Ok(Some(KnownMemory { range, kind, device: device_of(known.device) }))
}
