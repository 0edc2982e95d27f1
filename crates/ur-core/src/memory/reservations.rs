//! The registry of reserved address ranges and of what is mapped there. Every range that a caller passes is checked
//! against it, and mapped memory is kept alive. While the driver works on a part, that part is marked busy, and no lock
//! is held. The driver's calls are in `over_driver/virtual_mem.rs`.
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering::*},
    },
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use ur_sys::ur_virtual_mem_access_flags_t as Access;

/// A range of addresses that a caller passes, and the context.
#[derive(Clone, Copy)]
pub struct Span {
    /// The address of the context's handle.
    pub context: usize,
    /// The first byte.
    pub start: UsmPtr,
    /// The length in bytes.
    pub bytes: usize,
}
/// One mapping, or a part of a mapping that has its own access.
struct Piece<K> {
    bytes: usize,
    access: Access,
    /// The whole mapping, by offsets in the reservation. Some drivers can only unmap it as a whole.
    mapping: Range<usize>,
    /// Whether the driver is working on it.
    is_busy: bool,
    /// Keeps the memory alive while it is mapped.
    kept: K,
}
impl<K: Clone> Piece<K> {
    /// A part of it, with its own access.
    fn part(&self, bytes: usize, access: Access) -> Self {
        let (mapping, kept) = (self.mapping.clone(), self.kept.clone());
        Self { bytes, access, mapping, is_busy: false, kept }
    }
}
impl<K: Clone> Clone for Piece<K> {
    fn clone(&self) -> Self {
        Self { is_busy: self.is_busy, ..self.part(self.bytes, self.access) }
    }
}
/// One reservation.
struct Reserved<R, K> {
    /// The driver's object for it.
    range: Arc<R>,
    base: usize,
    bytes: usize,
    granule: usize,
    context: usize,
    /// What is mapped, by offset; pieces never overlap.
    pieces: BTreeMap<usize, Piece<K>>,
}
/// All reservations by first address. `R` is the driver's object of a reservation, `K` what keeps mapped memory alive.
pub struct Reservations<R, K> {
    all: Mutex<BTreeMap<usize, Reserved<R, K>>>,
    /// Whether there has ever been one. Most programs reserve nothing; their commands only read this flag.
    any: AtomicBool,
}
impl<R, K> Default for Reservations<R, K> {
    fn default() -> Self {
        Self { all: Mutex::default(), any: AtomicBool::new(false) }
    }
}

/// The rank of an access; each allows everything that a lower one does.
fn rights(access: Access) -> u8 {
    match access {
        Access::READ_WRITE => 2,
        Access::READ_ONLY => 1,
        _ => 0,
    }
}

/// The error for an invalid request.
pub fn refused<T>(why: impl Into<String>) -> Result<T> {
    Error::refuse(ErrorCode::InvalidValue, why.into())
}
/// Checks that a length is a multiple of the granularity, and not 0.
///
/// # Errors
/// `INVALID_SIZE`
pub fn whole(size: usize, granule: usize) -> Result<usize> {
    match size != 0 && size.is_multiple_of(granule) {
        true => Ok(size),
        false => Error::refuse(
            ErrorCode::InvalidSize,
            format!("{size} bytes are no multiple of the granularity, {granule}"),
        ),
    }
}
/// Checks the part of a physical memory that is to be mapped.
///
/// # Errors
/// `INVALID_VALUE` if the offset is not a multiple of the granularity, or the part exceeds the `memory` bytes.
pub fn check_offset((offset, size): (usize, usize), granule: usize, memory: usize) -> Result<()> {
    let end = offset.checked_add(size);
    if !offset.is_multiple_of(granule) || end.is_none_or(|end| end > memory) {
        return refused(format!(
            "{size} bytes at offset {offset} are no granules of physical memory of {memory} bytes"
        ));
    }
    Ok(())
}

impl<R, K: Clone> Reserved<R, K> {
    /// The offsets of `[start, start + size)`, if all of it is inside the reservation.
    fn part(&self, start: UsmPtr, size: usize) -> Option<Range<usize>> {
        let at = start.addr().checked_sub(self.base)?;
        let end = at.checked_add(size)?;
        (end <= self.bytes).then_some(at..end)
    }
    /// Checks that nothing is mapped in a part.
    ///
    /// # Errors
    /// `INVALID_VALUE` if something is.
    fn check_unmapped(&self, part: &Range<usize>) -> Result<()> {
        let last = self.pieces.range(..part.end).next_back();
        match last.is_none_or(|(&at, piece)| at + piece.bytes <= part.start) {
            true => Ok(()),
            false => refused("memory is mapped there already: unmap it first"),
        }
    }
    /// The pieces that overlap a part.
    fn pieces(&self, part: &Range<usize>) -> Vec<(usize, Piece<K>)> {
        let before = self.pieces.range(..part.start).next_back();
        let before = before.filter(|(at, piece)| *at + piece.bytes > part.start);
        let within = before.into_iter().chain(self.pieces.range(part.clone()));
        within.map(|(&at, piece)| (at, piece.clone())).collect()
    }
    /// The pieces that overlap a part, which must be mapped completely and not be busy.
    fn mapped(&self, part: &Range<usize>) -> Result<Vec<(usize, Piece<K>)>> {
        let within = self.pieces(part);
        if within.iter().any(|(_, piece)| piece.is_busy) {
            return refused("another thread is just mapping or unmapping there: let it finish");
        }
        let covers = |reached: usize, (at, piece): &(usize, Piece<K>)| {
            (*at <= reached).then(|| reached.max(at + piece.bytes))
        };
        match within.iter().try_fold(part.start, covers) {
            Some(reached) if reached >= part.end => Ok(within),
            _ => refused("part of the range is not mapped: map it first"),
        }
    }
    /// The first offset in a part that is not mapped with the needed access.
    fn hole(&self, part: Range<usize>, needs: ur_hal::Access) -> Option<usize> {
        let first = self.pieces.range(..=part.start).next_back().map_or(part.start, |(&at, _)| at);
        let pieces = self.pieces.range(first..part.end);
        let mapped = pieces
            .filter(|(_, piece)| match needs {
                ur_hal::Access::ReadWrite => piece.access == Access::READ_WRITE,
                ur_hal::Access::Read | ur_hal::Access::None => piece.access != Access::NONE,
            })
            .map(|(&at, piece)| at..at + piece.bytes);
        let adjoining = |reached: usize, piece: Range<usize>| match piece.start <= reached {
            true => reached.max(piece.end),
            false => reached,
        };
        let reached = mapped.fold(part.start, adjoining);
        (reached < part.end).then_some(reached)
    }
    /// Marks the pieces that overlap a part as busy or not.
    fn mark(&mut self, part: &Range<usize>, is_busy: bool) {
        let first = self.pieces.range(..=part.start).next_back().map_or(part.start, |(&at, _)| at);
        self.pieces.range_mut(first..part.end).for_each(|(_, piece)| piece.is_busy = is_busy);
    }
    /// Removes a part from the registry, and returns the pieces that overlapped it. What they have outside the part
    /// stays.
    fn cut(&mut self, part: &Range<usize>) -> Vec<(usize, Piece<K>)> {
        let pieces = self.pieces(part);
        for (at, piece) in &pieces {
            self.pieces.remove(at);
            let end = at + piece.bytes;
            if *at < part.start {
                self.pieces.insert(*at, piece.part(part.start - at, piece.access));
            }
            if end > part.end {
                self.pieces.insert(part.end, piece.part(end - part.end, piece.access));
            }
        }
        pieces
    }
}
/// The reservation that contains a span, and the offsets of the span in it.
fn find<R, K: Clone>(
    all: &mut BTreeMap<usize, Reserved<R, K>>,
    Span { context, start, bytes }: Span,
) -> Result<(&mut Reserved<R, K>, Range<usize>)> {
    let found = all.range_mut(..=start.addr()).next_back();
    let part = found.and_then(|(_, reserved)| {
        let part = reserved.part(start, bytes)?;
        Some((reserved, part))
    });
    let Some((reserved, part)) = part else {
        return refused(format!("{bytes} bytes at {start:?} are not within one reservation"));
    };
    if reserved.context != context {
        return refused(format!("{start:?} was reserved in another context"));
    }
    whole(bytes, reserved.granule)?;
    if !start.addr().is_multiple_of(reserved.granule) {
        return refused(format!(
            "{start:?} is no multiple of the granularity, {}",
            reserved.granule
        ));
    }
    Ok((reserved, part))
}

impl<R, K: Clone> Reservations<R, K> {
    fn all(&self) -> MutexGuard<'_, BTreeMap<usize, Reserved<R, K>>> {
        ur_lock::locked(&self.all)
    }
    /// Calls `work` with the reservation that contains a span, under the lock.
    fn within<T>(
        &self,
        span: Span,
        work: impl FnOnce(&mut Reserved<R, K>, Range<usize>) -> Result<T>,
    ) -> Result<T> {
        let mut all = self.all();
        let (reserved, part) = find(&mut all, span)?;
        work(reserved, part)
    }
    /// Adds a new reservation.
    pub fn enter(&self, span: Span, granule: usize, range: R) {
        let (base, pieces) = (span.start.addr(), BTreeMap::new());
        let (context, bytes, range) = (span.context, span.bytes, Arc::new(range));
        let reserved = Reserved { range, base, bytes, granule, context, pieces };
        let replaced = self.all().insert(base, reserved);
        debug_assert!(replaced.is_none(), "the driver reserves no address twice");
        self.any.store(true, Release); // pairs with `check_mapped`
    }
    /// Checks that a range contains no reserved byte that is not mapped with the needed access. A host thread that
    /// accesses such a byte, also one inside a driver, is killed by a signal.
    ///
    /// # Errors
    /// `INVALID_VALUE` if it does.
    pub fn check_mapped(&self, range: ur_hal::Range, needs: ur_hal::Access) -> Result<()> {
        // Pairs with `enter`. A thread can only have a reserved address after `enter` returned, so it sees the store.
        if !self.any.load(Acquire) {
            return Ok(());
        }
        let bytes = range.start().get()..range.end();
        let Some(at) = self.hole(bytes.clone(), needs) else { return Ok(()) };
        refused(match self.hole(bytes, ur_hal::Access::Read) {
            None => format!("{at:#x} is mapped for reading only: set its access to READ_WRITE"),
            Some(at) => format!(
                "{at:#x} is reserved, and nothing is mapped there with access: map it first, or set its access"
            ),
        })
    }
    fn hole(&self, range: Range<usize>, needs: ur_hal::Access) -> Option<usize> {
        let all = self.all();
        let first = all.range(..=range.start).next_back().map_or(range.start, |(&base, _)| base);
        all.range(first..range.end).find_map(|(&base, reserved)| {
            let start = range.start.saturating_sub(base);
            let end = (range.end - base).min(reserved.bytes);
            if start >= end {
                return None; // the reservation ends before the range
            }
            reserved.hole(start..end, needs).map(|at| base + at)
        })
    }
    /// Removes a whole reservation, so that the driver can release it.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the span is not exactly one reservation, or while memory is mapped there.
    pub fn take(&self, span: Span) -> Result<Arc<R>> {
        let mut all = self.all();
        let (reserved, part) = find(&mut all, span)?;
        if part != (0..reserved.bytes) {
            return refused("this is only a part of what was reserved: free all of it");
        }
        if !reserved.pieces.is_empty() {
            return refused("memory is still mapped there: unmap it first");
        }
        let base = reserved.base;
        let taken = all.remove(&base).expect("it was just found");
        Ok(taken.range)
    }
    /// Maps memory; `work` makes the driver's call.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a span that is not reserved, or where memory is mapped already; `INVALID_SIZE` for one that
    /// is not a multiple of the granularity; the errors of `work`.
    pub fn map(
        &self,
        span: Span,
        access: Access,
        kept: &K,
        work: impl FnOnce(&R) -> Result<()>,
    ) -> Result<()> {
        let range = self.within(span, |reserved, part| {
            reserved.check_unmapped(&part)?;
            let (bytes, is_busy, mapping, kept) = (span.bytes, true, part.clone(), kept.clone());
            reserved.pieces.insert(part.start, Piece { bytes, access, mapping, is_busy, kept });
            Ok(Arc::clone(&reserved.range))
        })?;
        let mapped = work(&range);
        let settled = self.within(span, |reserved, part| {
            reserved.mark(&part, false);
            Ok(if mapped.is_err() { reserved.pieces.remove(&part.start) } else { None })
        })?;
        drop(settled); // after the lock is released
        mapped
    }
    /// Unmaps whole mappings or, if `may_cut`, parts of mappings. `wait` returns when no command uses the addresses any
    /// more; then `work` makes the driver's call for each piece.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a span that is not mapped completely, or that contains only a part of a mapping if not
    /// `may_cut`; `INVALID_SIZE`; the error of `wait`, or the first error of `work`.
    pub fn unmap(
        &self,
        (span, may_cut): (Span, bool),
        wait: impl FnOnce() -> Result<()>,
        mut work: impl FnMut(&R, &K, ur_hal::Range) -> Result<()>,
    ) -> Result<()> {
        let (range, base, pieces) = self.within(span, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            let is_cut = |(_, piece): &(usize, Piece<K>)| {
                piece.mapping.start < part.start || piece.mapping.end > part.end
            };
            if !may_cut && pieces.iter().any(is_cut) {
                return refused(
                    "this is only a part of what was mapped in one call, which this driver does not \
                     unmap: unmap all of it",
                );
            }
            reserved.mark(&part, true);
            // A mapping whose parts have different access is unmapped in one call.
            let first = |(at, piece): &(usize, Piece<K>)| may_cut || *at == piece.mapping.start;
            let ends = |(at, piece): (usize, Piece<K>)| match may_cut {
                true => (part.start.max(at)..part.end.min(at + piece.bytes), piece.kept),
                false => (piece.mapping, piece.kept),
            };
            let pieces: Vec<_> = pieces.into_iter().filter(first).map(ends).collect();
            Ok((Arc::clone(&reserved.range), reserved.base, pieces))
        })?;
        // After the return, something else may be mapped at these addresses, so no command may use them any longer.
        let waited = wait();
        let (mut ended, mut failure) = (vec![], waited.err());
        if failure.is_none() {
            for (part, kept) in &pieces {
                let address = ur_hal::Address::new(base + part.start).expect("a reserved address");
                let done = ur_hal::Range::new(address, part.len()).map_err(Error::from);
                match done.and_then(|at| work(&range, kept, at)) {
                    Ok(()) => ended.push(part),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
        }
        let taken = self.within(span, |reserved, part| {
            reserved.mark(&part, false);
            Ok(ended.into_iter().map(|part| reserved.cut(part)).collect::<Vec<_>>())
        })?;
        drop((taken, pieces)); // this may be the last reference to the memory
        failure.map_or(Ok(()), Err)
    }
    /// Changes the access to mapped memory. `work` makes the driver's call, given what keeps the first mapping alive.
    /// If the change takes a right away, `wait` is called first: a command enqueued earlier may still need the right,
    /// and without it the process would be killed.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a span that is not mapped completely; `INVALID_SIZE`; the errors of `wait` and `work`.
    pub fn set_access(
        &self,
        span: Span,
        access: Access,
        wait: impl FnOnce() -> Result<()>,
        work: impl FnOnce(&R, &K) -> Result<()>,
    ) -> Result<()> {
        let (range, first, takes_away) = self.within(span, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            reserved.mark(&part, true);
            let takes_away = pieces.iter().any(|(_, piece)| rights(piece.access) > rights(access));
            Ok((Arc::clone(&reserved.range), pieces[0].1.kept.clone(), takes_away))
        })?;
        let waited = if takes_away { wait() } else { Ok(()) };
        let changed = waited.and_then(|()| work(&range, &first));
        let settled = self.within(span, |reserved, part| {
            reserved.mark(&part, false);
            if changed.is_ok() {
                for (at, piece) in reserved.cut(&part) {
                    let (from, to) = (part.start.max(at), (at + piece.bytes).min(part.end));
                    reserved.pieces.insert(from, piece.part(to - from, access));
                }
            }
            Ok(())
        });
        settled.and(changed)
    }
    /// The access to mapped memory.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a span that is not mapped completely, or whose parts have different access; `INVALID_SIZE`.
    pub fn access(&self, span: Span) -> Result<Access> {
        self.within(span, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            let access = pieces[0].1.access;
            match pieces.iter().all(|(_, piece)| piece.access == access) {
                true => Ok(access),
                false => refused("the range has parts of different access: ask for each"),
            }
        })
    }
}

#[cfg(test)]
mod tests;
