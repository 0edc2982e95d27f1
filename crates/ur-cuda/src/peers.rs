//! Records which devices the application gave access to which other devices' memory, and all memory of this
//! adapter that this affects. The driver's peer access switch does not apply to virtual memory and to pools,
//! so their access is set for each mapping and each pool.
use super::{
    DriverDevice,
    driver::Dialect,
    native::{pool::DriverPool, virtual_memory},
};
use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, Weak},
};
use ur_hal::Result;
use ur_lock::locked;

/// The records of this process.
#[derive(Default, Debug)]
pub(super) struct Peers<D: Dialect>(Mutex<Known<D>>);
#[derive(Default, Debug)]
struct Known<D: Dialect> {
    /// Pairs (device, device whose memory it accesses), by the driver's numbers.
    enabled: HashSet<(i32, i32)>,
    /// Devices whose context exists or is about to: only these can be given access.
    started: HashSet<i32>,
    memory: Entries<D>,
}
/// All memory of which the access is set.
#[derive(Clone, Default, Debug)]
struct Entries<D: Dialect> {
    /// By start address, with the access flags: 1 read, 3 read and write, 0 none.
    mappings: BTreeMap<u64, (Arc<Mapping<D>>, i32)>,
    pools: Vec<Arc<Pool<D>>>,
}
#[derive(Debug)]
struct Mapping<D: Dialect> {
    bytes: usize,
    home: Arc<DriverDevice<D>>,
    /// Devices that have access independent of the switch once their context exists: those of the context
    /// that the memory was allocated in.
    always: Vec<i32>,
}
#[derive(Debug)]
struct Pool<D: Dialect> {
    pool: Weak<DriverPool<D>>,
    home: Arc<DriverDevice<D>>,
    always: Vec<i32>,
}
impl<D: Dialect> Peers<D> {
    fn known(&self) -> MutexGuard<'_, Known<D>> {
        locked(&self.0)
    }
    /// Registers a mapping of `home`'s memory, to which the devices in `always` get access with these
    /// `rights` (0: none). Access is set for those of them whose context exists, and for devices that were
    /// enabled for `home`'s memory; `home` already has it. The mapping is registered first, so that a device
    /// that is started or enabled meanwhile finds it.
    ///
    /// # Errors
    /// Returns the driver's error; the mapping is not registered then.
    pub(super) fn enter_mapping(
        &self,
        home: &Arc<DriverDevice<D>>,
        (at, bytes): (u64, usize),
        always: Vec<i32>,
        rights: i32,
    ) -> Result<()> {
        let mapping = Arc::new(Mapping { bytes, home: home.clone(), always: always.clone() });
        self.known().memory.mappings.insert(at, (mapping, rights));
        let more = self.admitted(home, &always);
        if more.is_empty() || rights == 0 {
            return Ok(());
        }
        let given = virtual_memory::set_access(home, at, bytes, &more, rights);
        given.inspect_err(|_| self.leave_mapping(at))
    }
    /// Records new rights for the mappings that start in `range`.
    pub(super) fn set_rights(&self, range: Range<u64>, rights: i32) {
        for (_, (_, own)) in self.known().memory.mappings.range_mut(range) {
            *own = rights;
        }
    }
    /// The devices that have access to a mapping of `home` now, if it gives any: `home` itself, those of `always` whose context
    /// exists, and those that were enabled.
    pub(super) fn of_mapping(&self, home: &DriverDevice<D>, always: &[i32]) -> Vec<i32> {
        let mut all = self.admitted(home, always);
        all.push(home.number());
        all
    }
    /// To be called when the context of the device `number` has been created: gives it access to all memory
    /// that it should have access to.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn started(&self, number: i32) -> Result<()> {
        let memory = {
            let mut known = self.known();
            known.started.insert(number);
            known.memory.clone()
        };
        let is_meant = |home: &DriverDevice<D>, always: &[i32]| {
            home.number() != number && always.contains(&number)
        };
        self.set_access(memory, number, is_meant, None)
    }
    /// Sets the access of the device `number` to the memory that is meant, by its own device and the devices that have
    /// access independent of the switch: to what each mapping says, unless it is switched off.
    fn set_access(
        &self,
        memory: Entries<D>,
        number: i32,
        is_meant: impl Fn(&DriverDevice<D>, &[i32]) -> bool,
        switched: Option<bool>,
    ) -> Result<()> {
        for (at, (one, own)) in memory.mappings {
            if own == 0 || !is_meant(&one.home, &one.always) {
                continue; // no device has access, or the switch is not for this memory
            }
            let rights = if switched == Some(false) { 0 } else { own };
            let set = virtual_memory::set_access(&one.home, at, one.bytes, &[number], rights);
            if set.is_err() && self.known().memory.mappings.contains_key(&at) {
                return set; // otherwise it was unmapped meanwhile
            }
        }
        for one in memory.pools.iter().filter(|one| is_meant(&one.home, &one.always)) {
            if let Some(pool) = one.pool.upgrade() {
                pool.admit(&one.home, &[number], switched != Some(false))?;
            }
        }
        Ok(())
    }
    /// To be called before the mapping is unmapped.
    pub(super) fn leave_mapping(&self, at: u64) {
        let gone = self.known().memory.mappings.remove(&at);
        drop(gone);
    }
    /// Registers a driver's pool, and sets its access as [`Peers::enter_mapping`] does for a mapping.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn enter_pool(
        &self,
        home: &Arc<DriverDevice<D>>,
        pool: &Arc<DriverPool<D>>,
        always: Vec<i32>,
    ) -> Result<()> {
        let entry = Pool { pool: Arc::downgrade(pool), home: home.clone(), always };
        let always = entry.always.clone();
        let mut known = self.known();
        known.memory.pools.retain(|one| one.pool.strong_count() > 0);
        known.memory.pools.push(Arc::new(entry));
        drop(known);
        pool.admit(home, &self.admitted(home, &always), true)
    }
    /// The devices to give access to memory of `home`, apart from itself: those of `always` whose context
    /// exists, and those that were enabled.
    fn admitted(&self, home: &DriverDevice<D>, always: &[i32]) -> Vec<i32> {
        let known = self.known();
        let of_home = known.enabled.iter().filter(|(_, peer)| *peer == home.number());
        let others = of_home.map(|(from, _)| *from).filter(|from| !always.contains(from));
        let started = always.iter().copied().filter(|number| known.started.contains(number));
        others.chain(started).filter(|number| *number != home.number()).collect()
    }
    /// Enables or disables access of `from` to all memory of this adapter on `peer`, now and for later
    /// allocations.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn switch(
        &self,
        from: &DriverDevice<D>,
        peer: &DriverDevice<D>,
        on: bool,
    ) -> Result<()> {
        let pair = (from.number(), peer.number());
        let set = |on| {
            let mut known = self.known();
            let changed = if on { known.enabled.insert(pair) } else { known.enabled.remove(&pair) };
            changed.then(|| known.memory.clone())
        };
        let Some(memory) = set(on) else { return Ok(()) };
        let is_meant = |home: &DriverDevice<D>, always: &[i32]| {
            home.number() == pair.1 && !always.contains(&pair.0)
        };
        // A switch that failed can be tried again; what was set until then is set again.
        self.set_access(memory, pair.0, is_meant, Some(on)).inspect_err(|_| drop(set(!on)))
    }
}
