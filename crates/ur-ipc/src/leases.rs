//! Who still has what open: counts by object, told by importers and ended by their death. A block of memory goes back
//! to its pool only when the last lease is gone; when that is, this module says; the pool is the adapter's.
use crate::{Error, ErrorKind, Kind, Object, Result};
use std::{
    collections::{HashMap, HashSet},
    sync::OnceLock,
};

/// The counts over all importers.
#[derive(Default)]
pub(crate) struct Leases {
    held: HashMap<Object, usize>,
    freed: HashSet<Object>,
    /// Freed objects whose last lease has ended, of which nobody has been told yet.
    gone: Vec<Object>,
}
impl Leases {
    pub fn begin(&mut self, object: Object) {
        *self.held.entry(object).or_default() += 1;
    }
    /// Ends so many; if they were the last on an object that its owner freed, it is among the [`Self::gone`].
    pub fn end(&mut self, object: Object, count: usize) {
        let Some(held) = self.held.get_mut(&object) else { return };
        *held = held.saturating_sub(count);
        if *held == 0 {
            self.held.remove(&object);
            self.gone.extend(self.freed.take(&object));
        }
    }
    /// The freed objects of which this is the first to hear that their last lease has ended.
    pub fn gone(&mut self) -> Vec<Object> {
        std::mem::take(&mut self.gone)
    }
    /// Whether anybody has it open.
    pub fn is_held(&self, object: Object) -> bool {
        self.held.contains_key(&object)
    }
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
    /// The owner freed it.
    pub fn freed(&mut self, object: Object) {
        if self.is_held(object) {
            self.freed.insert(object);
        }
    }
}

type Told = fn(object: u64, kind: Kind);
/// Without a lock, which a forked child could find locked for ever.
static TOLD: [OnceLock<Told>; 32] = [const { OnceLock::new() }; 32];

/// Has `told` called, on the watcher thread and with no lock held, each time the last lease of a freed object ends.
/// Asking again for the same function changes nothing.
///
/// # Errors
/// [`ErrorKind::Full`] for the 33rd function.
pub fn on_leases_gone(told: Told) -> Result<()> {
    for place in &TOLD {
        if std::ptr::fn_addr_eq(*place.get_or_init(|| told), told) {
            return Ok(());
        }
    }
    Err(Error::new(ErrorKind::Full, "32 functions are told of ended leases already"))
}

/// To be called with no lock held, and when whoever asked meanwhile has been answered: what is told may give a driver
/// its memory back, which takes longer than an open.
pub(crate) fn tell(gone: &[Object]) {
    for told in TOLD.iter().map_while(OnceLock::get) {
        for &(kind, object) in gone {
            // A panic of an adapter's must not end the thread on which all peers depend; it has been printed.
            let _ = std::panic::catch_unwind(|| told(object, kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lease_of_a_freed_object_counts() {
        let mut leases = Leases::default();
        let object = (Kind::Memory, 1);
        leases.begin(object);
        leases.end(object, 1);
        assert_eq!(leases.gone(), [], "nobody freed it");
        leases.begin(object);
        leases.begin(object);
        leases.freed(object);
        leases.end(object, 1);
        assert_eq!(leases.gone(), [], "one is left");
        leases.end(object, 1);
        assert_eq!(leases.gone(), [object]);
        leases.end(object, 1);
        assert_eq!(leases.gone(), [], "told once");
    }
    #[test]
    fn an_object_freed_without_leases_is_forgotten() {
        let mut leases = Leases::default();
        leases.freed((Kind::Memory, 2));
        leases.begin((Kind::Memory, 2));
        leases.end((Kind::Memory, 2), 1);
        assert!(leases.gone.is_empty() && leases.freed.is_empty() && leases.held.is_empty());
    }
}
