//! Virtual memory: addresses that C reserves and maps physical memory into. What is reserved and mapped
//! `memory/reservations.rs` knows; what the driver does about it is here.
use super::{
    Context, Device, Family,
    backing::{self, reaching},
    driver::Dialect,
    native::virtual_memory::{self, Physical, Range},
    physical_mem::PhysicalMem,
    queue,
};
use crate::memory::reservations::{Reservations, Span, check_offset, refused, whole};
use std::sync::Arc;
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

/// What is mapped, with the device whose memory it is.
type Kept<D> = (Owned<Device<D>>, Arc<Physical<D>>);
/// All that is reserved.
pub(super) type All<D> = Reservations<Range<D>, Kept<D>>;
fn all<D: Dialect>() -> &'static All<D> {
    &D::statics().memory.get().reserved
}
fn span<D: Dialect>(context: Borrowed<'_, Context<D>>, start: UsmPtr, bytes: usize) -> Span {
    Span { context: context.as_handle().addr(), start, bytes }
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
    let range = Range::reserve(device, 0, granule, granule)?;
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

/// Maps what the books say is being mapped, and gives the devices of the context their access.
fn map<D: Dialect>(
    context: Borrowed<'_, Context<D>>,
    (at, size): (u64, usize),
    memory: &PhysicalMem<D>,
    offset: usize,
    rights: i32,
) -> Result<()> {
    let device = memory.device();
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
    let given = reaching(device, context.devices()).and_then(|all| {
        if rights != 0 {
            virtual_memory::set_access(device, at, size, &[device.number()], rights)?;
        }
        D::statics().memory.get().peers.enter_mapping(device, (at, size), all, rights)
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
        let range = Range::reserve(&context.devices()[0], wished, size, granule)?;
        let null = || Error::new(ErrorCode::Unknown, "the driver reserved a null address");
        let base = UsmPtr::from_addr(range.at() as usize).ok_or_else(null)?;
        all().enter(span(context, base, size), granule, range);
        D::statics().memory.get().claim(base.addr(), size);
        Ok(base)
    }
    fn virtual_mem_free(
        context: Borrowed<'_, Context<D>>,
        start: UsmPtr,
        size: usize,
    ) -> Result<()> {
        let freed = all::<D>().take(span(context, start, size))?;
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
        check_offset((offset, size), granule, memory.bytes())?;
        let (all, span) = (all(), span(context, start, size));
        all.check_unmapped(span)?; // the range is judged before the driver's abilities are
        if offset != 0 && !takes_offsets(memory.device(), granule)? {
            return Err(Error::new(
                ErrorCode::UnsupportedFeature,
                "this driver maps physical memory from its start only: map with offset 0, or make \
                 one physical memory for each part",
            ));
        }
        let kept = (memory.device().clone(), Arc::clone(memory.memory()));
        let to = (start.addr() as u64, size);
        all.map(span, flags, &kept, || map(context, to, &memory, offset, rights))
    }
    fn virtual_mem_unmap(
        context: Borrowed<'_, Context<D>>,
        start: UsmPtr,
        size: usize,
    ) -> Result<()> {
        let wait = || queue::ticket::<D>(context.as_handle().addr()).wait();
        all::<D>().unmap(span(context, start, size), wait, |(device, _), at, bytes| {
            D::statics().memory.get().peers.leave_mapping(at);
            virtual_memory::unmap(device, at, bytes)
        })
    }
    fn virtual_mem_set_access(
        context: Borrowed<'_, Context<D>>,
        start: UsmPtr,
        size: usize,
        flags: Access,
    ) -> Result<()> {
        let rights = rights(flags)?;
        all().set_access(span(context, start, size), flags, |(device, _)| {
            let (at, peers) = (start.addr() as u64, &D::statics().memory.get().peers);
            // Before the others are chosen: who starts from now on has these.
            peers.set_rights(at..at + size as u64, rights);
            let reaching = peers.started_of(device, &reaching(device, context.devices())?);
            virtual_memory::set_access(device, at, size, &reaching, rights)
        })
    }
    fn virtual_mem_get_info(
        context: Borrowed<'_, Context<D>>,
        start: UsmPtr,
        size: usize,
        name: ur_virtual_mem_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_virtual_mem_info_t::ACCESS_MODE => {
                answer.value(&all::<D>().access(span(context, start, size))?.bits())
            }
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
}
