//! What commands on buffers append, checked as those of queues are.
use super::Step;
use crate::level_zero::memory::check_range;
use crate::level_zero::{
    Device, Mem,
    enqueue_mem::{Place, base_on, check_apart, extent, in_buffer, on_host, overlapping, spot},
};
use crate::memory::ranges::pattern_of;
use std::sync::Arc;
use ur_adapter::{
    error::{ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
};
use ur_sys::ur_rect_region_t;

/// # Errors
/// `INVALID_SIZE`, `INVALID_MEM_OBJECT`; `OVERLAPPING_REGIONS`
pub(super) fn copy(
    device: &Owned<Device>,
    (from, to): (Borrowed<'_, Mem>, Borrowed<'_, Mem>),
    (from_offset, to_offset): (usize, usize),
    size: usize,
) -> Result<Step> {
    from.check_range(from_offset, size)?;
    to.check_range(to_offset, size)?;
    let (out, into) = (from.origin() + from_offset, to.origin() + to_offset);
    if Arc::ptr_eq(from.storage(), to.storage()) && out.abs_diff(into) < size {
        return Err(overlapping());
    }
    let (device, from, to) = (device.clone(), from.own()?, to.own()?);
    Ok(Arc::new(move |list| {
        let source = base_on(&device, &from)? + from_offset;
        list.copy(base_on(&device, &to)? + to_offset, source, size)
    }))
}
/// From the host, or to it: `writes`.
///
/// # Errors
/// As for [`copy`].
pub(super) fn transfer(
    device: &Owned<Device>,
    mem: Borrowed<'_, Mem>,
    (offset, size): (usize, usize),
    host: UsmPtr,
    writes: bool,
) -> Result<Step> {
    mem.check_range(offset, size)?;
    check_range(host, size)?;
    let (device, mem, host) = (device.clone(), mem.own()?, host.addr());
    Ok(Arc::new(move |list| {
        let inside = base_on(&device, &mem)? + offset;
        if writes { list.copy(inside, host, size) } else { list.copy(host, inside, size) }
    }))
}
/// # Errors
/// As for [`copy`]; `INVALID_SIZE` for a pattern whose length is no power of two.
pub(super) fn fill(
    device: &Owned<Device>,
    mem: Borrowed<'_, Mem>,
    pattern: HostBytes<'_>,
    (offset, size): (usize, usize),
) -> Result<Step> {
    mem.check_range(offset, size)?;
    if !pattern.len().is_power_of_two() {
        return super::refused(
            ErrorCode::InvalidSize,
            "a buffer is filled with a pattern whose length is a power of two",
        );
    }
    let pattern = pattern_of(pattern, size)?.bytes().to_vec();
    let (device, mem) = (device.clone(), mem.own()?);
    Ok(Arc::new(move |list| list.fill(base_on(&device, &mem)? + offset, &pattern, size)))
}
/// # Errors
/// As for [`copy`].
pub(super) fn copy_rect(
    device: &Owned<Device>,
    (from, source): (Borrowed<'_, Mem>, Place),
    (to, target): (Borrowed<'_, Mem>, Place),
    region: ur_rect_region_t,
) -> Result<Step> {
    let region = extent(region)?;
    let (out, into) = (in_buffer(source, &from, region)?, in_buffer(target, &to, region)?);
    check_apart((&from, out), (&to, into), region)?;
    let (device, from, to) = (device.clone(), from.own()?, to.own()?);
    Ok(Arc::new(move |list| {
        let from = spot(out, base_on(&device, &from)?);
        list.copy_region(spot(into, base_on(&device, &to)?), from, region.into())
    }))
}
/// From the host, or to it: `writes`.
///
/// # Errors
/// As for [`copy`].
pub(super) fn transfer_rect(
    device: &Owned<Device>,
    (mem, inside): (Borrowed<'_, Mem>, Place),
    (at, host): (UsmPtr, Place),
    region: ur_rect_region_t,
    writes: bool,
) -> Result<Step> {
    let region = extent(region)?;
    let (inside, outside) = (in_buffer(inside, &mem, region)?, on_host(host, at, region)?);
    let (device, mem, host) = (device.clone(), mem.own()?, spot(outside, at.addr()));
    Ok(Arc::new(move |list| {
        let inside = spot(inside, base_on(&device, &mem)?);
        let (to, from) = if writes { (inside, host) } else { (host, inside) };
        list.copy_region(to, from, region.into())
    }))
}
