//! Memory pools, whose allocations are ordered by streams. A pool is one file, so that it can be shared as a
//! whole.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    backing::{Backing, Kind},
    code::{Answer, INVALID_DEVICE, INVALID_VALUE, OPERATING_SYSTEM, OUT_OF_MEMORY},
    context, device,
    layout::{AccessDesc, Location, PoolProps},
    ranges::{self, Range, What, bits},
    raw::{get, list, put},
    space::{self, GRANULE},
    state::handle,
    stream,
    virtual_memory::{duplicate, location},
};
use rustix::io::fcntl_dupfd_cloexec;
use std::{
    collections::{BTreeMap, HashMap},
    os::fd::IntoRawFd as _,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard,
        atomic::{AtomicU32, Ordering},
    },
};
use ur_lock::locked;

struct Pool {
    backing: Arc<Backing>,
    base: u64,
    limit: u64,
    handle_types: i32,
    imported: bool,
    access: Arc<AtomicU32>,
    room: Mutex<Room>,
}
#[derive(Default)]
struct Room {
    /// The allocations: their offsets in the file and their sizes.
    taken: BTreeMap<u64, u64>,
    /// How many times each was imported here.
    opens: HashMap<u64, usize>,
    /// Bytes that are reserved from the device; the maximum of these; the maximum of the bytes in use.
    reserved: u64,
    reserved_high: u64,
    used_high: u64,
    /// The four attributes: three flags and the release threshold.
    settings: [u64; 4],
}
impl Room {
    fn used(&self) -> u64 {
        self.taken.values().sum()
    }
}
#[derive(Default)]
struct Pools {
    live: HashMap<u64, Arc<Pool>>,
    /// All pools, including destroyed ones that still contain allocations.
    all: HashMap<u64, Arc<Pool>>,
    default: HashMap<i32, u64>,
}
static POOLS: LazyLock<Mutex<Pools>> = LazyLock::new(Mutex::default);
fn pools() -> MutexGuard<'static, Pools> {
    locked(&POOLS)
}
fn of(id: u64) -> Answer<Arc<Pool>> {
    pools().live.get(&id).cloned().ok_or(INVALID_VALUE)
}
impl Pool {
    fn new(backing: Backing, handle_types: i32, limit: u64, imported: bool) -> Answer<Self> {
        let base = space::take(backing.bytes, GRANULE, 0)?;
        backing.map(base).inspect_err(|_| space::give(base))?;
        let access = Arc::new(AtomicU32::new(bits(backing.device, 3)));
        let room = Mutex::new(Room { settings: [1, 1, 1, 0], ..Room::default() });
        Ok(Self { backing: Arc::new(backing), base, limit, handle_types, imported, access, room })
    }
    fn room(&self) -> MutexGuard<'_, Room> {
        locked(&self.room)
    }
    /// Allocates a range, first fit, and reserves device memory where the pool grows.
    fn take(&self, bytes: u64) -> Answer<u64> {
        let taken = bytes.checked_next_multiple_of(512).ok_or(OUT_OF_MEMORY)?;
        let mut room = self.room();
        let mut at = 0;
        for (begin, long) in &room.taken {
            if begin - at >= taken {
                break;
            }
            at = begin + long;
        }
        let end = at.checked_add(taken).filter(|end| *end <= self.limit).ok_or(OUT_OF_MEMORY)?;
        let needed = end.next_multiple_of(GRANULE);
        if needed > room.reserved {
            device::of(self.backing.device)?.take(needed - room.reserved)?;
            room.reserved = needed;
            room.reserved_high = room.reserved_high.max(needed);
        }
        room.taken.insert(at, taken);
        room.used_high = room.used_high.max(room.used());
        Ok(at)
    }
    /// Returns the device memory behind the last allocation to the device, except for `keep` bytes.
    fn trim(&self, keep: u64) {
        let mut room = self.room();
        let used = room.taken.last_key_value().map_or(0, |(at, bytes)| at + bytes);
        let stays = used.max(keep).next_multiple_of(GRANULE);
        if stays < room.reserved
            && let Ok(device) = device::of(self.backing.device)
        {
            device.give(room.reserved - stays);
            room.reserved = stays;
        }
    }
    fn insert(&self, id: u64, offset: u64, bytes: u64, live: bool) -> u64 {
        let range = Range::new(What::Pooled, self.base + offset, bytes, self.backing.device);
        range.live.store(live, Ordering::Release);
        let (backing, access) = (Some(self.backing.clone()), self.access.clone());
        ranges::change().insert(Range { backing, access, extra: id, ..range });
        self.base + offset
    }
}
impl Drop for Pool {
    fn drop(&mut self) {
        if !self.imported {
            self.room().taken.clear();
            self.trim(0);
        }
        space::unmap(self.base, self.backing.bytes);
        space::give(self.base);
    }
}
/// Called when the range has been removed from the table.
pub fn gone(range: &Range) {
    let pool = pools().all.get(&range.extra).cloned();
    let Some(pool) = pool else { return };
    let offset = range.base - pool.base;
    let empty = {
        let mut room = pool.room();
        room.taken.remove(&offset);
        room.opens.remove(&offset);
        room.taken.is_empty()
    };
    if empty && !pools().live.contains_key(&range.extra) {
        pools().all.remove(&range.extra);
    }
}
fn add(pool: Pool) -> u64 {
    let (id, pool) = (handle(0x0b), Arc::new(pool));
    let mut pools = pools();
    pools.all.insert(id, pool.clone());
    pools.live.insert(id, pool);
    id
}
fn default(device: i32) -> Answer<u64> {
    if let Some(id) = pools().default.get(&device) {
        return Ok(*id);
    }
    let backing = Backing::new(Kind::Pool, device, device::total(), false)?;
    let id = add(Pool::new(backing, 0, device::total(), false)?);
    pools().default.insert(device, id);
    Ok(id)
}
fn alloc(to: *mut u64, bytes: usize, id: u64, stream: u64) -> Answer {
    let (stream, pool) = (stream::of(stream)?, of(id)?);
    if bytes == 0 || pool.imported || to.is_null() {
        return Err(INVALID_VALUE);
    }
    let at = pool.insert(id, pool.take(bytes as u64)?, bytes as u64, false);
    stream.submit(move || {
        ranges::table().exact(at).iter().for_each(|r| r.live.store(true, Ordering::Release));
        Ok(())
    })?;
    put(to, at)
}

entries! {
    fn cuMemPoolCreate(to: *mut u64, wanted: *const PoolProps) {
        let p = get(wanted)?;
        let device = location(p.location)?;
        if p.kind != 1 || !matches!(p.handle_types, 0 | 1) || to.is_null() || p.reserved != [0; 56] {
            return Err(INVALID_VALUE);
        }
        let limit = if p.max_size == 0 { device::total() } else { p.max_size as u64 };
        let bytes = limit.min(device::total()).next_multiple_of(GRANULE);
        let backing = Backing::new(Kind::Pool, device, bytes, false)?;
        put(to, add(Pool::new(backing, p.handle_types, bytes, false)?))
    }
    fn cuMemPoolDestroy(pool: u64) {
        let mut pools = pools();
        if pools.default.values().any(|id| *id == pool) {
            return Err(INVALID_VALUE);
        }
        let gone = pools.live.remove(&pool).ok_or(INVALID_VALUE)?;
        if gone.room().taken.is_empty() {
            pools.all.remove(&pool);
        }
        drop(pools);
        Ok(())
    }
    fn cuDeviceGetDefaultMemPool(to: *mut u64, device: i32) {
        device::of(device)?;
        put(to, default(device)?)
    }
    fn cuDeviceGetMemPool(to: *mut u64, device: i32) {
        device::of(device)?;
        put(to, default(device)?)
    }
    fn cuMemPoolGetAttribute(pool: u64, attribute: i32, to: *mut u64) {
        let pool = of(pool)?;
        let room = pool.room();
        match attribute {
            1..=3 => put(to.cast(), room.settings[attribute as usize - 1] as i32),
            4 => put(to, room.settings[3]),
            5 => put(to, room.reserved),
            6 => put(to, room.reserved_high),
            7 => put(to, room.used()),
            8 => put(to, room.used_high),
            _ => Err(INVALID_VALUE),
        }
    }
    fn cuMemPoolSetAttribute(pool: u64, attribute: i32, from: *mut u64) {
        let pool = of(pool)?;
        let mut room = pool.room();
        match attribute {
            1..=3 => room.settings[attribute as usize - 1] = u64::from(get(from.cast::<i32>())? != 0),
            4 => room.settings[3] = get(from)?,
            6 if get(from)? == 0 => room.reserved_high = room.reserved,
            8 if get(from)? == 0 => room.used_high = room.used(),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }
    fn cuMemPoolTrimTo(pool: u64, keep: usize) {
        of(pool)?.trim(keep as u64);
        Ok(())
    }
    fn cuMemPoolSetAccess(pool: u64, wanted: *const AccessDesc, count: usize) {
        let pool = of(pool)?;
        let wanted = list(wanted, count)?;
        for one in &wanted {
            let device = location(one.location)?;
            let own = device == pool.backing.device && one.flags != 3;
            if own || !matches!(one.flags, 0 | 1 | 3) {
                return Err(INVALID_VALUE);
            }
            if !device::reaches(device, pool.backing.device) {
                return Err(INVALID_DEVICE);
            }
        }
        for one in wanted {
            pool.access.fetch_and(!bits(one.location.id, 3), Ordering::AcqRel);
            pool.access.fetch_or(bits(one.location.id, one.flags as u32), Ordering::AcqRel);
        }
        Ok(())
    }
    fn cuMemPoolGetAccess(to: *mut i32, pool: u64, place: *const Location) {
        let (pool, device) = (of(pool)?, location(get(place)?)?);
        put(to, (pool.access.load(Ordering::Acquire) >> (2 * device) & 3) as i32)
    }
    fn cuMemAllocFromPoolAsync(to: *mut u64, bytes: usize, pool: u64, stream: u64) {
        alloc(to, bytes, pool, stream)
    }
    fn cuMemAllocAsync(to: *mut u64, bytes: usize, stream: u64) {
        alloc(to, bytes, default(context::current()?.device)?, stream)
    }
    fn cuMemFreeAsync(at: u64, stream: u64) {
        let stream = stream::of(stream)?;
        let table = ranges::table();
        let kinds = [What::Pooled, What::Linear];
        let range = table.exact(at).filter(|r| kinds.contains(&r.what)).cloned().ok_or(INVALID_VALUE)?;
        drop(table);
        if range.leaving.swap(true, Ordering::AcqRel) {
            return Err(INVALID_VALUE);
        }
        stream.submit(move || {
            let removed = ranges::change().remove(at);
            removed.iter().for_each(|r| crate::memory::gone(r));
            Ok(())
        })?;
        Ok(())
    }
    fn cuMemPoolExportToShareableHandle(to: *mut i32, pool: u64, kind: i32, flags: u64) {
        let pool = of(pool)?;
        if kind != 1 || flags != 0 || pool.handle_types & kind == 0 || pool.imported || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let copy = fcntl_dupfd_cloexec(pool.backing.file()?, 0).map_err(|_| OPERATING_SYSTEM)?;
        put(to, copy.into_raw_fd())
    }
    fn cuMemPoolImportFromShareableHandle(to: *mut u64, handle: usize, kind: i32, flags: u64) {
        if kind != 1 || flags != 0 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let file = duplicate(i32::try_from(handle).map_err(|_| INVALID_VALUE)?)?;
        let backing = Backing::of(Kind::Pool, file)?;
        let limit = backing.bytes;
        put(to, add(Pool::new(backing, 1, limit, true)?))
    }
    fn cuMemPoolExportPointer(to: *mut [u64; 8], at: u64) {
        let range = ranges::table().exact(at).filter(|r| r.what == What::Pooled).cloned().ok_or(INVALID_VALUE)?;
        let pool = of(range.extra)?;
        if pool.handle_types == 0 || pool.imported {
            return Err(INVALID_VALUE);
        }
        put(to, [pool.backing.inode()?, at - pool.base, range.bytes, 0, 0, 0, 0, 0])
    }
    fn cuMemPoolImportPointer(to: *mut u64, id: u64, data: *const [u64; 8]) {
        let (pool, [inode, offset, bytes, ..]) = (of(id)?, get(data)?);
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= pool.backing.bytes);
        if !pool.imported || pool.backing.inode()? != inode || !inside || bytes == 0 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let mut room = pool.room();
        if room.opens.contains_key(&offset) {
            return Err(INVALID_VALUE); // only once in a process
        }
        room.opens.insert(offset, 1);
        room.taken.insert(offset, bytes);
        drop(room);
        put(to, pool.insert(id, offset, bytes, true))
    }
}
