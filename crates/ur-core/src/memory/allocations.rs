//! The registry of a backend's allocations, by address and by object number: any address inside an allocation finds it.
//! What an allocation consists of and how long it lives is up to the backend.
use std::{
    cell::Cell,
    collections::HashMap,
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
};
use ur_adapter::{error, memory::UsmPtr, object::Backend};
use ur_hal::{Access, Address, AddressMap, Range};

/// An allocation of a backend, or the whole of an imported object.
pub trait Allocated: Send + Sync + Sized + 'static {
    /// The backend.
    const BACKEND: Backend;
    /// All allocations of this process.
    fn all() -> &'static Allocations<Self>;
    /// Its first byte.
    fn base(&self) -> UsmPtr;
    /// How many bytes it has.
    fn bytes(&self) -> usize;
    /// Its number among the objects of this process.
    fn object(&self) -> u64;
    /// Whether this process may only read it.
    fn is_read_only(&self) -> bool {
        false
    }
    /// Checks whether a command may access `range`, which overlaps no allocation, as far as the backend knows what is
    /// there.
    ///
    /// # Errors
    /// Those of a command that accesses `range` as `needs` states.
    fn check_elsewhere(_range: Range, _needs: Access) -> error::Result<()> {
        Ok(())
    }
}

/// All allocations of a process.
pub struct Allocations<A>(RwLock<Entries<A>>);
impl<A> Default for Allocations<A> {
    fn default() -> Self {
        Self(RwLock::new(Entries {
            at: AddressMap::new(),
            hidden: Vec::new(),
            objects: HashMap::new(),
        }))
    }
}
/// The allocations by address, and the address of each object that is not freed.
pub struct Entries<A> {
    at: AddressMap<Arc<A>>,
    /// Those that begin where a later one in `at` begins: threads that open one object at the same time import it more
    /// than once for a moment, at the same addresses.
    hidden: Vec<Arc<A>>,
    objects: HashMap<u64, Address>,
}
impl<A: Allocated> Entries<A> {
    /// Adds an allocation.
    pub fn enter(&mut self, one: &Arc<A>) {
        self.objects.insert(one.object(), one.base().into());
        // An empty allocation has no addresses by which it could be found.
        if let Ok(range) = Range::new(one.base().into(), one.bytes()) {
            let before = self.at.insert(range, Arc::clone(one));
            self.hidden.extend(before.filter(|before| !Arc::ptr_eq(before, one)));
        }
    }
    /// The allocation that begins at `at`.
    pub fn starting_at(&self, at: UsmPtr) -> Option<&Arc<A>> {
        self.at.starting_at(at.into())
    }
    /// The allocation with the number `object`, unless it is freed.
    pub fn named(&self, object: u64) -> Option<&Arc<A>> {
        let found = self.at.starting_at(*self.objects.get(&object)?);
        found.filter(|one| one.object() == object)
    }
    /// Whether an allocation overlaps `range`.
    pub fn touches(&self, range: Range) -> bool {
        self.at.touches(range)
    }
    /// Removes its object number; its addresses still find it.
    pub fn forget_name(&mut self, one: &A) {
        self.objects.remove(&one.object());
    }
    /// Removes an allocation. Another one that begins at the same address stays.
    pub fn remove(&mut self, one: &Arc<A>) -> Option<Arc<A>> {
        let is_it = |other: &Arc<A>| Arc::ptr_eq(other, one);
        if !self.starting_at(one.base()).is_some_and(is_it) {
            return Some(self.hidden.remove(self.hidden.iter().position(is_it)?));
        }
        let removed = self.at.remove(one.base().into());
        let next = self.hidden.iter().rposition(|other| other.base() == one.base());
        if let Some(next) = next.map(|next| self.hidden.remove(next))
            && let Ok(range) = Range::new(next.base().into(), next.bytes())
        {
            self.at.insert(range, next);
        }
        removed
    }
}

/// Calls `look` with all allocations, under the lock for reading.
pub fn read<A: Allocated, R>(look: impl FnOnce(&Entries<A>) -> R) -> R {
    look(&ur_lock::read_locked(&A::all().0))
}
/// Calls `change` under the lock for writing. What `change` removes it should return, so that it is dropped after the
/// lock is released.
pub fn write<A: Allocated, R>(change: impl FnOnce(&mut Entries<A>) -> R) -> R {
    let mut entries = ur_lock::write_locked(&A::all().0);
    let taken = change(&mut entries);
    CHANGES.fetch_add(1, Release); // before the lock is released; pairs with the load in `room`
    taken
}
/// Adds an allocation.
pub fn enter<A: Allocated>(one: A) -> Arc<A> {
    if one.is_read_only() {
        ANY_READ_ONLY.store(true, Release); // pairs with `is_read_only`
    }
    let one = Arc::new(one);
    write(|entries: &mut Entries<A>| entries.enter(&one));
    one
}
/// Removes an allocation.
pub fn leave<A: Allocated>(one: &Arc<A>) {
    let last = write(|entries: &mut Entries<A>| {
        entries.forget_name(one);
        entries.remove(one)
    });
    drop(last);
}
/// The allocation that contains the byte at `at`, including imported ones, and freed ones that are still open.
pub fn find<A: Allocated>(at: UsmPtr) -> Option<Arc<A>> {
    read(|entries: &Entries<A>| entries.at.find(at.into()).map(|(_, found)| Arc::clone(found)))
}
/// Whether `range` is in an allocation that this process may only read.
#[inline]
pub fn is_read_only<A: Allocated>(range: Range) -> bool {
    // Pairs with `enter`. A thread can only have such an address after `enter` returned, so it sees the store.
    ANY_READ_ONLY.load(Acquire)
        && find::<A>(range.start().into()).is_some_and(|found| found.is_read_only())
}
/// Whether this process has ever had a read-only allocation.
static ANY_READ_ONLY: AtomicBool = AtomicBool::new(false);
/// Whether the allocation with the number `object` exists and is not freed.
pub fn is_live<A: Allocated>(object: u64) -> bool {
    read(|entries: &Entries<A>| entries.objects.contains_key(&object))
}
/// Whether `[at, at + bytes)`, cut off at the end of the address space, overlaps an allocation.
pub fn touches<A: Allocated>(at: UsmPtr, bytes: usize) -> bool {
    let bytes = bytes.min(usize::MAX - at.addr());
    let range = Range::new(at.into(), bytes);
    range.is_ok_and(|range| read(|entries: &Entries<A>| entries.at.touches(range)))
}
/// Whether `range` is inside one allocation; `false` if it overlaps none.
///
/// # Errors
/// If it is only partly inside an allocation: the number of bytes from its start to where that allocation ends, or the
/// next one begins.
#[inline]
pub fn room<A: Allocated>(range: Range) -> Result<bool, usize> {
    let change = CHANGES.load(Acquire); // pairs with `write`
    match SEEN.get().iter().any(|seen| seen.has::<A>(change, range)) {
        true => Ok(true),
        false => look_for_room::<A>(range, change),
    }
}
fn look_for_room<A: Allocated>(range: Range, change: u64) -> Result<bool, usize> {
    let within = read(|entries: &Entries<A>| entries.at.within(range))?;
    if let Some(whole) = within {
        Seen { change, of: A::BACKEND as u16, start: whole.start().get(), end: whole.end() }.keep();
    }
    Ok(within.is_some())
}

/// The number of changes to the allocations of all backends.
static CHANGES: AtomicU64 = AtomicU64::new(1);
/// The addresses of one allocation, cached by a thread that uses the same memory repeatedly. Valid while `change`
/// equals [`CHANGES`], which was read before the lookup, so that a change during the lookup invalidates the entry.
#[derive(Clone, Copy)]
struct Seen {
    change: u64,
    of: u16,
    start: usize,
    end: usize,
}
thread_local! {
    /// The last two allocations that this thread looked up.
    static SEEN: Cell<[Seen; 2]> = const { Cell::new([Seen { change: 0, of: 0, start: 0, end: 0 }; 2]) };
}
impl Seen {
    #[inline]
    fn has<A: Allocated>(&self, change: u64, range: Range) -> bool {
        let is_current = self.change == change && self.of == A::BACKEND as u16;
        is_current && self.start <= range.start().get() && range.end() <= self.end
    }
    fn keep(self) {
        SEEN.set([self, SEEN.get()[0]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ur_mapping::PerProcess;

    struct One(UsmPtr, usize, u64);
    impl Allocated for One {
        const BACKEND: Backend = Backend::Null;
        fn all() -> &'static Allocations<Self> {
            static ALL: PerProcess<Allocations<One>> = PerProcess::new();
            ALL.get()
        }
        fn base(&self) -> UsmPtr {
            self.0
        }
        fn bytes(&self) -> usize {
            self.1
        }
        fn object(&self) -> u64 {
            self.2
        }
    }
    fn at(address: usize) -> UsmPtr {
        UsmPtr::from_addr(address).unwrap()
    }
    fn asked(address: usize, bytes: usize) -> Result<bool, usize> {
        room::<One>(Range::new(at(address).into(), bytes).unwrap())
    }

    #[test]
    fn what_a_thread_has_seen_of_an_allocation_ends_with_it() {
        let whole = enter(One(at(0x1000), 256, 7));
        assert_eq!(asked(0x1010, 16), Ok(true));
        assert_eq!(asked(0x10f0, 32), Err(16));
        assert!(is_live::<One>(7) && touches::<One>(at(1), usize::MAX));
        leave(&whole);
        let smaller = enter(One(at(0x1000), 24, 8));
        assert_eq!(asked(0x1010, 16), Err(8), "as large as it is now");
        assert_eq!(asked(0xff0, 32), Err(16), "to where it begins");
        assert!(!is_live::<One>(7) && find::<One>(at(0x1017)).is_some_and(|one| one.2 == 8));
        leave(&smaller);
        assert_eq!(asked(0x1010, 16), Ok(false), "no allocation is there");
        assert!(!touches::<One>(at(0x1000), 256)); // other tests have allocations elsewhere
    }

    #[test]
    fn of_two_imports_of_one_object_the_one_that_stays_is_found() {
        for is_first_to_leave in [true, false] {
            let pair = [9, 10].map(|object| enter(One(at(0x8000), 64, object)));
            let (leaves, stays) = match is_first_to_leave {
                true => (&pair[0], &pair[1]),
                false => (&pair[1], &pair[0]),
            };
            leave(leaves);
            assert!(find::<One>(at(0x8020)).is_some_and(|found| Arc::ptr_eq(&found, stays)));
            leave(leaves); // changes nothing
            assert_eq!(asked(0x8020, 16), Ok(true));
            leave(stays);
            assert_eq!(asked(0x8020, 16), Ok(false));
        }
    }
}
