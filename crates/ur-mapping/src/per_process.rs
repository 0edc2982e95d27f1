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
        let make = || Box::new(Link { fork, value: T::default(), next: OnceLock::new() });
        let mut link = self.0.get_or_init(make);
        while link.fork != fork {
            link = link.next.get_or_init(make);
        }
        &link.value
    }
}
impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerProcess").finish_non_exhaustive()
    }
}
