//! Streams: what a queue's commands run in. Each method asks the driver for one thing, in order; what
//! the addresses point at is the caller's promise to C.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        Device,
        driver::{
            Dialect, RawStream,
            layout::{Copy2d, Copy3d},
        },
        staging,
    },
    context::Entered,
    event::NativeEvent,
};
use std::{
    ffi::c_void,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    log,
    object::Owned,
};
use ur_sys::ur_logger_level_t;

/// `CU_STREAM_NON_BLOCKING`: not ordered with the default stream.
const NON_BLOCKING: u32 = 1;

/// Patterns of more units than this are not filled in by one call for each.
const COLUMNS: usize = 16;

/// A stream of the driver.
#[derive(Debug)]
pub struct Stream<D: Dialect> {
    /// `None` is the default stream.
    raw: Option<RawStream>,
    is_ours: bool,
    /// Whose pinned memory copies go through that would have the caller wait, if they may not.
    patient: Option<Owned<Device<D>>>,
    _dialect: PhantomData<fn() -> D>,
}
impl<D: Dialect> Stream<D> {
    /// A new one in the context that is current. Smaller numbers are more urgent.
    ///
    /// # Errors
    /// The driver's own.
    pub fn create(on: &Entered<D>, priority: i32) -> Result<Self> {
        Self::made(on, NON_BLOCKING, priority)
    }
    /// One that is ordered with the default stream, as cudart's are by default.
    ///
    /// # Errors
    /// The driver's own.
    pub fn create_in_step(on: &Entered<D>, priority: i32) -> Result<Self> {
        Self::made(on, 0, priority)
    }
    fn made(_on: &Entered<D>, flags: u32, priority: i32) -> Result<Self> {
        let mut raw = None;
        // SAFETY: `raw` is writable.
        unsafe { D::driver().stream_create(&raw mut raw, flags, priority) }.ok::<D>()?;
        if raw.is_none() {
            return Err(Error::new(ErrorCode::Unknown, "the driver gave a null stream"));
        }
        Ok(Self { raw, is_ours: true, patient: None, _dialect: PhantomData })
    }
    /// Somebody else's, who keeps it for as long as this lives; destroyed with this if `owned`.
    pub fn adopted(raw: Option<RawStream>, owned: bool) -> Self {
        Self { raw, is_ours: owned, patient: None, _dialect: PhantomData }
    }
    /// From now on no copy has the caller wait until the stream gets there.
    pub fn never_waiting(mut self, device: Owned<Device<D>>) -> Self {
        self.patient = Some(device);
        self
    }
    /// The same stream for a caller who waits anyway: copies may have him wait. Not for longer than it.
    pub fn waiting(&self) -> Self {
        Self::adopted(self.raw, false)
    }
    /// The driver's name of it.
    pub fn raw(&self) -> Option<RawStream> {
        self.raw
    }
    /// Whether nobody else puts commands into it.
    pub fn is_owned(&self) -> bool {
        self.is_ours
    }
    /// Waits for everything in it.
    ///
    /// # Errors
    /// The driver's own, those of its commands among them.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: it is live.
        unsafe { D::driver().stream_synchronize(self.raw) }.ok::<D>()
    }
    /// Whether everything in it is done.
    ///
    /// # Errors
    /// As for [`Stream::synchronize`].
    pub fn is_idle(&self) -> Result<bool> {
        // SAFETY: it is live.
        unsafe { D::driver().stream_query(self.raw) }.ready::<D>()
    }
    /// What is submitted later waits for `event`.
    ///
    /// # Errors
    /// The driver's own.
    pub fn wait_for(&self, event: &NativeEvent<D>) -> Result<()> {
        // SAFETY: both are live. Flags 0.
        unsafe { D::driver().stream_wait_event(self.raw, event.raw(), 0) }.ok::<D>()
    }
    /// Writes a word of memory that the device can reach.
    ///
    /// # Errors
    /// The driver's own.
    pub fn write_value(&self, at: u64, value: u64) -> Result<()> {
        // SAFETY: the word is registered for as long as its arena lives. Flags 0: after all before it.
        unsafe { D::driver().stream_write_value(self.raw, at, value, 0) }.ok::<D>()
    }
    /// What is submitted later waits until the word at `at` is at least `value`.
    ///
    /// # Errors
    /// The driver's own.
    pub fn wait_value(&self, at: u64, value: u64) -> Result<()> {
        // SAFETY: as above.
        unsafe { D::wait_value(self.raw, at, value) }.ok::<D>()
    }
    /// Calls `call` on a thread of the driver's, which it blocks; it must not call the driver.
    ///
    /// # Errors
    /// The driver's own; `call` is dropped then.
    pub fn host_fn(&self, call: impl FnOnce() + Send + 'static) -> Result<()> {
        type Call = Box<dyn FnOnce() + Send>;
        unsafe extern "C" fn run(data: *mut c_void) {
            // SAFETY: made by `into_raw` below, and given to one call.
            let call = *unsafe { Box::from_raw(data.cast::<Call>()) };
            if catch_unwind(AssertUnwindSafe(call)).is_err() {
                let what = "a host function panicked; the queue goes on";
                log::say(ur_logger_level_t::ERROR, &what);
            }
        }
        let data = Box::into_raw(Box::new(Box::new(call) as Call));
        // SAFETY: `run` takes what `data` is.
        let outcome = unsafe { D::driver().stream_host_fn(self.raw, run, data.cast()) }.ok::<D>();
        if outcome.is_err() {
            // SAFETY: the driver did not take it.
            drop(unsafe { Box::from_raw(data) });
        }
        outcome
    }
    /// Copies bytes between any two addresses that the device or the host can reach.
    ///
    /// # Errors
    /// The driver's own.
    pub fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if let Some(device) = &self.patient
            && staging::copy(device, self, (to, from), bytes)?
        {
            return Ok(());
        }
        // SAFETY: C promises that both ranges are there until the copy is done.
        unsafe { D::copy(to, from, bytes, self.raw) }.ok::<D>()
    }
    /// Moves managed memory to a device, or to the host (-1), in order.
    ///
    /// # Errors
    /// The driver's own.
    pub fn prefetch(&self, at: u64, bytes: usize, device: i32) -> Result<()> {
        // SAFETY: a hint about a range of managed memory.
        unsafe { D::driver().prefetch(at, bytes, device, self.raw) }.ok::<D>()
    }
    /// Tells the driver how managed memory will be used; at once, not in order.
    ///
    /// # Errors
    /// The driver's own.
    pub fn advise(&self, at: u64, bytes: usize, advice: i32, device: i32) -> Result<()> {
        // SAFETY: as above.
        unsafe { D::driver().advise(at, bytes, advice, device) }.ok::<D>()
    }
    /// Copies a box of bytes, between memory and arrays too.
    ///
    /// # Errors
    /// The driver's own.
    pub fn copy_3d(&self, what: &Copy3d) -> Result<()> {
        if let Some(device) = &self.patient
            && staging::copy_3d(device, self, what)?
        {
            return Ok(());
        }
        self.copy_3d_now(what)
    }
    /// The same, as the driver does it.
    ///
    /// # Errors
    /// The driver's own.
    pub(in super::super) fn copy_3d_now(&self, what: &Copy3d) -> Result<()> {
        // SAFETY: as for `copy`; the driver reads `what` before it returns.
        unsafe { D::driver().copy_3d(what, self.raw) }.ok::<D>()
    }
    /// Copies `height` rows of `width` bytes; pitches in bytes.
    ///
    /// # Errors
    /// The driver's own.
    pub fn copy_2d(
        &self,
        (to, to_pitch): (u64, usize),
        (from, from_pitch): (u64, usize),
        (width, height): (usize, usize),
    ) -> Result<()> {
        if width == 0 || height == 0 {
            return Ok(());
        }
        if let Some(device) = &self.patient
            && staging::copy_2d(
                device,
                self,
                ((to, to_pitch), (from, from_pitch)),
                (width, height),
            )?
        {
            return Ok(());
        }
        // Type 4: by the address.
        let what = Copy2d {
            src_x: 0,
            src_y: 0,
            src_type: 4,
            src_host: 0,
            src_device: from,
            src_array: None,
            src_pitch: from_pitch,
            dst_x: 0,
            dst_y: 0,
            dst_type: 4,
            dst_host: 0,
            dst_device: to,
            dst_array: None,
            dst_pitch: to_pitch,
            width,
            height,
        };
        // SAFETY: as for `copy_3d`.
        unsafe { D::driver().copy_2d(&raw const what, self.raw) }.ok::<D>()
    }
    /// Fills `[at, at + bytes)` with `pattern` again and again; `bytes` is a multiple of its length.
    ///
    /// # Errors
    /// The driver's own.
    pub fn fill(&self, at: u64, pattern: &[u8], bytes: usize) -> Result<()> {
        let count = bytes / pattern.len().max(1);
        if count == 0 {
            return Ok(());
        }
        let aligned = |size: usize| at.is_multiple_of(size as u64);
        match *pattern {
            [a] => self.set_d8(at, a, count),
            [a, b] if aligned(2) => self.set_d16(at, u16::from_ne_bytes([a, b]), count),
            [a, b, c, d] if aligned(4) => self.set_d32(at, u32::from_ne_bytes([a, b, c, d]), count),
            _ if pattern.iter().all(|byte| *byte == pattern[0]) => {
                self.set_d8(at, pattern[0], bytes)
            }
            _ => self.fill_columns(at, pattern, count),
        }
    }
    /// Any pattern: each of its units is one column of a matrix whose rows are the pattern.
    fn fill_columns(&self, at: u64, pattern: &[u8], count: usize) -> Result<()> {
        let (pitch, unit) = (pattern.len(), unit(at, pattern.len()));
        if pitch / unit > COLUMNS {
            return self.fill_doubling(at, pattern, pitch * count);
        }
        for (column, units) in pattern.chunks_exact(unit).enumerate() {
            self.fill_column(at + (column * unit) as u64, pitch, units, count)?;
        }
        Ok(())
    }
    /// A long pattern: once from here, then what is there again and again, twice as much each time.
    fn fill_doubling(&self, at: u64, pattern: &[u8], bytes: usize) -> Result<()> {
        let is_up = match &self.patient {
            Some(device) => staging::upload_copy_of(device, self, at, pattern)?,
            None => false,
        };
        if !is_up {
            let from = pattern.as_ptr().expose_provenance() as u64;
            // SAFETY: as for `copy`; pageable bytes are taken before the driver returns.
            unsafe { D::copy(at, from, pattern.len(), self.raw) }.ok::<D>()?;
        }
        let mut done = pattern.len();
        while done < bytes {
            let more = done.min(bytes - done);
            // SAFETY: as for `copy`.
            unsafe { D::copy(at + done as u64, at, more, self.raw) }.ok::<D>()?;
            done += more;
        }
        Ok(())
    }
    /// One unit of 1, 2 or 4 bytes in each of `rows` rows.
    fn fill_column(&self, at: u64, pitch: usize, unit: &[u8], rows: usize) -> Result<()> {
        let (driver, stream) = (D::driver(), self.raw);
        let outcome = match *unit {
            [a, b] => {
                let value = u16::from_ne_bytes([a, b]);
                // SAFETY: as for `copy`.
                unsafe { driver.set_2d_d16(at, pitch, value, 1, rows, stream) }
            }
            [a, b, c, d] => {
                let value = u32::from_ne_bytes([a, b, c, d]);
                // SAFETY: as for `copy`.
                unsafe { driver.set_2d_d32(at, pitch, value, 1, rows, stream) }
            }
            // SAFETY: as for `copy`.
            _ => unsafe { driver.set_2d_d8(at, pitch, unit[0], 1, rows, stream) },
        };
        outcome.ok::<D>()
    }
    /// Fills rows of `width` bytes with `pattern`, each row from its beginning.
    ///
    /// # Errors
    /// The driver's own.
    pub fn fill_2d(
        &self,
        (at, pitch): (u64, usize),
        pattern: &[u8],
        (width, height): (usize, usize),
    ) -> Result<()> {
        if width == 0 || height == 0 {
            return Ok(());
        }
        if let [byte] = *pattern {
            let driver = D::driver();
            // SAFETY: as for `copy`.
            return unsafe { driver.set_2d_d8(at, pitch, byte, width, height, self.raw) }.ok::<D>();
        }
        if pitch == width {
            return self.fill(at, pattern, width * height);
        }
        (0..height).try_for_each(|row| self.fill(at + (row * pitch) as u64, pattern, width))
    }
    fn set_d8(&self, at: u64, value: u8, count: usize) -> Result<()> {
        // SAFETY: as for `copy`.
        unsafe { D::driver().set_d8(at, value, count, self.raw) }.ok::<D>()
    }
    fn set_d16(&self, at: u64, value: u16, count: usize) -> Result<()> {
        // SAFETY: as for `copy`.
        unsafe { D::driver().set_d16(at, value, count, self.raw) }.ok::<D>()
    }
    fn set_d32(&self, at: u64, value: u32, count: usize) -> Result<()> {
        // SAFETY: as for `copy`.
        unsafe { D::driver().set_d32(at, value, count, self.raw) }.ok::<D>()
    }
}
/// The largest unit of 1, 2 or 4 bytes that divides address and length.
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
            // SAFETY: ours, live, and never used again; the driver finishes what is in it.
            let gone = unsafe { D::driver().stream_destroy(raw) }.released::<D>();
            gone.unwrap_or_else(|error| log::say(ur_logger_level_t::WARN, &error));
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
