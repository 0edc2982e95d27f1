//! Fills of memory with patterns that engines have no words for: those are made of what they have.
use super::list::{List, Spot};
use ur_adapter::error::Result;

impl List<'_> {
    /// Fills memory with a pattern of any length, `bytes` being a multiple of it. What the engines
    /// cannot fill with is written once, in parts, and then copied on and on.
    ///
    /// # Errors
    /// The driver's own.
    pub fn fill(&self, at: usize, pattern: &[u8], bytes: usize) -> Result<()> {
        let pattern = shortest(pattern);
        let length = pattern.len();
        if length.is_power_of_two() && length <= self.longest_pattern() {
            return self.fill_plainly(at, pattern, bytes);
        }
        let ends = self.ends();
        self.wait_for(ends.waits)?;
        let mut done = 0;
        while done < length {
            let most = self.longest_pattern().min(length - done);
            let aligned = 1 << (at + done).trailing_zeros().min(usize::BITS - 2);
            let part = (1 << most.ilog2()).min(aligned);
            self.fill_plainly(at + done, &pattern[done..done + part], part)?;
            done += part;
        }
        while done < bytes {
            let more = done.min(bytes - done);
            self.copy(at + done, at, more)?;
            done += more;
        }
        ends.signal.map_or(Ok(()), |event| self.mark(event))
    }
    /// Fills `height` rows of `width` bytes, `pitch` bytes apart; the pattern goes on from row to row.
    ///
    /// # Errors
    /// The driver's own.
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
        if width.is_multiple_of(pattern.len()) {
            self.fill(at, pattern, width)?;
            let mut done = 1;
            while done < height {
                let more = done.min(height - done);
                let spot = |at| Spot { at, row_pitch: pitch, slice_pitch: 0 };
                self.copy_region(spot(at + done * pitch), spot(at), (width, more, 1))?;
                done += more;
            }
        } else {
            for row in 0..height {
                let mut turned = pattern.to_vec();
                turned.rotate_left(row * width % pattern.len());
                let whole = width - width % turned.len();
                if whole > 0 {
                    self.fill(at + row * pitch, &turned, whole)?;
                }
                for (offset, byte) in (whole..width).enumerate() {
                    self.fill_plainly(at + row * pitch + byte, &turned[offset..=offset], 1)?;
                }
            }
        }
        ends.signal.map_or(Ok(()), |event| self.mark(event))
    }
}
/// The shortest pattern that comes to the same: one byte again and again is one byte.
fn shortest(pattern: &[u8]) -> &[u8] {
    let is_same = |byte: &u8| *byte == pattern[0];
    if pattern.len() > 1 && pattern.iter().all(is_same) { &pattern[..1] } else { pattern }
}
