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
use super::{
    DriverDevice, Family,
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
    sync::{Arc, Weak},
};
use ur_hal::{
    Address, Error, ErrorKind, Foreign, KnownMemory, MemoryKind, Range, Result, Travels,
    payload_bytes,
};
use ur_ipc::Payload;
use ur_lock::locked;

/// One allocation, or a row of adjacent mappings.
#[derive(Clone, Debug)]
pub struct Shared<D: Dialect> {
    range: Range,
    parts: Parts,
    device: Arc<DriverDevice<D>>,
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
/// How importers open the memory: what the driver reads, and the descriptors.
#[derive(Clone, Debug)]
struct Way {
    bytes: Arc<[u8]>,
    descriptors: Descriptors,
}
/// Descriptors that the export owns; when it is gone they are created anew.
#[derive(Clone, Debug)]
enum Descriptors {
    /// None: the bytes are a driver's IPC handle.
    None,
    /// A driver's pool's.
    One(Weak<OwnedFd>),
    /// One of each of several physical allocations.
    Several(Weak<[Arc<OwnedFd>]>),
}
impl Way {
    /// The payload, if the descriptors still exist.
    fn payload(&self, exposes: u64) -> Option<Payload> {
        let (base, bytes) = (0, Arc::clone(&self.bytes));
        Some(match &self.descriptors {
            Descriptors::None => Payload::Bytes(bytes),
            Descriptors::One(fd) => Payload::Driver { fd: fd.upgrade()?, base, exposes, bytes },
            Descriptors::Several(fds) => {
                Payload::DriverRun { fds: fds.upgrade()?, base, exposes, bytes }
            }
        })
    }
}

/// What the driver reports for `at`, as one piece that can be shared: of virtual memory a single mapping.
/// `None` for memory of this adapter.
fn known<D: Dialect>(context: &DriverContext<D>, at: Address) -> Result<Option<Known>> {
    if D::statics().memory.get().claims.find(at.get()).is_some() {
        return Ok(None); // memory of this adapter that is in no allocation
    }
    let (on, at) = (context.devices()[0].enter()?, at.get() as u64);
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
impl<D: Dialect> Shared<D> {
    /// As [`Foreign::is_there`], with its device's context current.
    fn is_there_on(&self, on: &Entered<D>, at: u64) -> bool {
        let is_numbered = |&(base, id): &(u64, u64)| matches!(memory::buffer_id(on, base), Ok(Some(now)) if now == id);
        match &self.parts {
            Parts::Whole(identity) => {
                let base = self.range.start().get() as u64;
                matches!(memory::identity(on, base), Ok(Some(now)) if now == *identity)
            }
            Parts::Run { ids, .. } => {
                let begun = ids.partition_point(|&(base, _)| base <= at);
                ids[begun.saturating_sub(1)..].iter().all(is_numbered)
            }
        }
    }
    /// Whether mappings were added or removed behind it since it was shared.
    fn has_changed_behind(&self, on: &Entered<D>) -> bool {
        match &self.parts {
            Parts::Whole(_) => false,
            Parts::Run { behind, .. } => {
                !matches!(memory::buffer_id_if_any(on, self.range.end() as u64), Ok(now) if now == *behind)
            }
        }
    }
}
impl<D: Dialect> Foreign<Family<D>> for Shared<D> {
    /// # Errors
    /// `InvalidValue` with the reason for device memory that cannot be shared.
    fn of(
        _: &DriverContext<D>,
        known: &KnownMemory<Arc<DriverDevice<D>>>,
        at: Address,
    ) -> Result<(Self, Travels)> {
        let device = known.device.as_ref().ok_or_else(gone)?;
        let (shared, payload) = share(device, known.range, at.get() as u64)?;
        Ok((shared, (payload, device.uuid())))
    }
    fn range(&self) -> Range {
        self.range
    }
    fn is_same(&self, other: &Self) -> bool {
        self.parts.is_same(&other.parts)
    }
    fn is_there(&self, at: Address) -> bool {
        self.device.enter().is_ok_and(|on| self.is_there_on(&on, at.get() as u64))
    }
    fn is_unchanged(&self, context: &DriverContext<D>, at: Address) -> bool {
        context.devices().contains(&self.device)
            && self.device.enter().is_ok_and(|on| {
                self.is_there_on(&on, at.get() as u64) && !self.has_changed_behind(&on)
            })
    }
    fn payload(&self) -> Option<Payload> {
        self.way.payload(self.range.bytes() as u64)
    }
}
fn gone() -> Error {
    Error::new(ErrorKind::InvalidValue, "the memory was freed while it was being shared")
}
/// Describes the memory, and creates the payload with which importers open it.
fn share<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    range: Range,
    at: u64,
) -> Result<(Shared<D>, Payload)> {
    let on = device.enter()?;
    let (base, bytes) = (range.start().get() as u64, range.bytes());
    let identity = || memory::identity(&on, base)?.ok_or_else(gone);
    let whole = |identity, bytes, descriptors| {
        let (parts, way) = (Parts::Whole(identity), Way { bytes, descriptors });
        let shared = Shared { range, parts, device: Arc::clone(device), way };
        let payload = shared.payload().ok_or_else(gone)?;
        Ok((shared, payload))
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
        let said = payload_bytes(Form::Pool as u8, &pool::export_pointer(device, base)?);
        return whole(identity, said, Descriptors::One(Arc::downgrade(&fd)));
    }
    if memory::is_legacy_shareable(&on, at)? {
        let identity = identity()?;
        let said = [&ipc::handle_of(device, base)?[..], &[0; 8]].concat();
        let said = payload_bytes(Form::Handle as u8, &said);
        return whole(identity, said, Descriptors::None);
    }
    share_run(device, &on, (base, bytes))
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
    device: &Arc<DriverDevice<D>>,
    on: &Entered<D>,
    first: (u64, usize),
) -> Result<(Shared<D>, Payload)> {
    let run = run_from(on, first, device.number())?;
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
        let exported = Physical::retain(device, one.at, one.bytes).and_then(|p| p.export());
        exported.map_err(|error| match ur_mapping::soft_limit(rustix::process::Resource::Nofile) {
            // The driver only reports "operating system call failed".
            Some(most) if run.len() as u64 + 16 > most => Error::new(
                ErrorKind::OutOfResources,
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
    let bytes = run.iter().map(|one| one.bytes).sum();
    let range = Range::new(Address::new(first.0 as usize).ok_or_else(gone)?, bytes)?;
    let descriptors = Descriptors::Several(Arc::downgrade(&fds));
    let way = Way { bytes: payload_bytes(Form::Run as u8, &said), descriptors };
    let ids = run.iter().map(|one| (one.at, one.id)).collect();
    let behind = memory::buffer_id_if_any(on, range.end() as u64)?;
    let (parts, device) = (Parts::Run { ids, behind }, Arc::clone(device));
    let shared = Shared { range, parts, device, way };
    let payload = shared.payload().ok_or_else(gone)?;
    Ok((shared, payload))
}
fn cannot(why: &str, advice: &str, said: &dyn std::fmt::Display) -> Error {
    let text = format!(
        "this memory of somebody else's in this process cannot be shared: {why}; {advice} ({said})"
    );
    Error::new(ErrorKind::InvalidValue, text)
}

/// What the driver reports for an address that is not in memory of this adapter.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn recognise<D: Dialect>(
    context: &DriverContext<D>,
    at: Address,
) -> Result<Option<KnownMemory<Arc<DriverDevice<D>>>>> {
    let Some(known) = known(context, at)? else { return Ok(None) };
    let Some(device) = device::numbered::<D>(known.device) else { return Ok(None) };
    let kind = match known {
        Known { is_managed: true, .. } => MemoryKind::Managed,
        Known { is_device: true, .. } => MemoryKind::Device,
        _ => MemoryKind::Host,
    };
    let base = Address::new(known.base as usize).ok_or(ErrorKind::Unknown)?;
    let range = Range::new(base, known.bytes)?;
    Ok(Some(KnownMemory { range, kind, device: Some(device.clone()) }))
}
