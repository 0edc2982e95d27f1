//! Primary contexts: each is retained once, and pushed for the duration of a few driver calls. What belongs to a
//! context and is released by one call, on drop.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::{DriverDevice, check_fork},
        driver::{Dialect, Outcome, RawArray, RawContext, RawModule, RawPool},
    },
    memory::pointer,
};
use std::marker::PhantomData;
use ur_hal::{Result, made, told};

/// Initialises the driver; no effect if it is initialised.
///
/// # Errors
/// Returns the driver's error, also if there is no device.
pub fn init<D: Dialect>() -> Result<()> {
    // SAFETY: may be called at any time, from any thread.
    unsafe { D::driver().init(0) }.ok()
}
/// Retains the primary context of the device with the driver's number `device`. It is never released: the
/// CUDA runtime may use it too, and keeping it costs nothing more.
///
/// # Errors
/// Returns the driver's error.
pub fn retain_primary<D: Dialect>(device: i32) -> Result<RawContext> {
    // SAFETY: `to` is writable.
    made(|to| unsafe { D::driver().primary_retain(to, device) })
}

/// Whether the primary context of the device with this number is active in this process.
///
/// # Errors
/// Returns the driver's error.
pub fn is_primary_active<D: Dialect>(device: i32) -> Result<bool> {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: both are writable.
    unsafe { D::driver().primary_state(device, &raw mut flags, &raw mut active) }.ok()?;
    Ok(active != 0)
}

/// While this lives, a context is current on this thread; afterwards the previous one is current again.
#[derive(Debug)]
#[must_use]
pub struct Entered<D: Dialect> {
    pushed: bool,
    /// Not `Send`: contexts are current for one thread.
    _thread: PhantomData<*mut D>,
}
impl<D: Dialect> Entered<D> {
    /// Makes `context` current.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn enter(context: RawContext) -> Result<Self> {
        // SAFETY: `to` is writable.
        let current = told(|to| unsafe { D::driver().context_current(to) })?;
        let pushed = current != Some(context);
        if pushed {
            // SAFETY: the context was retained and is never released.
            unsafe { D::driver().context_push(context) }.ok()?;
        }
        Ok(Self { pushed, _thread: PhantomData })
    }
    /// The device's free and total memory in bytes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn memory(&self) -> Result<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are writable.
        unsafe { D::driver().memory_info(&raw mut free, &raw mut total) }.ok()?;
        Ok((free, total))
    }
    /// The least and the greatest priority of streams; a smaller number is a greater priority.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn priorities(&self) -> Result<(i32, i32)> {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: both are writable.
        unsafe { D::driver().context_priorities(&raw mut least, &raw mut greatest) }.ok()?;
        Ok((least, greatest))
    }
}
impl<D: Dialect> Drop for Entered<D> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = None;
            // SAFETY: `popped` is writable, and what is popped was pushed here.
            unsafe { D::driver().context_pop(&raw mut popped) }.let_go();
        }
    }
}

/// What one call releases.
pub trait Release: Copy {
    /// Releases it.
    ///
    /// # Safety
    /// The caller owns it, nothing uses it any more, and its context is current.
    unsafe fn release<D: Dialect>(self) -> Outcome<D>;
}
macro_rules! releases { ($($name:ty, |$what:ident| $call:ident($($argument:expr),*);)*) => { $(
    impl Release for $name {
        unsafe fn release<D: Dialect>(self) -> Outcome<D> {
            let $what = self;
            // SAFETY: the caller owns it.
            unsafe { D::driver().$call($($argument),*) }
        }
    }
)* } }
releases! {
    RawModule, |module| module_unload(module);
    RawPool, |pool| pool_destroy(pool);
    RawArray, |array| array_destroy(array);
    Surface, |surface| surface_destroy(surface.0);
    Registration, |memory| host_unregister(pointer(memory.0));
    PhysicalHandle, |memory| physical_release(memory.0);
    Reserved, |range| address_free(range.at, range.bytes);
    Mapping, |range| physical_unmap(range.0, range.1);
    IpcMemory, |memory| ipc_close_memory(memory.0);
}
/// The object through which kernels access an array.
#[derive(Clone, Copy, Debug)]
pub struct Surface(pub u64);
/// Registered memory of the host, by its address.
#[derive(Clone, Copy, Debug)]
pub struct Registration(pub u64);
/// The driver's handle of physical memory.
#[derive(Clone, Copy, Debug)]
pub struct PhysicalHandle(pub u64);
/// Reserved addresses.
#[derive(Clone, Copy, Debug)]
pub struct Reserved {
    /// The first one.
    pub at: u64,
    /// How many there are.
    pub bytes: usize,
}
/// The address and the length of a mapping of physical memory.
#[derive(Clone, Copy, Debug)]
pub struct Mapping(pub u64, pub usize);
/// Memory of another process that was opened at this address.
#[derive(Clone, Copy, Debug)]
pub struct IpcMemory(pub u64);

/// Something of the driver's that belongs to a context; released on drop if it is owned.
#[derive(Debug)]
pub struct Owned<R: Release, D: Dialect> {
    what: R,
    is_owned: bool,
    context: RawContext,
    _dialect: PhantomData<fn() -> D>,
}
impl<R: Release, D: Dialect> Owned<R, D> {
    /// What was made in `context`; with `is_owned` it is released on drop, when nothing may use it any more.
    pub fn of(what: R, is_owned: bool, context: RawContext) -> Self {
        Self { what, is_owned, context, _dialect: PhantomData }
    }
    /// What was made here for `device`.
    ///
    /// # Errors
    /// As for [`DriverDevice::context`].
    pub(super) fn made(device: &DriverDevice<D>, what: R) -> Result<Self> {
        Ok(Self::of(what, true, device.context()?))
    }
    /// The driver's handle or address.
    pub fn raw(&self) -> R {
        self.what
    }
    /// The context that it belongs to.
    pub fn context(&self) -> RawContext {
        self.context
    }
    /// Makes its context current.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn enter(&self) -> Result<Entered<D>> {
        Entered::enter(self.context)
    }
}
impl<R: Release, D: Dialect> Drop for Owned<R, D> {
    fn drop(&mut self) {
        if self.is_owned {
            // SAFETY: owned, and released once; the owner guarantees that nothing uses it any more.
            release::<D>(self.context, |_| unsafe { self.what.release::<D>() }.released());
        }
    }
}
/// Calls `work`, which releases something, with a context current. Does nothing in a forked child, where the
/// objects belong to the parent. An error is reported, because callers are destructors.
pub(super) fn release<D: Dialect>(
    context: RawContext,
    work: impl FnOnce(&Entered<D>) -> Result<()>,
) {
    if check_fork::<D>().is_ok() {
        let done = Entered::<D>::enter(context).and_then(|on| work(&on));
        done.unwrap_or_else(|error| D::report(&error));
    }
}
