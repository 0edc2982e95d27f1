//! USM pools independent of their memory: to which context and device a pool belongs, and which pool a device of a
//! context uses. Their sizes are counted in `totals.rs`.
use crate::process_mutex::ProcessMutex;
use std::{
    collections::HashMap,
    fmt,
    ops::Deref,
    sync::atomic::{AtomicU64, Ordering::*},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Body, Borrowed, Owned},
};

/// What a pool belongs to.
#[derive(Debug)]
pub struct Identity<C: Body, V: Body> {
    /// The address of its context's handle.
    context: usize,
    /// Keeps the context alive; `None` for the context's own pools, which would otherwise keep it forever.
    _kept: Option<Owned<C>>,
    /// The device for which it was made; `None` for all devices of the context.
    device: Option<Owned<V>>,
    /// Its number among the pools of this process, which is never reused.
    number: u64,
    is_default: bool,
}
impl<C: Body, V: Body> Identity<C, V> {
    /// For a pool of the context itself, which does not keep the context alive.
    pub fn of_context(context: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Relaxed); // only uniqueness matters, so any ordering will do
        Self { context, _kept: None, device: None, number, is_default: false }
    }
    /// For a device's default pool, which callers cannot destroy.
    pub fn of_default(context: usize) -> Self {
        Self { is_default: true, ..Self::of_context(context) }
    }
    /// For a pool that a caller creates, for one device or for all devices of the context.
    ///
    /// # Errors
    /// `INVALID_CONTEXT`, `INVALID_DEVICE` for handles that have been released meanwhile.
    pub fn of_pool(context: Borrowed<'_, C>, device: Option<Borrowed<'_, V>>) -> Result<Self> {
        let (kept, device) = (Some(context.own()?), device.map(Borrowed::own).transpose()?);
        Ok(Self { _kept: kept, device, ..Self::of_context(context.as_handle().addr()) })
    }
    /// The address of its context's handle.
    pub fn context(&self) -> usize {
        self.context
    }
    /// The device for which it was made; `None` for all devices of the context.
    pub fn device(&self) -> Option<&Owned<V>> {
        self.device.as_ref()
    }
    /// Whether it is a device's default pool.
    pub fn is_default(&self) -> bool {
        self.is_default
    }
    /// Checks that it belongs to a context.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a pool of another context.
    pub fn check_context(&self, context: Borrowed<'_, C>) -> Result<()> {
        let why = || "the pool belongs to another context: make one in this context";
        Error::unless(self.context == context.as_handle().addr(), ErrorCode::InvalidValue, why)
    }
    /// Checks that it may be used for a device of a context.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a pool of another context, or for a device that it was not made for.
    pub fn check(&self, context: Borrowed<'_, C>, device: Borrowed<'_, V>) -> Result<()> {
        self.check_context(context)?;
        let why = || "the pool was made for another device: name that one";
        Error::unless(
            self.device.as_ref().is_none_or(|own| own.same(&device)),
            ErrorCode::InvalidValue,
            why,
        )
    }
}
/// A pool that can be set as the one that a device uses.
pub trait Identified: Body {
    /// The type of its context.
    type Context: Body;
    /// The type of its device.
    type Device: Body + Deref<Target = Self::DriverDevice>;
    /// The driver's object that such a device stands for.
    type DriverDevice: PartialEq + Clone + fmt::Debug;
    /// What it belongs to.
    fn identity(&self) -> &Identity<Self::Context, Self::Device>;
}

/// The pools that the devices of one context use if the caller passes none, by the address of the device's handle.
/// Callers can query and set them.
#[derive(Debug)]
pub struct ByDevice<P: Identified>(ProcessMutex<HashMap<usize, DevicePool<P>>>);
#[derive(Debug)]
struct DevicePool<P: Identified> {
    device: P::DriverDevice,
    default: Owned<P>,
    /// The pool that the caller set instead: the address of its handle, and its number. Not kept alive: the caller may
    /// destroy it.
    chosen: Option<(usize, u64)>,
}
impl<P: Identified> Default for ByDevice<P> {
    fn default() -> Self {
        Self(ProcessMutex::default())
    }
}
impl<P: Identified> ByDevice<P> {
    fn with<R>(
        &self,
        device: Borrowed<'_, P::Device>,
        make: impl FnOnce() -> Result<P>,
        look: impl FnOnce(&mut DevicePool<P>) -> R,
    ) -> Result<R> {
        let handle = device.as_handle().addr();
        let device: &P::DriverDevice = &device;
        let mut all = self.0.lock()?;
        // Nothing is known of it, or the pools of a sub-device that was released and whose handle this one has now.
        let is_new = all.get(&handle).is_none_or(|known| known.device != *device);
        let mut ended = None;
        if is_new {
            let default = Owned::new(make()?);
            ended =
                all.insert(handle, DevicePool { device: device.clone(), default, chosen: None });
        }
        let answer = look(all.get_mut(&handle).expect("it was inserted"));
        drop(all); // before `ended`, whose memory the driver takes back
        drop(ended);
        Ok(answer)
    }
    /// The default pool of `device`, which `make` creates on first use.
    ///
    /// # Errors
    /// Those of `make`; `UNINITIALIZED` in a forked child that inherited the pools.
    pub fn default_of(
        &self,
        device: Borrowed<'_, P::Device>,
        make: impl FnOnce() -> Result<P>,
    ) -> Result<Owned<P>> {
        self.with(device, make, |pools| pools.default.clone())
    }
    /// The pool that the caller set for `device`, if it still exists; otherwise the default pool.
    ///
    /// # Errors
    /// Those of `make`; `UNINITIALIZED` in a forked child that inherited the pools.
    pub fn current_of(
        &self,
        device: Borrowed<'_, P::Device>,
        make: impl FnOnce() -> Result<P>,
    ) -> Result<Owned<P>> {
        let (default, chosen) =
            self.with(device, make, |pools| (pools.default.clone(), pools.chosen))?;
        let found = chosen.and_then(|(handle, number)| {
            Owned::<P>::find(handle).ok().filter(|pool| pool.identity().number == number)
        });
        Ok(found.unwrap_or(default))
    }
    /// Makes `device` use `pool` from now on.
    ///
    /// # Errors
    /// Those of `make`; `UNINITIALIZED` in a forked child that inherited the pools.
    pub fn choose(
        &self,
        device: Borrowed<'_, P::Device>,
        pool: Borrowed<'_, P>,
        make: impl FnOnce() -> Result<P>,
    ) -> Result<()> {
        let identity = pool.identity();
        let handle = pool.as_handle().addr();
        let chosen = (!identity.is_default).then_some((handle, identity.number));
        self.with(device, make, |pools| pools.chosen = chosen)
    }
    /// The default pools of all devices; none in a forked child, where they are the parent's.
    pub fn defaults(&mut self) -> impl Iterator<Item = &P> {
        let pools = self.0.get_mut().into_iter().flat_map(|pools| pools.values());
        pools.map(|one| &**one.default)
    }
}
