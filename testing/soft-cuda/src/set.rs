//! Memsets: words of 1, 2 and 4 bytes, in one dimension and in two.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    code::{Answer, INVALID_VALUE},
    ranges::{self, Who},
    raw, stream,
};

/// Sets `height` rows of `width` words.
fn set(at: u64, pitch: usize, word: &[u8], width: usize, height: usize, stream: u64) -> Answer {
    let stream = stream::of(stream)?;
    let (device, pitch) = (stream.device, pitch as u64);
    let bytes = width.checked_mul(word.len()).ok_or(INVALID_VALUE)? as u64;
    let word = word.to_vec();
    if !at.is_multiple_of(word.len() as u64)
        || (height > 1 && (pitch < bytes || pitch % word.len() as u64 != 0))
    {
        return Err(INVALID_VALUE);
    }
    if bytes == 0 || height == 0 {
        return Ok(());
    }
    let rows = move || (0..height as u64).map(move |y| at + y * pitch);
    {
        let table = ranges::table();
        // A memset cannot access pageable host memory, only memory that the driver knows.
        rows().try_for_each(|row| table.check(row, bytes, device, Who::Kernel, true, false))?;
    }
    stream.submit(move || {
        let line = word.repeat(width);
        rows().try_for_each(|row| {
            let table = ranges::table();
            raw::copy(
                table.reach(row, bytes, device, Who::Kernel, true)?,
                line.as_ptr(),
                bytes as usize,
            );
            Ok(())
        })
    })?;
    Ok(())
}

entries! {
    fn cuMemsetD8Async(at: u64, value: u8, count: usize, stream: u64) {
        set(at, 0, &[value], count, 1, stream)
    }
    fn cuMemsetD16Async(at: u64, value: u16, count: usize, stream: u64) {
        set(at, 0, &value.to_ne_bytes(), count, 1, stream)
    }
    fn cuMemsetD32Async(at: u64, value: u32, count: usize, stream: u64) {
        set(at, 0, &value.to_ne_bytes(), count, 1, stream)
    }
    fn cuMemsetD2D8Async(at: u64, pitch: usize, value: u8, width: usize, height: usize, stream: u64) {
        set(at, pitch, &[value], width, height, stream)
    }
    fn cuMemsetD2D16Async(at: u64, pitch: usize, value: u16, width: usize, height: usize, stream: u64) {
        set(at, pitch, &value.to_ne_bytes(), width, height, stream)
    }
    fn cuMemsetD2D32Async(at: u64, pitch: usize, value: u32, width: usize, height: usize, stream: u64) {
        set(at, pitch, &value.to_ne_bytes(), width, height, stream)
    }
}
