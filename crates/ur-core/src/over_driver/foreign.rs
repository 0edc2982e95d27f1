//! Device memory that other code in this process allocated, such as PyTorch, CuPy or a library: what was shared of it,
//! by object number. How it is exported, and whether it still exists, is the driver's knowledge
//! ([`Foreign`]), because its owner does not announce frees.
use super::{
    DriverDevice,
    offer::offer,
    usm_pool::{Context, HasUsm},
};
use crate::memory::{objects::next_object, of_others::OfOthers};
use std::{
    iter::successors,
    sync::{Mutex, MutexGuard},
};
use ur_adapter::{
    error::Result,
    memory::UsmPtr,
    object::Borrowed,
    share::{Located, freed},
};
use ur_hal::{Address, Foreign, KnownMemory, MemoryKind, Travels};
use ur_ipc::{Kind, Offer};
use ur_lock::locked;

/// What was shared, and the UUID of the device on which it is located.
type Shared<D> = (<D as ur_hal::Shares>::Foreign, [u8; 16]);

fn all<D: HasUsm>() -> MutexGuard<'static, OfOthers<Shared<D>>> {
    locked(D::statics().of_process::<Mutex<OfOthers<Shared<D>>>>())
}
fn start_and_bytes<D: HasUsm>(shared: &D::Foreign) -> (u64, usize) {
    let range = shared.range();
    (range.start().get() as u64, range.bytes())
}
/// The offer of what is shared, from `at` to its end.
fn located<D: HasUsm>(
    object: u64,
    shared: &D::Foreign,
    travels: Travels,
    at: Address,
) -> Located<Offer> {
    let (offset, bytes) = (at.get() - shared.range().start().get(), shared.range().bytes());
    let range = (offset, bytes.saturating_sub(offset));
    Located::Device(offer::<D>(Kind::Memory, object, travels, range, bytes))
}
/// Looks up memory that is in no allocation of this adapter.
///
/// # Errors
/// `INVALID_VALUE` with the reason for device memory that cannot be shared. Returns the driver's error, mapped as in
/// `error.rs`.
pub(super) fn locate<D: HasUsm>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
) -> Result<Located<Offer>> {
    let at = at.into();
    if let Some(again) = locate_again(context, at) {
        return Ok(again);
    }
    let Some(known) = D::recognise(context.driver(), at)? else { return Ok(Located::Nobodys) };
    let device = match &known {
        KnownMemory { kind: MemoryKind::Managed, .. } => return Ok(Located::Shared),
        KnownMemory { kind: MemoryKind::Host, .. } => return Ok(Located::Host),
        KnownMemory { device: Some(device), .. } => device,
        KnownMemory { device: None, .. } => return Ok(Located::Nobodys),
    };
    let is_of_context =
        |one: &DriverDevice<D>| context.devices().iter().any(|own| own.driver() == one);
    if !successors(Some(device.clone()), D::parent).any(|one| is_of_context(&one)) {
        return Ok(Located::OtherContext);
    }
    let (shared, travels) = D::Foreign::of(context.driver(), &known, at)?;
    let object = object_of::<D>(&shared, travels.1);
    Ok(located::<D>(object, &shared, travels, at))
}
/// The object number for shared memory: that of the same memory if it was shared before, else a new one. Ends the
/// exports of overlapping memory that has been freed. Overlapping memory that still exists is kept: a segment may have
/// been extended.
fn object_of<D: HasUsm>(fresh: &D::Foreign, device: [u8; 16]) -> u64 {
    let (base, bytes) = start_and_bytes::<D>(fresh);
    let (mut found, mut suspects) = (None, vec![]);
    for (object, (one, on)) in all::<D>().touching(base, bytes) {
        match start_and_bytes::<D>(one) == (base, bytes) && *on == device && one.is_same(fresh) {
            true => found = Some(object),
            false => suspects.push((object, one.clone())),
        }
    }
    suspects.retain(|(_, one)| !one.is_there(one.range().start())); // the lock is not held during driver queries
    let object = found.unwrap_or_else(|| next_object(D::BACKEND));
    let mut all = all::<D>();
    let gone: Vec<_> = suspects.iter().map(|(object, _)| all.remove(*object)).collect();
    let before = all.insert(object, base, bytes, (fresh.clone(), device));
    drop(all);
    drop((gone, before)); // may call the driver, so outside the lock
    suspects.into_iter().for_each(|(object, _)| freed(object, Kind::Memory));
    object
}
/// Looks up memory that was shared before, still exists, and still has an export; else `None`.
fn locate_again<D: HasUsm>(
    context: Borrowed<'_, Context<D>>,
    at: Address,
) -> Option<Located<Offer>> {
    let end = |one: &D::Foreign| one.range().end();
    // Of overlapping records, the one that reaches farthest, because the caller's memory may reach as far. Of those the
    // one that starts last, because the driver has the least to query.
    let known = all::<D>()
        .touching(at.get() as u64, 1)
        .filter_map(|(object, (one, uuid))| Some((object, one.clone(), (one.payload()?, *uuid))))
        .max_by_key(|(_, one, _)| (end(one), one.range().start().get()));
    let (object, shared, travels) = known?; // the lock is not held during driver queries
    shared.is_unchanged(context.driver(), at).then(|| located::<D>(object, &shared, travels, at))
}
/// Whether `object` still stands for existing memory: no other thread has found it freed since it was located. A thread
/// that finds it freed first removes the record and then notifies importers, so this check after an export was created
/// catches the race.
pub(super) fn is_live<D: HasUsm>(object: u64) -> bool {
    all::<D>().get(object).is_some()
}
/// The address and length in bytes of a shared object, if it is unchanged from `offset` on; `None` if it was freed.
pub(super) fn find<D: HasUsm>(object: u64, offset: u64) -> Option<(UsmPtr, usize)> {
    let (shared, _) = all::<D>().get(object).cloned()?; // the lock is not held during driver queries
    let (base, bytes) = (shared.range().start(), shared.range().bytes());
    let at = Address::new(base.get().saturating_add(usize::try_from(offset).ok()?))?;
    shared.is_there(at).then(|| (base.into(), bytes))
}
