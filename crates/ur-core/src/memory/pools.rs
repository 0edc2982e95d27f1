//! USM pools independent of their memory: to which context and device a pool belongs. Their sizes are counted in
//! `totals.rs`.
use std::sync::atomic::{AtomicU64, Ordering::*};
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
    /// Its number among the pools of this process, which is never reused.
    pub fn number(&self) -> u64 {
        self.number
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
