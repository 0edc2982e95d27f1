//! Host memory that C allocated itself and made known as USM: registered, or imported. The driver is
//! told of it, for all devices; what is known is remembered for `urUSMGetMemAllocInfo`.
use super::{CoreBackend, DriverContext, objects::Context};
use crate::memory::{allocation::Allocation, maps::is_mapped};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    log,
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
};
use ur_sys::{ur_usm_alloc_info_t, ur_usm_type_t};

/// A driver that can be told of the host's memory.
pub trait HostRegistration: CoreBackend {
    /// Whether what the driver made of a range must not end before the commands that may use it.
    const IS_USED: bool = true;
    /// What the driver made of a range; it ends with this.
    type Pinned: fmt::Debug + Send + Sync;
    /// Has the driver take a range, for devices to read only if `read_only`.
    ///
    /// # Errors
    /// The driver's own.
    fn pin(
        context: &DriverContext<Self>,
        at: UsmPtr,
        bytes: usize,
        read_only: bool,
    ) -> Result<Self::Pinned>;
}

/// How a range became known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// By `urUSMHostAllocRegisterExp`.
    Registered,
    /// By `urUSMImportExp`.
    Imported,
}
/// A range that is known.
#[derive(Debug)]
pub struct Known<D: HostRegistration> {
    bytes: usize,
    context: usize,
    how: How,
    /// The driver's registration; none yet while it is asked, and none for what it does not take.
    pinned: Option<Arc<D::Pinned>>,
}
impl<D: HostRegistration> Clone for Known<D> {
    fn clone(&self) -> Self {
        let Self { bytes, context, how, ref pinned } = *self;
        Self { bytes, context, how, pinned: pinned.clone() }
    }
}
impl<D: HostRegistration> Known<D> {
    /// Whether C still has the context: a registration ends with it.
    fn has_context(&self) -> bool {
        Owned::<Context<D>>::find(self.context).is_ok()
    }
}
/// By first address; no two overlap.
type Ranges<D> = BTreeMap<usize, Known<D>>;
/// All that a process made known.
type All<D> = Mutex<Ranges<D>>;
fn all<D: HostRegistration>() -> MutexGuard<'static, Ranges<D>> {
    ur_lock::locked(D::statics().of_process::<All<D>>())
}
fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}

fn refused<T>(why: String) -> Result<T> {
    Err(Error::new(ErrorCode::InvalidValue, why))
}
/// The parts of `all` that have a byte of `[start, end)`.
fn overlapping<D: HostRegistration>(
    all: &Ranges<D>,
    start: usize,
    end: usize,
) -> impl Iterator<Item = (usize, &Known<D>)> {
    let backwards = all.range(..end).rev().map(|(&at, known)| (at, known));
    backwards.take_while(move |(at, known)| at + known.bytes > start)
}

/// Where `bytes` from `at` on end, if they are a range of memory.
fn end(at: UsmPtr, bytes: usize) -> Option<usize> {
    let is_size = bytes > 0 && isize::try_from(bytes).is_ok();
    at.addr().checked_add(bytes).filter(|_| is_size)
}

/// Has the driver pin a range that is in the books, and takes it out of them if it does not.
fn pin<D: HostRegistration>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
    bytes: usize,
    read_only: bool,
) -> Result<()> {
    let pinned = D::pin(context.driver(), at, bytes, read_only);
    let mut all = all::<D>();
    match pinned {
        Ok(pinned) => {
            let entry = all.get_mut(&at.addr()).filter(|known| known.bytes == bytes);
            let unpinned = entry.map(|known| known.pinned = Some(Arc::new(pinned)));
            drop(all);
            unpinned.map_or_else(|| refused(format!("{at:?} was given up meanwhile")), Ok)
        }
        Err(error) => {
            all.remove(&at.addr());
            Err(error)
        }
    }
}

/// Registers `bytes` at `at` with `context`, for devices to read only if `read_only`.
///
/// # Errors
/// `INVALID_VALUE` for no bytes, for what wraps around, is not mapped, is USM or known already, or is
/// refused by the driver.
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
        return refused(format!("{bytes} bytes from {at:?} on are not all there: allocate first"));
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
    // What was only imported gives way, as does what a context left that is gone.
    let gone: Vec<_> = overlapping(&all, at.addr(), end).map(|(start, _)| start).collect();
    let gone: Vec<_> = gone.into_iter().filter_map(|start| all.remove(&start)).collect();
    let context_handle = handle(&context);
    let known = Known { bytes, context: context_handle, how: How::Registered, pinned: None };
    all.insert(at.addr(), known);
    drop(all);
    drop(gone);
    pin::<D>(context, at, bytes, read_only).map_err(|error| match error.code() {
        ErrorCode::OutOfDeviceMemory => error.with_code(ErrorCode::OutOfHostMemory),
        ErrorCode::OutOfHostMemory | ErrorCode::OutOfResources | ErrorCode::UnsupportedFeature => {
            error
        }
        _ => error.with_code(ErrorCode::InvalidValue),
    })
}
/// Ends the registration that starts at `at`, when the commands before have ended: afterwards C may give
/// the memory away.
///
/// # Errors
/// `INVALID_VALUE` where none does, or another context's.
pub fn unregister<D: HostRegistration>(context: usize, at: UsmPtr) -> Result<()> {
    match all::<D>().get(&at.addr()) {
        Some(known) if known.how == How::Registered && known.context == context => {}
        Some(known) if known.how == How::Registered => {
            return refused(format!(
                "{at:?} was registered with another context: unregister it there"
            ));
        }
        _ => return refused(format!("no registered host memory starts at {at:?}")),
    }
    if D::IS_USED {
        D::wait(context)?;
    }
    let ended = all::<D>().remove(&at.addr());
    drop(ended); // not under the lock
    Ok(())
}

/// Takes note of `bytes` at `at`, and has the driver pin them if it does. A hint: what is known already,
/// or USM, stays as it is.
///
/// # Errors
/// `INVALID_SIZE` for no bytes and for what wraps around.
pub fn import<D: HostRegistration>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
    bytes: usize,
) -> Result<()> {
    let Some(end) = end(at, bytes) else {
        let why = format!("{bytes} bytes from {at:?} on are no range of memory to import");
        return Err(Error::new(ErrorCode::InvalidSize, why));
    };
    let mut all = all::<D>();
    let is_known = overlapping(&all, at.addr(), end).next().is_some()
        || Allocation::<D::Memory>::touches(at, bytes);
    if is_known {
        return Ok(());
    }
    let known = Known { bytes, context: handle(&context), how: How::Imported, pinned: None };
    all.insert(at.addr(), known.clone());
    drop(all);
    if let Err(error) = pin::<D>(context, at, bytes, false) {
        log::say(D::BACKEND, ur_sys::ur_logger_level_t::INFO, &error); // it stays pageable, as it was
        self::all::<D>().insert(at.addr(), known);
    }
    Ok(())
}
/// Forgets what was imported at `at`; nothing where nothing was.
pub fn release<D: HostRegistration>(context: usize, at: UsmPtr) {
    let is_it = |known: &Known<D>| known.how == How::Imported && known.context == context;
    if !all::<D>().get(&at.addr()).is_some_and(is_it) {
        return;
    }
    if D::IS_USED
        && let Err(error) = D::wait(context)
    {
        log::say(D::BACKEND, ur_sys::ur_logger_level_t::WARN, &error); // it stays known: commands may use it
        return;
    }
    let ended = all::<D>().remove(&at.addr());
    drop(ended); // not under the lock
}
/// Answers for an address in memory that `context` knows; `None` for any other.
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
