//! Which devices C let reach which others' memory, and all memory of ours that this is about: of virtual memory and
//! of pools the driver's own switch says nothing, so access is given piece by piece.
use super::{
    DriverDevice,
    driver::Dialect,
    native::{pool::DriverPool, virtual_memory},
};
use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use ur_adapter::error::Result;

/// What a process knows of it.
#[derive(Debug)]
pub(super) struct Peers<D: Dialect>(Mutex<Known<D>>);
#[derive(Debug)]
struct Known<D: Dialect> {
    /// Who reaches whose memory, by the driver's numbers.
    enabled: HashSet<(i32, i32)>,
    /// Whose contexts are there, or about to be: a device can only be given access then.
    started: HashSet<i32>,
    /// Mappings by their first address.
    mappings: BTreeMap<u64, Arc<Mapping<D>>>,
    pools: Vec<Arc<Pool<D>>>,
}
#[derive(Debug)]
struct Mapping<D: Dialect> {
    bytes: usize,
    home: Arc<DriverDevice<D>>,
    /// Those that have access in any case, once they are started: of the context that it was made in.
    always: Vec<i32>,
    /// What they may do.
    rights: i32,
}
#[derive(Debug)]
struct Pool<D: Dialect> {
    pool: Weak<DriverPool<D>>,
    home: Arc<DriverDevice<D>>,
    always: Vec<i32>,
}
impl<D: Dialect> Default for Peers<D> {
    fn default() -> Self {
        let (enabled, started) = (HashSet::new(), HashSet::new());
        let (mappings, pools) = (BTreeMap::new(), Vec::new());
        Self(Mutex::new(Known { enabled, started, mappings, pools }))
    }
}
impl<D: Dialect> Peers<D> {
    fn known(&self) -> MutexGuard<'_, Known<D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Enters a mapping of `home`'s memory, to which `always` shall have access with these `rights` (0: none),
    /// and gives it to those of them that are started, and to those that C let at it before; `home` has it. In
    /// this order: who starts or is let at it from now on finds it here.
    ///
    /// # Errors
    /// The driver's own; then it is not entered.
    pub(super) fn enter_mapping(
        &self,
        home: &Arc<DriverDevice<D>>,
        (at, bytes): (u64, usize),
        always: Vec<i32>,
        rights: i32,
    ) -> Result<()> {
        let mapping =
            Arc::new(Mapping { bytes, home: home.clone(), always: always.clone(), rights });
        self.known().mappings.insert(at, mapping);
        let more = self.admitted(home, &always);
        if more.is_empty() || rights == 0 {
            return Ok(());
        }
        let given = virtual_memory::set_access(home, at, bytes, &more, rights);
        given.inspect_err(|_| self.leave_mapping(at))
    }
    /// From now on those that have access to the mappings there have it with these rights.
    pub(super) fn set_rights(&self, range: Range<u64>, rights: i32) {
        let mut known = self.known();
        for (_, mapping) in known.mappings.range_mut(range) {
            let (home, always) = (mapping.home.clone(), mapping.always.clone());
            *mapping = Arc::new(Mapping { bytes: mapping.bytes, home, always, rights });
        }
    }
    /// Those of `devices` that are started, and `home`.
    pub(super) fn started_of(&self, home: &DriverDevice<D>, devices: &[i32]) -> Vec<i32> {
        let known = self.known();
        let is_there = |number: &&i32| **number == home.number() || known.started.contains(number);
        devices.iter().filter(is_there).copied().collect()
    }
    /// The context of the device with this number is there now: it gets what access it has.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn started(&self, number: i32) -> Result<()> {
        let (mappings, pools) = {
            let mut known = self.known();
            known.started.insert(number);
            (known.mappings.clone(), known.pools.clone())
        };
        let is_meant = |home: &DriverDevice<D>, always: &[i32]| {
            home.number() != number && always.contains(&number)
        };
        for (at, one) in mappings {
            if one.rights == 0 || !is_meant(&one.home, &one.always) {
                continue;
            }
            let set = virtual_memory::set_access(&one.home, at, one.bytes, &[number], one.rights);
            if set.is_err() && self.known().mappings.contains_key(&at) {
                return set; // else it went meanwhile
            }
        }
        for one in pools.iter().filter(|one| is_meant(&one.home, &one.always)) {
            if let Some(pool) = one.pool.upgrade() {
                pool.admit(&one.home, &[number], true)?;
            }
        }
        Ok(())
    }
    /// The mapping is about to go.
    pub(super) fn leave_mapping(&self, at: u64) {
        let gone = self.known().mappings.remove(&at);
        drop(gone);
    }
    /// The same for a pool of the driver's.
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
        known.pools.retain(|one| one.pool.strong_count() > 0);
        known.pools.push(Arc::new(entry));
        drop(known);
        pool.admit(home, &self.admitted(home, &always), true)
    }
    /// Who has access to memory of `home`'s beside itself: those of `always` that are started, and those that C
    /// let at it.
    fn admitted(&self, home: &DriverDevice<D>, always: &[i32]) -> Vec<i32> {
        let known = self.known();
        let of_home = known.enabled.iter().filter(|(_, peer)| *peer == home.number());
        let others = of_home.map(|(from, _)| *from).filter(|from| !always.contains(from));
        let started = always.iter().copied().filter(|number| known.started.contains(number));
        others.chain(started).filter(|number| *number != home.number()).collect()
    }
    /// Lets `from` at all memory of ours on `peer`, now and later; or no longer.
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
        let (mappings, pools) = {
            let mut known = self.known();
            let changed = if on { known.enabled.insert(pair) } else { known.enabled.remove(&pair) };
            if !changed {
                return Ok(());
            }
            (known.mappings.clone(), known.pools.clone())
        };
        let is_meant = |home: &DriverDevice<D>, always: &[i32]| {
            home.number() == pair.1 && !always.contains(&pair.0)
        };
        let flags = if on { 3 } else { 0 };
        for (at, one) in mappings {
            if !is_meant(&one.home, &one.always) {
                continue;
            }
            let set = virtual_memory::set_access(&one.home, at, one.bytes, &[pair.0], flags);
            if set.is_err() && self.known().mappings.contains_key(&at) {
                return set; // else it went meanwhile
            }
        }
        for one in pools.iter().filter(|one| is_meant(&one.home, &one.always)) {
            if let Some(pool) = one.pool.upgrade() {
                pool.admit(&one.home, &[pair.0], on)?;
            }
        }
        Ok(())
    }
}
