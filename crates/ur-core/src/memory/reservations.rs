//! Addresses that C reserves, and what is mapped there: the books of it. Every range is checked against
//! what is reserved and mapped; what is mapped keeps its memory. While the driver works on a part, the
//! books say that it is busy: no lock is held meanwhile. What the driver does is `over_driver/virtual_mem.rs`'s.
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

/// A range of addresses that C names, in the context with this handle.
#[derive(Clone, Copy)]
pub struct Span {
    /// The handle of the context.
    pub context: usize,
    /// The first byte.
    pub start: UsmPtr,
    /// How many there are.
    pub bytes: usize,
}
/// One mapping, or a part of it with an access of its own.
struct Piece<K> {
    bytes: usize,
    access: Access,
    /// The whole mapping, which the driver only takes back as one.
    mapping: Range<usize>,
    /// The driver is at work on it.
    is_busy: bool,
    /// Held so that the memory is nobody else's while it is mapped.
    kept: K,
}
impl<K: Clone> Piece<K> {
    /// So many bytes of it, with an access of their own.
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
/// What C reserved in one call.
struct Reserved<R, K> {
    /// The driver's word for it.
    range: Arc<R>,
    base: usize,
    bytes: usize,
    granule: usize,
    context: usize,
    /// What is mapped, by offset; pieces never overlap.
    pieces: BTreeMap<usize, Piece<K>>,
}
/// All that is reserved, by first address: a driver's ranges `R`, and what their mappings keep.
pub struct Reservations<R, K> {
    all: Mutex<BTreeMap<usize, Reserved<R, K>>>,
    /// Whether there were any so far: most programs have none, and none of their commands looks for one.
    any: AtomicBool,
}
impl<R, K> Default for Reservations<R, K> {
    fn default() -> Self {
        Self { all: Mutex::default(), any: AtomicBool::new(false) }
    }
}

/// How much an access allows; each one allows all that those below it do.
fn rights(access: Access) -> u8 {
    match access {
        Access::READ_WRITE => 2,
        Access::READ_ONLY => 1,
        _ => 0,
    }
}

/// What C asks for and cannot have.
pub fn refused<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorCode::InvalidValue, why.into()))
}
/// A length that granules can make up.
///
/// # Errors
/// `INVALID_SIZE`
pub fn whole(size: usize, granule: usize) -> Result<usize> {
    match size != 0 && size.is_multiple_of(granule) {
        true => Ok(size),
        false => Err(Error::new(
            ErrorCode::InvalidSize,
            format!("{size} bytes are no multiple of the granularity, {granule}"),
        )),
    }
}
/// # Errors
/// `INVALID_VALUE` for what are no granules of physical memory of so many bytes.
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
    /// What part of it `[start, start + size)` is, if that is a part.
    fn part(&self, start: UsmPtr, size: usize) -> Option<Range<usize>> {
        let at = start.addr().checked_sub(self.base)?;
        let end = at.checked_add(size)?;
        (end <= self.bytes).then_some(at..end)
    }
    /// # Errors
    /// `INVALID_VALUE` where anything is mapped in a part.
    fn check_unmapped(&self, part: &Range<usize>) -> Result<()> {
        let last = self.pieces.range(..part.end).next_back();
        match last.is_none_or(|(&at, piece)| at + piece.bytes <= part.start) {
            true => Ok(()),
            false => refused("memory is mapped there already: unmap it first"),
        }
    }
    /// The pieces that have a byte of a part.
    fn pieces(&self, part: &Range<usize>) -> Vec<(usize, Piece<K>)> {
        let before = self.pieces.range(..part.start).next_back();
        let before = before.filter(|(at, piece)| *at + piece.bytes > part.start);
        let within = before.into_iter().chain(self.pieces.range(part.clone()));
        within.map(|(&at, piece)| (at, piece.clone())).collect()
    }
    /// The pieces in a part that is mapped from end to end.
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
    /// The first byte of a part where nothing is mapped with the access that is needed.
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
    /// Says of the pieces in a part whether the driver is at work on them.
    fn mark(&mut self, part: &Range<usize>, is_busy: bool) {
        let first = self.pieces.range(..=part.start).next_back().map_or(part.start, |(&at, _)| at);
        self.pieces.range_mut(first..part.end).for_each(|(_, piece)| piece.is_busy = is_busy);
    }
    /// Takes a part out of the books, and returns its pieces; what those have before and behind it stays.
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
/// The reservation that a span is a part of, and which part.
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
    /// Works on the reservation of a span.
    fn within<T>(
        &self,
        span: Span,
        work: impl FnOnce(&mut Reserved<R, K>, Range<usize>) -> Result<T>,
    ) -> Result<T> {
        let mut all = self.all();
        let (reserved, part) = find(&mut all, span)?;
        work(reserved, part)
    }
    /// Notes what was just reserved.
    pub fn enter(&self, span: Span, granule: usize, range: R) {
        let (base, pieces) = (span.start.addr(), BTreeMap::new());
        let (context, bytes, range) = (span.context, span.bytes, Arc::new(range));
        let reserved = Reserved { range, base, bytes, granule, context, pieces };
        let replaced = self.all().insert(base, reserved);
        debug_assert!(replaced.is_none(), "the driver reserves no address twice");
        self.any.store(true, Release); // pairs with `check_mapped`
    }
    /// # Errors
    /// `INVALID_VALUE` where a part of the range is reserved and nothing is mapped there with the access that is needed:
    /// whoever copies there as the host does, a driver too, is killed.
    pub fn check_mapped(&self, range: ur_hal::Range, needs: ur_hal::Access) -> Result<()> {
        // Pairs with `enter`. A thread that was given a reserved address is behind that in any case.
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
                return None; // it ends before
            }
            reserved.hole(start..end, needs).map(|at| base + at)
        })
    }
    /// Takes a whole reservation out, for the driver to have back.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is none, or only a part of one, and while memory is mapped there.
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
    /// Maps: `work` is what the driver does.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a span that is not reserved, or where memory is mapped; `INVALID_SIZE` for one that granules do
    /// not make up; those of `work`.
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
        drop(settled); // not under the lock
        mapped
    }
    /// Unmaps whole mappings, or parts of them if it `may_cut`: when `wait` returns, nothing uses the addresses any more, and
    /// `work` is what the driver does for each.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a span that is not mapped from end to end, or cuts a mapping though it may not;
    /// `INVALID_SIZE`; the first of `work`.
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
            // A mapping with parts of different access goes in one call.
            let first = |(at, piece): &(usize, Piece<K>)| may_cut || *at == piece.mapping.start;
            let ends = |(at, piece): (usize, Piece<K>)| match may_cut {
                true => (part.start.max(at)..part.end.min(at + piece.bytes), piece.kept),
                false => (piece.mapping, piece.kept),
            };
            let pieces: Vec<_> = pieces.into_iter().filter(first).map(ends).collect();
            Ok((Arc::clone(&reserved.range), reserved.base, pieces))
        })?;
        // The addresses are free to be mapped again when this returns, so what uses them now must be
        // over.
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
        drop((taken, pieces)); // which may have been the last of the memory
        failure.map_or(Ok(()), Err)
    }
    /// Changes what may be done with what is mapped: `work` is what the driver does, given what the
    /// first mapping keeps. Where that takes a right away, `wait` comes before it: a command that was enqueued before may
    /// be using the right, and would end the process.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a span that is not mapped from end to end; `INVALID_SIZE`; those of `wait` and `work`.
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
    /// What may be done with what is mapped.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a span that is not mapped from end to end, or of parts of different access;
    /// `INVALID_SIZE`.
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
