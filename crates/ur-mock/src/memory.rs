//! The memory that the mock allocates: host memory, zeroed, and freed on request.
#![expect(unsafe_code, reason = "allocates what C will point at")]
use super::said;
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use ur_lock::locked;
use ur_sys::{ur_usm_desc_t, ur_usm_type_t};

/// One allocation.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its address.
    pub start: UsmPtr,
    /// The USM type that it was allocated with.
    pub usm: ur_usm_type_t,
    layout: Layout,
}
impl Block {
    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.layout.size()
    }
}

/// The allocations by address.
static BLOCKS: Mutex<BTreeMap<usize, Block>> = Mutex::new(BTreeMap::new());

fn blocks() -> MutexGuard<'static, BTreeMap<usize, Block>> {
    locked(&BLOCKS)
}

/// Allocations are aligned to pages, which satisfies every alignment that is accepted.
const PAGE: usize = 4096;

/// Allocates `size` zeroed bytes.
///
/// # Errors
/// Returns `INVALID_USM_SIZE` if `size` exceeds the memory that the device reports, and `OUT_OF_HOST_MEMORY`
/// if the host has not enough.
pub fn block(size: usize, usm: ur_usm_type_t) -> Result<UsmPtr> {
    if usm != ur_usm_type_t::UNKNOWN && size as u64 > said::MEMORY {
        let why = format!("{size} bytes, and the device has no more than {}", said::MEMORY);
        return Err(Error::new(ErrorCode::InvalidUsmSize, why));
    }
    let lack = || Error::new(ErrorCode::OutOfHostMemory, format!("the host has no {size} bytes"));
    let layout = Layout::from_size_align(size.max(1), PAGE).map_err(|_| lack())?;
    // SAFETY: the size is not 0.
    let at = unsafe { alloc_zeroed(layout) };
    let start = UsmPtr::new(at.cast()).map_err(|_| lack())?;
    blocks().insert(start.addr(), Block { start, usm, layout });
    Ok(start)
}

/// Checks the alignment in a descriptor.
///
/// # Errors
/// Returns `INVALID_VALUE` if it is no power of two or larger than a page.
pub fn aligned(desc: Option<&ur_usm_desc_t>) -> Result<()> {
    match desc.map_or(0, |desc| desc.align) {
        0 => Ok(()),
        align if align.is_power_of_two() && align as usize <= PAGE => Ok(()),
        align => {
            let why = format!("{align} is no power of two, or more than {PAGE}");
            Err(Error::new(ErrorCode::InvalidValue, why))
        }
    }
}

/// Returns the allocation that contains this address.
pub fn of(address: UsmPtr) -> Option<Block> {
    let blocks = blocks();
    let (_, block) = blocks.range(..=address.addr()).next_back()?;
    (address.addr() - block.start.addr() < block.size()).then_some(*block)
}

/// Frees the allocation at this address; returns whether there was one.
pub fn free(start: UsmPtr) -> bool {
    let Some(block) = blocks().remove(&start.addr()) else { return false };
    // SAFETY: `block` allocated it with this layout, and removing it from the map made this the only owner.
    unsafe { dealloc(block.start.as_ptr().cast(), block.layout) };
    true
}
