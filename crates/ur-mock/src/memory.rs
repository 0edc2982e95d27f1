//! The memory that the mock gives: the host's, zeroed, and freed when it is told to.
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
    /// Where it starts.
    pub start: UsmPtr,
    /// What it was allocated as.
    pub usm: ur_usm_type_t,
    layout: Layout,
}
impl Block {
    /// How many bytes it has.
    pub fn size(&self) -> usize {
        self.layout.size()
    }
}

/// By their first bytes.
static BLOCKS: Mutex<BTreeMap<usize, Block>> = Mutex::new(BTreeMap::new());

fn blocks() -> MutexGuard<'static, BTreeMap<usize, Block>> {
    locked(&BLOCKS)
}

/// Whole pages, so that every alignment that is asked for is kept.
const PAGE: usize = 4096;

/// So many bytes.
///
/// # Errors
/// `INVALID_USM_SIZE` where the device claims to have fewer, `OUT_OF_HOST_MEMORY` where the host has.
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

/// Whether the alignment that is asked for is one.
///
/// # Errors
/// `INVALID_VALUE` where it is no power of two, or larger than a page.
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

/// The allocation that has this byte.
pub fn of(address: UsmPtr) -> Option<Block> {
    let blocks = blocks();
    let (_, block) = blocks.range(..=address.addr()).next_back()?;
    (address.addr() - block.start.addr() < block.size()).then_some(*block)
}

/// Gives back the allocation that starts here; whether there was one.
pub fn free(start: UsmPtr) -> bool {
    let Some(block) = blocks().remove(&start.addr()) else { return false };
    // SAFETY: `block` allocated it with this layout, and nobody else has taken it off the list.
    unsafe { dealloc(block.start.as_ptr().cast(), block.layout) };
    true
}
