//! Virtual memory: addresses that C reserves and maps physical memory into. Every range is checked
//! against what is reserved and mapped; what is mapped keeps its memory. While the driver works on a
//! part, the books say that it is busy: no lock is held meanwhile.
use super::{
    Context, Device, Family,
    backing::{self, reaching},
    driver::Dialect,
    native::virtual_memory::{self, Physical, Range as Reservation},
    physical_mem::PhysicalMem,
    queue,
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
struct Piece<D: Dialect> {
    bytes: usize,
    access: Access,
    /// The whole mapping, which the driver only takes back as one.
    mapping: Range<usize>,
    /// The driver is at work on it.
    is_busy: bool,
    /// Whose memory it is, and who can reach it.
    device: Owned<Device<D>>,
    /// Held so that the memory is nobody else's while it is mapped.
    _memory: Arc<Physical<D>>,
}
impl<D: Dialect> Piece<D> {
    /// So many bytes of it, with an access of their own.
    fn part(&self, bytes: usize, access: Access) -> Self {
        Self {
            bytes,
            access,
            mapping: self.mapping.clone(),
            is_busy: false,
            device: self.device.clone(),
            _memory: Arc::clone(&self._memory),
        }
    }
}
impl<D: Dialect> Clone for Piece<D> {
    fn clone(&self) -> Self {
        Self { is_busy: self.is_busy, ..self.part(self.bytes, self.access) }
    }
}
/// What C reserved in one call.
#[derive(Debug)]
pub(super) struct Reserved<D: Dialect> {
    reservation: Reservation<D>,
    granule: usize,
    context: usize,
    /// What is mapped, by offset; pieces never overlap.
    pieces: BTreeMap<usize, Piece<D>>,
}
/// By first address.
pub(super) type All<D> = Mutex<BTreeMap<usize, Reserved<D>>>;
fn all<D: Dialect>() -> MutexGuard<'static, BTreeMap<usize, Reserved<D>>> {
    D::statics().memory.get().reserved.lock().unwrap_or_else(PoisonError::into_inner)
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
/// What lengths in `context` are multiples of.
fn granule<D: Dialect>(context: Borrowed<'_, Context<D>>) -> Result<usize> {
    context.devices().iter().try_fold(1, |most, device| Ok(most.max(backing::granule(device)?)))
}
/// Whether the driver maps physical memory from elsewhere than its start: tried once a process.
fn takes_offsets<D: Dialect>(device: &Device<D>, granule: usize) -> Result<bool> {
    let known = &D::statics().memory.get().takes_offsets;
    if let Some(known) = known.get() {
        return Ok(*known);
    }
    let memory = Physical::create(device, 2 * granule)?;
    let range = Reservation::reserve(device, 0, granule, granule)?;
    let takes = virtual_memory::map(device, range.at(), granule, &memory, granule).is_ok();
    if takes {
        virtual_memory::unmap(device, range.at(), granule)?;
    }
    Ok(*known.get_or_init(|| takes))
}
/// What an access means to the driver, if it means one thing.
fn rights(access: Access) -> Result<i32> {
    match access {
        Access::NONE => Ok(0),
        Access::READ_ONLY => Ok(1),
        Access::READ_WRITE => Ok(3),
        _ => refused(format!("{access:?} is not one of NONE, READ_ONLY and READ_WRITE")),
    }
}

impl<D: Dialect> Reserved<D> {
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
    fn mapped(&self, part: &Range<usize>) -> Result<Vec<(usize, Piece<D>)>> {
        let first = self.pieces.range(..=part.start).next_back().map_or(part.start, |(&at, _)| at);
        let within: Vec<_> =
            self.pieces.range(first..part.end).map(|(&at, piece)| (at, piece.clone())).collect();
        if within.iter().any(|(_, piece)| piece.is_busy) {
            return refused("another thread is just mapping or unmapping there: let it finish");
        }
        let covers = |reached: usize, (at, piece): &(usize, Piece<D>)| {
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
    fn cut(&mut self, part: &Range<usize>, pieces: &[(usize, Piece<D>)]) {
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
fn find<D: Dialect>(
    all: &mut BTreeMap<usize, Reserved<D>>,
    context: usize,
    start: UsmPtr,
    size: usize,
) -> Result<(&mut Reserved<D>, Range<usize>)> {
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
fn within<D: Dialect, R>(
    context: Borrowed<'_, Context<D>>,
    start: UsmPtr,
    size: usize,
    work: impl FnOnce(&mut Reserved<D>, Range<usize>) -> Result<R>,
) -> Result<R> {
    let mut all = all::<D>();
    let (reserved, part) = find(&mut all, context.as_handle().addr(), start, size)?;
    work(reserved, part)
}
/// Maps what the books say is being mapped, and gives the devices of the context their access.
fn map<D: Dialect>(
    context: Borrowed<'_, Context<D>>,
    start: UsmPtr,
    size: usize,
    memory: &PhysicalMem<D>,
    offset: usize,
    rights: i32,
) -> Result<()> {
    let (device, at) = (memory.device(), start.addr() as u64);
    let refusal = |error: Error| match error.code() {
        ErrorCode::UnsupportedFeature if size < memory.bytes() => Error::new(
            ErrorCode::UnsupportedFeature,
            format!(
                "this driver maps physical memory as a whole only: map all of its {} bytes, or make \
                 one physical memory for each part ({error})",
                memory.bytes()
            ),
        ),
        // The size is the exporter's word; whether it is true shows here.
        _ if memory.is_opened() => virtual_memory::foreign(error),
        _ => error,
    };
    virtual_memory::map(device, at, size, memory.memory(), offset).map_err(refusal)?;
    let reaching = reaching(device, context.devices());
    let given = reaching.and_then(|all| match rights {
        0 => Ok(()), // as it is when nothing is said
        rights => virtual_memory::set_access(device, at, size, &all, rights),
    });
    given.or_else(|error| virtual_memory::unmap(device, at, size).and(Err(error)))
}

impl<D: Dialect> VirtualMemApi for Family<D> {
    fn virtual_mem_granularity_get_info(
        context: Borrowed<'_, Context<D>>,
        device: Option<Borrowed<'_, Device<D>>>,
        _allocation_size: usize,
        name: ur_virtual_mem_granularity_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        device.map_or(Ok(()), |device| context.check(device))?;
        let first = || context.devices()[0].borrow();
        let device = device.unwrap_or_else(first);
        match name {
            ur_virtual_mem_granularity_info_t::MINIMUM => {
                answer.value(&virtual_memory::granularity(&device, false)?)
            }
            ur_virtual_mem_granularity_info_t::RECOMMENDED => {
                answer.value(&virtual_memory::granularity(&device, true)?)
            }
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
    fn virtual_mem_reserve(
        context: Borrowed<'_, Context<D>>,
        start: Option<UsmPtr>,
        size: usize,
    ) -> Result<UsmPtr> {
        let granule = granule(context)?;
        let (size, wished) = (whole(size, granule)?, start.map_or(0, UsmPtr::addr) as u64);
        let reservation = Reservation::reserve(&context.devices()[0], wished, size, granule)?;
        let null = || Error::new(ErrorCode::Unknown, "the driver reserved a null address");
        let base = UsmPtr::from_addr(reservation.at() as usize).ok_or_else(null)?;
        let (context, pieces) = (context.as_handle().addr(), BTreeMap::new());
        let replaced =
            all::<D>().insert(base.addr(), Reserved { reservation, granule, context, pieces });
        D::statics().memory.get().claim(base.addr(), size);
        debug_assert!(replaced.is_none(), "the driver reserves no address twice");
        Ok(base)
    }
    fn virtual_mem_free(
        context: Borrowed<'_, Context<D>>,
        start: UsmPtr,
        size: usize,
    ) -> Result<()> {
        let mut all = all::<D>();
        let (reserved, part) = find(&mut all, context.as_handle().addr(), start, size)?;
        if part != (0..reserved.reservation.bytes()) {
            return refused("this is only a part of what was reserved: free all of it");
        }
        if !reserved.pieces.is_empty() {
            return refused("memory is still mapped there: unmap it first");
        }
        let freed = all.remove(&start.addr());
        drop(all);
        D::statics().memory.get().give_up(start.addr());
        drop(freed); // which calls the driver
        Ok(())
    }
    fn virtual_mem_map(
        context: Borrowed<'_, Context<D>>,
        start: UsmPtr,
        size: usize,
        memory: Borrowed<'_, PhysicalMem<D>>,
        offset: usize,
        flags: Access,
    ) -> Result<()> {
        let rights = rights(flags)?;
        if !memory.context().same(&context) {
            let why = "the physical memory belongs to another context";
            return Err(Error::new(ErrorCode::InvalidContext, why));
        }
        memory.check_fork()?;
        let granule = granule(context)?;
        let end = offset.checked_add(size);
        if !offset.is_multiple_of(granule) || end.is_none_or(|end| end > memory.bytes()) {
            return refused(format!(
                "{size} bytes at offset {offset} are no granules of physical memory of {} bytes",
                memory.bytes()
            ));
        }
        // The range is judged before the driver's abilities are.
        within(context, start, size, |reserved, part| match reserved.is_unmapped(&part) {
            true => Ok(()),
            false => refused("memory is mapped there already: unmap it first"),
        })?;
        if offset != 0 && !takes_offsets(memory.device(), granule)? {
            return Err(Error::new(
                ErrorCode::UnsupportedFeature,
                "this driver maps physical memory from its start only: map with offset 0, or make \
                 one physical memory for each part",
            ));
        }
        within(context, start, size, |reserved, part| {
            if !reserved.is_unmapped(&part) {
                return refused("memory is mapped there already: unmap it first");
            }
            let (device, _memory) = (memory.device().clone(), Arc::clone(memory.memory()));
            let (access, is_busy, mapping) = (flags, true, part.clone());
            let piece = Piece { bytes: size, access, mapping, is_busy, device, _memory };
            reserved.pieces.insert(part.start, piece);
            Ok(())
        })?;
        let mapped = map(context, start, size, &memory, offset, rights);
        let settled = within(context, start, size, |reserved, part| {
            reserved.mark(&part, false);
            Ok(if mapped.is_err() { reserved.pieces.remove(&part.start) } else { None })
        })?;
        drop(settled); // not under the lock
        mapped
    }
    fn virtual_mem_unmap(
        context: Borrowed<'_, Context<D>>,
        start: UsmPtr,
        size: usize,
    ) -> Result<()> {
        let pieces = within(context, start, size, |reserved, part| {
            let pieces = reserved.mapped(&part)?;
            let is_cut = |(_, piece): &(usize, Piece<D>)| {
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
        queue::ticket::<D>(context.as_handle().addr()).wait();
        let base = start.addr() as u64;
        let first = pieces.first().map_or(0, |(at, _)| *at);
        let mut ended = vec![];
        let mut failure = None;
        for (at, piece) in pieces.into_iter().filter(|(at, piece)| *at == piece.mapping.start) {
            let place = base + (at - first) as u64;
            match virtual_memory::unmap(&piece.device, place, piece.mapping.len()) {
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
        context: Borrowed<'_, Context<D>>,
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
        let device = pieces[0].1.device.clone();
        let changed = reaching(&device, context.devices()).and_then(|all| {
            virtual_memory::set_access(&device, start.addr() as u64, size, &all, rights)
        });
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
        context: Borrowed<'_, Context<D>>,
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
