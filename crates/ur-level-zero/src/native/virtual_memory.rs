//! Reserved addresses, and mappings of physical memory at them.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{RawDriver, RawPhysical, driver},
    },
    context::{InContext, NativeContext, Reserved, pointer},
    list::NativeList,
    physical_memory::Physical,
};
use std::sync::Arc;
use ur_hal::{Access, ErrorKind, Result, placed, told};
use ur_lock::PerKey;
use ze_sys::*;

/// Whether the device supports virtual memory. Determined by a trial call, because a loader exports the
/// functions even if the driver does not have them. All devices of a driver are assumed to be alike.
///
/// # Errors
/// Returns the driver's error.
pub fn is_supported(device: &DriverDevice) -> Result<bool> {
    static KNOWN: PerKey<RawDriver, bool> = PerKey::new();
    let raw = device.platform().raw();
    KNOWN.get(raw, || {
        let context = NativeContext::create(raw, &[device.raw()])?;
        match page_size(&context, device, 1) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(false),
            Err(error) => Err(error),
        }
    })
}

/// How the driver maps physical memory. Intel's driver ignored offsets before 26.27. Since then it allows one
/// mapping of each physical memory, and changing the access maps it again from offset 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ways {
    /// Whether mappings begin at the requested offset.
    pub takes_offsets: bool,
    /// Whether a physical memory can be mapped more than once.
    pub maps_again: bool,
    /// Whether a change of the access keeps the offset.
    pub keeps_offsets: bool,
}
/// How the driver maps physical memory, determined by trial mappings. All devices of a driver are assumed to
/// be alike.
///
/// # Errors
/// Returns the driver's error.
pub fn ways(device: &DriverDevice) -> Result<Ways> {
    static KNOWN: PerKey<RawDriver, Ways> = PerKey::new();
    KNOWN.get(device.platform().raw(), || try_mappings(device))
}
/// Writes a byte into each of two pages, and checks which of them a mapping of the second page shows, before
/// and after a change of its access.
fn try_mappings(device: &DriverDevice) -> Result<Ways> {
    let context = Arc::new(NativeContext::create(device.platform().raw(), &[device.raw()])?);
    let page = page_size(&context, device, 1)?;
    let memory = Physical::create(&context, device, 2 * page, false)?;
    let (whole, part) =
        (Range::reserve(&context, 0, 2 * page)?, Range::reserve(&context, 0, page)?);
    let aside = NativeList::synchronous(&context, device.raw(), device.compute()?.ordinal)?;
    let mut bytes = vec![1_u8, 2, 0, 0];
    let host = bytes.as_mut_ptr().expose_provenance();
    let map_part = || map(&context, part.at(), page, memory.raw(), page, Access::ReadWrite);
    let end = |range: &Range| unmap(&context, range.at(), range.bytes());
    map(&context, whole.at(), 2 * page, memory.raw(), 0, Access::ReadWrite)?;
    let at = whole.at() as usize;
    let write =
        |number: usize| aside.turn((device.raw(), 1)).copy(at + number * page, host + number, 1);
    let written = write(0).and_then(|()| write(1));
    let again = match written.and_then(|()| map_part()) {
        Ok(()) => end(&part).map(|()| true),
        Err(error) if error.kind().is_want() => Err(error),
        Err(_) => Ok(false),
    };
    let maps_again = end(&whole).and(again)?;
    map_part()?;
    let read =
        |number: usize| aside.turn((device.raw(), 1)).copy(host + number, part.at() as usize, 1);
    let mut is_changed = false;
    let seen = read(2).and_then(|()| {
        is_changed = set_access(&context, part.at(), page, Access::Read).is_ok();
        read(3)
    });
    end(&part).and(seen)?;
    let bytes = std::hint::black_box(&bytes);
    let keeps_offsets = is_changed && bytes[2] == bytes[3];
    Ok(Ways { takes_offsets: bytes[2] == 2, maps_again, keeps_offsets })
}

/// The size in bytes of which lengths and addresses must be multiples, for `bytes` of virtual memory.
pub fn page_size(context: &NativeContext, device: &DriverDevice, bytes: usize) -> Result<usize> {
    // SAFETY: `to` is writable.
    let page: usize = told(|to| unsafe {
        driver().virtual_mem_query_page_size(context.raw(), device.raw(), bytes, to)
    })?;
    Ok(page.max(1))
}

/// The driver's value for an access.
fn attribute(access: Access) -> ze_memory_access_attribute_t {
    match access {
        Access::None => ZE_MEMORY_ACCESS_ATTRIBUTE_NONE,
        Access::Read => ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY,
        Access::ReadWrite => ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE,
    }
}

/// Reserved addresses, freed on drop, when nothing may be mapped there any more.
pub type Range = InContext<Reserved>;
impl Range {
    /// Reserves `bytes` addresses; at `wished` if that is not 0 and free.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn reserve(context: &Arc<NativeContext>, wished: u64, bytes: usize) -> Result<Self> {
        // SAFETY: `to` is writable; reserving maps nothing.
        let at = placed(|to| unsafe {
            driver().virtual_mem_reserve(context.raw(), pointer(wished), bytes, to)
        })?;
        Ok(Self::new(Reserved((at, bytes)), Arc::clone(context)))
    }
    /// The first address.
    pub fn at(&self) -> u64 {
        self.raw().0.0
    }
    /// The number of addresses.
    pub fn bytes(&self) -> usize {
        self.raw().0.1
    }
}

/// Maps `bytes` of `memory` from `offset` on at `at`, with this access for all devices.
///
/// # Errors
/// Returns the driver's error.
pub fn map(
    context: &NativeContext,
    at: u64,
    bytes: usize,
    memory: RawPhysical,
    offset: usize,
    access: Access,
) -> Result<()> {
    let (raw, to) = (context.raw(), pointer(at));
    // SAFETY: the range is reserved and unmapped, which the driver checks too.
    unsafe { driver().virtual_mem_map(raw, to, bytes, memory, offset, attribute(access)) }.ok()
}
/// Unmaps whole mappings, which nothing may use any more.
///
/// # Errors
/// Returns the driver's error.
pub fn unmap(context: &NativeContext, at: u64, bytes: usize) -> Result<()> {
    // SAFETY: the caller guarantees that the commands that use it are complete.
    unsafe { driver().virtual_mem_unmap(context.raw(), pointer(at), bytes) }.ok()
}
/// Changes the access to a mapping.
///
/// # Errors
/// Returns the driver's error.
pub fn set_access(context: &NativeContext, at: u64, bytes: usize, access: Access) -> Result<()> {
    let (raw, at) = (context.raw(), pointer(at));
    // SAFETY: the driver checks that the range is mapped.
    unsafe { driver().virtual_mem_set_access_attribute(raw, at, bytes, attribute(access)) }.ok()
}
