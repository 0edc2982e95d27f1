//! This process's own arenas: which one a new event or export goes to, and the ledger lines of exports.
use super::{
    own::full,
    shared::{Arena, Side},
    slot::Slot,
};
use crate::{Access, Error, ErrorKind, Result, fork::PerFork, ledger::State, locked};
use std::sync::{Arc, Mutex};

/// So many arenas a policy.
const ARENAS: usize = 16;
/// New events go where so many counters are free, that they can be signalled too.
const COUNTERS_FOR_EVENTS: usize = 256;

impl Arena {
    /// A ledger line for one export.
    ///
    /// # Errors
    /// [`ErrorKind::Full`] if all lines of this arena are taken.
    pub fn line(&self, tag: u64, descriptor: i32) -> Result<Line> {
        self.not_inherited()?;
        let (index, generation) = self.own()?.new_line(tag, descriptor)?;
        Ok(Line { arena: self.clone(), index, generation, last: State::Withdrawn })
    }
}

/// An export's line in the ledger. Dropping it withdraws the export; the line is used again late, in another generation.
#[derive(Debug)]
pub struct Line {
    pub(super) arena: Arena,
    pub(super) index: u16,
    pub(super) generation: u32,
    /// What it says when this is dropped, until it is used again.
    pub(super) last: State,
}
impl Line {
    /// The arena in whose ledger it stands.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }
    /// Which line.
    pub fn index(&self) -> u16 {
        self.index
    }
    /// How often the line was begun; tells this export from the line's earlier ones.
    pub fn generation(&self) -> u32 {
        self.generation
    }
    /// Ends the export because the object was freed.
    pub fn end_freed(mut self) {
        self.last = State::Freed;
    }
}
impl Drop for Line {
    fn drop(&mut self) {
        if let Side::Own(own) = &self.arena.0.side
            && !self.arena.0.is_inherited()
        {
            own.end_line(self.index, self.generation, self.last);
        }
    }
}

/// This process's own arenas, in the order they were made.
#[derive(Default)]
struct Pool {
    arenas: Vec<Arena>,
    made: u32,
}

/// Something from an own arena of this policy, a new arena if all others are full.
pub(super) fn from_own<T>(access: Access, take: impl Fn(&Arena) -> Result<T>) -> Result<T> {
    static POOL: PerFork<Mutex<Pool>> = PerFork::new();
    let mut pool = locked(POOL.get()?);
    let is_meant = |arena: &&Arena| arena.own().is_ok_and(|own| own.access == access);
    for arena in pool.arenas.iter().filter(is_meant) {
        match take(arena) {
            Err(error) if error.kind() == ErrorKind::Full => {}
            done => return done,
        }
    }
    // Arenas that only the pool still has: nobody's event, counter, export or connection. Dead counters go with them.
    pool.arenas.retain(|arena| Arc::strong_count(&arena.0) > 1);
    if pool.arenas.iter().filter(is_meant).count() >= ARENAS {
        let why = format!(
            "this process shares as many events and exports as {ARENAS} arenas hold: release some first"
        );
        return Err(Error::new(ErrorKind::Full, why));
    }
    let arena = Arena::make(access, pool.made)?;
    pool.made += 1;
    let taken = take(&arena);
    pool.arenas.push(arena);
    taken
}

/// A new event in one of this process's own arenas for that policy; complete until it is first signalled.
///
/// # Errors
/// [`ErrorKind::Full`] if all 16 arenas of the policy are full; else why the kernel gave no memory or descriptor.
pub fn slot(access: Access) -> Result<Slot> {
    from_own(access, |arena| {
        let own = arena.own()?;
        if own.counters_left() < COUNTERS_FOR_EVENTS {
            return Err(full("counters"));
        }
        let (index, generation) = own.new_slot(&arena.0.words)?;
        Ok(Slot::new(arena.clone(), index, generation))
    })
}

/// A ledger line for one export of memory, in one of this process's own arenas for that policy.
///
/// # Errors
/// As [`slot`].
pub fn line(access: Access, tag: u64, descriptor: i32) -> Result<Line> {
    from_own(access, |arena| arena.line(tag, descriptor))
}
