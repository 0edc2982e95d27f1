//! Command lists of the driver's: immediate ones, which queues are made of, and regular ones, which
//! are filled first and executed later. All are in-order. What goes into one is appended by a
//! [`List`]: one command's turn at a list, with what it waits for and what it signals.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Outcome, RawDevice, RawEvent, RawList, driver},
    context::NativeContext,
};
use std::{
    cell::Cell,
    ffi::c_void,
    ptr::{null, without_provenance, without_provenance_mut},
    sync::Arc,
};
use ur_adapter::{error::Result, log, object::Backend};
use ur_sys::ur_logger_level_t;
use ze_sys::*;

/// What engine a list is for, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Engine {
    /// The driver's number of the group of engines.
    pub ordinal: u32,
    /// Which engine of the group.
    pub index: u32,
    /// Whether the driver may let other engines do the copies.
    pub offloads: bool,
    /// `ZE_COMMAND_QUEUE_PRIORITY_*`
    pub priority: ze_command_queue_priority_t,
}

/// A list that is ours, or C's: destroyed on drop if it is ours. Nothing in it is under way then.
#[derive(Debug)]
pub struct NativeList {
    raw: RawList,
    owned: bool,
    _context: Arc<NativeContext>,
}
impl NativeList {
    /// A list whose commands are executed as they are appended, one after another.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn immediate(
        context: &Arc<NativeContext>,
        device: RawDevice,
        engine: Engine,
    ) -> Result<Self> {
        let offload = if engine.offloads { ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT } else { 0 };
        let desc = ze_command_queue_desc_t {
            stype: ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
            pNext: null(),
            ordinal: engine.ordinal,
            index: engine.index,
            flags: ZE_COMMAND_QUEUE_FLAG_IN_ORDER | offload,
            mode: ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
            priority: engine.priority,
        };
        let mut raw = None;
        // SAFETY: both handles are live, `desc` says what it is and `raw` is writable.
        let made = unsafe {
            let desc = &raw const desc;
            driver().command_list_create_immediate(context.raw(), device, desc, &raw mut raw)
        };
        if engine.offloads && made.ok().is_err() {
            return Self::immediate(context, device, Engine { offloads: false, ..engine });
        }
        made.ok()?;
        let raw = RawList::given(raw, "zeCommandListCreateImmediate")?;
        Ok(Self { raw, owned: true, _context: Arc::clone(context) })
    }
    /// A list that is filled, closed, and executed as a whole, any number of times.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn regular(
        context: &Arc<NativeContext>,
        device: RawDevice,
        ordinal: u32,
        next: *const c_void,
    ) -> Result<Self> {
        let desc = ze_command_list_desc_t {
            stype: ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
            pNext: next,
            commandQueueGroupOrdinal: ordinal,
            flags: ZE_COMMAND_LIST_FLAG_IN_ORDER,
        };
        let mut raw = None;
        // SAFETY: both handles are live, `desc` and what follows it say what they are; `raw` is
        // writable.
        unsafe {
            let desc = &raw const desc;
            driver().command_list_create(context.raw(), device, desc, &raw mut raw)
        }
        .ok()?;
        let raw = RawList::given(raw, "zeCommandListCreate")?;
        Ok(Self { raw, owned: true, _context: Arc::clone(context) })
    }
    /// An immediate list that C brought; `owned`: it is destroyed here.
    pub fn adopted(raw: RawList, owned: bool, context: &Arc<NativeContext>) -> Self {
        Self { raw, owned, _context: Arc::clone(context) }
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawList {
        self.raw
    }
    /// Waits until everything in an immediate list is done; `false` if that took more than
    /// `nanoseconds` (`u64::MAX`: any time).
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub fn wait(&self, nanoseconds: u64) -> Result<bool> {
        // SAFETY: live; any thread may wait.
        unsafe { driver().command_list_host_synchronize(self.raw, nanoseconds) }.ready()
    }
    /// Ends the filling of a regular list.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn close(&self) -> Result<()> {
        // SAFETY: live; whoever fills it has it to himself.
        unsafe { driver().command_list_close(self.raw) }.ok()
    }
    /// Empties a regular list that nothing executes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn reset(&self) -> Result<()> {
        // SAFETY: live; nothing executes it.
        unsafe { driver().command_list_reset(self.raw) }.ok()
    }
}
impl Drop for NativeList {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: ours, destroyed once; nothing in it is under way.
            unsafe { driver().command_list_destroy(self.raw) }.let_go();
        }
    }
}

/// What one append waits for and signals.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'turn> {
    /// Signalled by the command.
    pub signal: Option<RawEvent>,
    pub(super) waits: &'turn [RawEvent],
}
impl Ends<'_> {
    /// How many events it waits for.
    #[inline]
    pub fn count(&self) -> u32 {
        self.waits.len() as u32
    }
    /// The events it waits for; null for none.
    #[inline]
    pub fn waits(&self) -> *const RawEvent {
        if self.waits.is_empty() { null() } else { self.waits.as_ptr() }
    }
}

/// One command's turn at a list. The driver wants one thread at a time: whoever has this holds the
/// queue's or the command buffer's lock.
#[derive(Debug)]
pub struct List<'turn> {
    raw: RawList,
    device: RawDevice,
    /// The longest pattern that its engines fill with.
    longest_pattern: usize,
    signal: Cell<Option<RawEvent>>,
    waits: Cell<&'turn [RawEvent]>,
}
/// A box of bytes in memory: where it begins, what is from row to row, and from slice to slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoxPlace3d {
    /// Address of the first byte.
    pub at: usize,
    /// Bytes from one row to the next.
    pub row_pitch: usize,
    /// Bytes from one slice to the next.
    pub slice_pitch: usize,
}
fn pointer(at: usize) -> *mut c_void {
    without_provenance_mut(at)
}

impl<'turn> List<'turn> {
    /// A turn at a list: the first append waits for `waits` and signals `signal`.
    #[inline]
    pub fn new(
        raw: RawList,
        (device, longest_pattern): (RawDevice, usize),
        waits: &'turn [RawEvent],
        signal: Option<RawEvent>,
    ) -> Self {
        let (signal, waits) = (Cell::new(signal), Cell::new(waits));
        Self { raw, device, longest_pattern, signal, waits }
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawList {
        self.raw
    }
    /// The longest pattern that its engines fill with, at least 1 byte.
    pub(super) fn longest_pattern(&self) -> usize {
        self.longest_pattern.max(1)
    }
    /// What the next append waits for and signals: what was given for the whole, once.
    #[inline]
    pub fn ends(&self) -> Ends<'turn> {
        Ends { signal: self.signal.take(), waits: self.waits.take() }
    }
    /// Waits for events. What comes after it in the list does, too.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn wait_for(&self, events: &[RawEvent]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let (count, at) = (events.len() as u32, events.as_ptr());
        // SAFETY: live events; the array is read in the call.
        unsafe { driver().command_list_append_wait_on_events(self.raw, count, at) }.ok()
    }
    /// Signals an event when all before it is done, with the times of nothing.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn signal(&self, event: RawEvent) -> Result<()> {
        // SAFETY: a live event.
        unsafe { driver().command_list_append_signal_event(self.raw, event) }.ok()
    }
    /// Signals an event when all before it is done, with the time of that moment.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn mark(&self, event: RawEvent) -> Result<()> {
        // SAFETY: a live event.
        unsafe { driver().command_list_append_barrier(self.raw, Some(event), 0, null()) }.ok()
    }
    /// Does nothing, in its place.
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub fn barrier(&self) -> Result<()> {
        let ends = self.ends();
        // SAFETY: live events; the array is read in the call.
        unsafe {
            let (count, waits) = (ends.count(), ends.waits());
            driver().command_list_append_barrier(self.raw, ends.signal, count, waits)
        }
        .ok()
    }
    /// What the driver has no events for: behind what the whole waits for, and before its signal.
    fn bare(&self, append: impl FnOnce() -> Outcome) -> Result<()> {
        let ends = self.ends();
        self.wait_for(ends.waits)?;
        append().ok()?;
        ends.signal.map_or(Ok(()), |event| self.mark(event))
    }
    /// Executes a closed list, once.
    ///
    /// # Errors
    /// The driver's own; `UNSUPPORTED_FEATURE` where it cannot.
    pub fn execute(&self, list: RawList) -> Result<()> {
        let ends = self.ends();
        // SAFETY: the list is closed and nothing changes it before it is done.
        unsafe {
            let (count, waits) = (ends.count(), ends.waits());
            driver().command_list_immediate_append_command_lists_exp(
                self.raw,
                1,
                &raw const list,
                ends.signal,
                count,
                waits,
            )
        }
        .ok()
    }
    /// Calls `call` on a thread of the driver's. It must not call the driver.
    ///
    /// # Errors
    /// The driver's own, and `call` back; `UNSUPPORTED_FEATURE` where it has none.
    pub fn host_fn(&self, call: impl FnOnce() + Send + 'static) -> Result<()> {
        type Call = Box<dyn FnOnce() + Send>;
        unsafe extern "C" fn run(data: *mut c_void) {
            // SAFETY: made by `into_raw` below, and given to one call.
            let call = *unsafe { Box::from_raw(data.cast::<Call>()) };
            if ur_lock::caught(call).is_none() {
                let what = "a host function panicked; the queue goes on";
                log::say(Backend::LevelZero, ur_logger_level_t::ERROR, &what);
            }
        }
        let data = Box::into_raw(Box::new(Box::new(call) as Call));
        let ends = self.ends();
        // SAFETY: `run` takes what `data` is; live events; the array is read in the call.
        let outcome = unsafe {
            let (count, waits) = (ends.count(), ends.waits());
            let (data, signal) = (data.cast(), ends.signal);
            let next = null();
            driver().command_list_append_host_function(
                self.raw,
                Some(run),
                data,
                next,
                signal,
                count,
                waits,
            )
        };
        if outcome.ok().is_err() {
            // SAFETY: the driver did not take it.
            drop(unsafe { Box::from_raw(data) });
        }
        outcome.ok()
    }
    /// Whether the driver calls host functions at all.
    pub fn has_host_fn() -> bool {
        driver().has("command_list_append_host_function")
    }
    /// Moves shared memory to the list's device; `to_host`: nothing but its place in the order, since
    /// the driver has no such hint.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn prefetch(&self, at: usize, bytes: usize, to_host: bool) -> Result<()> {
        if to_host {
            return self.barrier();
        }
        // SAFETY: a hint about a range that the caller knows to be allocated.
        self.bare(|| unsafe {
            driver().command_list_append_memory_prefetch(self.raw, without_provenance(at), bytes)
        })
    }
    /// Tells the driver how shared memory will be used; `advice` is one of `ZE_MEMORY_ADVICE_*`.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn advise(&self, at: usize, bytes: usize, advice: ze_memory_advice_t) -> Result<()> {
        let at = without_provenance(at);
        // SAFETY: as above.
        self.bare(|| unsafe {
            driver().command_list_append_mem_advise(self.raw, self.device, at, bytes, advice)
        })
    }
    /// Copies bytes between any two addresses that the device or the host can reach.
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub fn copy(&self, to: usize, from: usize, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return self.barrier();
        }
        let ends = self.ends();
        let (to, from) = (pointer(to), without_provenance(from));
        // SAFETY: C promises that both ranges are there until the copy is done.
        unsafe {
            let (count, waits) = (ends.count(), ends.waits());
            driver().command_list_append_memory_copy(
                self.raw,
                to,
                from,
                bytes,
                ends.signal,
                count,
                waits,
            )
        }
        .ok()
    }
    /// Copies a box of bytes: `width` bytes, `height` rows, `depth` slices.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy_region(
        &self,
        to: BoxPlace3d,
        from: BoxPlace3d,
        (width, height, depth): (usize, usize, usize),
    ) -> Result<()> {
        if width == 0 || height == 0 || depth == 0 {
            return self.barrier();
        }
        let Some(call) = Region::of(to, from, [width, height, depth]) else {
            for z in 0..depth {
                for y in 0..height {
                    let row =
                        |spot: BoxPlace3d| spot.at + z * spot.slice_pitch + y * spot.row_pitch;
                    self.copy(row(to), row(from), width)?;
                }
            }
            return Ok(());
        };
        let ends = self.ends();
        let (region, [to_row, to_slice, from_row, from_slice]) =
            (&raw const call.region, call.pitches);
        // SAFETY: C promises that both boxes are there until the copy is done.
        unsafe {
            let (count, waits) = (ends.count(), ends.waits());
            driver().command_list_append_memory_copy_region(
                self.raw,
                pointer(to.at),
                region,
                to_row,
                to_slice,
                without_provenance(from.at),
                region,
                from_row,
                from_slice,
                ends.signal,
                count,
                waits,
            )
        }
        .ok()
    }
    /// Fills memory with what the engines can fill with.
    pub(super) fn fill_plainly(&self, at: usize, pattern: &[u8], bytes: usize) -> Result<()> {
        let ends = self.ends();
        let (pattern, length) = (pattern.as_ptr().cast(), pattern.len());
        // SAFETY: C promises that the range is there until the fill is done; the driver copies the
        // pattern in the call.
        unsafe {
            let (count, waits) = (ends.count(), ends.waits());
            let (at, signal) = (pointer(at), ends.signal);
            driver().command_list_append_memory_fill(
                self.raw, at, pattern, length, bytes, signal, count, waits,
            )
        }
        .ok()
    }
}

/// A box as the driver wants it, in 32 bits.
struct Region {
    region: ze_copy_region_t,
    pitches: [u32; 4],
}
impl Region {
    /// `None` for what is too large for that.
    fn of(to: BoxPlace3d, from: BoxPlace3d, size: [usize; 3]) -> Option<Self> {
        let small = |n: usize| u32::try_from(n).ok();
        let [width, height, depth] = size;
        let region = ze_copy_region_t {
            originX: 0,
            originY: 0,
            originZ: 0,
            width: small(width)?,
            height: small(height)?,
            depth: small(depth)?,
        };
        let slice = |spot: BoxPlace3d| if depth > 1 { small(spot.slice_pitch) } else { Some(0) };
        let pitches = [small(to.row_pitch)?, slice(to)?, small(from.row_pitch)?, slice(from)?];
        Some(Self { region, pitches })
    }
}
