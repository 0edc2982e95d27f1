//! Addresses that C reserves, and what is mapped there: the books of it. Every range is checked against
//! what is reserved and mapped; what is mapped keeps its memory. While the driver works on a part, the
//! books say that it is busy: no lock is held meanwhile. What the driver does is the rooms'
//! `virtual_mem.rs`'s.
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Mutex, MutexGuard, PoisonError,
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
    range: R,
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
    /// The pieces in a part that is mapped from end to end.
    fn mapped(&self, part: &Range<usize>) -> Result<Vec<(usize, Piece<K>)>> {
        let first = self.pieces.range(..=part.start).next_back().map_or(part.start, |(&at, _)| at);
        let within: Vec<_> =
            self.pieces.range(first..part.end).map(|(&at, piece)| (at, piece.clone())).collect();
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
    /// The first byte of a part where nothing is mapped.
    fn hole(&self, part: Range<usize>) -> Option<usize> {
        let first = self.pieces.range(..=part.start).next_back().map_or(part.start, |(&at, _)| at);
        let pieces = self.pieces.range(first..part.end);
        let mapped = pieces.map(|(&at, piece)| at..at + piece.bytes);
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
    /// Takes a mapped part out of the books; what its pieces have before and behind it stays.
    fn cut(&mut self, part: &Range<usize>, pieces: &[(usize, Piece<K>)]) {
        for (at, piece) in pieces {
            self.pieces.remove(at);
            let end = at + piece.bytes;
            if *at < part.start {
                self.pieces.insert(*at, piece.part(part.start - at, piece.access));
            }
            if end > part.end {
                self.pieces.insert(part.end, piece.part(end - part.end, piece.access));
            }
        }
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
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
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
        let (context, bytes) = (span.context, span.bytes);
        let reserved = Reserved { range, base, bytes, granule, context, pieces };
        let replaced = self.all().insert(base, reserved);
        debug_assert!(replaced.is_none(), "the driver reserves no address twice");
        self.any.store(true, Release); // pairs with `check_mapped`
    }
    /// # Errors
    /// `INVALID_VALUE` where a part of the range is reserved and nothing is mapped there: whoever copies there as the host does, a
    /// driver too, is killed.
    pub fn check_mapped(&self, range: ur_hal::Range) -> Result<()> {
        // Pairs with `enter`. A thread that was given a reserved address is behind that in any case.
        if !self.any.load(Acquire) {
            return Ok(());
        }
        match self.hole(range.start().get()..range.end()) {
            None => Ok(()),
            Some(at) => {
                refused(format!("{at:#x} is reserved and nothing is mapped there: map it first"))
            }
        }
    }
    fn hole(&self, range: Range<usize>) -> Option<usize> {
        let all = self.all();
        let first = all.range(..=range.start).next_back().map_or(range.start, |(&base, _)| base);
        all.range(first..range.end).find_map(|(&base, reserved)| {
            let start = range.start.saturating_sub(base);
            let end = (range.end - base).min(reserved.bytes);
            if start >= end {
                return None; // it ends before
            }
            reserved.hole(start..end).map(|at| base + at)
        })
    }
    /// Takes a whole reservation out, for the driver to have back.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is none, or only a part of one, and while memory is mapped there.
    pub fn take(&self, span: Span) -> Result<R> {
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
    /// # Errors
    /// `INVALID_VALUE` for a span that is not reserved, or where memory is mapped; `INVALID_SIZE` for
    /// one that granules do not make up.
    pub fn check_unmapped(&self, span: Span) -> Result<()> {
        self.within(span, |reserved, part| reserved.check_unmapped(&part))
    }
    /// Maps: `work` is what the driver does.
    ///
    /// # Errors
    /// As for `check_unmapped`; those of `work`.
    pub fn map(
        &self,
        span: Span,
        access: Access,
        kept: &K,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.within(span, |reserved, part| {
            reserved.check_unmapped(&part)?;
            let (bytes, is_busy, mapping, kept) = (span.bytes, true, part.clone(), kept.clone());
            reserved.pieces.insert(part.start, Piece { bytes, access, mapping, is_busy, kept });
            Ok(())
        })?;
        let mapped = work();
        let settled = self.within(span, |reserved, part| {
            reserved.mark(&part, false);
            Ok(if mapped.is_err() { reserved.pieces.remove(&part.start) } else { None })
        })?;
        drop(settled); // not under the lock
        mapped
    }
    /// Unmaps whole mappings: when `wait` returns, nothing uses the addresses any more, and `work` is
    /// what the driver does for each, at an address and so many bytes.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a span that is not mapped from end to end, or only a part of a mapping;
    /// `INVALID_SIZE`; the first of `work`.
    pub fn unmap(
        &self,
        span: Span,
        wait: impl FnOnce() -> Result<()>,
        mut work: impl FnMut(&K, u64, usize) -> Result<()>,
    ) -> Result<()> {
        let pieces = self.within(span, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            let is_cut = |(_, piece): &(usize, Piece<K>)| {
                piece.mapping.start < part.start || piece.mapping.end > part.end
            };
            if pieces.iter().any(is_cut) {
                return refused(
                    "this is only a part of what was mapped in one call, which this driver does not \
                     unmap: unmap all of it",
                );
            }
            reserved.mark(&part, true);
            Ok(pieces)
        })?;
        // The addresses are free to be mapped again when this returns, so what uses them now must be
        // over.
        if let Err(error) = wait() {
            self.within(span, |reserved, part| {
                reserved.mark(&part, false);
                Ok(())
            })?;
            return Err(error);
        }
        let base = span.start.addr() as u64;
        let first = pieces.first().map_or(0, |(at, _)| *at);
        let mut ended = vec![];
        let mut failure = None;
        for (at, piece) in pieces.into_iter().filter(|(at, piece)| *at == piece.mapping.start) {
            let place = base + (at - first) as u64;
            match work(&piece.kept, place, piece.mapping.len()) {
                Ok(()) => ended.push(piece),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        self.within(span, |reserved, part| {
            let is_over = |at: usize| ended.iter().any(|piece| piece.mapping.contains(&at));
            reserved.pieces.retain(|&at, _| !is_over(at));
            reserved.mark(&part, false);
            Ok(())
        })?;
        drop(ended); // which may have been the last of the memory
        failure.map_or(Ok(()), Err)
    }
    /// Changes what may be done with what is mapped: `work` is what the driver does, given what the
    /// first mapping keeps.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a span that is not mapped from end to end; `INVALID_SIZE`; those of `work`.
    pub fn set_access(
        &self,
        span: Span,
        access: Access,
        work: impl FnOnce(&K) -> Result<()>,
    ) -> Result<()> {
        let pieces = self.within(span, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            reserved.mark(&part, true);
            Ok(pieces)
        })?;
        let changed = work(&pieces[0].1.kept);
        let settled = self.within(span, |reserved, part| {
            reserved.mark(&part, false);
            if changed.is_ok() {
                reserved.cut(&part, &pieces);
                for (at, piece) in &pieces {
                    let (from, to) = (part.start.max(*at), (at + piece.bytes).min(part.end));
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
mod tests {
    use super::*;
    use std::rc::Rc;

    const BASE: usize = 0x10_0000;
    const G: usize = 0x1000;

    fn span(granule: usize, count: usize) -> Span {
        let start = UsmPtr::from_addr(BASE + granule * G).unwrap();
        Span { context: 1, start, bytes: count * G }
    }
    /// Eight granules, of which nothing is mapped.
    fn reserved() -> Reservations<&'static str, Rc<()>> {
        let all = Reservations::default();
        all.enter(span(0, 8), G, "range");
        all
    }
    fn code<T>(of: Result<T>) -> Option<ErrorCode> {
        of.err().map(|error| error.code())
    }
    const REFUSED: Option<ErrorCode> = Some(ErrorCode::InvalidValue);

    #[test]
    fn a_mapping_keeps_its_memory_until_all_of_it_is_unmapped() {
        let (all, memory) = (reserved(), Rc::new(()));
        all.map(span(2, 3), Access::READ_WRITE, &memory, || Ok(())).unwrap();
        assert_eq!(Rc::strong_count(&memory), 2);
        assert_eq!(code(all.map(span(4, 2), Access::NONE, &memory, || Ok(()))), REFUSED);
        assert_eq!(code(all.take(span(0, 8))), REFUSED, "memory is mapped there");
        assert_eq!(code(all.unmap(span(2, 2), || Ok(()), |_, _, _| Ok(()))), REFUSED, "a part");
        let mut unmapped = vec![];
        let work = |_: &Rc<()>, at, bytes| {
            unmapped.push((at, bytes));
            Ok(())
        };
        all.unmap(span(2, 3), || Ok(()), work).unwrap();
        assert_eq!(unmapped, [((BASE + 2 * G) as u64, 3 * G)]);
        assert_eq!(Rc::strong_count(&memory), 1);
        assert_eq!(code(all.take(span(0, 4))), REFUSED, "only a part");
        assert_eq!(all.take(span(0, 8)).unwrap(), "range");
        assert_eq!(code(all.check_unmapped(span(0, 8))), REFUSED, "it is reserved no more");
    }
    #[test]
    fn access_is_of_parts_and_what_the_driver_refuses_changes_nothing() {
        let (all, memory) = (reserved(), Rc::new(()));
        let failure = || Err(ErrorCode::OutOfResources.into());
        let failed = all.map(span(0, 4), Access::READ_WRITE, &memory, failure);
        assert_eq!(code(failed), Some(ErrorCode::OutOfResources));
        assert_eq!(Rc::strong_count(&memory), 1);
        all.map(span(0, 4), Access::READ_WRITE, &memory, || Ok(())).unwrap();
        all.set_access(span(1, 2), Access::READ_ONLY, |_| Ok(())).unwrap();
        let failed = all.set_access(span(0, 4), Access::NONE, |_| failure());
        assert_eq!(code(failed), Some(ErrorCode::OutOfResources));
        assert_eq!(all.access(span(0, 1)).unwrap(), Access::READ_WRITE);
        assert_eq!(all.access(span(1, 2)).unwrap(), Access::READ_ONLY);
        assert_eq!(all.access(span(3, 1)).unwrap(), Access::READ_WRITE);
        assert_eq!(code(all.access(span(0, 4))), REFUSED, "of different access");
        assert_eq!(code(all.access(span(3, 2))), REFUSED, "not all mapped");
        // It is one mapping still, which the driver takes back as one.
        let mut unmapped = vec![];
        let work = |_: &Rc<()>, _, bytes| {
            unmapped.push(bytes);
            Ok(())
        };
        all.unmap(span(0, 4), || Ok(()), work).unwrap();
        assert_eq!((unmapped, Rc::strong_count(&memory)), (vec![4 * G], 1));
    }
    #[test]
    fn while_the_driver_is_at_work_on_a_part_nobody_else_is() {
        let (all, memory) = (reserved(), Rc::new(()));
        all.map(span(0, 2), Access::READ_WRITE, &memory, || {
            assert_eq!(code(all.access(span(0, 2))), REFUSED);
            assert_eq!(code(all.unmap(span(0, 2), || Ok(()), |_, _, _| Ok(()))), REFUSED);
            Ok(())
        })
        .unwrap();
        let work = |_: &Rc<()>, _, _| {
            assert_eq!(code(all.set_access(span(0, 2), Access::NONE, |_| Ok(()))), REFUSED);
            Err(ErrorCode::DeviceLost.into())
        };
        assert_eq!(code(all.unmap(span(0, 2), || Ok(()), work)), Some(ErrorCode::DeviceLost));
        assert_eq!(all.access(span(0, 2)).unwrap(), Access::READ_WRITE, "it is mapped still");
    }
    #[test]
    fn what_commands_use_has_no_byte_that_is_reserved_and_not_mapped() {
        let check = |all: &Reservations<_, _>, from: usize, to: usize| {
            let range = ur_hal::Range::new(UsmPtr::from_addr(from).unwrap().into(), to - from);
            code(all.check_mapped(range.unwrap()))
        };
        let none = Reservations::<&'static str, Rc<()>>::default();
        assert_eq!(check(&none, BASE, BASE + 1), None);
        let (all, memory) = (reserved(), Rc::new(()));
        for (granule, count) in [(1, 1), (2, 2), (5, 1)] {
            all.map(span(granule, count), Access::READ_WRITE, &memory, || Ok(())).unwrap();
        }
        all.set_access(span(2, 1), Access::READ_ONLY, |_| Ok(())).unwrap();
        let of = |from: usize, to: usize| check(&all, BASE + from, BASE + to);
        assert_eq!([of(G, 4 * G), of(G + 1, 4 * G - 1), of(5 * G, 6 * G)], [None; 3]);
        let refused = [of(0, 1), of(G - 1, G + 1), of(3 * G, 4 * G + 1), of(5 * G, 6 * G + 1)];
        assert_eq!(refused, [REFUSED; 4]);
        assert_eq!([of(4 * G, 5 * G), of(G, 6 * G), of(8 * G - 1, 9 * G)], [REFUSED; 3]);
        assert_eq!(check(&all, BASE - G, BASE), None, "before all");
        assert_eq!(check(&all, BASE - 1, BASE + 1), REFUSED);
        assert_eq!(check(&all, BASE + 8 * G, BASE + 9 * G), None, "behind all");
    }
    #[test]
    fn ranges_that_are_none_of_a_context_are_refused() {
        let all = reserved();
        let foreign = Span { context: 2, ..span(0, 8) };
        assert_eq!(code(all.check_unmapped(foreign)), REFUSED);
        assert_eq!(code(all.check_unmapped(span(7, 2))), REFUSED, "it ends behind");
        let short = Span { bytes: G / 2, ..span(0, 1) };
        assert_eq!(code(all.check_unmapped(short)), Some(ErrorCode::InvalidSize));
        let start = UsmPtr::from_addr(BASE + 1).unwrap();
        assert_eq!(code(all.check_unmapped(Span { start, ..span(0, 1) })), REFUSED);
        assert_eq!(code(check_offset((G, G), G, 2 * G)), None);
        assert_eq!(code(check_offset((G, 2 * G), G, 2 * G)), REFUSED);
        assert_eq!(code(check_offset((1, G), G, 2 * G)), REFUSED);
    }
}
