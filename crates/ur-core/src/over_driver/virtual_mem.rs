//! Virtual memory: addresses that callers reserve and map physical memory into. The registry of reservations and
//! mappings is `memory/reservations.rs`.
use super::{
    OverDriver,
    physical_mem::{HasPhysicalMemory, PhysicalMem, reserved},
};
use crate::memory::{
    allocation::Allocation,
    allocations::is_read_only,
    ranges::check_range,
    reservations::{Span, check_offset, refused, whole},
};
use std::sync::Arc;
use ur_adapter::{
    api::{Objects, VirtualMemApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::Borrowed,
};
use ur_hal::{Access, Memory, Range, greatest_common_divisor};
use ur_sys::{
    ur_virtual_mem_access_flags_t as Flags, ur_virtual_mem_granularity_info_t,
    ur_virtual_mem_info_t,
};

type Context<'call, D> = Borrowed<'call, <D as Objects>::Context>;
fn span<D: HasPhysicalMemory>(context: Context<'_, D>, start: UsmPtr, bytes: usize) -> Span {
    Span { context: context.as_handle().addr(), start, bytes }
}
/// The granularity of lengths and addresses on all devices of `context`, in bytes: a multiple of that of each.
fn granule<D: HasPhysicalMemory>(context: Context<'_, D>) -> Result<usize> {
    context.devices().iter().try_fold(1, |all, device| {
        Ok(common_multiple(all, D::granularity(context.driver(), device.driver(), 1)?.minimum))
    })
}
/// The least common multiple of two sizes, neither of which is 0.
fn common_multiple(a: usize, b: usize) -> usize {
    a / greatest_common_divisor(a, b) * b
}
/// The access that the flags stand for; exactly one flag must be set.
fn access(flags: Flags) -> Result<Access> {
    match flags {
        Flags::NONE => Ok(Access::None),
        Flags::READ_ONLY => Ok(Access::Read),
        Flags::READ_WRITE => Ok(Access::ReadWrite),
        _ => refused(format!("{flags:?} is not one of NONE, READ_ONLY and READ_WRITE")),
    }
}

impl<D: HasPhysicalMemory> VirtualMemApi for OverDriver<D> {
    fn virtual_mem_granularity_get_info(
        context: Context<'_, D>,
        device: Option<Borrowed<'_, <D as Objects>::Device>>,
        allocation_size: usize,
        name: ur_virtual_mem_granularity_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        device.map_or(Ok(()), |device| context.check(device))?;
        let device = device.map_or_else(|| Ok(context.devices()[0].clone()), Borrowed::own)?;
        let of = |bytes| D::granularity(context.driver(), device.driver(), bytes);
        match name {
            ur_virtual_mem_granularity_info_t::MINIMUM => answer.value(&of(1)?.minimum),
            ur_virtual_mem_granularity_info_t::RECOMMENDED => {
                answer.value(&of(allocation_size.max(1))?.recommended)
            }
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
    fn virtual_mem_reserve(
        context: Context<'_, D>,
        start: Option<UsmPtr>,
        size: usize,
    ) -> Result<UsmPtr> {
        let granule = granule::<D>(context)?;
        let size = whole(size, granule)?;
        let reservation = D::reserve(context.driver(), start.map(UsmPtr::into), size, granule)?;
        let base = UsmPtr::from(reservation.range().start());
        reserved::<D>().enter(span::<D>(context, base, size), granule, reservation);
        Ok(base)
    }
    fn virtual_mem_free(context: Context<'_, D>, start: UsmPtr, size: usize) -> Result<()> {
        let freed = reserved::<D>().take(span::<D>(context, start, size))?;
        drop(freed); // after the lock is released
        Ok(())
    }
    fn virtual_mem_map(
        context: Context<'_, D>,
        start: UsmPtr,
        size: usize,
        memory: Borrowed<'_, PhysicalMem<D>>,
        offset: usize,
        flags: Flags,
    ) -> Result<()> {
        let access = access(flags)?;
        if !memory.context().same(&context) {
            let why = "the physical memory belongs to another context";
            return Error::refuse(ErrorCode::InvalidContext, why);
        }
        memory.check_fork()?;
        check_offset((offset, size), granule::<D>(context)?, memory.bytes())?;
        let kept = Arc::clone(memory.backing());
        reserved::<D>().map(span::<D>(context, start, size), flags, &kept, |reservation| {
            let (to, devices) = (Range::new(start.into(), size)?, context.driver_devices());
            Ok(D::map(reservation, to, (kept.memory(), offset), devices, access)?)
        })
    }
    fn virtual_mem_unmap(context: Context<'_, D>, start: UsmPtr, size: usize) -> Result<()> {
        let span = span::<D>(context, start, size);
        reserved::<D>().unmap(
            (span, D::UNMAPS_PARTS),
            || D::wait(span.context),
            |reservation, kept, part| Ok(D::unmap(reservation, part, kept.memory())?),
        )
    }
    fn virtual_mem_set_access(
        context: Context<'_, D>,
        start: UsmPtr,
        size: usize,
        flags: Flags,
    ) -> Result<()> {
        let access = access(flags)?;
        let span = span::<D>(context, start, size);
        let wait = || D::wait(span.context);
        reserved::<D>().set_access(span, flags, wait, |reservation, kept| {
            let (part, devices) = (Range::new(start.into(), size)?, context.driver_devices());
            Ok(D::protect(reservation, part, kept.memory(), devices, access)?)
        })
    }
    fn virtual_mem_get_info(
        context: Context<'_, D>,
        start: UsmPtr,
        size: usize,
        name: ur_virtual_mem_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            // This includes imported memory, which the exporter may have made read-only.
            ur_virtual_mem_info_t::ACCESS_MODE
                if Allocation::<D::Memory>::find(start).is_some() =>
            {
                let found = check_range::<Allocation<D::Memory>>(start, size, Access::Read)?;
                answer.value(&match is_read_only::<Allocation<D::Memory>>(found) {
                    true => Flags::READ_ONLY.bits(),
                    false => Flags::READ_WRITE.bits(),
                })
            }
            ur_virtual_mem_info_t::ACCESS_MODE => {
                answer.value(&reserved::<D>().access(span::<D>(context, start, size))?.bits())
            }
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::common_multiple;

    #[test]
    fn a_granularity_of_several_devices_is_a_multiple_of_each() {
        assert_eq!(common_multiple(4096, 2 << 20), 2 << 20);
        assert_eq!(common_multiple(4096, 6144), 12_288);
        assert_eq!(common_multiple(1, 4096), 4096);
    }
}
