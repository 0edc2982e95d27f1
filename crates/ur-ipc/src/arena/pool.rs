//! The pool of this process's own arenas: which arena a new event or export goes to, and the ledger lines of exports.
use super::{
    own::full,
    shared::{Arena, Side},
    slot::Slot,
};
use crate::{Access, Error, ErrorKind, Result, fork::PerFork, ledger::State, locked};
use std::sync::{Arc, Mutex};

/// The most arenas per policy.
const ARENAS: usize = 16;
/// New events go to an arena with at least this many free counters, so that they can also be signalled.
const COUNTERS_FOR_EVENTS: usize = 256;

impl Arena {
    /// Takes a ledger line for one export.
    ///
    /// # Errors
    /// [`ErrorKind::Full`] if all lines of this arena are taken.
    pub fn line(&self, tag: u64, descriptor: i32) -> Result<Line> {
        self.not_inherited()?;
        let (index, generation) = self.own()?.new_line(tag, descriptor)?;
        Ok(Line { arena: self.clone(), index, generation, last: State::Withdrawn })
    }
}

/// An export's line in the ledger. Dropping it withdraws the export. The line is reused late, in another generation.
#[derive(Debug)]
pub struct Line {
    pub(super) arena: Arena,
    pub(super) index: u16,
    pub(super) generation: u32,
    /// The state that the line shows once this is dropped, until the line is reused.
    pub(super) last: State,
}
impl Line {
    /// The arena in whose ledger the line is.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }
    /// The line's index.
    pub fn index(&self) -> u16 {
        self.index
    }
    /// How often the line was begun, which distinguishes this export from earlier ones in the same line.
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

/// This process's own arenas, in the order in which they were made.
#[derive(Default)]
struct Pool {
    arenas: Vec<Arena>,
    made: u32,
}

/// Takes something from one of this policy's arenas, or from a new one if all of them are full.
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
    // Drop the arenas that only the pool still references, which no event, counter, export or connection uses. Dead
    // counters go with them.
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

/// Makes an event in one of this process's own arenas for that policy; it is complete until it is first signalled.
///
/// # Errors
/// [`ErrorKind::Full`] if all 16 arenas of the policy are full; else the reason why the kernel gave no memory or
/// descriptor.
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

/// Takes a ledger line for one export of memory, in one of this process's own arenas for that policy.
///
/// # Errors
/// As [`slot`].
pub fn line(access: Access, tag: u64, descriptor: i32) -> Result<Line> {
    from_own(access, |arena| arena.line(tag, descriptor))
}
