//! Fills of memory with patterns that the engines do not support, composed of fills and copies that they do.
use super::list::{BoxPlace3d, List};
use ur_hal::{Pattern, Result, RowPattern, doubled};

impl List<'_> {
    /// Fills memory with a pattern of any length, of which `bytes` is a multiple. A pattern that the engines
    /// do not support is written once, in parts, and then copied repeatedly, twice as much each time.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn fill(&self, at: usize, pattern: &[u8], bytes: usize) -> Result<()> {
        let pattern = Pattern::new(pattern, bytes)?.shortest().bytes();
        let length = pattern.len();
        if length.is_power_of_two() && length <= self.longest_pattern() {
            return self.fill_plainly(at, pattern, bytes);
        }
        let ends = self.ends();
        self.wait_for(ends.waits)?;
        self.write(at, pattern)?;
        doubled(length, bytes, |done, more| self.copy(at + done, at, more))?;
        ends.signal.map_or(Ok(()), |event| self.mark(event))
    }
    /// Writes bytes once, by fills of a power of two bytes at aligned addresses.
    fn write(&self, at: usize, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let most = self.longest_pattern().min(bytes.len() - done);
            let aligned = 1 << (at + done).trailing_zeros().min(usize::BITS - 2);
            let part = (1 << most.ilog2()).min(aligned);
            self.fill_plainly(at + done, &bytes[done..done + part], part)?;
            done += part;
        }
        Ok(())
    }
    /// Fills `height` rows of `width` bytes, `pitch` bytes apart. The pattern continues from each row to the
    /// next, and the total size is a multiple of its length. Rows are written until the pattern repeats; then
    /// these rows are copied, twice as many each time.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn fill_2d(
        &self,
        (at, pitch): (usize, usize),
        pattern: &[u8],
        (width, height): (usize, usize),
    ) -> Result<()> {
        if pitch == width || height == 1 {
            return self.fill(at, pattern, width * height);
        }
        let ends = self.ends();
        self.wait_for(ends.waits)?;
        let rows = RowPattern::new(Pattern::new(pattern, width * height)?.shortest(), width);
        let once = rows.period().min(height);
        for row in 0..once {
            self.fill_row(at + row * pitch, &rows.turned_to(row), width)?;
        }
        let spot = |at| BoxPlace3d { at, row_pitch: pitch, slice_pitch: 0 };
        doubled(once, height, |done, more| {
            self.copy_region(spot(at + done * pitch), spot(at), (width, more, 1))
        })?;
        ends.signal.map_or(Ok(()), |event| self.mark(event))
    }
    /// Fills one row, which may end within the pattern.
    fn fill_row(&self, at: usize, pattern: &[u8], width: usize) -> Result<()> {
        let whole = width - width % pattern.len();
        if whole > 0 {
            self.fill(at, pattern, whole)?;
        }
        self.write(at + whole, &pattern[..width - whole])
    }
}
