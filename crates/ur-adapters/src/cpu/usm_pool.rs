//! Pools of USM: what `ur_usm_pool_handle_t` points at, what is counted of one, and which pool a
//! device of a context uses. How blocks are cut is `ur_adapter::pool`'s, what C asks of a pool and
//! allocates from it `usm.rs`'s.
use super::{
    Context, Device,
    backing::{Block, LARGE},
    engine::Passed,
    host::host,
    mapping::{Side, page},
    memory::{self, Allocation, Memory, UsmBlocks},
    native,
};
use crate::memory::{
    allocation::{Counted, Home, Usm},
    deferred_free::{self, is_for_room},
    pools::{ByDevice, Identified, Identity},
    totals::Totals,
    usm::limits,
};
use std::sync::{Arc, atomic::Ordering::*};
use ur_adapter::{
    error::Result,
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
    pool::{Limits, Pool, Source},
};
use ur_sys::{ur_usm_pool_desc_t, ur_usm_pool_flags_t, ur_usm_pool_info_t};

/// Where this adapter's pools get their chunks: whole pages, which no other pool has.
#[derive(Debug)]
pub struct Chunks {
    /// What the chunks are made of.
    pub(super) side: Side,
    /// Whether every block is to be filled with zeros.
    pub(super) zeroed: bool,
    /// What is counted for all pools behind one handle.
    pub(super) totals: Arc<Totals>,
}
impl Source for Chunks {
    type Chunk = Block;
    type Passed = Passed;
    fn chunk(&self, bytes: usize, align: usize) -> Result<Block> {
        let small = bytes < LARGE;
        let whole = if small { bytes.next_power_of_two().max(page()) } else { bytes };
        self.totals.claim(whole)?;
        let taken = Block::take(self.side, whole, align.max(page()));
        match &taken {
            // Which a block may have on top.
            Ok(block) => self.totals.reserved.add(block.bytes() - whole),
            Err(_) => self.totals.unclaim(whole),
        }
        taken
    }
    fn give_back(&self, chunk: Arc<Block>, after: Vec<Passed>) {
        self.totals.unclaim(chunk.bytes());
        let after = after.into_iter().flat_map(Passed::into_moments).collect();
        deferred_free::after::<Memory>(after, chunk);
    }
}
impl Counted for Chunks {
    fn totals(&self) -> &Arc<Totals> {
        &self.totals
    }
    fn prepare(&self, at: UsmPtr, bytes: usize) -> Result<()> {
        if self.zeroed {
            native::fill(at, &[0], bytes);
        }
        Ok(())
    }
}

/// What `ur_usm_pool_handle_t` points at: a pool for each kind of USM, so that no two kinds share
/// a page. Memory of one is in use until its blocks are freed, whatever becomes of the handle.
#[derive(Debug)]
pub struct UsmPool {
    identity: Identity<Context, Device>,
    blocks: [Arc<UsmBlocks>; 3],
    totals: Arc<Totals>,
}

impl UsmPool {
    /// A pool as C describes it, for all devices of `context` or for one.
    ///
    /// # Errors
    /// `INVALID_DEVICE` where the device is none of the context's; `INVALID_VALUE` for a chain of
    /// descriptors that does not end.
    pub(super) fn create(
        context: Borrowed<'_, Context>,
        device: Option<Borrowed<'_, Device>>,
        desc: &ur_usm_pool_desc_t,
    ) -> Result<Owned<Self>> {
        device.map_or(Ok(()), |device| context.check(device))?;
        let limits = limits(desc)?;
        let zeroed = desc.flags.contains(ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK);
        let mut pool = Self::new(handle(&context), limits, zeroed)?;
        pool.identity = Identity::of_pool(context, device)?;
        Ok(Owned::new(pool))
    }
    fn new(context: usize, limits: Limits, zeroed: bool) -> Result<Self> {
        let totals = Totals::new();
        let of = |side| Pool::new(Chunks { side, zeroed, totals: Arc::clone(&totals) }, limits);
        let blocks = [of(Side::Device)?, of(Side::Host)?, of(Side::Host)?];
        Ok(Self { identity: Identity::of_context(context), blocks, totals })
    }
    /// The pool that a device starts out with.
    ///
    /// # Errors
    /// As for [`Pool::new`].
    pub(super) fn initial(context: Borrowed<'_, Context>) -> Result<Self> {
        let context = handle(&context);
        let pool = Self::new(context, Limits::default(), false)?;
        Ok(Self { identity: Identity::of_default(context), ..pool })
    }
    /// The part of it that has memory of one kind.
    pub(super) fn of(&self, usm: Usm) -> &Arc<UsmBlocks> {
        &self.blocks[match usm {
            Usm::Device => 0,
            Usm::Host => 1,
            Usm::Shared => 2,
        }]
    }
    /// Gives unused memory back as long as `keep` bytes stay.
    pub(super) fn trim_to(&self, keep: usize) {
        memory::sweep();
        for pool in &self.blocks {
            // Other threads may be at it: as good as it gets.
            let all = self.totals.reserved.current.load(Relaxed);
            let others = all.saturating_sub(pool.statistics().reserved);
            pool.trim_to(keep.saturating_sub(others));
        }
    }
    /// Allocates from it. What parts for other kinds of memory do not use is given back if there is
    /// no room otherwise.
    ///
    /// # Errors
    /// As for [`Allocation::take`].
    pub(super) fn allocate(
        &self,
        usm: Usm,
        home: Home,
        size: usize,
        align: usize,
    ) -> Result<UsmPtr> {
        let allocate = || Allocation::take(usm, home, size, align, self.of(usm));
        allocate().or_else(|error| match is_for_room(&error) {
            true => {
                self.trim_to(0);
                allocate()
            }
            false => Err(error),
        })
    }
    /// # Errors
    /// `INVALID_DEVICE` for a device of another context; `INVALID_VALUE` for a pool of another, or for a
    /// device that the pool was not made for.
    pub(super) fn check(
        &self,
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
    ) -> Result<()> {
        context.check(device)?;
        self.identity.check(context, device)
    }
    /// What a property is, if it is a size.
    pub(super) fn size(&self, name: ur_usm_pool_info_t) -> Option<usize> {
        use ur_usm_pool_info_t as I;
        let most = usize::try_from(host().memory).unwrap_or(usize::MAX);
        // What commands were done with meanwhile is not used any more.
        memory::sweep();
        match name {
            I::RELEASE_THRESHOLD_EXP => Some(self.blocks[0].limits().keep),
            I::MAXIMUM_SIZE_EXP => Some(self.totals.maximum.load(Relaxed).min(most)),
            name => self.totals.size(name),
        }
    }
    /// Changes a property.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a high mark that is not set to 0, `UNSUPPORTED_ENUMERATION` for what is
    /// only read.
    pub(super) fn set(&self, name: ur_usm_pool_info_t, number: usize) -> Result<()> {
        match name {
            ur_usm_pool_info_t::RELEASE_THRESHOLD_EXP => {
                self.blocks.iter().for_each(|pool| pool.set_keep(number));
                Ok(())
            }
            name => self.totals.set(name, number),
        }
    }
}

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}

/// The pools that the devices of one context use when C names none.
#[derive(Debug, Default)]
pub struct DevicePools(ByDevice<UsmPool>);
impl DevicePools {
    /// What C can ask for and change.
    pub(super) fn by_device(&self) -> &ByDevice<UsmPool> {
        &self.0
    }
}
impl Identified for UsmPool {
    type Context = Context;
    type Device = Device;
    fn identity(&self) -> &Identity<Context, Device> {
        &self.identity
    }
}
impl Drop for DevicePools {
    /// A handle of a default pool that C still has must not hold memory.
    fn drop(&mut self) {
        for one in self.0.defaults() {
            one.blocks.iter().for_each(|blocks| blocks.set_keep(0));
        }
    }
}
