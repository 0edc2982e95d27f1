//! Queues, and what is put into them beside launches and copies of bytes.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::own::{Own, Tells};
use crate::{cl::*, driver::*};
use std::{
    ffi::c_void,
    ptr::{null, null_mut, with_exposed_provenance_mut},
    sync::{Arc, Mutex},
};
use ur_hal::{Address, ErrorKind, Result, repeated};
use ur_lock::locked;
use ur_mapping::PerProcess;

/// The events that a command waits for, and where its own goes, if one is wanted.
#[derive(Debug, Default)]
pub struct Linked<'a> {
    /// What it waits for.
    pub waits: &'a [RawEvent],
    /// Where its event goes.
    pub event: Option<&'a mut Option<RawEvent>>,
}
impl<'a> Linked<'a> {
    /// Behind these events, without one of its own.
    pub fn behind(waits: &'a [RawEvent]) -> Self {
        Self { waits, event: None }
    }
    /// With an event of its own, which goes there.
    pub fn noted(event: &'a mut Option<RawEvent>) -> Self {
        Self { waits: &[], event: Some(event) }
    }
    /// How many events, where they are, null for none, and where its own goes, as the driver wants it.
    pub(super) fn parts(self) -> (u32, *const RawEvent, *mut Option<RawEvent>) {
        let first = if self.waits.is_empty() { null() } else { self.waits.as_ptr() };
        (self.waits.len() as u32, first, self.event.map_or(null_mut(), std::ptr::from_mut))
    }
}

/// What a queue was made for.
#[derive(Clone, Copy, Debug)]
pub struct QueueKind {
    /// Whether its commands run one after the other.
    pub is_in_order: bool,
    /// Whether the driver notes the times of its commands, which makes each take longer.
    pub has_times: bool,
}
/// A queue of a device.
#[derive(Debug)]
pub struct NativeQueue {
    raw: Own<RawQueue>,
    context: RawContext,
    extensions: Arc<Extensions>,
    kind: QueueKind,
    /// Whether the driver may destroy it once this is gone, and has to be done with it before.
    is_left: bool,
}
/// Out-of-order queues that nobody uses any more. Intel's runtime says that a command is over while a thread of its own still holds
/// the command; if that is the last to hold the queue, it destroys the queue, waits for itself, and all others for it. So these are
/// released when the driver has ended what they had. That waits in the driver, which its own threads, where the last user of a
/// queue may end, must not: it is for threads that make further queues.
static LEFT: PerProcess<Mutex<Vec<Own<RawQueue>>>> = PerProcess::new();
fn release_left() {
    for one in std::mem::take(&mut *locked(LEFT.get())) {
        // SAFETY: live. What fails is told by nobody any more.
        unsafe { driver().finish(one.raw()) }.let_go();
    }
}
impl Drop for NativeQueue {
    fn drop(&mut self) {
        if self.is_left {
            locked(LEFT.get()).extend(repeated(|| self.raw.again()));
        }
    }
}
impl NativeQueue {
    /// A new one.
    ///
    /// # Errors
    /// The driver's own.
    pub fn new(
        context: RawContext,
        device: RawDevice,
        kind: QueueKind,
        extensions: &Arc<Extensions>,
    ) -> Result<Self> {
        release_left();
        /// `CL_QUEUE_PROPERTIES`
        const NAME: u64 = CL_QUEUE_PROPERTIES as u64;
        let order = if kind.is_in_order { 0 } else { CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE };
        let all = order | if kind.has_times { CL_QUEUE_PROFILING_ENABLE } else { 0 };
        let properties = [NAME, all, 0];
        // SAFETY: live objects; the list ends with 0.
        let made = match extensions.has("create_queue") {
            // SAFETY: as said above.
            true => unsafe { extensions.create_queue(context, device, properties.as_ptr()) },
            // SAFETY: as said above.
            false => unsafe { driver().create_queue_of_1_2(context, device, all) },
        };
        let (raw, extensions) = (Own::given(made?), Arc::clone(extensions));
        Ok(Self { raw, context, extensions, kind, is_left: !kind.is_in_order })
    }
    /// Another one of the same context and order, whose driver notes the times of its commands.
    ///
    /// # Errors
    /// The driver's own.
    pub fn with_times(&self, device: RawDevice) -> Result<Self> {
        let kind = QueueKind { has_times: true, ..self.kind };
        Self::new(self.context, device, kind, &self.extensions)
    }
    /// One that C brought.
    ///
    /// # Errors
    /// The driver's error for what is none.
    pub fn adopted(
        raw: RawQueue,
        context: RawContext,
        is_owned: bool,
        extensions: &Arc<Extensions>,
    ) -> Result<Self> {
        let flags = raw.number(CL_QUEUE_PROPERTIES)?;
        let kind = QueueKind {
            is_in_order: flags & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE == 0,
            has_times: flags & CL_QUEUE_PROFILING_ENABLE != 0,
        };
        let raw = Own::adopted(raw, is_owned)?;
        let (extensions, is_left) = (Arc::clone(extensions), is_owned && !kind.is_in_order);
        Ok(Self { raw, context, extensions, kind, is_left })
    }
    /// The driver's name of it.
    pub fn raw(&self) -> RawQueue {
        self.raw.raw()
    }
    /// The context that it is of.
    pub fn context(&self) -> RawContext {
        self.context
    }
    /// Whether its commands run one after the other.
    pub fn is_in_order(&self) -> bool {
        self.kind.is_in_order
    }
    /// Whether the driver notes the times of its commands.
    pub fn has_times(&self) -> bool {
        self.kind.has_times
    }
    /// Sends off what it has.
    ///
    /// # Errors
    /// The driver's own.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: live.
        unsafe { driver().flush(self.raw()) }.ok()
    }
    /// Waits for all that it has.
    ///
    /// # Errors
    /// The driver's own.
    pub fn finish(&self) -> Result<()> {
        // SAFETY: live.
        unsafe { driver().finish(self.raw()) }.ok()
    }
    /// Nothing, which is over when what it waits for is; if that is nothing, when all before in the queue is.
    ///
    /// # Errors
    /// The driver's own.
    pub fn marker(&self, linked: Linked<'_>) -> Result<()> {
        let (count, waits, event) = linked.parts();
        // SAFETY: live; as many events as are told; the event's place is writable or null.
        unsafe { driver().enqueue_marker(self.raw(), count, waits, event) }.ok()
    }
    /// The same, and all that comes later waits for it.
    ///
    /// # Errors
    /// The driver's own.
    pub fn barrier(&self, linked: Linked<'_>) -> Result<()> {
        let (count, waits, event) = linked.parts();
        // SAFETY: as above.
        unsafe { driver().enqueue_barrier(self.raw(), count, waits, event) }.ok()
    }
    /// A function, run on a copy of `arguments`.
    pub(super) fn native(
        &self,
        function: NativeFunction,
        arguments: &mut [u8],
        linked: Linked<'_>,
    ) -> Result<()> {
        let (queue, bytes, (count, waits, event)) = (self.raw(), arguments.len(), linked.parts());
        let (first, none, nothing) = (arguments.as_mut_ptr().cast::<c_void>(), null(), null());
        // SAFETY: live; as many bytes as are told, which the function understands; no memory objects; events as above.
        unsafe {
            driver().enqueue_native(
                queue, function, first, bytes, 0, none, nothing, count, waits, event,
            )
        }
        .ok()
    }
    /// A copy of bytes that do not overlap.
    ///
    /// # Errors
    /// The driver's own.
    pub fn copy(
        &self,
        (to, from, bytes): (Address, Address, usize),
        linked: Linked<'_>,
    ) -> Result<()> {
        let (queue, own, (count, waits, event)) = (self.raw(), &self.extensions, linked.parts());
        let (to, from) = (place(to.get()), place(from.get()));
        // SAFETY: C promised so many bytes at both addresses until the command is done; events as above.
        unsafe { own.enqueue_memcpy(queue, 0, to, from, bytes, count, waits, event) }.ok()
    }
    /// A fill with a pattern whose length is a power of two up to 128, from a multiple of that on.
    ///
    /// # Errors
    /// The driver's own.
    pub fn fill(
        &self,
        (to, pattern, bytes): (Address, &[u8], usize),
        linked: Linked<'_>,
    ) -> Result<()> {
        let (queue, own, (count, waits, event)) = (self.raw(), &self.extensions, linked.parts());
        let (to, first, length) = (place(to.get()), pattern.as_ptr().cast(), pattern.len());
        // SAFETY: C promised so many bytes at the address; the driver copies the pattern; events as above.
        unsafe { own.enqueue_mem_fill(queue, to, first, length, bytes, count, waits, event) }.ok()
    }
    /// A copy of pixels between an image and memory: where in the image, how many, where, and bytes from row to row and
    /// from slice to slice.
    ///
    /// # Errors
    /// The driver's own.
    pub fn pixels(
        &self,
        (image, writes): (RawMem, bool),
        (origin, region): ([usize; 3], [usize; 3]),
        (at, [row, slice]): (usize, [usize; 2]),
        linked: Linked<'_>,
    ) -> Result<()> {
        let (queue, at, (count, waits, event)) = (self.raw(), place(at), linked.parts());
        let (from, region) = (origin.as_ptr(), region.as_ptr());
        let copy = match writes {
            true => Functions::enqueue_write_image,
            false => Functions::enqueue_read_image,
        };
        // SAFETY: live objects; C promised the memory that the pitches describe; events as above.
        unsafe {
            copy(driver(), queue, image, 0, from, region, row, slice, at, count, waits, event)
        }
        .ok()
    }
    /// A copy of pixels from one image to another.
    ///
    /// # Errors
    /// The driver's own.
    pub fn image_copy(
        &self,
        (from, out): (RawMem, [usize; 3]),
        (to, into): (RawMem, [usize; 3]),
        region: [usize; 3],
        linked: Linked<'_>,
    ) -> Result<()> {
        let (queue, (count, waits, event)) = (self.raw(), linked.parts());
        let (out, into, region) = (out.as_ptr(), into.as_ptr(), region.as_ptr());
        // SAFETY: live objects; events as above.
        unsafe {
            driver().enqueue_copy_image(queue, from, to, out, into, region, count, waits, event)
        }
        .ok()
    }
}
fn place(address: usize) -> *mut c_void {
    with_exposed_provenance_mut(address)
}
/// An event that a call has put where it was told to.
pub(crate) fn given(event: Option<RawEvent>) -> Result<Own<RawEvent>> {
    event.map(Own::given).ok_or_else(|| ErrorKind::Unknown.into())
}
