//! The table of all memory that the driver knows, and who may reach what: the one place that turns
//! an address into bytes.
use crate::{
    backing::Backing,
    code::{Answer, ILLEGAL_ADDRESS, INVALID_VALUE},
    context, space,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};
use ur_lock::{read_locked, write_locked};

/// How memory came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// `cuMemAlloc`
    Linear,
    /// Opened by a legacy handle.
    Opened,
    Managed,
    /// Host memory of the driver's.
    Host,
    /// Host memory of the caller's.
    Registered,
    /// Physical memory, mapped.
    Virtual,
    /// From a pool.
    Pooled,
    /// A variable of a module.
    Global,
}
/// One piece of memory at one place.
pub struct Range {
    pub base: u64,
    pub bytes: u64,
    pub what: What,
    /// The context that it goes with; 0: none.
    pub context: u64,
    pub device: i32,
    /// The same for one piece of memory for ever.
    pub id: u64,
    pub backing: Option<Arc<Backing>>,
    /// The flags it was made with; the physical handle; the pool.
    pub extra: u64,
    /// Two bits for each device: may read, may write.
    pub access: Arc<AtomicU32>,
    /// Whether its stream has come to its allocation, and whether someone has asked to free it.
    pub live: AtomicBool,
    pub leaving: AtomicBool,
}
impl Range {
    /// A piece of memory of a device, which that device may use.
    pub fn new(what: What, base: u64, bytes: u64, device: i32) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            base,
            bytes,
            what,
            context: 0,
            device,
            id,
            backing: None,
            extra: 0,
            access: Arc::new(AtomicU32::new(bits(device, 3))),
            live: AtomicBool::new(true),
            leaving: AtomicBool::new(false),
        }
    }
    pub fn end(&self) -> u64 {
        self.base + self.bytes
    }
    /// Whether the host reaches it too.
    pub fn is_host(&self) -> bool {
        matches!(self.what, What::Managed | What::Host | What::Registered)
    }
    /// Whether `device` may use it that way, by itself (`Kernel`) or by the driver's copies.
    fn admits(&self, device: i32, who: Who, writes: bool) -> bool {
        match self.what {
            What::Managed | What::Host => true,
            What::Registered => self.extra & 1 != 0 || context::primary_is(self.context, device),
            What::Virtual | What::Pooled => {
                let bits = self.access.load(Ordering::Acquire) >> (2 * device) & 3;
                bits & if writes { 2 } else { 1 } != 0
            }
            What::Linear | What::Opened | What::Global => {
                // Between devices copies of such memory go by way of the host where they must.
                device == self.device
                    || who == Who::Copy
                    || context::peer_is_on(device, self.device)
            }
        }
    }
}
/// `flags` of a device's access, as bits of [`Range::access`].
pub fn bits(device: i32, flags: u32) -> u32 {
    flags << (2 * device)
}
/// Who reaches for memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The driver's copies and memsets: host memory is theirs too.
    Copy,
    /// Kernels, and streams that write and wait for values.
    Kernel,
}

/// The ranges by their first address; none overlap.
#[derive(Default)]
pub struct Table(BTreeMap<u64, Arc<Range>>);
static TABLE: RwLock<Table> = RwLock::new(Table(BTreeMap::new()));

/// The table, to look up; whoever holds it reaches memory that stays.
pub fn table() -> RwLockReadGuard<'static, Table> {
    read_locked(&TABLE)
}
/// The table, to change: waits for who is reaching for memory.
pub fn change() -> RwLockWriteGuard<'static, Table> {
    write_locked(&TABLE)
}
impl Table {
    /// The range that holds that address.
    pub fn find(&self, at: u64) -> Option<&Arc<Range>> {
        self.0.range(..=at).next_back().map(|(_, r)| r).filter(|r| at < r.end())
    }
    /// The range that begins there.
    pub fn exact(&self, base: u64) -> Option<&Arc<Range>> {
        self.0.get(&base)
    }
    /// Those that touch the addresses.
    pub fn within(&self, at: u64, bytes: u64) -> impl Iterator<Item = &Arc<Range>> {
        let first = self.find(at).map_or(at, |r| r.base);
        self.0.range(first..at.saturating_add(bytes)).map(|(_, r)| r)
    }
    pub fn insert(&mut self, range: Range) {
        self.0.insert(range.base, Arc::new(range));
    }
    pub fn remove(&mut self, base: u64) -> Option<Arc<Range>> {
        self.0.remove(&base)
    }
    /// All ranges that a context has.
    pub fn of_context(&self, context: u64) -> Vec<Arc<Range>> {
        self.0.values().filter(|r| r.context == context).cloned().collect()
    }
    /// The bytes at `at`, if `device` may use all of them so.
    pub fn reach(
        &self,
        at: u64,
        bytes: u64,
        device: i32,
        who: Who,
        writes: bool,
    ) -> Answer<*mut u8> {
        self.check(at, bytes, device, who, writes, true).map_err(|_| ILLEGAL_ADDRESS)?;
        Ok(space::reach(at))
    }
    /// Whether that use is right; `now`: of memory that is there already, not only promised.
    pub fn check(
        &self,
        at: u64,
        bytes: u64,
        device: i32,
        who: Who,
        writes: bool,
        now: bool,
    ) -> Answer {
        let end = at.checked_add(bytes).ok_or(INVALID_VALUE)?;
        let mut reached = at;
        while reached < end {
            match self.find(reached) {
                Some(r) if !r.admits(device, who, writes) => return Err(INVALID_VALUE),
                Some(r) if now && !r.live.load(Ordering::Acquire) => return Err(INVALID_VALUE),
                Some(r) => reached = r.end(),
                None if who == Who::Copy && !space::is_device(reached) => {
                    // Pageable memory, up to the next range that the driver knows.
                    let next = self.0.range(reached..end).next();
                    reached = next.map_or(end, |(base, _)| *base);
                }
                None => return Err(INVALID_VALUE),
            }
        }
        Ok(())
    }
}
/// Whether whole ranges, without a gap, lie at those addresses.
pub fn whole(table: &Table, at: u64, bytes: u64, what: What) -> Answer<Vec<Arc<Range>>> {
    let found: Vec<Arc<Range>> = table.within(at, bytes).cloned().collect();
    let sum: u64 = found.iter().map(|r| r.bytes).sum();
    let fits = found.first().is_some_and(|r| r.base == at) && sum == bytes && bytes != 0;
    let right = found.iter().all(|r| r.what == what);
    if fits && right { Ok(found) } else { Err(INVALID_VALUE) }
}
