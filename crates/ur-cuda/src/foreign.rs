//! Device memory that other code in this process allocated, such as PyTorch, CuPy or a library. How it is
//! shared with other processes depends on what the driver reports for it: memory of a driver's pool by the
//! pool's descriptor, classic allocations by the driver's IPC handle, virtual memory by descriptors of its
//! physical memory. For memory that cannot be shared, the error says why.
//!
//! We are not told when other libraries free memory. That memory was freed, and other memory allocated or
//! mapped at the same addresses, is recognised by the buffer id: the driver gives every allocation and every
//! mapping a number that is never reused. Memory that was shared before is shared again (a warm get) only if
//! the numbers from the given address on are unchanged, which every such call queries: one query for an
//! allocation; for a segment of virtual memory one for each mapping at or behind the address, and one for
//! what follows the end of the segment. Mappings before the address are not queried, because a handle stands
//! for the bytes from its address on. If memory was replaced, that call ends its export: later opens in
//! importers fail, also of handles for addresses behind it. An importer that has the memory open keeps what
//! was there when it opened it, as after every free.
//!
//! # The cost of a warm get of a segment, and why it is not constant
//!
//! On an H200 a query takes 64 ns. So 48 mappings take 3.1 us on top of the 1.3 us of every warm get, which
//! is more than the 2 us for other memory. Fewer queries would miss changes:
//! - The entry gets an address without a length, and no driver call tells how far the owner's allocation
//!   reaches within a segment. So everything from the address to the segment's end matters, and any single
//!   mapping in it may have been replaced (PyTorch does this when it releases free parts of a segment).
//! - No query covers several mappings. `cuPointerGetAttributes` returns several attributes of one address;
//!   `cuMemGetAddressRange` and the range attributes describe the reservation, which stays when a mapping in
//!   it is replaced; `cuMemGetAccess` and `cuMemRetainAllocationHandle` also take one address, and are
//!   slower.
//! - Holding a reference does not help: a retained handle keeps physical memory from being freed, but does
//!   not keep a mapping from being replaced by another one, and the driver reports neither.
//! - Buffer ids ascend, but the driver has no query for the latest one, and unmapping takes none.
use super::DriverDevice;
use super::{
    Context, Family,
    context::DriverContext,
    device,
    driver::Dialect,
    native::{
        context::Entered,
        ipc,
        memory::{self, Identity, Known},
        pool::{self, DriverPool},
        virtual_memory::Physical,
    },
    share::{Form, lengths_for_offer},
};
use std::{
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, Weak},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
    share::Located,
};
use ur_core::memory::{objects::next_object, of_others::OfOthers};
use ur_core::over_driver::{
    Contexts,
    share::{bytes_of, offer},
};
use ur_hal::{KnownMemory, MemoryKind, Range};
use ur_ipc::{Kind, Offer, Payload};
use ur_lock::locked;

/// What was shared of memory that other code allocated, by object number.
pub(super) type All = Mutex<OfOthers<Shared>>;
/// One allocation, or a row of adjacent mappings.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    base: u64,
    bytes: usize,
    parts: Parts,
    /// The driver's number of the device.
    device: i32,
    /// How importers open it; descriptors are held only as long as an export of it exists.
    way: Way,
}
/// What identifies the memory.
#[derive(Clone, Debug)]
enum Parts {
    /// A single allocation.
    Whole(Identity),
    /// Adjacent mappings.
    Run {
        /// The start address and the buffer id of each.
        ids: Arc<[(u64, u64)]>,
        /// The buffer id of what follows the last mapping; `None` for nothing. It changes if a mapping is
        /// added there.
        behind: Option<u64>,
    },
}
impl Parts {
    /// Whether both are the same memory, regardless of what follows it.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => one == other,
            (Self::Run { ids: one, .. }, Self::Run { ids: other, .. }) => one == other,
            _ => false,
        }
    }
}
/// How importers open the memory. The export owns the descriptors; when it is gone they are created anew.
#[derive(Clone, Debug)]
enum Way {
    /// A driver's pool, and the export data of the allocation in it.
    Pool(Weak<OwnedFd>, Arc<[u8]>),
    /// A driver's IPC handle.
    Handle(Arc<[u8]>),
    /// Several physical allocations, each with a descriptor, and their lengths.
    Run(Weak<[Arc<OwnedFd>]>, Arc<[u8]>),
}
impl Way {
    /// A pool's allocation: what to keep, and the payload of the export.
    fn pool(fd: Arc<OwnedFd>, bytes: Arc<[u8]>, exposes: u64) -> (Self, Payload) {
        let way = Self::Pool(Arc::downgrade(&fd), Arc::clone(&bytes));
        (way, Payload::Driver { fd, base: 0, exposes, bytes })
    }
    fn handle(bytes: Arc<[u8]>) -> (Self, Payload) {
        (Self::Handle(Arc::clone(&bytes)), Payload::Bytes(bytes))
    }
    fn run(fds: Arc<[Arc<OwnedFd>]>, bytes: Arc<[u8]>, exposes: u64) -> (Self, Payload) {
        let way = Self::Run(Arc::downgrade(&fds), Arc::clone(&bytes));
        (way, Payload::DriverRun { fds, base: 0, exposes, bytes })
    }
    fn again(&self, exposes: u64) -> Option<Payload> {
        Some(match self {
            Self::Pool(fd, bytes) => {
                Payload::Driver { fd: fd.upgrade()?, base: 0, exposes, bytes: Arc::clone(bytes) }
            }
            Self::Handle(bytes) => Payload::Bytes(Arc::clone(bytes)),
            Self::Run(fds, bytes) => Payload::DriverRun {
                fds: fds.upgrade()?,
                base: 0,
                exposes,
                bytes: Arc::clone(bytes),
            },
        })
    }
}
fn all<D: Dialect>() -> MutexGuard<'static, OfOthers<Shared>> {
    locked(&D::statics().memory.get().foreign)
}
fn device_of<D: Dialect>(number: i32) -> Option<&'static Arc<DriverDevice<D>>> {
    device::all::<D>().iter().find(|device| device.number() == number)
}

/// What the driver reports for `at`, as one piece that can be shared: of virtual memory a single mapping.
/// `None` for memory of this adapter.
fn known<D: Dialect>(context: &DriverContext<D>, at: UsmPtr) -> Result<Option<Known>> {
    if D::statics().memory.get().claims.has(at.addr()) {
        return Ok(None); // memory of this adapter that is in no allocation
    }
    let (on, at) = (context.devices()[0].enter()?, at.addr() as u64);
    let Some(mut known) = memory::known(&on, at)? else { return Ok(None) };
    let pool = memory::pool_of(&on, at)?;
    let ours = &D::statics().memory.get().pools;
    let is_ours = |raw| locked(ours).contains(&raw);
    if pool.is_some_and(is_ours) {
        return Ok(None); // an asynchronous free that the stream has not executed yet
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
/// The object number for shared memory: that of the same memory if it was shared before, else a new one. Ends
/// the exports of overlapping memory that has been freed. Overlapping memory that still exists is kept: a
/// segment may have been extended.
fn object_of<D: Dialect>(fresh: Shared) -> u64 {
    let same = |one: &Shared| {
        (one.base, one.bytes, one.device) == (fresh.base, fresh.bytes, fresh.device)
            && one.parts.is_same(&fresh.parts)
    };
    let (mut found, mut suspects) = (None, vec![]);
    for (object, one) in all::<D>().touching(fresh.base, fresh.bytes) {
        match same(one) {
            true => found = Some(object),
            false => suspects.push((object, one.clone())),
        }
    }
    suspects.retain(|(_, one)| !is_there::<D>(one, one.base)); // the lock is not held during driver queries
    let object = found.unwrap_or_else(|| next_object(<Family<D> as Contexts>::BACKEND));
    let mut all = all::<D>();
    suspects.iter().for_each(|(object, _)| drop(all.remove(*object)));
    all.insert(object, fresh.base, fresh.bytes, fresh);
    drop(all);
    suspects.into_iter().for_each(|(object, _)| ur_adapter::share::freed(object, Kind::Memory));
    object
}
/// Whether the memory from `at` on is still what was shared.
fn is_there<D: Dialect>(shared: &Shared, at: u64) -> bool {
    let Some(device) = device_of::<D>(shared.device) else { return false };
    let Ok(on) = device.enter() else { return false };
    is_there_on(&on, shared, at)
}
fn is_there_on<D: Dialect>(on: &Entered<D>, shared: &Shared, at: u64) -> bool {
    let is_numbered = |&(base, id): &(u64, u64)| matches!(memory::buffer_id(on, base), Ok(Some(now)) if now == id);
    match &shared.parts {
        Parts::Whole(identity) => {
            matches!(memory::identity(on, shared.base), Ok(Some(now)) if now == *identity)
        }
        Parts::Run { ids, .. } => {
            let begun = ids.partition_point(|&(base, _)| base <= at);
            ids[begun.saturating_sub(1)..].iter().all(is_numbered)
        }
    }
}
/// Whether mappings were added or removed behind it since it was shared.
fn has_changed_behind<D: Dialect>(on: &Entered<D>, shared: &Shared) -> bool {
    match &shared.parts {
        Parts::Whole(_) => false,
        Parts::Run { behind, .. } => {
            let end = shared.base + shared.bytes as u64;
            !matches!(memory::buffer_id_if_any(on, end), Ok(now) if now == *behind)
        }
    }
}
/// Describes the memory, and creates the payload with which importers open it.
fn share<D: Dialect>(
    device: &DriverDevice<D>,
    known: &Known,
    at: u64,
) -> Result<(Shared, Payload)> {
    let on = device.enter()?;
    let Known { base, bytes, device: number, .. } = *known;
    let gone =
        || Error::new(ErrorCode::InvalidValue, "the memory was freed while it was being shared");
    let identity = || memory::identity(&on, base)?.ok_or_else(gone);
    let whole = |identity, (way, payload)| {
        (Shared { base, bytes, parts: Parts::Whole(identity), device: number, way }, payload)
    };
    if let Some(raw) = memory::pool_of(&on, at)? {
        let identity = identity()?;
        let from = DriverPool::borrowed(device, raw)?;
        let fd = from.export(device).map_err(|error| {
            cannot(
                "its memory pool was not made to be shared",
                "create the pool with POSIX handle \
                   types (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)",
                &error,
            )
        })?;
        let said = bytes_of(Form::Pool as u8, &pool::export_pointer(device, base)?);
        return Ok(whole(identity, Way::pool(fd, said, bytes as u64)));
    }
    if memory::is_legacy_shareable(&on, at)? {
        let identity = identity()?;
        let said = [&ipc::handle_of(device, base)?[..], &[0; 8]].concat();
        return Ok(whole(identity, Way::handle(bytes_of(Form::Handle as u8, &said))));
    }
    share_run(device, &on, (base, bytes), number)
}
/// Why virtual memory cannot be shared.
const UNEXPORTABLE: &str = "it is virtual memory whose handles were not made to be exported";
const ADVICE: &str = "have it allocate with POSIX handle types (PyTorch: TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC=1, \
                      or expandable_segments:False), or copy to device USM";
/// A mapping of physical memory: its start, its length in bytes, and its buffer id.
struct Mapping {
    at: u64,
    bytes: usize,
    id: u64,
}
/// The mapping at `first` and those that follow it without a gap, as far as they are on the same device and
/// can be exported. The owner's allocation may end before, but there is no way to query where.
fn run_from<D: Dialect>(on: &Entered<D>, first: (u64, usize), device: i32) -> Result<Vec<Mapping>> {
    let (mut run, mut next) = (Vec::<Mapping>::new(), Some(first));
    while let Some((at, bytes)) = next {
        let id = memory::buffer_id(on, at)?;
        let is_ours = run.is_empty() || memory::device_of(on, at)? == Some(device);
        let Some(id) = id.filter(|_| is_ours) else { break };
        if !memory::has_descriptor(on, at)? {
            break;
        }
        if run.len() == ur_ipc::MOST_DESCRIPTORS {
            return Err(cannot(
                "it lies in a row of more than 4,096 physical allocations",
                "allocate it from a segment of its own, or copy to device USM",
                &"each of them is a descriptor",
            ));
        }
        run.push(Mapping { at, bytes, id });
        let end = at + bytes as u64;
        next = memory::mapping_of(on, end)?.filter(|&(base, _)| base == end);
    }
    Ok(run)
}
fn share_run<D: Dialect>(
    device: &DriverDevice<D>,
    on: &Entered<D>,
    first: (u64, usize),
    number: i32,
) -> Result<(Shared, Payload)> {
    let run = run_from(on, first, number)?;
    if run.is_empty() {
        return Err(cannot(UNEXPORTABLE, ADVICE, &"the driver allows no descriptor of it"));
    }
    let said = lengths_for_offer(run.iter().map(|one| one.bytes)).ok_or_else(|| {
        cannot(
            "it lies in a row of physical allocations of many different lengths",
            "allocate it from a segment of its own, or copy to device USM",
            &"more than 21 changes of length",
        )
    })?;
    let descriptor = |one: &Mapping| {
        let exported = Physical::retain(device, one.at, one.bytes).and_then(|p| p.export(device));
        exported.map_err(|error| match ur_mapping::soft_limit(rustix::process::Resource::Nofile) {
            // The driver only reports "operating system call failed".
            Some(most) if run.len() as u64 + 16 > most => Error::new(
                ErrorCode::OutOfResources,
                format!(
                    "this memory consists of {} physical allocations, each of them a descriptor, and this \
                     process may have {most} open: raise the limit (ulimit -n) here and where it is opened \
                     ({error})",
                    run.len()
                ),
            ),
            _ => cannot(UNEXPORTABLE, ADVICE, &error),
        })
    };
    let fds: Arc<[_]> = run.iter().map(descriptor).collect::<Result<Vec<_>>>()?.into();
    let (base, bytes) = (first.0, run.iter().map(|one| one.bytes).sum());
    let (way, payload) = Way::run(fds, bytes_of(Form::Run as u8, &said), bytes as u64);
    let ids = run.iter().map(|one| (one.at, one.id)).collect();
    let behind = memory::buffer_id_if_any(on, base + bytes as u64)?;
    Ok((Shared { base, bytes, parts: Parts::Run { ids, behind }, device: number, way }, payload))
}
fn cannot(why: &str, advice: &str, said: &dyn std::fmt::Display) -> Error {
    let text = format!(
        "this memory of somebody else's in this process cannot be shared: {why}; {advice} ({said})"
    );
    Error::new(ErrorCode::InvalidValue, text)
}

/// Looks up memory that is in no allocation of this adapter.
///
/// # Errors
/// `INVALID_VALUE` with the reason for device memory that cannot be shared; else the driver's error.
pub(super) fn locate<D: Dialect>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
) -> Result<Located<Offer>> {
    if let Some(again) = locate_again(&*context, at) {
        return Ok(again);
    }
    let Some(known) = known(context.driver(), at)? else { return Ok(Located::Nobodys) };
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
    let (shared, payload) = share(device, &known, at.addr() as u64)?;
    let (base, bytes) = (shared.base as usize, shared.bytes);
    let offset = at.addr() - base;
    let range = (offset, bytes.saturating_sub(offset));
    let (object, uuid) = (object_of::<D>(shared), device.uuid());
    Ok(Located::Device(offer::<Family<D>>(Kind::Memory, object, (payload, uuid), range, bytes)))
}
/// Looks up memory that was shared before, still exists, and still has an export; else `None`.
fn locate_again<D: Dialect>(context: &Context<D>, at: UsmPtr) -> Option<Located<Offer>> {
    let address = at.addr() as u64;
    let end = |one: &Shared| one.base + one.bytes as u64;
    let exported = |(object, one): (u64, &Shared)| {
        let payload = one.way.again(one.bytes as u64)?;
        Some((object, one.clone(), payload))
    };
    // Of overlapping records, the one that reaches farthest, because the caller's memory may reach as far. Of
    // those the one that starts last, because it has the fewest mappings to query.
    let known = all::<D>()
        .touching(address, 1)
        .filter_map(exported)
        .max_by_key(|(_, one, _)| (end(one), one.base));
    let (object, shared, payload) = known?; // the lock is not held during driver queries
    let device = context.devices().iter().find(|one| one.number() == shared.device)?;
    let on = device.enter().ok()?;
    if !is_there_on(&on, &shared, address) || has_changed_behind(&on, &shared) {
        return None;
    }
    let offset = (address - shared.base) as usize;
    let (range, size) = ((offset, shared.bytes - offset), shared.bytes);
    Some(Located::Device(offer::<Family<D>>(
        Kind::Memory,
        object,
        (payload, device.uuid()),
        range,
        size,
    )))
}
/// Whether `object` still stands for existing memory: no other thread has found it freed since it was
/// located. A thread that finds it freed first removes the record and then notifies importers, so this check
/// after an export was created catches the race.
pub(super) fn is_live<D: Dialect>(object: u64) -> bool {
    all::<D>().get(object).is_some()
}
/// The address and length in bytes of a shared object, if it is unchanged from `offset` on; `None` if it was freed.
pub(super) fn find<D: Dialect>(object: u64, offset: u64) -> Option<(UsmPtr, usize)> {
    let shared = all::<D>().get(object).cloned()?; // the lock is not held during driver queries
    let is_same = is_there::<D>(&shared, shared.base.saturating_add(offset));
    Some((UsmPtr::from_addr(shared.base as usize).filter(|_| is_same)?, shared.bytes))
}
/// What the driver reports for an address that is not in memory of this adapter.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn recognise<D: Dialect>(
    context: &DriverContext<D>,
    at: UsmPtr,
) -> Result<Option<KnownMemory<Arc<DriverDevice<D>>>>> {
    let Some(known) = known(context, at)? else { return Ok(None) };
    let Some(device) = device_of::<D>(known.device) else { return Ok(None) };
    let kind = match known {
        Known { is_managed: true, .. } => MemoryKind::Managed,
        Known { is_device: true, .. } => MemoryKind::Device,
        _ => MemoryKind::Host,
    };
    let base = UsmPtr::from_addr(known.base as usize).ok_or(ErrorCode::Unknown)?;
    let range = Range::new(base.into(), known.bytes)?;
    Ok(Some(KnownMemory { range, kind, device: Some(device.clone()) }))
}
