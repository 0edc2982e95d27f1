//! Host memory that the caller allocated and then registered or imported as USM. The driver pins it for all devices;
//! the ranges are kept for `urUSMGetMemAllocInfo`.
use super::{
    CoreBackend,
    objects::{Context, handle},
};
use crate::memory::{allocation::Allocation, maps::is_mapped};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    log,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_hal::{Access, Pins, Range};
use ur_sys::{ur_usm_alloc_info_t, ur_usm_type_t};

/// A driver that can pin host memory of the caller.
pub trait HostRegistration: CoreBackend + Pins {}
impl<D: CoreBackend + Pins> HostRegistration for D {}

/// How the caller passed a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// By `urUSMHostAllocRegisterExp`.
    Registered,
    /// By `urUSMImportExp`.
    Imported,
}
/// A range that is registered or imported.
#[derive(Debug)]
pub struct Known<D: HostRegistration> {
    bytes: usize,
    context: usize,
    how: How,
    /// Which one it is among all that were ever entered: another one may start at the same address later.
    number: u64,
    /// The driver's registration. `None` before the driver has returned it, and for an imported range that the driver
    /// refused.
    pinned: Option<Arc<D::Pinned>>,
}
impl<D: HostRegistration> Clone for Known<D> {
    fn clone(&self) -> Self {
        let Self { bytes, context, how, number, ref pinned } = *self;
        Self { bytes, context, how, number, pinned: pinned.clone() }
    }
}
impl<D: HostRegistration> Known<D> {
    fn new(bytes: usize, context: usize, how: How) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Relaxed); // only uniqueness matters
        Self { bytes, context, how, number, pinned: None }
    }
    /// Whether the context still exists: a registration ends with it.
    fn has_context(&self) -> bool {
        Owned::<Context<D>>::find(self.context).is_ok()
    }
}
/// Ranges by first address; no two overlap.
type Ranges<D> = BTreeMap<usize, Known<D>>;
/// All ranges of the process.
type All<D> = Mutex<Ranges<D>>;
fn all<D: HostRegistration>() -> MutexGuard<'static, Ranges<D>> {
    ur_lock::locked(D::statics().of_process::<All<D>>())
}

fn refused<T>(why: String) -> Result<T> {
    Error::refuse(ErrorCode::InvalidValue, why)
}
/// The ranges that overlap `[start, end)`, last first.
fn overlapping<D: HostRegistration>(
    all: &Ranges<D>,
    start: usize,
    end: usize,
) -> impl Iterator<Item = (usize, &Known<D>)> {
    let backwards = all.range(..end).rev().map(|(&at, known)| (at, known));
    backwards.take_while(move |(at, known)| at + known.bytes > start)
}

/// The end of `bytes` bytes at `at`, if that is a valid range.
fn end(at: UsmPtr, bytes: usize) -> Option<usize> {
    let is_size = bytes > 0 && isize::try_from(bytes).is_ok();
    at.addr().checked_add(bytes).filter(|_| is_size)
}

/// Removes the range that starts at `at` if it is still the one with this number.
fn remove<D: HostRegistration>(at: UsmPtr, number: u64) -> Option<Known<D>> {
    let mut all = all::<D>();
    let is_it = all.get(&at.addr()).is_some_and(|known| known.number == number);
    is_it.then(|| all.remove(&at.addr())).flatten()
}
/// Registers a range that has been entered already, under this number, with the driver.
fn pin<D: HostRegistration>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
    (bytes, number): (usize, u64),
    read_only: bool,
) -> Result<()> {
    let access = if read_only { Access::Read } else { Access::ReadWrite };
    let pinned = Arc::new(D::pin(context.driver(), Range::new(at.into(), bytes)?, access)?);
    let mut all = all::<D>();
    let entry = all.get_mut(&at.addr()).filter(|known| known.number == number);
    let entered = entry.map(|known| known.pinned = Some(Arc::clone(&pinned)));
    drop(all); // before `pinned`, which may be the last reference
    entered.map_or_else(|| refused(format!("{at:?} was given up meanwhile")), Ok)
}

/// Registers `bytes` at `at` with `context`. Devices only read them if `read_only`.
///
/// # Errors
/// `INVALID_VALUE` for an invalid or unmapped range, for one that overlaps USM or another registration, and if the
/// driver refuses it.
pub fn register<D: HostRegistration>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
    bytes: usize,
    read_only: bool,
) -> Result<()> {
    let Some(end) = end(at, bytes) else {
        return refused(format!("{bytes} bytes from {at:?} on are no range of memory"));
    };
    if Allocation::<D::Memory>::touches(at, bytes) {
        return refused(format!("{bytes} bytes from {at:?} on are USM already, in part at least"));
    }
    if !is_mapped(at.addr(), end) {
        return refused(format!(
            "{bytes} bytes from {at:?} on are not all mapped: allocate them first"
        ));
    }
    let mut all = all::<D>();
    let in_the_way =
        |(_, known): &(usize, &Known<D>)| known.how == How::Registered && known.has_context();
    if let Some((other, known)) = overlapping(&all, at.addr(), end).find(in_the_way) {
        return refused(format!(
            "{bytes} bytes from {at:?} on overlap the {} registered at {other:#x}: unregister \
             those first",
            known.bytes
        ));
    }
    // Imported ranges are replaced, as are registrations of contexts that no longer exist.
    let gone: Vec<_> = overlapping(&all, at.addr(), end).map(|(start, _)| start).collect();
    let gone: Vec<_> = gone.into_iter().filter_map(|start| all.remove(&start)).collect();
    let known = Known::new(bytes, handle(&context), How::Registered);
    let number = known.number;
    all.insert(at.addr(), known);
    drop(all);
    drop(gone);
    pin::<D>(context, at, (bytes, number), read_only).map_err(|error| {
        remove::<D>(at, number);
        match error.code() {
            ErrorCode::OutOfDeviceMemory => error.with_code(ErrorCode::OutOfHostMemory),
            ErrorCode::OutOfHostMemory
            | ErrorCode::OutOfResources
            | ErrorCode::UnsupportedFeature => error,
            _ => error.with_code(ErrorCode::InvalidValue),
        }
    })
}
/// Ends the registration that starts at `at`, after waiting for the commands submitted before: the caller may free the
/// memory afterwards.
///
/// # Errors
/// `INVALID_VALUE` if no registration of this context starts there.
pub fn unregister<D: HostRegistration>(context: usize, at: UsmPtr) -> Result<()> {
    let number = match all::<D>().get(&at.addr()) {
        Some(known) if known.how == How::Registered && known.context == context => known.number,
        Some(known) if known.how == How::Registered => {
            return refused(format!(
                "{at:?} was registered with another context: unregister it there"
            ));
        }
        _ => return refused(format!("no registered host memory starts at {at:?}")),
    };
    if D::IS_USED {
        D::wait(context)?;
    }
    // Another thread may have ended it during the wait, and even registered the range anew.
    match remove::<D>(at, number) {
        Some(_) => Ok(()),
        None => refused(format!("another thread unregistered {at:?} at the same time")),
    }
}

/// Imports `bytes` at `at`, and registers them with the driver if it accepts them. This is a hint: a range that
/// overlaps USM or another known range is ignored.
///
/// # Errors
/// `INVALID_SIZE` for an invalid range.
pub fn import<D: HostRegistration>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
    bytes: usize,
) -> Result<()> {
    let Some(end) = end(at, bytes) else {
        let why = format!("{bytes} bytes from {at:?} on are no range of memory to import");
        return Error::refuse(ErrorCode::InvalidSize, why);
    };
    let mut all = all::<D>();
    let is_known = overlapping(&all, at.addr(), end).next().is_some()
        || Allocation::<D::Memory>::touches(at, bytes);
    if is_known {
        return Ok(());
    }
    let known = Known::new(bytes, handle(&context), How::Imported);
    let number = known.number;
    all.insert(at.addr(), known);
    drop(all);
    if let Err(error) = pin::<D>(context, at, (bytes, number), false) {
        log::say(D::BACKEND, ur_sys::ur_logger_level_t::INFO, &error); // it remains pageable memory
    }
    Ok(())
}
/// Ends the import at `at`, if there is one.
pub fn release<D: HostRegistration>(context: usize, at: UsmPtr) {
    let is_it = |known: &Known<D>| known.how == How::Imported && known.context == context;
    let Some(number) =
        all::<D>().get(&at.addr()).filter(|known| is_it(known)).map(|known| known.number)
    else {
        return;
    };
    if D::IS_USED
        && let Err(error) = D::wait(context)
    {
        log::say(D::BACKEND, ur_sys::ur_logger_level_t::WARN, &error); // not removed: commands may be using it
        return;
    }
    remove::<D>(at, number);
}
/// Answers for an address in a registered or imported range of `context`; `None` for other addresses.
pub fn info<D: HostRegistration>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
    name: ur_usm_alloc_info_t,
    answer: &mut Answer<'_>,
) -> Option<Result<()>> {
    let (base, known) = {
        let all = all::<D>();
        let (base, known) = overlapping(&all, at.addr(), at.addr().saturating_add(1)).next()?;
        (base, known.clone())
    };
    if known.context != handle(&context) {
        return None;
    }
    Some(match name {
        ur_usm_alloc_info_t::TYPE => answer.value(&ur_usm_type_t::HOST.0),
        ur_usm_alloc_info_t::BASE_PTR => answer.value(&base),
        ur_usm_alloc_info_t::SIZE => answer.value(&known.bytes),
        ur_usm_alloc_info_t::DEVICE => answer.handle(&context.devices()[0]),
        ur_usm_alloc_info_t::POOL => answer.value(&0_usize),
        _ => Err(ErrorCode::UnsupportedEnumeration.into()),
    })
}
