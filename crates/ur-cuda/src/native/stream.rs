//! Streams, in which a queue's commands run. Each method enqueues one operation; that the addresses are valid
//! is guaranteed by the application.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        DriverDevice, crossing,
        driver::{
            Api, Dialect, Outcome, RawContext, RawStream,
            layout::{Copy2d, Copy3d, CopyEnd, CopyEnd2d},
        },
        staging,
    },
    calls::{Number, call},
    context::Entered,
    event::NativeEvent,
    own_streams::PeerStreams,
    staging::Rows,
};
use crate::notice;
use std::{cell::Cell, ffi::c_void, marker::PhantomData, sync::Arc};
use ur_hal::{Pattern, Result, RowPattern, Severity, doubled, made};

/// `CU_STREAM_NON_BLOCKING`: does not synchronize with the default stream.
const NON_BLOCKING: u32 = 1;

/// A pattern of more units than this is not filled column by column.
const COLUMNS: usize = 16;
/// The bytes of a pattern over rows that are generated and uploaded at a time.
const PIECE: usize = 64 << 10;

thread_local! {
    /// How many copies, fills, launches, writes of words and calls of functions the driver has taken from this thread.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}
/// How many of these there have been so far: whether there is a part of a command that the driver then refuses.
pub fn taken() -> u64 {
    TAKEN.get()
}
/// Counts what the driver has taken.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn taking<D: Dialect>(outcome: Outcome<D>) -> Result<()> {
    outcome.ok().inspect(|()| TAKEN.set(TAKEN.get() + 1))
}
/// Where a stream was created, as reported by the driver: CUDA's reports the context, HIP's the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamHome {
    /// A context, not necessarily a primary one.
    Context(RawContext),
    /// A device, by the driver's number.
    Device(i32),
}
impl StreamHome {
    /// Whether the stream can execute commands of `device`.
    ///
    /// # Errors
    /// As for [`DriverDevice::context`](crate::device::DriverDevice::context).
    pub fn is_of<D: Dialect>(self, device: &DriverDevice<D>) -> Result<bool> {
        Ok(match self {
            Self::Context(context) => device.is_primary(context)?,
            Self::Device(number) => number == device.number(),
        })
    }
}

/// A stream of the driver.
#[derive(Debug)]
pub struct Stream<D: Dialect> {
    /// `None`: the default stream.
    raw: Option<RawStream>,
    is_ours: bool,
    /// The device whose commands it executes, if known: needed for memory that this device cannot access.
    device: Option<Arc<DriverDevice<D>>>,
    /// Whether copies for which the driver would block go through pinned memory instead.
    pub(in super::super) never_waits: bool,
    /// Whether the caller first waits for the stream before such copies: it sleeps, while the driver would
    /// spin.
    pub(in super::super) waits_before: bool,
    /// The number of the capture of other code that it is in, so that commands enqueued now become part of a graph.
    capture: Option<u64>,
    /// The streams of other devices that execute parts of its commands.
    pub(in super::super) peer_streams: Arc<PeerStreams<D>>,
    _dialect: PhantomData<fn() -> D>,
}
/// What the driver calls for a host function, on a thread of its own.
pub(super) extern "C" fn run<D: Dialect>(number: *mut c_void) {
    if let Err(what) = call(number) {
        notice::<D>(Severity::Error, &what);
    }
}
impl<D: Dialect> Stream<D> {
    /// Creates a stream in the current context.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(on: &Entered<D>) -> Result<Self> {
        Self::create_with(on, 0, false)
    }
    /// Creates a stream in the current context. A smaller number is a higher priority. With `in_step` it synchronizes
    /// with the default stream, as those of the CUDA runtime do by default.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create_with(_on: &Entered<D>, priority: i32, in_step: bool) -> Result<Self> {
        let flags = if in_step { 0 } else { NON_BLOCKING };
        // SAFETY: `to` is writable.
        let raw = made(|to| unsafe { D::driver().stream_create(to, flags, priority) })?;
        Ok(Self::adopted(Some(raw), true))
    }
    /// Wraps an existing stream, which must outlive this; with `owned` it is destroyed with this.
    pub fn adopted(raw: Option<RawStream>, owned: bool) -> Self {
        Self::with(raw, owned, None, Arc::default())
    }
    fn with(
        raw: Option<RawStream>,
        is_ours: bool,
        device: Option<Arc<DriverDevice<D>>>,
        peer_streams: Arc<PeerStreams<D>>,
    ) -> Self {
        Self {
            raw,
            is_ours,
            device,
            never_waits: false,
            waits_before: false,
            capture: None,
            peer_streams,
            _dialect: PhantomData,
        }
    }
    /// The stream as one of `device` whose copies never block the caller until the stream reaches them.
    pub fn never_waiting(mut self, device: Arc<DriverDevice<D>>) -> Self {
        self.never_waits = true;
        self.of(device)
    }
    /// The stream as one that executes commands of `device`.
    pub fn of(mut self, device: Arc<DriverDevice<D>>) -> Self {
        self.device = Some(device);
        self
    }
    /// The stream as one that is waited for before copies for which the driver would block.
    pub fn waiting_before(mut self) -> Self {
        self.waits_before = true;
        self
    }
    /// The same stream for a caller that blocks anyway: its copies may block. Must not outlive the original.
    pub fn waiting(&self) -> Self {
        Self::with(self.raw, false, self.device.clone(), Arc::clone(&self.peer_streams))
    }
    /// The same stream while other code captures it: what goes to the driver becomes part of a graph. Must not outlive the
    /// original.
    ///
    /// # Errors
    /// The driver's.
    pub fn capturing(&self) -> Result<Self> {
        let mut same = self.waiting();
        same.capture = Some(self.capture_number()?);
        Ok(same)
    }
    /// The number of the capture that commands enqueued now become part of: of a stream from [`capturing`](Self::capturing).
    pub fn captured_by(&self) -> Option<u64> {
        self.capture
    }
    /// The driver's handle.
    pub fn raw(&self) -> Option<RawStream> {
        self.raw
    }
    /// Whether it was created or taken over by this adapter, so that no other code uses it.
    pub fn is_owned(&self) -> bool {
        self.is_ours
    }
    /// Waits for everything in it.
    ///
    /// # Errors
    /// Returns the driver's error, also those of its commands.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is live.
        unsafe { D::driver().stream_synchronize(self.raw) }.ok()
    }
    /// Whether commands enqueued now are captured into a graph instead of executed.
    ///
    /// # Errors
    /// `INVALID_OPERATION` for the default stream while a stream is captured that synchronizes with it: a
    /// command would invalidate that capture. Else the driver's error.
    pub fn is_capturing(&self) -> Result<bool> {
        let mut is = 0;
        // SAFETY: the stream is live, and `is` is writable.
        let outcome = unsafe { D::driver().stream_capturing(self.raw, &raw mut is) };
        match outcome.status() {
            None => Ok(false), // the driver has no captures
            _ => outcome.ok().map(|()| is != 0),
        }
    }
    /// Where it was created; `None` if the driver cannot tell. Not for default streams.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn home(&self) -> Result<Option<StreamHome>> {
        let (mut context, mut device) = (None, 0);
        // SAFETY: the stream is live, and `context` is writable.
        let of_context = unsafe { D::driver().stream_context(self.raw, &raw mut context) };
        if of_context.status().is_some() {
            return of_context.ok().map(|()| context.map(StreamHome::Context));
        }
        // SAFETY: the stream is live, and `device` is writable.
        let of_device = unsafe { D::driver().stream_device(self.raw, &raw mut device) };
        match of_device.status() {
            None => Ok(None),
            _ => of_device.ok().map(|()| Some(StreamHome::Device(device))),
        }
    }
    /// Whether everything in it is complete.
    ///
    /// # Errors
    /// As for [`Stream::synchronize`].
    pub fn is_idle(&self) -> Result<bool> {
        // SAFETY: the stream is live.
        unsafe { D::driver().stream_query(self.raw) }.ready()
    }
    /// Makes everything enqueued later wait for `event`.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn wait_for(&self, event: &NativeEvent<D>) -> Result<()> {
        // SAFETY: both are live. Flags 0.
        unsafe { D::driver().stream_wait_event(self.raw, event.raw(), 0) }.ok()
    }
    /// Enqueues a write of a word that the device can access.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn write_value(&self, at: u64, value: u64) -> Result<()> {
        // SAFETY: the word is registered while its arena lives. Flags 0: after all previous writes.
        taking(unsafe { D::driver().stream_write_value(self.raw, at, value, 0) })
    }
    /// Makes everything enqueued later wait until the word at `at` is at least `value`, compared as signed difference
    /// modulo 2^64.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn wait_value(&self, at: u64, value: u64) -> Result<()> {
        let outcome = match D::API {
            // SAFETY: the word is registered while its arena lives. Flags 0: greater or equal.
            Api::Cuda => unsafe { D::driver().stream_wait_value(self.raw, at, value, 0) },
            // SAFETY: as above.
            Api::Hip => unsafe { D::driver().stream_wait_masked(self.raw, at, value, 0, u64::MAX) },
        };
        outcome.ok()
    }
    /// Enqueues a call of `call` on a thread of the driver, which it may block; it must not call the driver.
    ///
    /// # Errors
    /// Returns the driver's error; `call` is dropped then.
    pub fn host_fn(&self, call: impl FnOnce() + Send + 'static) -> Result<()> {
        let number = Number::once(call);
        // SAFETY: `run` takes any number.
        let outcome = unsafe { D::driver().stream_host_fn(self.raw, run::<D>, number.data()) };
        taking(outcome).inspect(|()| number.hand_over())
    }
    /// Copies bytes between any two addresses that the device or the host can access.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if let Some(device) = &self.device
            && staging::copy(device, self, (to, from), bytes)?
        {
            return Ok(());
        }
        let outcome = match D::API {
            // SAFETY: the application guarantees that both ranges are valid until the copy is complete.
            Api::Cuda => unsafe { D::driver().copy(to, from, bytes, self.raw) },
            // SAFETY: as above. Kind 4: the direction follows from the addresses.
            Api::Hip => unsafe { D::driver().copy_kind(to, from, bytes, 4, self.raw) },
        };
        taking(outcome)
    }
    /// Enqueues a migration of managed memory to a device, or to the host (-1).
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn prefetch(&self, at: u64, bytes: usize, device: i32) -> Result<()> {
        // SAFETY: a hint about a range of managed memory.
        unsafe { D::driver().prefetch(at, bytes, device, self.raw) }.ok()
    }
    /// Sets a hint about the use of managed memory. Effective at once, not in stream order.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn advise(&self, at: u64, bytes: usize, advice: i32, device: i32) -> Result<()> {
        // SAFETY: as above.
        unsafe { D::driver().advise(at, bytes, advice, device) }.ok()
    }
    /// Copies a box of bytes; each end is memory or an array.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy_3d(&self, what: &Copy3d) -> Result<()> {
        if let Some(device) = &self.device
            && staging::copy_3d(device, self, what)?
        {
            return Ok(());
        }
        self.copy_3d_now(what)
    }
    /// The copy by the driver alone, which may block the caller.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(in super::super) fn copy_3d_now(&self, what: &Copy3d) -> Result<()> {
        // SAFETY: as for `copy`; the driver reads `what` before it returns.
        taking(unsafe { D::driver().copy_3d(what, self.raw) })
    }
    /// Copies `height` rows of `width` bytes; pitches in bytes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn copy_2d(&self, to: Rows, from: Rows, (width, height): (usize, usize)) -> Result<()> {
        if width == 0 || height == 0 {
            return Ok(());
        }
        if let Some(device) = &self.device
            && staging::copy_2d(device, self, (to, from), (width, height))?
        {
            return Ok(());
        }
        self.copy_2d_now(to, from, (width, height))
    }
    /// The copy by the driver alone, which may block the caller.
    fn copy_2d_now(&self, to: Rows, from: Rows, (width, height): (usize, usize)) -> Result<()> {
        let end = |(device, pitch)| CopyEnd2d {
            kind: CopyEnd::BY_ADDRESS,
            device,
            pitch,
            ..CopyEnd2d::default()
        };
        let what = Copy2d { from: end(from), to: end(to), width, height };
        // SAFETY: as for `copy_3d`.
        taking(unsafe { D::driver().copy_2d(&raw const what, self.raw) })
    }
    /// Fills `[at, at + bytes)` with repetitions of `pattern`; `bytes` is a multiple of its length.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn fill(&self, at: u64, pattern: &[u8], bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if let Some(device) = &self.device
            && let Some(home) = staging::beyond(device, at)?
        {
            return crossing::elsewhere(device, self, home, |aside| aside.fill(at, pattern, bytes));
        }
        let pattern = Pattern::new(pattern, bytes)?.shortest().bytes();
        let count = bytes / pattern.len();
        let aligned = |size: usize| at.is_multiple_of(size as u64);
        match pattern.len() {
            unit @ (1 | 2 | 4) if aligned(unit) => self.set(at, pattern, count),
            _ => self.fill_columns(at, pattern, count),
        }
    }
    /// Fills with any pattern: seen as a matrix whose rows are the pattern, each unit is a column.
    fn fill_columns(&self, at: u64, pattern: &[u8], count: usize) -> Result<()> {
        let (pitch, unit) = (pattern.len(), unit(at, pattern.len()));
        if pitch / unit > COLUMNS {
            return self.fill_doubling(at, pattern, pitch * count);
        }
        for (column, units) in pattern.chunks_exact(unit).enumerate() {
            self.set_2d((at + (column * unit) as u64, pitch), units, (1, count))?;
        }
        Ok(())
    }
    /// Fills with a long pattern: uploads it once, then copies what is there, twice as much each time.
    fn fill_doubling(&self, at: u64, pattern: &[u8], bytes: usize) -> Result<()> {
        self.upload_rows((at, pattern.len()), pattern, pattern.len())?;
        doubled(pattern.len(), bytes, |done, more| self.copy(at + done as u64, at, more))
    }
    /// Copies rows of `width` bytes from memory that the caller may change on return.
    fn upload_rows(&self, to: (u64, usize), bytes: &[u8], width: usize) -> Result<()> {
        if self.never_waits
            && let Some(device) = &self.device
            && staging::upload_copy_of(device, self, to, bytes, width)?
        {
            return Ok(());
        }
        let mut from = bytes.as_ptr().expose_provenance() as u64;
        // The driver reads pageable memory before it returns, but a graph each time that it runs.
        if self.capture.is_some() {
            let kept = bytes.to_vec();
            from = kept.as_ptr().expose_provenance() as u64;
            self.keep_in_graph(kept)?;
        }
        self.copy_2d_now(to, (from, width), (width, bytes.len() / width))
    }
    /// Writes `count` units of 1, 2 or 4 bytes, at a multiple of their length.
    fn set(&self, at: u64, unit: &[u8], count: usize) -> Result<()> {
        let (driver, stream) = (D::driver(), self.raw);
        let outcome = match *unit {
            [a, b] => {
                // SAFETY: as for `copy`.
                unsafe { driver.set_d16(at, u16::from_ne_bytes([a, b]), count, stream) }
            }
            [a, b, c, d] => {
                // SAFETY: as for `copy`.
                unsafe { driver.set_d32(at, u32::from_ne_bytes([a, b, c, d]), count, stream) }
            }
            // SAFETY: as for `copy`.
            _ => unsafe { driver.set_d8(at, unit[0], count, stream) },
        };
        taking(outcome)
    }
    /// Writes `width` units of 1, 2 or 4 bytes to each of `rows` rows.
    fn set_2d(
        &self,
        (at, pitch): (u64, usize),
        unit: &[u8],
        (width, rows): (usize, usize),
    ) -> Result<()> {
        let (driver, stream) = (D::driver(), self.raw);
        let outcome = match *unit {
            [a, b] => {
                let value = u16::from_ne_bytes([a, b]);
                // SAFETY: as for `copy`.
                unsafe { driver.set_2d_d16(at, pitch, value, width, rows, stream) }
            }
            [a, b, c, d] => {
                let value = u32::from_ne_bytes([a, b, c, d]);
                // SAFETY: as for `copy`.
                unsafe { driver.set_2d_d32(at, pitch, value, width, rows, stream) }
            }
            // SAFETY: as for `copy`.
            _ => unsafe { driver.set_2d_d8(at, pitch, unit[0], width, rows, stream) },
        };
        taking(outcome)
    }
    /// Fills `height` rows of `width` bytes. The pattern continues from each row to the next, and the total
    /// size is a multiple of its length.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn fill_2d(
        &self,
        (at, pitch): (u64, usize),
        pattern: &[u8],
        (width, height): (usize, usize),
    ) -> Result<()> {
        if width == 0 || height == 0 {
            return Ok(());
        }
        if pitch == width || height == 1 {
            return self.fill(at, pattern, width * height);
        }
        if let Some(device) = &self.device
            && let Some(home) = staging::beyond(device, at)?
        {
            let work = |aside: &Self| aside.fill_2d((at, pitch), pattern, (width, height));
            return crossing::elsewhere(device, self, home, work);
        }
        let fits = |unit| [at as usize, pitch, width].iter().all(|n| n.is_multiple_of(unit));
        let pattern = Pattern::new(pattern, width * height)?.shortest();
        let bytes = pattern.bytes();
        match bytes.len() {
            unit @ (1 | 2 | 4) if fits(unit) => {
                self.set_2d((at, pitch), bytes, (width / unit, height))
            }
            _ => self.fill_rows((at, pitch), pattern, (width, height)),
        }
    }
    /// Fills with any pattern: writes rows until the pattern repeats, then copies these rows, twice as many
    /// each time.
    fn fill_rows(
        &self,
        (at, pitch): (u64, usize),
        pattern: Pattern<'_>,
        (width, height): (usize, usize),
    ) -> Result<()> {
        let rows = RowPattern::new(pattern, width);
        let row = |number: usize| at + (number * pitch) as u64;
        let (period, once) = (rows.period(), rows.period().min(height));
        if period == 1 || width > PIECE {
            for number in 0..once {
                self.fill_row(row(number), &rows.turned_to(number), width)?;
            }
        } else {
            let most = PIECE / width;
            for first in (0..once).step_by(most) {
                let bytes = rows.bytes(first, most.min(once - first));
                self.upload_rows((row(first), pitch), &bytes, width)?;
            }
        }
        doubled(once, height, |done, more| {
            self.copy_2d((row(done), pitch), (at, pitch), (width, more))
        })
    }
    /// Fills one row, which may end within the pattern.
    fn fill_row(&self, at: u64, pattern: &[u8], width: usize) -> Result<()> {
        let whole = width - width % pattern.len();
        self.fill(at, pattern, whole)?;
        match &pattern[..width - whole] {
            [] => Ok(()),
            rest => self.upload_rows((at + whole as u64, rest.len()), rest, rest.len()),
        }
    }
}
/// The largest of 1, 2 or 4 bytes that divides the address and the length.
fn unit(at: u64, length: usize) -> usize {
    [4, 2]
        .into_iter()
        .find(|u| at.is_multiple_of(*u as u64) && length.is_multiple_of(*u))
        .unwrap_or(1)
}
impl<D: Dialect> Drop for Stream<D> {
    fn drop(&mut self) {
        if let (true, Some(raw)) = (self.is_ours, self.raw)
            && super::super::device::check_fork::<D>().is_ok()
        {
            // SAFETY: owned, live, and never used again; the driver completes its commands first.
            unsafe { D::driver().stream_destroy(raw) }.let_go();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::unit;

    #[test]
    fn units_of_a_pattern_are_as_large_as_address_and_length_allow() {
        assert_eq!(
            [unit(8, 12), unit(4, 6), unit(3, 64), unit(2, 8), unit(16, 3)],
            [4, 2, 1, 2, 1]
        );
    }
}
