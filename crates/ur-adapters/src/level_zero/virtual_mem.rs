//! Virtual memory: addresses that C reserves and maps physical memory into. Every range is checked
//! against what is reserved and mapped; what is mapped keeps its memory. While the driver works on a
//! part, the books say that it is busy: no lock is held meanwhile.
use super::{
    Context, Device, LevelZero,
    native::{
        ipc::foreign,
        physical_memory::Physical,
        virtual_memory::{self, Range as Reservation, Rights},
    },
    physical_mem::PhysicalMem,
    queue,
    registry::registry,
};
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use ur_adapter::{
    api::VirtualMemApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_sys::{
    ur_virtual_mem_access_flags_t as Access, ur_virtual_mem_granularity_info_t,
    ur_virtual_mem_info_t,
};

/// One mapping, or a part of it with an access of its own.
#[derive(Debug)]
struct Piece {
    bytes: usize,
    access: Access,
    /// The whole mapping, which the driver only takes back as one.
    mapping: Range<usize>,
    /// The driver is at work on it.
    is_busy: bool,
    /// Held so that the memory is nobody else's while it is mapped.
    _memory: Arc<Physical>,
}
impl Piece {
    /// So many bytes of it, with an access of their own.
    fn part(&self, bytes: usize, access: Access) -> Self {
        Self {
            bytes,
            access,
            mapping: self.mapping.clone(),
            is_busy: false,
            _memory: Arc::clone(&self._memory),
        }
    }
}
impl Clone for Piece {
    fn clone(&self) -> Self {
        Self { is_busy: self.is_busy, ..self.part(self.bytes, self.access) }
    }
}
/// What C reserved in one call.
#[derive(Debug)]
pub(super) struct Reserved {
    reservation: Reservation,
    granule: usize,
    context: usize,
    /// What is mapped, by offset; pieces never overlap.
    pieces: BTreeMap<usize, Piece>,
}
/// By first address.
pub(super) type All = Mutex<BTreeMap<usize, Reserved>>;
fn all() -> MutexGuard<'static, BTreeMap<usize, Reserved>> {
    registry().get().reserved.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorCode::InvalidValue, why.into()))
}
/// A length that granules can make up.
fn whole(size: usize, granule: usize) -> Result<usize> {
    match size != 0 && size.is_multiple_of(granule) {
        true => Ok(size),
        false => Err(Error::new(
            ErrorCode::InvalidSize,
            format!("{size} bytes are no multiple of the granularity, {granule}"),
        )),
    }
}
/// What `bytes` of physical memory of `device` are a multiple of.
///
/// # Errors
/// The driver's own.
pub(super) fn granule(
    context: Borrowed<'_, Context>,
    device: &Device,
    bytes: usize,
) -> Result<usize> {
    virtual_memory::page_size(context.native(), device, bytes.max(1))
}
/// What `bytes` of addresses in `context` are a multiple of.
fn granule_of_all(context: Borrowed<'_, Context>, bytes: usize) -> Result<usize> {
    let most = |most: usize, device: &Owned<Device>| Ok(most.max(granule(context, device, bytes)?));
    context.devices().iter().try_fold(1, most)
}
/// What an access means to the driver, if it means one thing.
fn rights(access: Access) -> Result<Rights> {
    match access {
        Access::NONE => Ok(Rights::None),
        Access::READ_ONLY => Ok(Rights::ReadOnly),
        Access::READ_WRITE => Ok(Rights::ReadWrite),
        _ => refused(format!("{access:?} is not one of NONE, READ_ONLY and READ_WRITE")),
    }
}

impl Reserved {
    /// What part of it `[start, start + size)` is, if that is a part.
    fn part(&self, start: UsmPtr, size: usize) -> Option<Range<usize>> {
        let at = start.addr().checked_sub(self.reservation.at() as usize)?;
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
        if within.iter().any(|(_, piece)| piece.is_busy) {
            return refused("another thread is just mapping or unmapping there: let it finish");
        }
        let covers = |reached: usize, (at, piece): &(usize, Piece)| {
            (*at <= reached).then(|| reached.max(at + piece.bytes))
        };
        match within.iter().try_fold(part.start, covers) {
            Some(reached) if reached >= part.end => Ok(within),
            _ => refused("part of the range is not mapped: map it first"),
        }
    }
    /// Says of the pieces in a part whether the driver is at work on them.
    fn mark(&mut self, part: &Range<usize>, is_busy: bool) {
        let first = self.pieces.range(..=part.start).next_back().map_or(part.start, |(&at, _)| at);
        self.pieces.range_mut(first..part.end).for_each(|(_, piece)| piece.is_busy = is_busy);
    }
    /// Takes a mapped part out of the books; what its pieces have before and behind it stays.
    fn cut(&mut self, part: &Range<usize>, pieces: &[(usize, Piece)]) {
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

/// The reservation of `context` that `[start, start + size)` is a part of, and which part.
fn find(
    all: &mut BTreeMap<usize, Reserved>,
    context: usize,
    start: UsmPtr,
    size: usize,
) -> Result<(&mut Reserved, Range<usize>)> {
    let found = all.range_mut(..=start.addr()).next_back();
    let part = found.and_then(|(_, reserved)| {
        let part = reserved.part(start, size)?;
        Some((reserved, part))
    });
    let Some((reserved, part)) = part else {
        return refused(format!("{size} bytes at {start:?} are not within one reservation"));
    };
    if reserved.context != context {
        return refused(format!("{start:?} was reserved in another context"));
    }
    whole(size, reserved.granule)?;
    if !start.addr().is_multiple_of(reserved.granule) {
        return refused(format!(
            "{start:?} is no multiple of the granularity, {}",
            reserved.granule
        ));
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
    let (reserved, part) = find(&mut all, context.as_handle().addr(), start, size)?;
    work(reserved, part)
}
impl VirtualMemApi for LevelZero {
    fn virtual_mem_granularity_get_info(
        context: Borrowed<'_, Context>,
        device: Option<Borrowed<'_, Device>>,
        allocation_size: usize,
        name: ur_virtual_mem_granularity_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        device.map_or(Ok(()), |device| context.check(device))?;
        let first = || context.devices()[0].borrow();
        let device = device.unwrap_or_else(first);
        match name {
            ur_virtual_mem_granularity_info_t::MINIMUM => {
                answer.value(&granule(context, &device, 1)?)
            }
            ur_virtual_mem_granularity_info_t::RECOMMENDED => {
                answer.value(&granule(context, &device, allocation_size)?)
            }
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
    fn virtual_mem_reserve(
        context: Borrowed<'_, Context>,
        start: Option<UsmPtr>,
        size: usize,
    ) -> Result<UsmPtr> {
        let granule = granule_of_all(context, 1)?;
        let (size, wished) = (whole(size, granule)?, start.map_or(0, UsmPtr::addr) as u64);
        let reservation = Reservation::reserve(context.native(), wished, size)?;
        let null = || Error::new(ErrorCode::Unknown, "the driver reserved a null address");
        let base = UsmPtr::from_addr(reservation.at() as usize).ok_or_else(null)?;
        let (context, pieces) = (context.as_handle().addr(), BTreeMap::new());
        let replaced =
            all().insert(base.addr(), Reserved { reservation, granule, context, pieces });
        registry().get().claim(base.addr(), size);
        debug_assert!(replaced.is_none(), "the driver reserves no address twice");
        Ok(base)
    }
    fn virtual_mem_free(context: Borrowed<'_, Context>, start: UsmPtr, size: usize) -> Result<()> {
        let mut all = all();
        let (reserved, part) = find(&mut all, context.as_handle().addr(), start, size)?;
        if part != (0..reserved.reservation.bytes()) {
            return refused("this is only a part of what was reserved: free all of it");
        }
        if !reserved.pieces.is_empty() {
            return refused("memory is still mapped there: unmap it first");
        }
        let freed = all.remove(&start.addr());
        drop(all);
        registry().get().give_up(start.addr());
        drop(freed); // which calls the driver
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
        memory.check_fork()?;
        let granule = granule_of_all(context, 1)?;
        let end = offset.checked_add(size);
        if !offset.is_multiple_of(granule) || end.is_none_or(|end| end > memory.bytes()) {
            return refused(format!(
                "{size} bytes at offset {offset} are no granules of physical memory of {} bytes",
                memory.bytes()
            ));
        }
        within(context, start, size, |reserved, part| {
            if !reserved.is_unmapped(&part) {
                return refused("memory is mapped there already: unmap it first");
            }
            let _memory = Arc::clone(memory.memory());
            let (access, is_busy, mapping) = (flags, true, part.clone());
            let piece = Piece { bytes: size, access, mapping, is_busy, _memory };
            reserved.pieces.insert(part.start, piece);
            Ok(())
        })?;
        let (native, at) = (context.native(), start.addr() as u64);
        let mapped = virtual_memory::map(native, at, size, memory.memory(), offset, rights);
        // The size is the exporter's word; whether it is true shows here.
        let mapped = mapped.map_err(|e| if memory.is_opened() { foreign(e) } else { e });
        let settled = within(context, start, size, |reserved, part| {
            reserved.mark(&part, false);
            Ok(if mapped.is_err() { reserved.pieces.remove(&part.start) } else { None })
        })?;
        drop(settled); // not under the lock
        mapped
    }
    fn virtual_mem_unmap(context: Borrowed<'_, Context>, start: UsmPtr, size: usize) -> Result<()> {
        let pieces = within(context, start, size, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            let is_cut = |(_, piece): &(usize, Piece)| {
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
        queue::ticket(context.as_handle().addr()).wait();
        let base = start.addr() as u64;
        let first = pieces.first().map_or(0, |(at, _)| *at);
        let mut ended = vec![];
        let mut failure = None;
        for (at, piece) in pieces.into_iter().filter(|(at, piece)| *at == piece.mapping.start) {
            let place = base + (at - first) as u64;
            match virtual_memory::unmap(context.native(), place, piece.mapping.len()) {
                Ok(()) => ended.push(piece),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        within(context, start, size, |reserved, part| {
            let is_over = |at: usize| ended.iter().any(|piece| piece.mapping.contains(&at));
            reserved.pieces.retain(|&at, _| !is_over(at));
            reserved.mark(&part, false);
            Ok(())
        })?;
        drop(ended); // which may have been the last of the memory
        failure.map_or(Ok(()), Err)
    }
    fn virtual_mem_set_access(
        context: Borrowed<'_, Context>,
        start: UsmPtr,
        size: usize,
        flags: Access,
    ) -> Result<()> {
        let rights = rights(flags)?;
        let pieces = within(context, start, size, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            reserved.mark(&part, true);
            Ok(pieces)
        })?;
        let at = start.addr() as u64;
        let changed = virtual_memory::set_access(context.native(), at, size, rights);
        let settled = within(context, start, size, |reserved, part| {
            reserved.mark(&part, false);
            if changed.is_ok() {
                reserved.cut(&part, &pieces);
                for (at, piece) in &pieces {
                    let (from, to) = (part.start.max(*at), (at + piece.bytes).min(part.end));
                    reserved.pieces.insert(from, piece.part(to - from, flags));
                }
            }
            Ok(())
        });
        settled.and(changed)
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
