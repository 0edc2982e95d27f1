//! The `urUSM*` entries: what C asks for is checked here; memory itself is `memory.rs`'s, its
//! pools are `usm_pool.rs`'s.
use super::{
    Context, Device, Family,
    backing::ALIGNMENT,
    device::check_fork,
    driver::Dialect,
    foreign,
    memory::Allocation,
    memory::check_range,
    native::{device as native, memory},
    queue, usm_host,
    usm_pool::UsmPool,
};
use crate::memory::{
    allocation::{Home, Usm},
    pools::Identified,
    usm::{alignment, check_hints, rows},
};
use std::ffi::c_void;
use ur_adapter::{
    api::{UsmApi, UsmExpApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
};
use ur_sys::{
    ur_exp_usm_host_alloc_register_flags_t, ur_exp_usm_host_alloc_register_properties_t,
    ur_usm_alloc_info_t, ur_usm_desc_t, ur_usm_pool_desc_t, ur_usm_pool_info_t, ur_usm_type_t,
};

/// The alignment of what C does not align: what the driver promises of its own.
const NATURAL: usize = 256;
/// Up to so many bytes the driver is not asked how many there are.
const SMALL: usize = 64 << 20;
/// What rows of pitched memory start at multiples of.
const ROW: usize = 512;

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}

/// # Errors
/// `INVALID_USM_SIZE` for no bytes, and for more than `device` has.
fn check_size<D: Dialect>(device: &Device<D>, size: usize) -> Result<()> {
    let most = if size <= SMALL { SMALL } else { native::memory::<D>(device.number())? };
    match size > 0 && size <= most {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::InvalidUsmSize,
            format!("{size} bytes are none, or more than the {most} there are"),
        )),
    }
}
/// What C says of memory beside its size.
pub(super) struct Wish<'call, D: Dialect> {
    /// The device it is for; the context's first where C names none.
    pub(super) device: Option<Borrowed<'call, Device<D>>>,
    /// Its alignment and hints.
    pub(super) desc: Option<&'call ur_usm_desc_t>,
    /// The pool to take it from.
    pub(super) pool: Option<Borrowed<'call, UsmPool<D>>>,
}
/// Allocates what C asks for.
pub(super) fn allocate<D: Dialect>(
    usm: Usm,
    context: Borrowed<'_, Context<D>>,
    Wish { device, desc, pool }: Wish<'_, D>,
    size: usize,
) -> Result<UsmPtr> {
    check_fork::<D>()?; // or a child would be given what its parent has
    device.map_or(Ok(()), |device| context.check(device))?;
    let chosen = device.unwrap_or_else(|| context.devices()[0].borrow());
    check_size(&chosen, size)?;
    desc.map_or(Ok(()), check_hints)?;
    let align = alignment(desc.map_or(0, |desc| desc.align as usize), NATURAL, ALIGNMENT)?;
    pool.map_or(Ok(()), |pool| match device {
        Some(device) => pool.check(context, device),
        None => pool.identity().check_context(context),
    })?;
    let home = Home {
        context: handle(&context),
        device: handle(&chosen),
        // A pool that C has no handle of, as a device's first may be, is none to C.
        pool: pool.filter(|pool| pool.api_refs() > 0).map_or(0, |pool| handle(&pool)),
    };
    match pool {
        None => context.pools().own(context)?.allocate(usm, home, size, align),
        Some(pool) => pool.allocate(usm, home, size, align),
    }
}

impl<D: Dialect> UsmApi for Family<D> {
    fn usm_host_alloc(
        context: Borrowed<'_, Context<D>>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool<D>>>,
        size: usize,
    ) -> Result<UsmPtr> {
        allocate(Usm::Host, context, Wish { device: None, desc, pool }, size)
    }
    fn usm_device_alloc(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool<D>>>,
        size: usize,
    ) -> Result<UsmPtr> {
        allocate(Usm::Device, context, Wish { device: Some(device), desc, pool }, size)
    }
    fn usm_shared_alloc(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool<D>>>,
        size: usize,
    ) -> Result<UsmPtr> {
        allocate(Usm::Shared, context, Wish { device: Some(device), desc, pool }, size)
    }
    fn usm_free(context: Borrowed<'_, Context<D>>, mem: UsmPtr) -> Result<()> {
        check_fork::<D>()?;
        super::memory::free(&context, mem)
    }
    fn usm_get_mem_alloc_info(
        context: Borrowed<'_, Context<D>>,
        mem: UsmPtr,
        name: ur_usm_alloc_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let found = Allocation::<D>::find(mem).filter(|found| found.is_of(handle(&context)));
        let Some(found) = found else {
            if let Some(answered) = usm_host::info::<Family<D>>(context, mem, name, answer) {
                return answered;
            }
            if let Some(answered) = foreign::info(context, mem, name, answer)? {
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
        context: Borrowed<'_, Context<D>>,
        desc: &ur_usm_pool_desc_t,
    ) -> Result<Owned<UsmPool<D>>> {
        UsmPool::create(context, None, desc)
    }
    fn usm_pool_get_info(
        pool: Borrowed<'_, UsmPool<D>>,
        name: ur_usm_pool_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_usm_pool_info_t::REFERENCE_COUNT => answer.value(&pool.api_refs()),
            ur_usm_pool_info_t::CONTEXT => answer.value(&pool.identity().context()),
            name => match pool.size(name)? {
                Some(size) => answer.value(&size),
                None => Err(ErrorCode::UnsupportedEnumeration.into()),
            },
        }
    }
}

impl<D: Dialect> UsmExpApi for Family<D> {
    fn usm_pool_create_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        desc: &ur_usm_pool_desc_t,
    ) -> Result<Owned<UsmPool<D>>> {
        UsmPool::create(context, Some(device), desc)
    }
    fn usm_pool_get_info_exp(
        pool: Borrowed<'_, UsmPool<D>>,
        name: ur_usm_pool_info_t,
        value: *mut c_void,
    ) -> Result<usize> {
        let to = UsmPtr::new(value).ok().map(UsmPtr::addr);
        if name == ur_usm_pool_info_t::REFERENCE_COUNT {
            to.into_iter().for_each(|to| memory::poke(to, pool.api_refs()));
            return Ok(size_of::<u32>());
        }
        let number = match name {
            ur_usm_pool_info_t::CONTEXT => Some(pool.identity().context()),
            name => pool.size(name)?,
        };
        let number = number.ok_or(ErrorCode::UnsupportedEnumeration)?;
        to.into_iter().for_each(|to| memory::poke(to, number));
        Ok(size_of::<usize>())
    }
    fn usm_pool_set_info_exp(
        pool: Borrowed<'_, UsmPool<D>>,
        name: ur_usm_pool_info_t,
        value: UsmPtr,
        size: usize,
    ) -> Result<()> {
        if size != size_of::<usize>() {
            let why = format!("the property is a size_t, and {size} bytes were given");
            return Err(Error::new(ErrorCode::InvalidSize, why));
        }
        pool.set(name, memory::peek(value.addr()))
    }
    fn usm_pool_get_default_device_pool_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<Owned<UsmPool<D>>> {
        context.check(device)?;
        context.pools().by_device().default_of(device, || UsmPool::initial(context))
    }
    fn usm_pool_get_device_pool_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<Owned<UsmPool<D>>> {
        context.check(device)?;
        context.pools().by_device().current_of(device, || UsmPool::initial(context))
    }
    fn usm_pool_set_device_pool_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        pool: Borrowed<'_, UsmPool<D>>,
    ) -> Result<()> {
        pool.check(context, device)?;
        context.pools().by_device().choose(device, pool, || UsmPool::initial(context))
    }
    fn usm_pool_destroy_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        pool: Borrowed<'_, UsmPool<D>>,
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
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        pool: Borrowed<'_, UsmPool<D>>,
        min_bytes_to_keep: usize,
    ) -> Result<()> {
        pool.check(context, device)?;
        pool.trim_to(min_bytes_to_keep);
        Ok(())
    }
    fn usm_pitched_alloc_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool<D>>>,
        width_in_bytes: usize,
        height: usize,
        element_size_bytes: usize,
    ) -> Result<(UsmPtr, usize)> {
        let (pitch, size) = rows(ROW, element_size_bytes, width_in_bytes, height)?;
        let wish = Wish { device: Some(device), desc, pool };
        Ok((allocate(Usm::Device, context, wish, size)?, pitch))
    }
    fn usm_context_memcpy_exp(
        context: Borrowed<'_, Context<D>>,
        dst: UsmPtr,
        src: UsmPtr,
        size: usize,
    ) -> Result<()> {
        check_range::<D>(dst, size)?;
        check_range::<D>(src, size)?;
        queue::ticket::<D>(handle(&context)).wait()?;
        memory::copy(&context.devices()[0], dst.addr() as u64, src.addr() as u64, size)
    }
    fn usm_host_alloc_register_exp(
        context: Borrowed<'_, Context<D>>,
        host_mem: UsmPtr,
        size: usize,
        properties: Option<&ur_exp_usm_host_alloc_register_properties_t>,
    ) -> Result<()> {
        let is_read_only = |properties: &ur_exp_usm_host_alloc_register_properties_t| {
            properties.flags.contains(ur_exp_usm_host_alloc_register_flags_t::READ_ONLY)
        };
        usm_host::register::<Family<D>>(
            context,
            host_mem,
            size,
            properties.is_some_and(is_read_only),
        )
    }
    fn usm_host_alloc_unregister_exp(
        context: Borrowed<'_, Context<D>>,
        host_mem: UsmPtr,
    ) -> Result<()> {
        usm_host::unregister::<Family<D>>(handle(&context), host_mem)
    }
    fn usm_import_exp(context: Borrowed<'_, Context<D>>, mem: UsmPtr, size: usize) -> Result<()> {
        usm_host::import::<Family<D>>(context, mem, size)
    }
    fn usm_release_exp(context: Borrowed<'_, Context<D>>, mem: UsmPtr) -> Result<()> {
        usm_host::release::<Family<D>>(handle(&context), mem);
        Ok(())
    }
}
