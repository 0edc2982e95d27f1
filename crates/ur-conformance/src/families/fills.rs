//! Fills of rows: the pattern continues from each row to the next whatever its length, and bytes between rows
//! stay unchanged.
use crate::{
    bench::{Bench, USM, Usm},
    case::{Case, Verdict},
    cases, ensure, must, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};

pub fn cases() -> Vec<Case> {
    cases! { "enqueue";
        "urEnqueueUSMFill2D", "the pattern fills the region as if its rows were one", "a pattern that is longer than a row runs on in the next", longer;
        "urEnqueueUSMFill2D", "the pattern fills the region as if its rows were one", "a pattern that does not end with a row runs on in the next", across;
        "urEnqueueUSMFill2D", "the pattern fills the region as if its rows were one", "patterns of 1 to 128 bytes are repeated in each row that they divide", within;
        "urEnqueueUSMFill2D", "the pattern is read before the call returns", "a pattern is the one at the time of the call, and the call does not wait for its turn", taken;
    }
}

/// A region of memory: its offset, its pitch, and the width and the number of its rows.
#[derive(Clone, Copy, Debug)]
struct Region {
    offset: usize,
    pitch: usize,
    width: usize,
    height: usize,
}
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n % 239 + n / 239 + 1) as u8).collect()
}
fn fill(b: &Bench, memory: *mut c_void, region: Region, pattern: &[u8]) -> Verdict {
    let (queue, none) = (b.queue()?, null_mut());
    let (at, from) = (memory.wrapping_byte_add(region.offset), pattern.as_ptr().cast());
    let Region { pitch, width, height, .. } = region;
    let length = pattern.len();
    must!(b, enqueue.usm_fill_2d(queue, at, pitch, length, from, width, height, 0, null(), none));
    Ok(())
}
/// Checks that the region holds the pattern and that nothing outside it changed.
fn filled(found: &[u8], region: Region, pattern: &[u8]) -> Verdict {
    for (n, byte) in found.iter().enumerate() {
        let inside = n.checked_sub(region.offset).map(|n| (n / region.pitch, n % region.pitch));
        let expected = match inside {
            Some((row, x)) if row < region.height && x < region.width => {
                pattern[(row * region.width + x) % pattern.len()]
            }
            _ => 0xee,
        };
        same!(*byte, expected, "byte {n}, a pattern of {} bytes, {region:?}", pattern.len());
    }
    Ok(())
}
fn fills(b: &Bench, kind: Usm, region: Region, length: usize) -> Verdict {
    let bytes = region.offset + region.pitch * region.height + 64;
    let (memory, pattern) = (b.alloc(kind, bytes)?, pattern(length));
    b.write(memory, &vec![0xee; bytes])?;
    fill(b, memory, region, &pattern)?;
    b.finish(b.queue()?)?;
    filled(&b.read(memory, bytes)?, region, &pattern)?;
    b.free(memory)
}
fn longer(b: &Bench) -> Verdict {
    for kind in USM {
        for (length, offset, pitch, width, height) in [
            (65_536, 0, 256, 256, 256),
            (65_536, 0, 300, 256, 256),
            (65_536, 5, 301, 256, 512),
            (64, 0, 24, 16, 9 * 4),
            (131_072, 0, 70_001, 65_536, 4),
        ] {
            fills(b, kind, Region { offset, pitch, width, height }, length)?;
        }
    }
    Ok(())
}
fn across(b: &Bench) -> Verdict {
    for kind in USM {
        for (length, offset, pitch, width, height) in [
            (4, 0, 6, 6, 4),
            (4, 0, 8, 6, 4),
            (2, 1, 9, 5, 100),
            (32, 3, 64, 20, 64),
            (16, 0, 200_000, 100_004, 8),
        ] {
            fills(b, kind, Region { offset, pitch, width, height }, length)?;
        }
    }
    Ok(())
}
fn within(b: &Bench) -> Verdict {
    for kind in USM {
        for length in [1, 2, 4, 8, 16, 32, 64, 128] {
            for (offset, pitch) in [(0, 512), (1, 515), (256, 256)] {
                fills(b, kind, Region { offset, pitch, width: 256, height: 21 }, length)?;
            }
        }
    }
    Ok(())
}
fn taken(b: &Bench) -> Verdict {
    let (queue, region) = (b.queue()?, Region { offset: 0, pitch: 300, width: 256, height: 256 });
    for kind in USM {
        for length in [4, 64, 65_536] {
            let (memory, mut mine) = (b.alloc(kind, 300 * 256)?, pattern(length));
            b.write(memory, &vec![0xee; 300 * 256])?;
            let gate = b.gate(queue)?;
            fill(b, memory, region, &mine)?;
            mine.fill(0);
            ensure!(mine.iter().all(|byte| *byte == 0), "written");
            gate.open();
            b.finish(queue)?;
            filled(&b.read(memory, 300 * 256)?, region, &pattern(length))?;
            b.free(memory)?;
        }
    }
    Ok(())
}
