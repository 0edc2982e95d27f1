//! Which addresses of this process are mapped.
use std::fs;

/// Whether every byte of `[start, end)` is mapped. Returns true if `/proc/self/maps` cannot be read.
pub fn is_mapped(start: usize, end: usize) -> bool {
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return true };
    let number = |text: &str| usize::from_str_radix(text, 16).ok();
    let ranges = maps.lines().filter_map(|line| {
        let (from, to) = line.split(' ').next()?.split_once('-')?;
        Some((number(from)?, number(to)?))
    });
    let mut reached = start;
    for (from, to) in ranges {
        if from <= reached && reached < to {
            reached = to;
        }
    }
    reached >= end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_told_from_what_is_not() {
        let there = vec![0_u8; 1 << 16];
        let start = there.as_ptr().addr();
        assert!(is_mapped(start, start + there.len()));
        assert!(!is_mapped(64, 128), "the first page is nobody's");
        assert!(!is_mapped(start, usize::MAX));
    }
}
