//! Which objects other processes have open: a count per object, which importers report and which ends with their death.
//! A block of memory returns to its pool only when the last lease has ended; this module reports when; the pool is the
//! adapter's.
use crate::{Error, ErrorKind, Kind, Object, Result, fork::PerFork, locked};
use std::{
    collections::{HashMap, HashSet},
    mem::{replace, take},
    sync::{Mutex, OnceLock},
};

/// The counts over all importers.
#[derive(Default)]
pub(crate) struct Leases {
    held: HashMap<Object, usize>,
    freed: HashSet<Object>,
    /// Freed objects whose last lease has ended and that have not been reported yet.
    gone: Vec<Object>,
}
impl Leases {
    pub fn begin(&mut self, object: Object) {
        *self.held.entry(object).or_default() += 1;
    }
    /// Ends `count` leases. If they were the last on an object that its owner freed, [`Self::gone`] returns the object
    /// next.
    pub fn end(&mut self, object: Object, count: usize) {
        let Some(held) = self.held.get_mut(&object) else { return };
        *held = held.saturating_sub(count);
        if *held == 0 {
            self.held.remove(&object);
            self.gone.extend(self.freed.take(&object));
        }
    }
    /// Takes the freed objects whose last lease has ended since the previous call.
    pub fn gone(&mut self) -> Vec<Object> {
        take(&mut self.gone)
    }
    /// Whether any process has the object open.
    pub fn is_held(&self, object: Object) -> bool {
        self.held.contains_key(&object)
    }
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
    /// Records that the owner freed the object.
    pub fn freed(&mut self, object: Object) {
        if self.is_held(object) {
            self.freed.insert(object);
        }
    }
}

type Told = fn(object: u64, kind: Kind);
/// Not behind a lock, because a forked child could find the lock held for ever.
static TOLD: [OnceLock<Told>; 32] = [const { OnceLock::new() }; 32];

/// Registers `told`, which is called each time the last lease of a freed object ends, on a thread that serves no peers
/// and with no lock held. Registering the same function again changes nothing.
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

/// The freed objects that adapters are still to be told of, and whether a thread is telling them.
#[derive(Default)]
struct Telling {
    waiting: Vec<Object>,
    is_under_way: bool,
}
static TELLING: PerFork<Mutex<Telling>> = PerFork::new();

/// Tells adapters on a separate thread, which ends when there is nothing left to tell: an adapter may return memory to
/// its driver, which can take longer than importers wait for an answer from the watcher thread. The caller holds no
/// lock.
pub(crate) fn tell(gone: Vec<Object>) {
    let Some(telling) = (if gone.is_empty() { None } else { TELLING.get().ok() }) else { return };
    let mut all = locked(telling);
    all.waiting.extend(gone);
    if replace(&mut all.is_under_way, true) {
        return;
    }
    drop(all);
    // If no thread can be started, the importers have to wait: memory that is never returned would be worse.
    if ur_mapping::start_thread("causeway-free", || tell_all(telling)).is_err() {
        tell_all(telling);
    }
}
fn tell_all(telling: &Mutex<Telling>) {
    loop {
        let mut all = locked(telling);
        let gone = take(&mut all.waiting);
        all.is_under_way = !gone.is_empty();
        drop(all);
        if gone.is_empty() {
            return;
        }
        for told in TOLD.iter().map_while(OnceLock::get) {
            for &(kind, object) in &gone {
                // A panic of one adapter, which the panic hook has printed, does not keep the others from being told.
                let _ = ur_lock::caught(|| told(object, kind));
            }
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
    fn an_adapter_whose_panic_panics_again_keeps_nobody_from_being_told() {
        struct Again;
        impl Drop for Again {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        static HEARD: Mutex<Vec<u64>> = Mutex::new(Vec::new());
        on_leases_gone(|object, _| match object {
            9_001 => std::panic::panic_any(Again),
            9_000..9_010 => locked(&HEARD).push(object),
            _ => {} // another test's object
        })
        .unwrap();
        tell([9_000, 9_001, 9_002].map(|object| (Kind::Memory, object)).into());
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while *locked(&HEARD) != [9_000, 9_002] {
            assert!(std::time::Instant::now() < deadline, "{:?}", locked(&HEARD));
            std::thread::yield_now();
        }
        tell(vec![(Kind::Memory, 9_003)]);
        while locked(&HEARD).last() != Some(&9_003) {
            assert!(std::time::Instant::now() < deadline, "nothing more is told");
            std::thread::yield_now();
        }
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
