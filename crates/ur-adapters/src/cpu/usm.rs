//! The `urUSM*` entries: what C asks for is checked here; memory itself is `memory.rs`'s, its
//! pools are `ur_adapter::pool`'s.
use super::{
    Context, Cpu, Device,
    backing::ALIGNMENT,
    engine::all_queues_ticket,
    enqueue::check_range,
    host::host,
    memory::{self, Allocation},
    native, usm_host,
    usm_pool::UsmPool,
};
use crate::memory::{
    allocation::{Home, Usm},
    pools::Identified,
    usm::{alignment, check_hints, rows},
};
use std::{ffi::c_void, ptr};
use ur_adapter::{
    api::{UsmApi, UsmExpApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
};
use ur_sys::{
    ur_exp_usm_host_alloc_register_properties_t, ur_usm_alloc_info_t, ur_usm_desc_t,
    ur_usm_pool_desc_t, ur_usm_pool_info_t, ur_usm_type_t,
};

/// The alignment of what C does not align: that of its largest type, sixteen eight-byte numbers.
const NATURAL: usize = 128;

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}

/// # Errors
/// `code` for no bytes, and for more than the host has.
pub(super) fn check_size(size: usize, code: ErrorCode) -> Result<()> {
    match size > 0 && size as u64 <= host().memory {
        true => Ok(()),
        false => Err(Error::new(
            code,
            format!("{size} bytes are none, or more than the {} there are", host().memory),
        )),
    }
}
/// What C says of memory beside its size.
#[derive(Clone, Copy, Default)]
pub(super) struct Wish<'call> {
    /// The device it is for; the context's first where C names none.
    pub(super) device: Option<Borrowed<'call, Device>>,
    /// Its alignment and hints.
    pub(super) desc: Option<&'call ur_usm_desc_t>,
    /// The pool to take it from.
    pub(super) pool: Option<Borrowed<'call, UsmPool>>,
}
/// Allocates what C asks for.
pub(super) fn allocate(
    usm: Usm,
    context: Borrowed<'_, Context>,
    Wish { device, desc, pool }: Wish<'_>,
    size: usize,
) -> Result<UsmPtr> {
    device.map_or(Ok(()), |device| context.check(device))?;
    check_size(size, ErrorCode::InvalidUsmSize)?;
    desc.map_or(Ok(()), check_hints)?;
    // What C does not align is aligned as its largest type is that fits.
    let natural = NATURAL.min(size.checked_next_power_of_two().unwrap_or(NATURAL));
    let align = alignment(desc.map_or(0, |desc| desc.align as usize), natural, ALIGNMENT)?;
    let first = || context.devices()[0].borrow();
    pool.map_or(Ok(()), |pool| match device {
        Some(device) => pool.check(context, device),
        None => pool.identity().check_context(context),
    })?;
    let home = Home {
        context: handle(&context),
        device: handle(&device.unwrap_or_else(first)),
        // A pool that C has no handle of, as a device's first may be, is none to C.
        pool: pool.filter(|pool| pool.api_refs() > 0).map_or(0, |pool| handle(&pool)),
    };
    match pool {
        None => memory::allocate(usm, home, size, align),
        Some(pool) => pool.allocate(usm, home, size, align),
    }
}

impl UsmApi for Cpu {
    fn usm_host_alloc(
        context: Borrowed<'_, Context>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool>>,
        size: usize,
    ) -> Result<UsmPtr> {
        allocate(Usm::Host, context, Wish { device: None, desc, pool }, size)
    }
    fn usm_device_alloc(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool>>,
        size: usize,
    ) -> Result<UsmPtr> {
        allocate(Usm::Device, context, Wish { device: Some(device), desc, pool }, size)
    }
    fn usm_shared_alloc(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool>>,
        size: usize,
    ) -> Result<UsmPtr> {
        allocate(Usm::Shared, context, Wish { device: Some(device), desc, pool }, size)
    }
    fn usm_free(context: Borrowed<'_, Context>, mem: UsmPtr) -> Result<()> {
        memory::free(handle(&context), mem)
    }
    fn usm_get_mem_alloc_info(
        context: Borrowed<'_, Context>,
        mem: UsmPtr,
        name: ur_usm_alloc_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let found = Allocation::find(mem).filter(|found| found.is_of(handle(&context)));
        let Some(found) = found else {
            if let Some(answered) = usm_host::info(handle(&context), mem, name, answer) {
                return answered;
            }
            return match name {
                ur_usm_alloc_info_t::TYPE => answer.value(&ur_usm_type_t::UNKNOWN.0),
                _ => Err(Error::new(
                    ErrorCode::InvalidMemObject,
                    format!("{mem:?} is in no USM allocation of this context"),
                )),
            };
        };
        match name {
            ur_usm_alloc_info_t::TYPE => answer.value(&found.usm().for_c().0),
            ur_usm_alloc_info_t::BASE_PTR => answer.value(&found.base().addr()),
            ur_usm_alloc_info_t::SIZE => answer.value(&found.bytes()),
            ur_usm_alloc_info_t::DEVICE => answer.value(&found.home().device),
            ur_usm_alloc_info_t::POOL => answer.value(&found.home().pool),
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
    fn usm_pool_create(
        context: Borrowed<'_, Context>,
        desc: &ur_usm_pool_desc_t,
    ) -> Result<Owned<UsmPool>> {
        UsmPool::create(context, None, desc)
    }
    fn usm_pool_get_info(
        pool: Borrowed<'_, UsmPool>,
        name: ur_usm_pool_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_usm_pool_info_t::REFERENCE_COUNT => answer.value(&pool.api_refs()),
            ur_usm_pool_info_t::CONTEXT => answer.value(&pool.identity().context()),
            name => match pool.size(name) {
                Some(size) => answer.value(&size),
                None => Err(ErrorCode::UnsupportedEnumeration.into()),
            },
        }
    }
}

/// Writes or reads one number at an address of C's, which need not be aligned.
fn poke(to: UsmPtr, number: usize) -> Result<()> {
    let from = UsmPtr::new(ptr::from_ref(&number).cast())?;
    native::copy(to, from, size_of::<usize>());
    Ok(())
}
fn peek(from: UsmPtr) -> Result<usize> {
    let mut number = 0_usize;
    native::copy(UsmPtr::new(ptr::from_mut(&mut number).cast())?, from, size_of::<usize>());
    Ok(number)
}

impl UsmExpApi for Cpu {
    fn usm_pool_create_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: &ur_usm_pool_desc_t,
    ) -> Result<Owned<UsmPool>> {
        UsmPool::create(context, Some(device), desc)
    }
    fn usm_pool_get_info_exp(
        pool: Borrowed<'_, UsmPool>,
        name: ur_usm_pool_info_t,
        value: *mut c_void,
    ) -> Result<usize> {
        if name == ur_usm_pool_info_t::REFERENCE_COUNT {
            let count = pool.api_refs();
            let from = UsmPtr::new(ptr::from_ref(&count).cast())?;
            UsmPtr::new(value).into_iter().for_each(|to| native::copy(to, from, size_of::<u32>()));
            return Ok(size_of::<u32>());
        }
        let number = match name {
            ur_usm_pool_info_t::CONTEXT => Some(pool.identity().context()),
            name => pool.size(name),
        };
        let number = number.ok_or(ErrorCode::UnsupportedEnumeration)?;
        UsmPtr::new(value).map_or(Ok(()), |to| poke(to, number))?;
        Ok(size_of::<usize>())
    }
    fn usm_pool_set_info_exp(
        pool: Borrowed<'_, UsmPool>,
        name: ur_usm_pool_info_t,
        value: UsmPtr,
        size: usize,
    ) -> Result<()> {
        if size != size_of::<usize>() {
            let why = format!("the property is a size_t, and {size} bytes were given");
            return Err(Error::new(ErrorCode::InvalidSize, why));
        }
        pool.set(name, peek(value)?)
    }
    fn usm_pool_get_default_device_pool_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
    ) -> Result<Owned<UsmPool>> {
        context.check(device)?;
        context.pools().by_device().default_of(device, || UsmPool::initial(context))
    }
    fn usm_pool_get_device_pool_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
    ) -> Result<Owned<UsmPool>> {
        context.check(device)?;
        context.pools().by_device().current_of(device, || UsmPool::initial(context))
    }
    fn usm_pool_set_device_pool_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        pool: Borrowed<'_, UsmPool>,
    ) -> Result<()> {
        pool.check(context, device)?;
        context.pools().by_device().choose(device, pool, || UsmPool::initial(context))
    }
    fn usm_pool_destroy_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        pool: Borrowed<'_, UsmPool>,
    ) -> Result<()> {
        pool.check(context, device)?; // and the shim takes C's reference back
        match pool.identity().is_default() {
            false => Ok(()),
            true => Err(Error::new(
                ErrorCode::InvalidValue,
                "the pool that a device starts out with cannot be destroyed: release it",
            )),
        }
    }
    fn usm_pool_trim_to_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        pool: Borrowed<'_, UsmPool>,
        min_bytes_to_keep: usize,
    ) -> Result<()> {
        pool.check(context, device)?;
        pool.trim_to(min_bytes_to_keep);
        Ok(())
    }
    fn usm_pitched_alloc_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool>>,
        width_in_bytes: usize,
        height: usize,
        element_size_bytes: usize,
    ) -> Result<(UsmPtr, usize)> {
        let (pitch, size) = rows(NATURAL, element_size_bytes, width_in_bytes, height)?;
        let wish = Wish { device: Some(device), desc, pool };
        Ok((allocate(Usm::Device, context, wish, size)?, pitch))
    }
    fn usm_context_memcpy_exp(
        context: Borrowed<'_, Context>,
        dst: UsmPtr,
        src: UsmPtr,
        size: usize,
    ) -> Result<()> {
        check_range(dst, size)?;
        check_range(src, size)?;
        all_queues_ticket(handle(&context)).wait();
        native::copy(dst, src, size);
        Ok(())
    }
    fn usm_host_alloc_register_exp(
        context: Borrowed<'_, Context>,
        host_mem: UsmPtr,
        size: usize,
        _properties: Option<&ur_exp_usm_host_alloc_register_properties_t>,
    ) -> Result<()> {
        usm_host::register(handle(&context), host_mem, size)
    }
    fn usm_host_alloc_unregister_exp(
        context: Borrowed<'_, Context>,
        host_mem: UsmPtr,
    ) -> Result<()> {
        usm_host::unregister(handle(&context), host_mem)
    }
    fn usm_import_exp(context: Borrowed<'_, Context>, mem: UsmPtr, size: usize) -> Result<()> {
        usm_host::import(handle(&context), mem, size)
    }
    fn usm_release_exp(context: Borrowed<'_, Context>, mem: UsmPtr) -> Result<()> {
        usm_host::release(handle(&context), mem);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
