//! Virtual memory: addresses that C reserves and maps physical memory into. What is reserved and mapped
//! `memory/reservations.rs` knows; what the driver does about it is here.
use super::{
    Context, Device, LevelZero,
    native::{
        ipc::foreign,
        physical_memory::Physical,
        virtual_memory::{self, Range, Rights},
    },
    physical_mem::PhysicalMem,
    queue,
    registry::registry,
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

/// All that is reserved; mappings keep their memory.
pub(super) type All = Reservations<Range, Arc<Physical>>;
fn all() -> &'static All {
    &registry().get().reserved
}
fn span(context: Borrowed<'_, Context>, start: UsmPtr, bytes: usize) -> Span {
    Span { context: context.as_handle().addr(), start, bytes }
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
        let range = Range::reserve(context.native(), wished, size)?;
        let null = || Error::new(ErrorCode::Unknown, "the driver reserved a null address");
        let base = UsmPtr::from_addr(range.at() as usize).ok_or_else(null)?;
        all().enter(span(context, base, size), granule, range);
        registry().get().claim(base.addr(), size);
        Ok(base)
    }
    fn virtual_mem_free(context: Borrowed<'_, Context>, start: UsmPtr, size: usize) -> Result<()> {
        let freed = all().take(span(context, start, size))?;
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
        check_offset((offset, size), granule_of_all(context, 1)?, memory.bytes())?;
        let (kept, at) = (Arc::clone(memory.memory()), start.addr() as u64);
        all().map(span(context, start, size), flags, &kept, || {
            let mapped = virtual_memory::map(context.native(), at, size, &kept, offset, rights);
            // The size is the exporter's word; whether it is true shows here.
            mapped.map_err(|e| if memory.is_opened() { foreign(e) } else { e })
        })
    }
    fn virtual_mem_unmap(context: Borrowed<'_, Context>, start: UsmPtr, size: usize) -> Result<()> {
        let wait = || {
            queue::ticket(context.as_handle().addr()).wait();
            Ok(())
        };
        all().unmap(span(context, start, size), wait, |_, at, bytes| {
            virtual_memory::unmap(context.native(), at, bytes)
        })
    }
    fn virtual_mem_set_access(
        context: Borrowed<'_, Context>,
        start: UsmPtr,
        size: usize,
        flags: Access,
    ) -> Result<()> {
        let rights = rights(flags)?;
        all().set_access(span(context, start, size), flags, |_| {
            virtual_memory::set_access(context.native(), start.addr() as u64, size, rights)
        })
    }
    fn virtual_mem_get_info(
        context: Borrowed<'_, Context>,
        start: UsmPtr,
        size: usize,
        name: ur_virtual_mem_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_virtual_mem_info_t::ACCESS_MODE => {
                answer.value(&all().access(span(context, start, size))?.bits())
            }
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
}
