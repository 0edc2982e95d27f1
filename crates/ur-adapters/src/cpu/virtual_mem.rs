//! Virtual memory: addresses that C reserves and maps physical memory into. Every range is
//! checked against what is reserved and mapped; what is mapped keeps its memory.
use super::{
    Context, Cpu, Device,
    engine::all_queues_ticket,
    mapping::{Reservation, Rights, page},
    physical_mem::{Backing, PhysicalMem},
};
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::*},
    },
};
use ur_adapter::{
    api::VirtualMemApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::Borrowed,
    per_process::PerProcess,
};
use ur_sys::{
    ur_virtual_mem_access_flags_t as Access, ur_virtual_mem_granularity_info_t,
    ur_virtual_mem_info_t,
};

/// One mapping, or what later changes left of it.
#[derive(Clone, Debug)]
struct Piece {
    bytes: usize,
    access: Access,
    /// Held so that the memory is nobody else's while it is mapped.
    _backing: Arc<Backing>,
}
/// What C reserved in one call.
#[derive(Debug)]
struct Reserved {
    reservation: Reservation,
    context: usize,
    /// What is mapped, by offset; pieces never overlap.
    pieces: BTreeMap<usize, Piece>,
}
/// By first address.
type All = Mutex<BTreeMap<usize, Reserved>>;
static ALL: PerProcess<All> = PerProcess::new();
fn all() -> MutexGuard<'static, BTreeMap<usize, Reserved>> {
    ALL.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether anything was reserved so far: most programs reserve nothing, and none of their commands looks for it.
static ANY: AtomicBool = AtomicBool::new(false);
/// # Errors
/// `INVALID_VALUE` where a part of the range is reserved and nothing is mapped there, or nobody may use what is: the
/// thread that copied there would be killed.
pub(super) fn check_mapped(range: ur_hal::Range) -> Result<()> {
    // Pairs with `virtual_mem_reserve`. A thread that was given a reserved address is behind that in any case.
    if !ANY.load(Acquire) {
        return Ok(());
    }
    let (start, end, all) = (range.start().get(), range.end(), all());
    let first = all.range(..=start).next_back().map_or(start, |(&base, _)| base);
    for (&base, reserved) in all.range(first..end) {
        let part = start.max(base) - base..end.min(base + reserved.reservation.bytes()) - base;
        if part.is_empty() {
            continue; // it ends before
        }
        if reserved.mapped(&part)?.iter().any(|(_, piece)| piece.access == Access::NONE) {
            return refused("part of the range is mapped without access: set its access first");
        }
    }
    Ok(())
}

fn refused<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorCode::InvalidValue, why.into()))
}
/// A length that pages can make up.
fn pages(size: usize) -> Result<usize> {
    match size != 0 && size.is_multiple_of(page()) {
        true => Ok(size),
        false => Err(Error::new(
            ErrorCode::InvalidSize,
            format!("{size} bytes are no multiple of the granularity, {}", page()),
        )),
    }
}
/// What an access means, if it means one thing.
fn rights(access: Access) -> Result<Rights> {
    match access {
        Access::NONE => Ok(Rights::None),
        Access::READ_ONLY => Ok(Rights::Read),
        Access::READ_WRITE => Ok(Rights::ReadWrite),
        _ => refused(format!("{access:?} is not one of NONE, READ_ONLY and READ_WRITE")),
    }
}

impl Reserved {
    /// What part of it `[start, start + size)` is, if that is a part.
    fn part(&self, start: UsmPtr, size: usize) -> Option<Range<usize>> {
        let at = start.addr().checked_sub(self.reservation.base().addr())?;
        let end = at.checked_add(size)?;
        (end <= self.reservation.bytes()).then_some(at..end)
    }
    fn is_unmapped(&self, part: &Range<usize>) -> bool {
        let last = self.pieces.range(..part.end).next_back();
        last.is_none_or(|(&at, piece)| at + piece.bytes <= part.start)
    }
    /// The pieces in a part that is mapped from end to end.
    fn mapped(&self, part: &Range<usize>) -> Result<Vec<(usize, Piece)>> {
        let first = self.pieces.range(..=part.start).next_back().map_or(part.start, |(&at, _)| at);
        let within: Vec<_> =
            self.pieces.range(first..part.end).map(|(&at, piece)| (at, piece.clone())).collect();
        let covers = |reached: usize, (at, piece): &(usize, Piece)| {
            (*at <= reached).then(|| reached.max(at + piece.bytes))
        };
        match within.iter().try_fold(part.start, covers) {
            Some(reached) if reached >= part.end => Ok(within),
            _ => refused("part of the range is not mapped: map it first"),
        }
    }
    /// Takes a mapped part out of the books; what its pieces have before and behind it stays.
    fn cut(&mut self, part: &Range<usize>, pieces: &[(usize, Piece)]) {
        for (at, piece) in pieces {
            self.pieces.remove(at);
            let end = at + piece.bytes;
            if *at < part.start {
                self.pieces.insert(*at, Piece { bytes: part.start - at, ..piece.clone() });
            }
            if end > part.end {
                self.pieces.insert(part.end, Piece { bytes: end - part.end, ..piece.clone() });
            }
        }
    }
}

/// The reservation of `context` that `[start, start + size)` is a part of, and which part.
fn find<'a>(
    all: &'a mut BTreeMap<usize, Reserved>,
    context: Borrowed<'_, Context>,
    start: UsmPtr,
    size: usize,
) -> Result<(&'a mut Reserved, Range<usize>)> {
    let size = pages(size)?;
    if !start.addr().is_multiple_of(page()) {
        return refused(format!("{start:?} is no multiple of the granularity, {}", page()));
    }
    let found = all.range_mut(..=start.addr()).next_back();
    let part = found.and_then(|(_, reserved)| {
        let part = reserved.part(start, size)?;
        Some((reserved, part))
    });
    let Some((reserved, part)) = part else {
        return refused(format!("{size} bytes at {start:?} are not within one reservation"));
    };
    if reserved.context != context.as_handle().addr() {
        return refused(format!("{start:?} was reserved in another context"));
    }
    Ok((reserved, part))
}
/// Works on it.
fn within<R>(
    context: Borrowed<'_, Context>,
    start: UsmPtr,
    size: usize,
    work: impl FnOnce(&mut Reserved, Range<usize>) -> Result<R>,
) -> Result<R> {
    let mut all = all();
    let (reserved, part) = find(&mut all, context, start, size)?;
    work(reserved, part)
}

impl VirtualMemApi for Cpu {
    fn virtual_mem_granularity_get_info(
        context: Borrowed<'_, Context>,
        device: Option<Borrowed<'_, Device>>,
        _allocation_size: usize,
        name: ur_virtual_mem_granularity_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        device.map_or(Ok(()), |device| context.check(device))?;
        match name {
            ur_virtual_mem_granularity_info_t::MINIMUM
            | ur_virtual_mem_granularity_info_t::RECOMMENDED => answer.value(&page()),
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
    fn virtual_mem_reserve(
        context: Borrowed<'_, Context>,
        start: Option<UsmPtr>,
        size: usize,
    ) -> Result<UsmPtr> {
        let reservation = Reservation::new(start, pages(size)?)?;
        let (base, context) = (reservation.base(), context.as_handle().addr());
        let reserved = Reserved { reservation, context, pieces: BTreeMap::new() };
        all().insert(base.addr(), reserved);
        ANY.store(true, Release); // pairs with `check_mapped`
        Ok(base)
    }
    fn virtual_mem_free(context: Borrowed<'_, Context>, start: UsmPtr, size: usize) -> Result<()> {
        let mut all = all();
        let (reserved, part) = find(&mut all, context, start, size)?;
        if part != (0..reserved.reservation.bytes()) {
            return refused("this is only a part of what was reserved: free all of it");
        }
        if !reserved.pieces.is_empty() {
            return refused("memory is still mapped there: unmap it first");
        }
        all.remove(&start.addr());
        Ok(())
    }
    fn virtual_mem_map(
        context: Borrowed<'_, Context>,
        start: UsmPtr,
        size: usize,
        memory: Borrowed<'_, PhysicalMem>,
        offset: usize,
        flags: Access,
    ) -> Result<()> {
        let rights = rights(flags)?;
        if !memory.context().same(&context) {
            let why = "the physical memory belongs to another context";
            return Err(Error::new(ErrorCode::InvalidContext, why));
        }
        let end = offset.checked_add(size);
        if !offset.is_multiple_of(page()) || end.is_none_or(|end| end > memory.bytes()) {
            return refused(format!(
                "{size} bytes at offset {offset} are no pages of physical memory of {} bytes",
                memory.bytes()
            ));
        }
        memory.check_fork()?;
        let Some(behind) = memory.backing().behind() else {
            return refused("this physical memory has nothing to map");
        };
        within(context, start, size, |reserved, part| {
            if !reserved.is_unmapped(&part) {
                return refused("memory is mapped there already: unmap it first");
            }
            let from = behind.base + offset;
            reserved.reservation.map(part.start, &behind.memfd, from, size, rights)?;
            let _backing = Arc::clone(memory.backing());
            reserved.pieces.insert(part.start, Piece { bytes: size, access: flags, _backing });
            Ok(())
        })
    }
    fn virtual_mem_unmap(context: Borrowed<'_, Context>, start: UsmPtr, size: usize) -> Result<()> {
        within(context, start, size, |reserved, part| reserved.mapped(&part).map(drop))?;
        // The addresses are free to be mapped again when this returns, so what uses them now must
        // be over; not under the lock.
        all_queues_ticket(context.as_handle().addr()).wait();
        let unmapped = within(context, start, size, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            reserved.reservation.unmap(part.start, part.len())?;
            reserved.cut(&part, &pieces);
            Ok(pieces)
        })?;
        drop(unmapped); // which may have been the last of the memory
        Ok(())
    }
    fn virtual_mem_set_access(
        context: Borrowed<'_, Context>,
        start: UsmPtr,
        size: usize,
        flags: Access,
    ) -> Result<()> {
        let rights = rights(flags)?;
        within(context, start, size, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            reserved.reservation.protect(part.start, part.len(), rights)?;
            reserved.cut(&part, &pieces);
            for (at, piece) in pieces {
                let (from, to) = (at.max(part.start), (at + piece.bytes).min(part.end));
                let changed = Piece { bytes: to - from, access: flags, ..piece };
                reserved.pieces.insert(from, changed);
            }
            Ok(())
        })
    }
    fn virtual_mem_get_info(
        context: Borrowed<'_, Context>,
        start: UsmPtr,
        size: usize,
        name: ur_virtual_mem_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        if name != ur_virtual_mem_info_t::ACCESS_MODE {
            return Err(ErrorCode::UnsupportedEnumeration.into());
        }
        let access = within(context, start, size, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            let access = pieces[0].1.access;
            match pieces.iter().all(|(_, piece)| piece.access == access) {
                true => Ok(access),
                false => refused("the range has parts of different access: ask for each"),
            }
        })?;
        answer.value(&access.bits())
    }
}
