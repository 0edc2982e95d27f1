//! Reserved addresses, and mappings of physical memory at them.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::Device,
        driver::{RawDriver, driver},
    },
    aside::Aside,
    context::NativeContext,
    memory::{pointer, release},
    physical_memory::Physical,
};
use std::{
    ptr,
    sync::{Arc, Mutex, PoisonError},
};
use ur_adapter::error::{ErrorCode, Result};
use ur_hal::Access;
use ze_sys::*;

/// Whether the device has virtual memory. The driver is asked by a call: a loader exports the functions
/// also for drivers that do not have them. A driver's devices are alike in this.
///
/// # Errors
/// The driver's own.
pub fn is_supported(device: &Device) -> Result<bool> {
    static KNOWN: Mutex<Vec<(RawDriver, bool)>> = Mutex::new(Vec::new());
    let raw = device.platform().raw();
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, has)) = known().iter().find(|(driver, _)| *driver == raw) {
        return Ok(*has);
    }
    let context = NativeContext::create(raw, &[device.raw()])?;
    let has = match page_size(&context, device, 1) {
        Ok(_) => true,
        Err(error) if error.code() == ErrorCode::UnsupportedFeature => false,
        Err(error) => return Err(error),
    };
    known().push((raw, has));
    Ok(has)
}

/// Whether mappings begin at the offset that is asked for. Intel's driver took no notice of it before 26.27: it is asked by
/// a mapping, and what is seen there. A driver's devices are alike in this.
///
/// # Errors
/// The driver's own.
pub fn takes_offsets(device: &Device) -> Result<bool> {
    static KNOWN: Mutex<Vec<(RawDriver, bool)>> = Mutex::new(Vec::new());
    let raw = device.platform().raw();
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, takes)) = known().iter().find(|(driver, _)| *driver == raw) {
        return Ok(*takes);
    }
    let takes = try_offset(device)?;
    known().push((raw, takes));
    Ok(takes)
}
/// Writes one byte into each of two pages, and looks which of them a mapping of the second shows.
fn try_offset(device: &Device) -> Result<bool> {
    let context = Arc::new(NativeContext::create(device.platform().raw(), &[device.raw()])?);
    let page = page_size(&context, device, 1)?;
    let memory = Physical::create(&context, device, 2 * page, false)?;
    let range = Range::reserve(&context, 0, 2 * page)?;
    let aside = Aside::create(&context, device, device.compute()?)?;
    let (at, mut bytes) = (range.at() as usize, vec![1_u8, 2, 0]);
    let host = bytes.as_mut_ptr().expose_provenance();
    let with = |(bytes, offset): (usize, usize), work: &dyn Fn() -> Result<()>| {
        map(&context, range.at(), bytes, &memory, offset, Access::ReadWrite)?;
        let done = work();
        unmap(&context, range.at(), bytes).and(done)
    };
    with((2 * page, 0), &|| {
        aside.list().copy(at, host, 1)?;
        aside.list().copy(at + page, host + 1, 1)
    })?;
    with((page, page), &|| aside.list().copy(host + 2, at, 1))?;
    Ok(std::hint::black_box(&bytes)[2] == 2)
}

/// What lengths and addresses of `bytes` of virtual memory have to be multiples of.
///
/// # Errors
/// The driver's own.
pub fn page_size(context: &NativeContext, device: &Device, bytes: usize) -> Result<usize> {
    let (raw, mut page) = (context.raw(), 0);
    let to = &raw mut page;
    // SAFETY: `page` is writable.
    unsafe { driver().virtual_mem_query_page_size(raw, device.raw(), bytes, to) }.ok()?;
    Ok(page.max(1))
}

/// What the driver calls an access.
fn attribute(access: Access) -> ze_memory_access_attribute_t {
    match access {
        Access::None => ZE_MEMORY_ACCESS_ATTRIBUTE_NONE,
        Access::Read => ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY,
        Access::ReadWrite => ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE,
    }
}

/// Reserved addresses, given back on drop.
#[derive(Debug)]
pub struct Range {
    at: u64,
    bytes: usize,
    context: Arc<NativeContext>,
}
impl Range {
    /// `bytes` addresses, at `wished` if that is not 0 and free.
    ///
    /// # Errors
    /// The driver's own.
    pub fn reserve(context: &Arc<NativeContext>, wished: u64, bytes: usize) -> Result<Self> {
        let (raw, mut at) = (context.raw(), ptr::null_mut());
        let (start, to) = (pointer(wished), &raw mut at);
        // SAFETY: `at` is writable; nothing is mapped by it.
        unsafe { driver().virtual_mem_reserve(raw, start, bytes, to) }.ok()?;
        Ok(Self { at: at.expose_provenance() as u64, bytes, context: Arc::clone(context) })
    }
    /// Its first address.
    pub fn at(&self) -> u64 {
        self.at
    }
    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Where it was reserved.
    pub fn context(&self) -> &Arc<NativeContext> {
        &self.context
    }
}
impl Drop for Range {
    fn drop(&mut self) {
        let (raw, at) = (self.context.raw(), pointer(self.at));
        // SAFETY: nothing is mapped there any more.
        release(|| unsafe { driver().virtual_mem_free(raw, at, self.bytes) });
    }
}

/// Maps `bytes` of `memory` from `offset` on at `at`.
///
/// # Errors
/// The driver's own.
pub fn map(
    context: &NativeContext,
    at: u64,
    bytes: usize,
    memory: &Physical,
    offset: usize,
    access: Access,
) -> Result<()> {
    let (raw, to, of) = (context.raw(), pointer(at), memory.raw());
    // SAFETY: the range is reserved and unmapped, which the driver checks too.
    unsafe { driver().virtual_mem_map(raw, to, bytes, of, offset, attribute(access)) }.ok()
}
/// Ends whole mappings; nothing uses them any more.
///
/// # Errors
/// The driver's own.
pub fn unmap(context: &NativeContext, at: u64, bytes: usize) -> Result<()> {
    // SAFETY: the commands before have ended: the caller's promise.
    unsafe { driver().virtual_mem_unmap(context.raw(), pointer(at), bytes) }.ok()
}
/// Changes what commands may do with what is mapped.
///
/// # Errors
/// The driver's own.
pub fn set_access(context: &NativeContext, at: u64, bytes: usize, access: Access) -> Result<()> {
    let (raw, at) = (context.raw(), pointer(at));
    // SAFETY: the range is mapped, which the driver checks.
    unsafe { driver().virtual_mem_set_access_attribute(raw, at, bytes, attribute(access)) }.ok()
}
