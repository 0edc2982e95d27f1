//! Which allocations a backend has, by address and by object: any address inside an allocation finds it. What an
//! allocation consists of, and when it goes, is each backend's.
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

/// An allocation of a backend's, or the whole of an object that was opened.
pub trait Allocated: Send + Sync + Sized + 'static {
    /// Whose it is.
    const BACKEND: Backend;
    /// All that this process has of them.
    fn all() -> &'static Allocations<Self>;
    /// Its first byte.
    fn base(&self) -> UsmPtr;
    /// How many bytes it has.
    fn bytes(&self) -> usize;
    /// Its name among the objects of this process.
    fn object(&self) -> u64;
    /// Whether this process may only read it.
    fn is_read_only(&self) -> bool {
        false
    }
    /// # Errors
    /// Those of commands that use `range`, which touches no allocation, as `needs` says: as far as the backend knows what
    /// is there.
    fn check_elsewhere(_range: Range, _needs: Access) -> error::Result<()> {
        Ok(())
    }
}

/// All allocations of a process.
pub struct Allocations<A>(RwLock<Entries<A>>);
impl<A> Default for Allocations<A> {
    fn default() -> Self {
        Self(RwLock::new(Entries { at: AddressMap::new(), objects: HashMap::new() }))
    }
}
/// They by address; and where each object is that was not freed.
pub struct Entries<A> {
    at: AddressMap<Arc<A>>,
    objects: HashMap<u64, Address>,
}
impl<A: Allocated> Entries<A> {
    /// Makes one known.
    pub fn enter(&mut self, one: &Arc<A>) {
        self.objects.insert(one.object(), one.base().into());
        // Without bytes it would be nowhere.
        if let Ok(range) = Range::new(one.base().into(), one.bytes()) {
            self.at.insert(range, Arc::clone(one));
        }
    }
    /// The one that begins there.
    pub fn starting_at(&self, at: UsmPtr) -> Option<&Arc<A>> {
        self.at.starting_at(at.into())
    }
    /// The one that is called `object` and was not freed.
    pub fn named(&self, object: u64) -> Option<&Arc<A>> {
        let found = self.at.starting_at(*self.objects.get(&object)?);
        found.filter(|one| one.object() == object)
    }
    /// Whether one has a byte of `range`.
    pub fn touches(&self, range: Range) -> bool {
        self.at.touches(range)
    }
    /// It has no name any more.
    pub fn forget_name(&mut self, one: &A) {
        self.objects.remove(&one.object());
    }
    /// Takes out the one that begins there.
    pub fn remove(&mut self, at: UsmPtr) -> Option<Arc<A>> {
        self.at.remove(at.into())
    }
}

/// Looks at all of them.
pub fn read<A: Allocated, R>(look: impl FnOnce(&Entries<A>) -> R) -> R {
    look(&ur_lock::read_locked(&A::all().0))
}
/// Changes something. What `change` takes out it returns, to be dropped when the lock is free.
pub fn write<A: Allocated, R>(change: impl FnOnce(&mut Entries<A>) -> R) -> R {
    let mut entries = ur_lock::write_locked(&A::all().0);
    let taken = change(&mut entries);
    CHANGES.fetch_add(1, Release); // before the lock is free; pairs with the load in `room`
    taken
}
/// Makes an allocation known.
pub fn enter<A: Allocated>(one: A) -> Arc<A> {
    if one.is_read_only() {
        ANY_READ_ONLY.store(true, Release); // pairs with `is_read_only`
    }
    let one = Arc::new(one);
    write(|entries: &mut Entries<A>| entries.enter(&one));
    one
}
/// Makes it unknown.
pub fn leave<A: Allocated>(one: &Arc<A>) {
    let last = write(|entries: &mut Entries<A>| {
        entries.forget_name(one);
        entries.remove(one.base())
    });
    drop(last);
}
/// The allocation that has the byte at `at`, opened ones and such as are freed and open included.
pub fn find<A: Allocated>(at: UsmPtr) -> Option<Arc<A>> {
    read(|entries: &Entries<A>| entries.at.find(at.into()).map(|(_, found)| Arc::clone(found)))
}
/// Whether `range` is in an allocation that this process may only read.
#[inline]
pub fn is_read_only<A: Allocated>(range: Range) -> bool {
    // Pairs with `enter`. A thread that was given an address of such memory is behind that in any case.
    ANY_READ_ONLY.load(Acquire)
        && find::<A>(range.start().into()).is_some_and(|found| found.is_read_only())
}
/// Whether this process ever had such an allocation.
static ANY_READ_ONLY: AtomicBool = AtomicBool::new(false);
/// Whether the allocation called `object` is there and not freed.
pub fn is_live<A: Allocated>(object: u64) -> bool {
    read(|entries: &Entries<A>| entries.objects.contains_key(&object))
}
/// Whether `[at, at + bytes)` shares a byte with an allocation, as far as there are addresses.
pub fn touches<A: Allocated>(at: UsmPtr, bytes: usize) -> bool {
    let bytes = bytes.min(usize::MAX - at.addr());
    let range = Range::new(at.into(), bytes);
    range.is_ok_and(|range| read(|entries: &Entries<A>| entries.at.touches(range)))
}
/// Whether `range` is within one allocation; if not, it touches none.
///
/// # Errors
/// If not, how many bytes there are from its start to where its allocation ends, or the next one begins.
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

/// Counts the changes of what is allocated, in all backends.
static CHANGES: AtomicU64 = AtomicU64::new(1);
/// The addresses of one allocation, as of a change: a thread that copies to and fro names the same ones again and again.
/// The number of the change is read before the lookup that it goes with, so that a change in between makes it an old one.
#[derive(Clone, Copy)]
struct Seen {
    change: u64,
    of: u16,
    start: usize,
    end: usize,
}
thread_local! {
    /// What this thread saw last.
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
    use ur_adapter::per_process::PerProcess;

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
        assert!(!touches::<One>(at(1), usize::MAX));
    }
}
