//! Process-wide state that a forked child must not inherit: the parent's threads do not exist there, so its locks might
//! never be released. The child gets a fresh value; the parent keeps its own.
use std::{fmt, sync::OnceLock};

struct Link<T> {
    fork: u64,
    value: T,
    next: OnceLock<Box<Link<T>>>,
}

/// One `T` per process, made at first use, also in forked children.
pub struct PerProcess<T>(OnceLock<Box<Link<T>>>);

impl<T> PerProcess<T> {
    /// Makes one without a value.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }
}
impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}
impl<T: Default> PerProcess<T> {
    /// This process's value.
    pub fn get(&self) -> &T {
        // Miri neither forks nor has the page that counts forks.
        let fork = if cfg!(miri) { 0 } else { crate::fork_count() };
        let mut link = Link::at(&self.0, fork);
        while link.fork != fork {
            link = Link::at(&link.next, fork);
        }
        &link.value
    }
}
impl<T: Default> Link<T> {
    fn at(place: &OnceLock<Box<Self>>, fork: u64) -> &Self {
        place.get().unwrap_or_else(|| {
            let fresh = Box::new(Self { fork, value: T::default(), next: OnceLock::new() });
            place.get_or_init(|| fresh) // a child forked meanwhile would wait for ever: nothing is made in there
        })
    }
}
impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerProcess").finish_non_exhaustive()
    }
}
