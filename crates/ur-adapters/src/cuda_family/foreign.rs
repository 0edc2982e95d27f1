//! Device memory that somebody else in this process allocated: PyTorch, CuPy, a library. What the driver
//! says of it decides how it is shared: a driver's pool by its descriptor, the old kind by the old
//! handle, virtual memory by its own descriptor. What cannot be shared is an error that says why.
//!
//! Nobody tells us of a free: that memory was freed shows in the number that the driver gives to each
//! allocation once.
use super::{
    Context, Device,
    allocation::next_object,
    device,
    driver::Dialect,
    native::{
        ipc,
        memory::{self, Known},
        pool::{self, DriverPool},
        virtual_memory::Physical,
    },
    share::{Form, bytes_of, offer},
};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
    share::Located,
};
use ur_ipc::{Kind, Offer, Payload};
use ur_sys::{ur_usm_alloc_info_t, ur_usm_type_t};

/// What was shared of others' memory, by object.
pub(super) type All = Mutex<HashMap<u64, Shared>>;
/// One allocation of somebody's, or one mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    base: u64,
    bytes: usize,
    /// The driver's number of the allocation.
    id: u64,
    /// The driver's number of the device.
    device: i32,
}
fn all<D: Dialect>() -> MutexGuard<'static, HashMap<u64, Shared>> {
    D::statics().memory.get().foreign.lock().unwrap_or_else(PoisonError::into_inner)
}
fn device_of<D: Dialect>(number: i32) -> Option<&'static Owned<Device<D>>> {
    device::all::<D>().iter().find(|device| device.number() == number)
}

/// What the driver knows of `at`, as one piece that can be shared: of virtual memory, one mapping.
fn known<D: Dialect>(context: &Context<D>, at: UsmPtr) -> Result<Option<Known>> {
    if D::statics().memory.get().has(at.addr()) {
        return Ok(None); // ours, and in no allocation
    }
    let (on, at) = (context.devices()[0].enter()?, at.addr() as u64);
    let Some(mut known) = memory::known(&on, at)? else { return Ok(None) };
    let pool = memory::pool_of(&on, at)?;
    let ours = &D::statics().memory.get().pools;
    let is_ours = |raw| ours.lock().unwrap_or_else(PoisonError::into_inner).contains(&raw);
    if pool.is_some_and(is_ours) {
        return Ok(None); // freed in a stream's order, and the stream has not come so far
    }
    if known.is_device
        && !known.is_managed
        && pool.is_none()
        && !memory::is_legacy_shareable(&on, at)?
        && let Some((base, bytes)) = memory::mapping_of(&on, at)?
    {
        (known.base, known.bytes) = (base, bytes);
    }
    Ok(Some(known))
}
/// The object that stands for an allocation of somebody's. What was freed there before is told to whoever
/// was told of it.
fn object_of<D: Dialect>(known: &Known) -> u64 {
    let mut all = all::<D>();
    let end = known.base + known.bytes as u64;
    let same = |one: &Shared| (one.base, one.id) == (known.base, known.id);
    let stale =
        |one: &Shared| !same(one) && one.base < end && known.base < one.base + one.bytes as u64;
    let gone: Vec<_> = all.iter().filter(|(_, one)| stale(one)).map(|(&o, _)| o).collect();
    all.retain(|object, _| !gone.contains(object));
    let found = all.iter().find(|(_, one)| same(one)).map(|(&object, _)| object);
    let object = found.unwrap_or_else(next_object::<D>);
    let Known { base, bytes, id, device, .. } = *known;
    all.insert(object, Shared { base, bytes, id, device });
    drop(all);
    gone.into_iter().for_each(|object| ur_ipc::freed(object, Kind::Memory));
    object
}
/// How others can open it.
fn payload<D: Dialect>(device: &Device<D>, known: &Known, at: u64) -> Result<Payload> {
    let on = device.enter()?;
    if let Some(raw) = memory::pool_of(&on, at)? {
        let from = DriverPool::borrowed(device, raw)?;
        let fd = from.export(device).map_err(|error| {
            cannot(
                "its memory pool was not made to be shared",
                "create the pool with POSIX handle \
                   types (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)",
                &error,
            )
        })?;
        let bytes = bytes_of(Form::Pool, &pool::export_pointer(device, known.base)?);
        return Ok(Payload::Driver { fd, base: 0, exposes: known.bytes as u64, bytes });
    }
    if memory::is_legacy_shareable(&on, at)? {
        let said = [&ipc::handle_of(device, known.base)?[..], &[0; 8]].concat();
        return Ok(Payload::Bytes(bytes_of(Form::Handle, &said)));
    }
    let advice = "have it allocate with POSIX handle types (PyTorch: \
                  TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC=1, or expandable_segments:False), or copy to \
                  device USM";
    let why = "it is virtual memory whose handles were not made to be exported";
    if !memory::has_descriptor(&on, at)? {
        return Err(cannot(why, advice, &"the driver allows no descriptor of it"));
    }
    let physical = Physical::retain(device, at, known.bytes);
    let fd = physical.and_then(|physical| physical.export(device));
    let fd = fd.map_err(|error| cannot(why, advice, &error))?;
    let (bytes, exposes) = (bytes_of(Form::Physical, &[]), known.bytes as u64);
    Ok(Payload::Driver { fd, base: 0, exposes, bytes })
}
fn cannot(why: &str, advice: &str, said: &dyn std::fmt::Display) -> Error {
    let text = format!(
        "this memory of somebody else's in this process cannot be shared: {why}; {advice} ({said})"
    );
    Error::new(ErrorCode::InvalidValue, text)
}

/// What is at an address that is in no allocation of ours.
///
/// # Errors
/// `INVALID_VALUE` for device memory that cannot be shared, with the reason; the driver's own.
pub(super) fn locate<D: Dialect>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
) -> Result<Located<Offer>> {
    let Some(known) = known(&*context, at)? else { return Ok(Located::Nobodys) };
    if known.is_managed {
        return Ok(Located::Shared);
    }
    if !known.is_device {
        return Ok(Located::Host);
    }
    let Some(device) = device_of::<D>(known.device) else { return Ok(Located::Nobodys) };
    if !context.devices().iter().any(|one| one.number() == known.device) {
        return Ok(Located::OtherContext);
    }
    let payload = payload(device, &known, at.addr() as u64)?;
    let offset = at.addr() - known.base as usize;
    let range = (offset, known.bytes.saturating_sub(offset));
    let (object, uuid) = (object_of::<D>(&known), device.uuid());
    Ok(Located::Device(offer::<D>(Kind::Memory, object, uuid, range, known.bytes, payload)))
}
/// Whether what `object` stands for is what it was when it was shared.
pub(super) fn is_live<D: Dialect>(object: u64) -> bool {
    let Some(shared) = all::<D>().get(&object).copied() else { return false };
    let there = || {
        let on = device_of::<D>(shared.device)?.enter().ok()?;
        memory::buffer_id(&on, shared.base).ok()?
    };
    there() == Some(shared.id)
}
/// Where it is, and how long.
///
/// # Errors
/// `INVALID_VALUE` for what was freed.
pub(super) fn find<D: Dialect>(object: u64) -> Result<(UsmPtr, usize)> {
    let freed = || Error::new(ErrorCode::InvalidValue, "the memory was freed");
    let shared = all::<D>().get(&object).copied(); // and no lock while the driver is asked
    let shared = shared.filter(|_| is_live::<D>(object)).ok_or_else(freed)?;
    Ok((UsmPtr::from_addr(shared.base as usize).ok_or_else(freed)?, shared.bytes))
}
/// Answers for an address that the driver knows; `None` for any other.
///
/// # Errors
/// The driver's own.
pub(super) fn info<D: Dialect>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
    name: ur_usm_alloc_info_t,
    answer: &mut Answer<'_>,
) -> Result<Option<Result<()>>> {
    let Some(known) = known(&*context, at)? else { return Ok(None) };
    let Some(device) = device_of::<D>(known.device) else { return Ok(None) };
    let kind = match known {
        Known { is_managed: true, .. } => ur_usm_type_t::SHARED,
        Known { is_device: true, .. } => ur_usm_type_t::DEVICE,
        _ => ur_usm_type_t::HOST,
    };
    Ok(Some(match name {
        ur_usm_alloc_info_t::TYPE => answer.value(&kind.0),
        ur_usm_alloc_info_t::BASE_PTR => answer.value(&(known.base as usize)),
        ur_usm_alloc_info_t::SIZE => answer.value(&known.bytes),
        ur_usm_alloc_info_t::DEVICE => answer.handle(device),
        ur_usm_alloc_info_t::POOL => answer.value(&0_usize),
        _ => Err(ErrorCode::UnsupportedEnumeration.into()),
    }))
}
