//! What pools of USM are to C, whatever memory they have: whose a pool is, and which one a device of a
//! context uses. What they hold together is `totals.rs`'s.
use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::*},
    },
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Body, Borrowed, Owned},
};

/// Whose a pool is.
#[derive(Debug)]
pub struct Identity<C: Body, V: Body> {
    /// The handle of its context.
    context: usize,
    /// Keeps the context; a context's own pools do not.
    _kept: Option<Owned<C>>,
    /// The device it was made for, if for one.
    device: Option<Owned<V>>,
    /// Its number among the pools of this process, never used again.
    number: u64,
    is_default: bool,
}
impl<C: Body, V: Body> Identity<C, V> {
    /// Of a pool of the context's own, which does not keep it.
    pub fn of_context(context: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Relaxed); // a number, nothing more
        Self { context, _kept: None, device: None, number, is_default: false }
    }
    /// Of the pool that a device starts out with, which C cannot destroy.
    pub fn of_default(context: usize) -> Self {
        Self { is_default: true, ..Self::of_context(context) }
    }
    /// Of a pool that C makes, for all devices of the context or for one.
    ///
    /// # Errors
    /// `INVALID_CONTEXT`, `INVALID_DEVICE` for handles that were released meanwhile.
    pub fn of_pool(context: Borrowed<'_, C>, device: Option<Borrowed<'_, V>>) -> Result<Self> {
        let (kept, device) = (Some(context.own()?), device.map(Borrowed::own).transpose()?);
        Ok(Self { _kept: kept, device, ..Self::of_context(context.as_handle().addr()) })
    }
    /// The handle of the context it belongs to.
    pub fn context(&self) -> usize {
        self.context
    }
    /// The device it was made for, if for one.
    pub fn device(&self) -> Option<&Owned<V>> {
        self.device.as_ref()
    }
    /// Whether a device starts out with it.
    pub fn is_default(&self) -> bool {
        self.is_default
    }
    /// # Errors
    /// `INVALID_VALUE` for a pool of another context.
    pub fn check_context(&self, context: Borrowed<'_, C>) -> Result<()> {
        match self.context == context.as_handle().addr() {
            true => Ok(()),
            false => {
                let why = "the pool belongs to another context: make one in this context";
                Err(Error::new(ErrorCode::InvalidValue, why))
            }
        }
    }
    /// # Errors
    /// `INVALID_VALUE` for a pool of another context, or for a device that it was not made for.
    pub fn check(&self, context: Borrowed<'_, C>, device: Borrowed<'_, V>) -> Result<()> {
        self.check_context(context)?;
        match self.device.as_ref().is_none_or(|own| own.same(&device)) {
            true => Ok(()),
            false => {
                let why = "the pool was made for another device: name that one";
                Err(Error::new(ErrorCode::InvalidValue, why))
            }
        }
    }
}
/// A pool that devices can be told to use.
pub trait Identified: Body {
    /// What its context is.
    type Context: Body;
    /// What its device is.
    type Device: Body;
    /// Whose it is.
    fn identity(&self) -> &Identity<Self::Context, Self::Device>;
}

/// Which pools the devices of one context use when C names none: what C can ask for and change, by the
/// device's handle.
#[derive(Debug)]
pub struct ByDevice<P: Identified>(Mutex<HashMap<usize, DevicePool<P>>>);
#[derive(Debug)]
struct DevicePool<P: Identified> {
    default: Owned<P>,
    /// What C chose instead: the handle and its number. Not kept: C may destroy it.
    chosen: Option<(usize, u64)>,
}
impl<P: Identified> Default for ByDevice<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
impl<P: Identified> ByDevice<P> {
    fn with<R>(
        &self,
        device: Borrowed<'_, P::Device>,
        make: impl FnOnce() -> Result<P>,
        look: impl FnOnce(&mut DevicePool<P>) -> R,
    ) -> Result<R> {
        let device = device.as_handle().addr();
        let mut all = ur_lock::locked(&self.0);
        if let Some(one) = all.get_mut(&device) {
            return Ok(look(one));
        }
        let default = Owned::new(make()?);
        Ok(look(all.entry(device).or_insert(DevicePool { default, chosen: None })))
    }
    /// The pool that `device` starts out with, which `make` makes at first.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn default_of(
        &self,
        device: Borrowed<'_, P::Device>,
        make: impl FnOnce() -> Result<P>,
    ) -> Result<Owned<P>> {
        self.with(device, make, |pools| pools.default.clone())
    }
    /// The pool that C chose for `device`, while it lives; else the default one.
    ///
    /// # Errors
    /// Those of `make`.
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
    /// Has `device` use `pool` from now on.
    ///
    /// # Errors
    /// Those of `make`.
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
    /// The pools that devices started out with.
    pub fn defaults(&mut self) -> impl Iterator<Item = &P> {
        let pools = ur_lock::unpoisoned(self.0.get_mut());
        pools.values().map(|one| &**one.default)
    }
}
