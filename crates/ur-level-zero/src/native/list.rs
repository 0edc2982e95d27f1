//! Driver command lists: immediate ones, of which queues are made, and regular ones, which are filled first
//! and executed later. All are in-order. Commands are appended through a [`List`]: access to a list for one
//! command, with the events that it waits for and signals.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Outcome, RawDevice, RawEvent, RawList, driver},
    context::{InContext, NativeContext},
    fork::check as check_fork,
};
use crate::log::notice;
use std::{
    cell::Cell,
    ffi::c_void,
    ptr::{null, without_provenance, without_provenance_mut},
    sync::Arc,
};
use ur_hal::{Result, Severity, made, repeated};
use ze_sys::*;

/// The engine that a list uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Engine {
    /// The driver's ordinal of the engine group.
    pub ordinal: u32,
    /// The index of the engine in the group.
    pub index: u32,
    /// Whether the driver may use other engines for copies.
    pub offloads: bool,
    /// `ZE_COMMAND_QUEUE_PRIORITY_*`
    pub priority: ze_command_queue_priority_t,
}

/// A command list.
pub type NativeList = InContext<RawList>;
impl NativeList {
    /// Creates an immediate list, which executes commands in order as they are appended.
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
            ordinal: engine.ordinal,
            index: engine.index,
            flags: ZE_COMMAND_QUEUE_FLAG_IN_ORDER | offload,
            mode: ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
            priority: engine.priority,
            ..Default::default()
        };
        match Self::immediate_of(context, device, &desc) {
            Err(_) if engine.offloads => {
                Self::immediate(context, device, Engine { offloads: false, ..engine })
            }
            made => made,
        }
    }
    /// Creates an immediate list in which an append returns when its command is complete.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn synchronous(
        context: &Arc<NativeContext>,
        device: RawDevice,
        ordinal: u32,
    ) -> Result<Self> {
        let desc = ze_command_queue_desc_t {
            ordinal,
            mode: ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS,
            ..Default::default()
        };
        Self::immediate_of(context, device, &desc)
    }
    /// Creates an immediate list by its description.
    fn immediate_of(
        context: &Arc<NativeContext>,
        device: RawDevice,
        desc: &ze_command_queue_desc_t,
    ) -> Result<Self> {
        // SAFETY: both handles are live, `desc` has its type and `to` is writable.
        let made = made(|to| unsafe {
            driver().command_list_create_immediate(context.raw(), device, desc, to)
        });
        made.map(|raw| Self::new(raw, Arc::clone(context)))
    }
    /// Creates a regular list, which is filled, closed, and executed as a whole, any number of times.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn regular(
        context: &Arc<NativeContext>,
        device: RawDevice,
        ordinal: u32,
        next: *const c_void,
    ) -> Result<Self> {
        check_fork()?;
        let desc = ze_command_list_desc_t {
            pNext: next,
            commandQueueGroupOrdinal: ordinal,
            flags: ZE_COMMAND_LIST_FLAG_IN_ORDER,
            ..Default::default()
        };
        // SAFETY: both handles are live, `desc` and the structures linked to it have their types; `to` is
        // writable.
        let made =
            made(|to| unsafe { driver().command_list_create(context.raw(), device, &desc, to) });
        made.map(|raw| Self::new(raw, Arc::clone(context)))
    }
    /// Access to it without events; of its engines with their longest fill pattern in bytes.
    pub fn turn(&self, engines: (RawDevice, usize)) -> List<'static> {
        List::new(self.raw(), engines, &[], None)
    }
    /// Waits until everything in an immediate list is complete; `false` after a timeout of `nanoseconds`
    /// (`u64::MAX`: no timeout).
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub fn wait(&self, nanoseconds: u64) -> Result<bool> {
        // SAFETY: the list is live; any thread may wait.
        unsafe { driver().command_list_host_synchronize(self.raw(), nanoseconds) }.ready()
    }
    /// Closes a regular list.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn close(&self) -> Result<()> {
        // SAFETY: the list is live; the caller has exclusive access to it.
        unsafe { driver().command_list_close(self.raw()) }.ok()
    }
    /// Empties a regular list, which must not be executing.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn reset(&self) -> Result<()> {
        // SAFETY: the list is live, and not executing.
        unsafe { driver().command_list_reset(self.raw()) }.ok()
    }
}
/// The events of one append.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'turn> {
    /// The event to signal.
    pub signal: Option<RawEvent>,
    pub(super) waits: &'turn [RawEvent],
}
/// These events as the driver takes them: the one to signal, and a list of those to wait for, null if it is empty.
pub type Events = (Option<RawEvent>, u32, *const RawEvent);
impl Ends<'_> {
    /// The events as the driver takes them.
    #[inline]
    pub fn events(&self) -> Events {
        let waits = if self.waits.is_empty() { null() } else { self.waits.as_ptr() };
        (self.signal, self.waits.len() as u32, waits)
    }
}

/// Access to a list for one command. The driver requires that only one thread appends at a time: the holder
/// has the lock of the queue or of the command buffer.
#[derive(Debug)]
pub struct List<'turn> {
    raw: RawList,
    device: RawDevice,
    /// The longest fill pattern of its engines, in bytes.
    longest_pattern: usize,
    signal: Cell<Option<RawEvent>>,
    waits: Cell<&'turn [RawEvent]>,
    /// Whether the driver has taken anything but waits.
    has_taken: Cell<bool>,
}
/// A box of bytes in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoxPlace3d {
    /// The address of the first byte.
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
    /// Access to a list: the first append waits for `waits` and signals `signal`.
    #[inline]
    pub fn new(
        raw: RawList,
        (device, longest_pattern): (RawDevice, usize),
        waits: &'turn [RawEvent],
        signal: Option<RawEvent>,
    ) -> Self {
        let (signal, waits, has_taken) = (Cell::new(signal), Cell::new(waits), Cell::new(false));
        Self { raw, device, longest_pattern, signal, waits, has_taken }
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawList {
        self.raw
    }
    /// Whether the driver has taken anything but waits: whether there is a part of a command that it then refuses.
    pub fn has_taken(&self) -> bool {
        self.has_taken.get()
    }
    /// Makes a call for a command; again if it is refused when the driver has taken a part of the command.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn surely<T>(&self, call: impl Fn() -> Result<T>) -> Result<T> {
        if self.has_taken() { repeated(call) } else { call() }
    }
    #[inline]
    fn taking(&self, outcome: Outcome) -> Result<()> {
        outcome.ok().inspect(|()| self.has_taken.set(true))
    }
    /// The longest fill pattern of its engines, at least 1 byte.
    pub(super) fn longest_pattern(&self) -> usize {
        self.longest_pattern.max(1)
    }
    /// The events for the next append: those given to [`Self::new`], once.
    #[inline]
    pub fn ends(&self) -> Ends<'turn> {
        Ends { signal: self.signal.take(), waits: self.waits.take() }
    }
    /// Appends something with the events of the turn.
    #[inline]
    pub(super) fn put(&self, append: impl FnOnce(RawList, Events) -> Outcome) -> Result<()> {
        self.taking(append(self.raw, self.ends().events()))
    }
    /// Makes everything appended later wait for events.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn wait_for(&self, events: &[RawEvent]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let (count, at) = (events.len() as u32, events.as_ptr());
        // SAFETY: the events are live; the array is read during the call.
        unsafe { driver().command_list_append_wait_on_events(self.raw, count, at) }.ok()
    }
    /// Signals an event when everything before is complete, without a valid time.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn signal(&self, event: RawEvent) -> Result<()> {
        // SAFETY: the event is live.
        self.taking(unsafe { driver().command_list_append_signal_event(self.raw, event) })
    }
    /// Signals an event when everything before is complete, with the time of that moment.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn mark(&self, event: RawEvent) -> Result<()> {
        // SAFETY: the event is live.
        unsafe { driver().command_list_append_barrier(self.raw, Some(event), 0, null()) }.ok()
    }
    /// Appends a barrier.
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub fn barrier(&self) -> Result<()> {
        // SAFETY: the events are live; the array is read during the call.
        self.put(|list, (signal, count, waits)| unsafe {
            driver().command_list_append_barrier(list, signal, count, waits)
        })
    }
    /// Appends something for which the driver takes no events: after the waits, and before the signal.
    fn bare(&self, append: impl FnOnce() -> Outcome) -> Result<()> {
        let ends = self.ends();
        self.wait_for(ends.waits)?;
        self.taking(append())?;
        ends.signal.map_or(Ok(()), |event| self.mark(event))
    }
    /// Whether the driver can execute closed lists in immediate ones.
    pub fn can_execute() -> bool {
        driver().has("command_list_immediate_append_command_lists_exp")
    }
    /// Executes a closed list once.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if the driver does not have the function; else the driver's error.
    pub fn execute(&self, list: RawList) -> Result<()> {
        let lists = &raw const list;
        // SAFETY: the list is closed, and not changed before it is complete.
        self.put(|on, (signal, count, waits)| unsafe {
            driver()
                .command_list_immediate_append_command_lists_exp(on, 1, lists, signal, count, waits)
        })
    }
    /// Appends a call of `call` on a thread of the driver. It must not call the driver.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if the driver has no host functions; else the driver's error. `call` is dropped
    /// then.
    pub fn host_fn(&self, call: impl FnOnce() + Send + 'static) -> Result<()> {
        type Call = Box<dyn FnOnce() + Send>;
        unsafe extern "C" fn run(data: *mut c_void) {
            // SAFETY: created by `into_raw` below, and passed to one call.
            let call = *unsafe { Box::from_raw(data.cast::<Call>()) };
            if ur_lock::caught(call).is_none() {
                let what = "a host function panicked; the queue goes on";
                notice(Severity::Error, &what);
            }
        }
        let data = Box::into_raw(Box::new(Box::new(call) as Call));
        // SAFETY: `data` has the type that `run` expects; the events are live; the array is read during the
        // call.
        let appended = self.put(|list, (signal, count, waits)| unsafe {
            let (run, at) = (Some(run as _), data.cast());
            driver().command_list_append_host_function(list, run, at, null(), signal, count, waits)
        });
        if appended.is_err() {
            // SAFETY: the driver did not take it, so it is still owned here.
            drop(unsafe { Box::from_raw(data) });
        }
        appended
    }
    /// Whether the driver supports host functions.
    pub fn has_host_fn() -> bool {
        driver().has("command_list_append_host_function")
    }
    /// Appends a prefetch of shared memory to the list's device. With `to_host` only a barrier, because the
    /// driver has no such hint.
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
    /// Appends a hint about the use of shared memory; `advice` is one of `ZE_MEMORY_ADVICE_*`.
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
    /// Appends a copy of bytes between any two addresses that the device or the host can access.
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub fn copy(&self, to: usize, from: usize, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return self.barrier();
        }
        let (to, from) = (pointer(to), without_provenance(from));
        // SAFETY: the application guarantees that both ranges are valid until the copy is complete.
        self.put(|list, (signal, count, waits)| unsafe {
            driver().command_list_append_memory_copy(list, to, from, bytes, signal, count, waits)
        })
    }
    /// Appends a copy of a box: `width` bytes, `height` rows, `depth` slices.
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
        let (region, [to_row, to_slice, from_row, from_slice]) =
            (&raw const call.region, call.pitches);
        let (to, from) = (pointer(to.at), without_provenance(from.at));
        // SAFETY: the application guarantees that both boxes are valid until the copy is complete.
        self.put(|list, (signal, count, waits)| unsafe {
            driver().command_list_append_memory_copy_region(
                list, to, region, to_row, to_slice, from, region, from_row, from_slice, signal,
                count, waits,
            )
        })
    }
    /// Appends a fill with a pattern that the engines support.
    pub(super) fn fill_plainly(&self, at: usize, pattern: &[u8], bytes: usize) -> Result<()> {
        let (at, from, length) = (pointer(at), pattern.as_ptr().cast(), pattern.len());
        // SAFETY: the application guarantees that the range is valid until the fill is complete; the driver
        // copies the pattern during the call.
        self.put(|list, (signal, count, waits)| unsafe {
            driver().command_list_append_memory_fill(
                list, at, from, length, bytes, signal, count, waits,
            )
        })
    }
}

/// A box in the driver's 32-bit form.
struct Region {
    region: ze_copy_region_t,
    pitches: [u32; 4],
}
impl Region {
    /// `None` for boxes that are too large for it.
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
