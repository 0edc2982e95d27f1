//! The table of all memory that the driver knows, with access rights. It is the only place that turns an
//! address into memory.
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

/// The origin of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// `cuMemAlloc`
    Linear,
    /// Opened from a legacy IPC handle.
    Opened,
    Managed,
    /// Host memory allocated by the driver.
    Host,
    /// Host memory registered by the caller.
    Registered,
    /// Mapped physical memory.
    Virtual,
    /// Allocated from a pool.
    Pooled,
    /// A variable of a module.
    Global,
}
/// A range of memory.
pub struct Range {
    pub base: u64,
    pub bytes: u64,
    pub what: What,
    /// The context with which it is released; 0 if there is none.
    pub context: u64,
    pub device: i32,
    /// A number that identifies this range; it is never reused.
    pub id: u64,
    pub backing: Option<Arc<Backing>>,
    /// The allocation flags, the physical handle, or the pool.
    pub extra: u64,
    /// Two bits for each device: read access and write access.
    pub access: Arc<AtomicU32>,
    /// Whether its stream has reached its allocation, and whether its release is pending.
    pub live: AtomicBool,
    pub leaving: AtomicBool,
}
impl Range {
    /// A range of a device's memory, which that device can access.
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
    /// Whether the host can access it too.
    pub fn is_host(&self) -> bool {
        matches!(self.what, What::Managed | What::Host | What::Registered)
    }
    /// Whether `device` may access it in that way, in a kernel (`Kernel`) or by copies of the driver.
    fn admits(&self, device: i32, who: Who, writes: bool) -> bool {
        match self.what {
            What::Managed | What::Host => true,
            What::Registered => self.extra & 1 != 0 || context::primary_is(self.context, device),
            What::Virtual | What::Pooled => {
                let bits = self.access.load(Ordering::Acquire) >> (2 * device) & 3;
                bits & if writes { 2 } else { 1 } != 0
            }
            What::Linear | What::Opened | What::Global => {
                // Copies of such memory between devices go through the host where necessary.
                device == self.device
                    || who == Who::Copy
                    || context::peer_is_on(device, self.device)
            }
        }
    }
}
/// Converts access `flags` of a device to the bits of [`Range::access`].
pub fn bits(device: i32, flags: u32) -> u32 {
    flags << (2 * device)
}
/// How memory is accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// By the driver's copies, which can also access host memory.
    Copy,
    /// By kernels, memsets, and stream operations on values.
    Kernel,
}

/// The ranges by their first address; they do not overlap.
#[derive(Default)]
pub struct Table(BTreeMap<u64, Arc<Range>>);
static TABLE: RwLock<Table> = RwLock::new(Table(BTreeMap::new()));

/// Locks the table for reading. While it is locked, no memory is unmapped.
pub fn table() -> RwLockReadGuard<'static, Table> {
    read_locked(&TABLE)
}
/// Locks the table for changes; waits until no access to memory is in progress.
pub fn change() -> RwLockWriteGuard<'static, Table> {
    write_locked(&TABLE)
}
impl Table {
    /// Returns the range that contains the address.
    pub fn find(&self, at: u64) -> Option<&Arc<Range>> {
        self.0.range(..=at).next_back().map(|(_, r)| r).filter(|r| at < r.end())
    }
    /// Returns the range that begins at the address.
    pub fn exact(&self, base: u64) -> Option<&Arc<Range>> {
        self.0.get(&base)
    }
    /// Returns the ranges that overlap the given addresses.
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
    /// Returns all ranges of a context.
    pub fn of_context(&self, context: u64) -> Vec<Arc<Range>> {
        self.0.values().filter(|r| r.context == context).cloned().collect()
    }
    /// Returns the bytes at `at`, if `device` may access all of them in this way.
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
    /// Checks an access; with `now`, the memory must be allocated already, not only by a pending command.
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
                    // Pageable host memory, up to the next range that the driver knows.
                    let next = self.0.range(reached..end).next();
                    reached = next.map_or(end, |(base, _)| *base);
                }
                None => return Err(INVALID_VALUE),
            }
        }
        Ok(())
    }
}
/// Checks that whole ranges, without gaps, cover exactly these addresses.
pub fn whole(table: &Table, at: u64, bytes: u64, what: What) -> Answer<Vec<Arc<Range>>> {
    let found: Vec<Arc<Range>> = table.within(at, bytes).cloned().collect();
    let sum: u64 = found.iter().map(|r| r.bytes).sum();
    let fits = found.first().is_some_and(|r| r.base == at) && sum == bytes && bytes != 0;
    let right = found.iter().all(|r| r.what == what);
    if fits && right { Ok(found) } else { Err(INVALID_VALUE) }
}
