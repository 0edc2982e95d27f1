//! Objects and memory of the driver that one call takes back: created here, or given by the application, which may keep them.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{super::driver::Destroy, fork::release};

/// An object; destroyed on drop if it is owned, when its commands must be complete. It keeps what it was created
/// in, which is released after it.
#[derive(Debug)]
pub struct Owned<R: Destroy<K>, K> {
    raw: R,
    is_owned: bool,
    within: K,
}
impl<R: Destroy<K>, K> Owned<R, K> {
    /// An object that was created here.
    pub(super) fn new(raw: R, within: K) -> Self {
        Self::adopted(raw, true, within)
    }
    /// Wraps an existing object; with `is_owned` it is destroyed on drop.
    pub fn adopted(raw: R, is_owned: bool, within: K) -> Self {
        Self { raw, is_owned, within }
    }
    /// The driver's handle.
    #[inline]
    pub fn raw(&self) -> R {
        self.raw
    }
    /// What it was created in.
    pub fn within(&self) -> &K {
        &self.within
    }
    /// Whether it is destroyed on drop.
    pub fn is_owned(&self) -> bool {
        self.is_owned
    }
}
impl<R: Destroy<K>, K> Drop for Owned<R, K> {
    fn drop(&mut self) {
        if self.is_owned {
            // SAFETY: owned, and destroyed once; the owner guarantees that nothing uses it any more.
            release(|| unsafe { self.raw.destroy(&self.within) });
        }
    }
}
