//! Host memory that C allocated itself and made known as USM: registered, or imported. A processor
//! reaches it as it is, so all there is to do is to remember it, for `urUSMGetMemAllocInfo`.
use super::{Context, device::the_device, memory::Allocation};
use crate::memory::maps::is_mapped;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::Owned,
    per_process::PerProcess,
};
use ur_sys::{ur_usm_alloc_info_t, ur_usm_type_t};

/// How a range became known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    /// By `urUSMHostAllocRegisterExp`.
    Registered,
    /// By `urUSMImportExp`.
    Imported,
}
#[derive(Clone, Copy, Debug)]
struct Known {
    bytes: usize,
    context: usize,
    how: How,
}
impl Known {
    /// Whether C still has the context: a registration ends with it.
    fn has_context(&self) -> bool {
        Owned::<Context>::find(self.context).is_ok()
    }
}
/// By first address; no two overlap.
type All = Mutex<BTreeMap<usize, Known>>;
static ALL: PerProcess<All> = PerProcess::new();
fn all() -> MutexGuard<'static, BTreeMap<usize, Known>> {
    ALL.get().lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused<T>(why: String) -> Result<T> {
    Err(Error::new(ErrorCode::InvalidValue, why))
}
/// The parts of `all` that have a byte of `[start, end)`.
fn overlapping(
    all: &BTreeMap<usize, Known>,
    start: usize,
    end: usize,
) -> impl Iterator<Item = (usize, Known)> {
    let backwards = all.range(..end).rev().map(|(&at, &known)| (at, known));
    backwards.take_while(move |(at, known)| at + known.bytes > start)
}

/// Where `bytes` from `at` on end, if they are a range of memory.
fn end(at: UsmPtr, bytes: usize) -> Option<usize> {
    let is_size = bytes > 0 && isize::try_from(bytes).is_ok();
    at.addr().checked_add(bytes).filter(|_| is_size)
}

/// Registers `bytes` at `at` with the context that has this handle.
///
/// # Errors
/// `INVALID_VALUE` for no bytes, for what wraps around, is not mapped, is USM or known already.
pub(super) fn register(context: usize, at: UsmPtr, bytes: usize) -> Result<()> {
    let Some(end) = end(at, bytes) else {
        return refused(format!("{bytes} bytes from {at:?} on are no range of memory"));
    };
    if Allocation::touches(at, bytes) {
        return refused(format!("{bytes} bytes from {at:?} on are USM already, in part at least"));
    }
    if !is_mapped(at.addr(), end) {
        return refused(format!("{bytes} bytes from {at:?} on are not all there: allocate first"));
    }
    let mut all = all();
    let in_the_way =
        |(_, known): &(usize, Known)| known.how == How::Registered && known.has_context();
    if let Some((other, known)) = overlapping(&all, at.addr(), end).find(in_the_way) {
        return refused(format!(
            "{bytes} bytes from {at:?} on overlap the {} registered at {other:#x}: unregister \
             those first",
            known.bytes
        ));
    }
    // What was only imported gives way, as does what a context left that is gone.
    all.retain(|&start, known| start >= end || start + known.bytes <= at.addr());
    all.insert(at.addr(), Known { bytes, context, how: How::Registered });
    Ok(())
}
/// Ends the registration that starts at `at`.
///
/// # Errors
/// `INVALID_VALUE` where none does, or another context's.
pub(super) fn unregister(context: usize, at: UsmPtr) -> Result<()> {
    let mut all = all();
    match all.get(&at.addr()) {
        Some(known) if known.how == How::Registered && known.context == context => {
            all.remove(&at.addr());
            Ok(())
        }
        Some(known) if known.how == How::Registered => {
            refused(format!("{at:?} was registered with another context: unregister it there"))
        }
        _ => refused(format!("no registered host memory starts at {at:?}")),
    }
}

/// Takes note of `bytes` at `at`. A hint: what is known already, or USM, stays as it is.
///
/// # Errors
/// `INVALID_SIZE` for no bytes and for what wraps around.
pub(super) fn import(context: usize, at: UsmPtr, bytes: usize) -> Result<()> {
    let Some(end) = end(at, bytes) else {
        let why = format!("{bytes} bytes from {at:?} on are no range of memory to import");
        return Err(Error::new(ErrorCode::InvalidSize, why));
    };
    let mut all = all();
    if overlapping(&all, at.addr(), end).next().is_none() && !Allocation::touches(at, bytes) {
        all.insert(at.addr(), Known { bytes, context, how: How::Imported });
    }
    Ok(())
}
/// Forgets what was imported at `at`; nothing where nothing was.
pub(super) fn release(context: usize, at: UsmPtr) {
    let mut all = all();
    let is_it = |known: &Known| known.how == How::Imported && known.context == context;
    if all.get(&at.addr()).is_some_and(is_it) {
        all.remove(&at.addr());
    }
}
/// Answers for an address in memory that `context` knows; `None` for any other.
pub(super) fn info(
    context: usize,
    at: UsmPtr,
    name: ur_usm_alloc_info_t,
    answer: &mut Answer<'_>,
) -> Option<Result<()>> {
    let (base, known) = {
        let all = all();
        overlapping(&all, at.addr(), at.addr().saturating_add(1)).next()?
    };
    if known.context != context {
        return None;
    }
    Some(match name {
        ur_usm_alloc_info_t::TYPE => answer.value(&ur_usm_type_t::HOST.0),
        ur_usm_alloc_info_t::BASE_PTR => answer.value(&base),
        ur_usm_alloc_info_t::SIZE => answer.value(&known.bytes),
        ur_usm_alloc_info_t::DEVICE => answer.handle(&the_device()),
        ur_usm_alloc_info_t::POOL => answer.value(&0_usize),
        _ => Err(ErrorCode::UnsupportedEnumeration.into()),
    })
}
