//! The `urUSM*` entries: what C asks for is checked here; memory itself is `allocation.rs`'s, its
//! pools are `ur_adapter::pool`'s.
use super::{
    Context, Cpu, Device,
    allocation::{self, Chunks, Home, Usm, UsmBlocks},
    backing::ALIGNMENT,
    engine::all_queues_ticket,
    host::host,
    mapping::Side,
    native,
};
use std::{ffi::c_void, ptr, sync::Arc};
use ur_adapter::{
    api::{UsmApi, UsmExpApi},
    chain,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
    pool::{Limits, Pool, Statistics},
};
use ur_sys::{
    ur_usm_alloc_info_t, ur_usm_desc_t, ur_usm_pool_desc_t, ur_usm_pool_flags_t,
    ur_usm_pool_info_t, ur_usm_pool_limits_desc_t, ur_usm_type_t,
};

/// The alignment of what C does not align: that of its largest type, sixteen eight-byte numbers.
const NATURAL: usize = 128;

/// What `ur_usm_pool_handle_t` points at: a pool for each kind of USM, so that no two kinds share
/// a page. Memory of one is in use until its blocks are freed, whatever becomes of the handle.
#[derive(Debug)]
pub struct UsmPool {
    context: Owned<Context>,
    device: Arc<UsmBlocks>,
    host: Arc<UsmBlocks>,
    shared: Arc<UsmBlocks>,
}

impl UsmPool {
    fn create(context: Borrowed<'_, Context>, desc: &ur_usm_pool_desc_t) -> Result<Owned<Self>> {
        let mut limits = Limits::default();
        if let Some(wished) = chain::extension::<ur_usm_pool_limits_desc_t>(desc)? {
            limits.poolable = wished.maxPoolableSize;
            limits.chunk = wished.minDriverAllocSize.max(1);
        }
        let zeroed = desc.flags.contains(ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK);
        let of = |side| Pool::new(Chunks { side, zeroed }, limits);
        let (device, host, shared) = (of(Side::Device)?, of(Side::Host)?, of(Side::Host)?);
        Ok(Owned::new(Self { context: context.own()?, device, host, shared }))
    }
    fn of(&self, usm: Usm) -> &Arc<UsmBlocks> {
        match usm {
            Usm::Device => &self.device,
            Usm::Host => &self.host,
            Usm::Shared => &self.shared,
        }
    }
    fn each(&self) -> [&Arc<UsmBlocks>; 3] {
        [&self.device, &self.host, &self.shared]
    }
    /// Of all kinds together.
    fn statistics(&self) -> Statistics {
        allocation::sweep();
        self.each().into_iter().map(|pool| pool.statistics()).fold(
            Statistics::default(),
            |sum, one| Statistics {
                reserved: sum.reserved + one.reserved,
                reserved_high: sum.reserved_high + one.reserved_high,
                used: sum.used + one.used,
                used_high: sum.used_high + one.used_high,
            },
        )
    }
    /// What a property is, if it is a size.
    fn size(&self, name: ur_usm_pool_info_t) -> Option<usize> {
        use ur_usm_pool_info_t as I;
        let most = usize::try_from(host().memory).unwrap_or(usize::MAX);
        match name {
            I::RELEASE_THRESHOLD_EXP => Some(self.device.limits().keep),
            I::MAXIMUM_SIZE_EXP => Some(self.device.limits().maximum.min(most)),
            I::RESERVED_CURRENT_EXP => Some(self.statistics().reserved),
            I::RESERVED_HIGH_EXP => Some(self.statistics().reserved_high),
            I::USED_CURRENT_EXP => Some(self.statistics().used),
            I::USED_HIGH_EXP => Some(self.statistics().used_high),
            _ => None,
        }
    }
}

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}

/// Allocates what C asks for.
fn allocate(
    usm: Usm,
    context: Borrowed<'_, Context>,
    device: Option<Borrowed<'_, Device>>,
    desc: Option<&ur_usm_desc_t>,
    pool: Option<Borrowed<'_, UsmPool>>,
    size: usize,
) -> Result<UsmPtr> {
    device.map_or(Ok(()), |device| context.check(device))?;
    if size == 0 || size as u64 > host().memory {
        let why = format!("{size} bytes are none, or more than the {} there are", host().memory);
        return Err(Error::new(ErrorCode::InvalidUsmSize, why));
    }
    let align = match desc.map_or(0, |desc| desc.align as usize) {
        0 => NATURAL.min(size.checked_next_power_of_two().unwrap_or(NATURAL)),
        align if align.is_power_of_two() && align <= ALIGNMENT => align,
        align => {
            let why = format!("an alignment of {align} is no power of two up to {ALIGNMENT}");
            return Err(Error::new(ErrorCode::InvalidValue, why));
        }
    };
    if pool.is_some_and(|pool| !pool.context.same(&context)) {
        let why = "the pool belongs to another context: make one in this context";
        return Err(Error::new(ErrorCode::InvalidValue, why));
    }
    let device = device.map_or_else(|| handle(&context.devices()[0]), |device| handle(&device));
    let home =
        Home { context: handle(&context), device, pool: pool.map_or(0, |pool| handle(&pool)) };
    allocation::allocate(usm, home, size, align, pool.as_deref().map(|pool| pool.of(usm)))
}

impl UsmApi for Cpu {
    fn usm_host_alloc(
        context: Borrowed<'_, Context>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool>>,
        size: usize,
    ) -> Result<UsmPtr> {
        allocate(Usm::Host, context, None, desc, pool, size)
    }
    fn usm_device_alloc(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool>>,
        size: usize,
    ) -> Result<UsmPtr> {
        allocate(Usm::Device, context, Some(device), desc, pool, size)
    }
    fn usm_shared_alloc(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool>>,
        size: usize,
    ) -> Result<UsmPtr> {
        allocate(Usm::Shared, context, Some(device), desc, pool, size)
    }
    fn usm_free(context: Borrowed<'_, Context>, mem: UsmPtr) -> Result<()> {
        allocation::free(handle(&context), mem)
    }
    fn usm_get_mem_alloc_info(
        context: Borrowed<'_, Context>,
        mem: UsmPtr,
        name: ur_usm_alloc_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let found = allocation::find(mem).filter(|found| found.is_of(handle(&context)));
        let Some(found) = found else {
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
        UsmPool::create(context, desc)
    }
    fn usm_pool_get_info(
        pool: Borrowed<'_, UsmPool>,
        name: ur_usm_pool_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_usm_pool_info_t::REFERENCE_COUNT => answer.value(&pool.api_refs()),
            ur_usm_pool_info_t::CONTEXT => answer.handle(&pool.context),
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
        context.check(device)?;
        UsmPool::create(context, desc)
    }
    fn usm_pool_get_info_exp(
        pool: Borrowed<'_, UsmPool>,
        name: ur_usm_pool_info_t,
        value: *mut c_void,
    ) -> Result<usize> {
        let number = match name {
            ur_usm_pool_info_t::CONTEXT => Some(handle(&pool.context)),
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
        let number = peek(value)?;
        match name {
            ur_usm_pool_info_t::RELEASE_THRESHOLD_EXP => {
                pool.each().into_iter().for_each(|pool| pool.set_keep(number));
            }
            ur_usm_pool_info_t::MAXIMUM_SIZE_EXP => {
                let most = if number == 0 { usize::MAX } else { number };
                pool.each().into_iter().for_each(|pool| pool.set_maximum(most));
            }
            _ => return Err(ErrorCode::UnsupportedEnumeration.into()),
        }
        Ok(())
    }
    fn usm_pool_destroy_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        pool: Borrowed<'_, UsmPool>,
    ) -> Result<()> {
        check(context, device, pool) // and the shim takes C's reference back
    }
    fn usm_pool_trim_to_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        pool: Borrowed<'_, UsmPool>,
        min_bytes_to_keep: usize,
    ) -> Result<()> {
        check(context, device, pool)?;
        allocation::sweep();
        pool.each().into_iter().for_each(|pool| pool.trim_to(min_bytes_to_keep));
        Ok(())
    }
    fn usm_pitched_alloc_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: Option<&ur_usm_desc_t>,
        pool: Option<Borrowed<'_, UsmPool>>,
        width_in_bytes: usize,
        height: usize,
        _element_size_bytes: usize,
    ) -> Result<(UsmPtr, usize)> {
        let pitch = width_in_bytes.checked_next_multiple_of(NATURAL);
        let size = pitch.and_then(|pitch| pitch.checked_mul(height));
        let (Some(pitch), Some(size)) = (pitch, size) else {
            return Err(Error::new(ErrorCode::InvalidUsmSize, "no memory has as many rows"));
        };
        let at = allocate(Usm::Device, context, Some(device), desc, pool, size)?;
        Ok((at, pitch))
    }
    fn usm_context_memcpy_exp(
        context: Borrowed<'_, Context>,
        dst: UsmPtr,
        src: UsmPtr,
        size: usize,
    ) -> Result<()> {
        let short = |at: UsmPtr| allocation::room(at, size).is_err();
        if size == 0 || short(dst) || short(src) {
            let why = format!("{size} bytes are none, or more than an allocation has from there");
            return Err(Error::new(ErrorCode::InvalidSize, why));
        }
        all_queues_ticket(handle(&context)).wait();
        native::copy(dst, src, size);
        Ok(())
    }
    /// Any host memory can be used as it is.
    fn usm_import_exp(_context: Borrowed<'_, Context>, _mem: UsmPtr, size: usize) -> Result<()> {
        match size {
            0 => Err(Error::new(ErrorCode::InvalidSize, "there is nothing to import")),
            _ => Ok(()),
        }
    }
    fn usm_release_exp(_context: Borrowed<'_, Context>, _mem: UsmPtr) -> Result<()> {
        Ok(())
    }
}
/// Whether a pool is of this context, and the device too.
fn check(
    context: Borrowed<'_, Context>,
    device: Borrowed<'_, Device>,
    pool: Borrowed<'_, UsmPool>,
) -> Result<()> {
    context.check(device)?;
    match pool.context.same(&context) {
        true => Ok(()),
        false => Err(Error::new(ErrorCode::InvalidValue, "the pool belongs to another context")),
    }
}

#[cfg(test)]
mod tests;
