//! USM: what callers request is checked here, and taken from the pools of `usm_pool.rs` or from the driver.
use super::{
    OverDriver,
    objects::handle,
    usm_host,
    usm_pool::{Context, Device, HasUsm, UsmPool, check_size, take, take_alone},
};
use crate::memory::{
    allocation::{self, Allocation, Home, Usm},
    policy::Policy,
    ranges::check_range,
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
use ur_hal::Access;
use ur_sys::{
    CW_USM_ALLOC_INFO_IS_OPEN_ELSEWHERE, ur_exp_usm_host_alloc_register_flags_t,
    ur_exp_usm_host_alloc_register_properties_t, ur_usm_alloc_info_t, ur_usm_desc_t,
    ur_usm_pool_desc_t, ur_usm_pool_info_t, ur_usm_type_t,
};

/// What a caller requests of memory besides its size.
pub struct Wish<'call, D: HasUsm> {
    /// The device for which it is allocated; the context's first if `None`.
    pub device: Option<Borrowed<'call, Device<D>>>,
    /// Alignment and hints.
    pub desc: Option<&'call ur_usm_desc_t>,
    /// The pool from which it is allocated.
    pub pool: Option<Borrowed<'call, UsmPool<D>>>,
}
/// Allocates memory.
///
/// # Errors
/// As `urUSMDeviceAlloc` documents them.
pub fn allocate<D: HasUsm>(
    usm: Usm,
    context: Borrowed<'_, Context<D>>,
    Wish { device, desc, pool }: Wish<'_, D>,
    size: usize,
) -> Result<UsmPtr> {
    device.map_or(Ok(()), |device| context.check(device))?;
    let chosen = device.unwrap_or_else(|| context.devices()[0].borrow());
    check_size::<D>(&chosen, size, ErrorCode::InvalidUsmSize)?;
    desc.map_or(Ok(()), check_hints)?;
    let (wished, natural) =
        (desc.map_or(0, |desc| desc.align as usize), D::natural_alignment(size));
    let align = alignment(wished, natural, D::LARGEST_ALIGNMENT)?;
    pool.map_or(Ok(()), |pool| match device {
        Some(device) => pool.check(context, device),
        None => pool.check_context(context),
    })?;
    let policy = desc.map_or(Ok(None), Policy::of)?;
    let home = Home {
        context: handle(&context),
        device: handle(&chosen),
        // A pool to which callers have no handle, such as a device's default pool may be, is reported as none.
        pool: pool.filter(|pool| pool.api_refs() > 0).map_or(0, |pool| handle(&pool)),
        access: policy.map_or(ur_ipc::Access::SameUser, |policy| policy.access),
    };
    if let Some(policy) = policy.filter(|policy| !policy.is_usual()) {
        if usm != Usm::Device {
            return Error::unsupported("a policy for memory other than a device's");
        }
        if pool.is_some() {
            let why = "memory with a policy has an allocation of its own: pass no pool";
            return Error::refuse(ErrorCode::InvalidValue, why);
        }
        let at = take_alone(chosen, (home, size, align), policy.is_read_only)?;
        policy.confirm();
        return Ok(at);
    }
    policy.iter().for_each(Policy::confirm);
    match pool {
        None => take(context, usm, chosen, (home, size, align)),
        Some(pool) => pool.allocate(usm, chosen, (home, size, align)),
    }
}
/// Frees the allocation that starts at `at`. Its memory is reused when the commands enqueued in `context` so far are
/// complete.
///
/// # Errors
/// `INVALID_MEM_OBJECT`, with the reason.
pub fn free<D: HasUsm>(context: &Object<Context<D>>, at: UsmPtr) -> Result<()> {
    allocation::free::<D::Memory>(handle(context), at)
}
/// Answers for an address outside all allocations of the context.
fn info_elsewhere<D: HasUsm>(
    context: Borrowed<'_, Context<D>>,
    at: UsmPtr,
    name: ur_usm_alloc_info_t,
    answer: &mut Answer<'_>,
) -> Result<()> {
    if let Some(answered) = usm_host::info::<D>(context, at, name, answer) {
        return answered;
    }
    let Some(known) = D::recognise(context.driver(), at.into())? else {
        return match name {
            ur_usm_alloc_info_t::TYPE => answer.value(&ur_usm_type_t::UNKNOWN.0),
            _ => Error::refuse(
                ErrorCode::InvalidMemObject,
                format!("{at:?} is in no USM allocation of this context"),
            ),
        };
    };
    match name {
        ur_usm_alloc_info_t::TYPE => answer.value(&Usm::from(known.kind).for_c().0),
        ur_usm_alloc_info_t::BASE_PTR => answer.value(&known.range.start().get()),
        ur_usm_alloc_info_t::SIZE => answer.value(&known.range.bytes()),
        ur_usm_alloc_info_t::DEVICE => match &known.device {
            Some(device) => answer.handle(&*Device::<D>::of(device)?),
            None => answer.handle(&context.devices()[0]),
        },
        ur_usm_alloc_info_t::POOL => answer.value(&0_usize),
        _ => Err(ErrorCode::UnsupportedEnumeration.into()),
    }
}

impl<D: HasUsm> UsmApi for OverDriver<D> {
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
        free::<D>(&context, mem)
    }
    fn usm_get_mem_alloc_info(
        context: Borrowed<'_, Context<D>>,
        mem: UsmPtr,
        name: ur_usm_alloc_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let found = Allocation::<D::Memory>::find(mem);
        let Some(found) = found.filter(|found| found.is_of(handle(&context))) else {
            return info_elsewhere::<D>(context, mem, name, answer);
        };
        match name {
            ur_usm_alloc_info_t::TYPE => answer.value(&found.usm().for_c().0),
            ur_usm_alloc_info_t::BASE_PTR => answer.value(&found.base().addr()),
            ur_usm_alloc_info_t::SIZE => answer.value(&found.bytes()),
            ur_usm_alloc_info_t::DEVICE => answer.value(&found.home().device),
            ur_usm_alloc_info_t::POOL => answer.value(&found.home().pool),
            CW_USM_ALLOC_INFO_IS_OPEN_ELSEWHERE => {
                answer.value(&u8::from(ur_ipc::leased(found.object(), ur_ipc::Kind::Memory)))
            }
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
            name => answer.value(&pool.size(name)?),
        }
    }
}

impl<D: HasUsm> UsmExpApi for OverDriver<D> {
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
        let to = UsmPtr::new(value).ok();
        if name == ur_usm_pool_info_t::REFERENCE_COUNT {
            to.into_iter().for_each(|to| to.write(pool.api_refs()));
            return Ok(size_of::<u32>());
        }
        let number = pool.size(name)?;
        to.into_iter().for_each(|to| to.write(number));
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
            return Error::refuse(ErrorCode::InvalidSize, why);
        }
        pool.set(name, value.read_size())
    }
    fn usm_pool_get_default_device_pool_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<Owned<UsmPool<D>>> {
        context.check(device)?;
        UsmPool::default_of(context, device)
    }
    fn usm_pool_get_device_pool_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<Owned<UsmPool<D>>> {
        context.check(device)?;
        UsmPool::current(context, device)
    }
    fn usm_pool_set_device_pool_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        pool: Borrowed<'_, UsmPool<D>>,
    ) -> Result<()> {
        pool.check(context, device)?;
        UsmPool::choose(context, device, pool)
    }
    fn usm_pool_destroy_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        pool: Borrowed<'_, UsmPool<D>>,
    ) -> Result<()> {
        pool.check(context, device)?; // the generated shim then releases the caller's reference
        match pool.is_default() {
            false => Ok(()),
            true => Error::refuse(
                ErrorCode::InvalidValue,
                "the default pool of a device cannot be destroyed: release it",
            ),
        }
    }
    fn usm_pool_trim_to_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        pool: Borrowed<'_, UsmPool<D>>,
        min_bytes_to_keep: usize,
    ) -> Result<()> {
        pool.check(context, device)?;
        pool.trim_to(min_bytes_to_keep)
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
        let (pitch, size) = rows(D::ROW, element_size_bytes, width_in_bytes, height)?;
        let wish = Wish { device: Some(device), desc, pool };
        Ok((allocate(Usm::Device, context, wish, size)?, pitch))
    }
    fn usm_context_memcpy_exp(
        context: Borrowed<'_, Context<D>>,
        dst: UsmPtr,
        src: UsmPtr,
        size: usize,
    ) -> Result<()> {
        check_range::<Allocation<D::Memory>>(dst, size, Access::ReadWrite)?;
        check_range::<Allocation<D::Memory>>(src, size, Access::Read)?;
        D::wait(handle(&context))?;
        Ok(D::copy(context.driver(), dst.into(), src.into(), size)?)
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
        usm_host::register::<D>(context, host_mem, size, properties.is_some_and(is_read_only))
    }
    fn usm_host_alloc_unregister_exp(
        context: Borrowed<'_, Context<D>>,
        host_mem: UsmPtr,
    ) -> Result<()> {
        usm_host::unregister::<D>(handle(&context), host_mem)
    }
    fn usm_import_exp(context: Borrowed<'_, Context<D>>, mem: UsmPtr, size: usize) -> Result<()> {
        usm_host::import::<D>(context, mem, size)
    }
    fn usm_release_exp(context: Borrowed<'_, Context<D>>, mem: UsmPtr) -> Result<()> {
        usm_host::release::<D>(handle(&context), mem);
        Ok(())
    }
}
