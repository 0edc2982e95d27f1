//! Copies and fills, compared with simple loops.
use super::*;

fn at(bytes: &mut [u8], offset: usize) -> Address {
    Address::new(bytes.as_mut_ptr().expose_provenance()).unwrap().offset(offset).unwrap()
}
fn counting(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn small_and_large_copies_arrive() {
    for bytes in [1, 63, 4096, PARALLEL_FROM - 1, PARALLEL_FROM, 3 * PARALLEL_FROM + 17] {
        let mut from = counting(bytes);
        let mut to = vec![0; bytes];
        copy(at(&mut to, 0), at(&mut from, 0), bytes);
        assert!(to == from, "{bytes}");
    }
}
#[test]
fn overlapping_copies_move_in_both_directions() {
    for bytes in [1000, 2 * PARALLEL_FROM] {
        for (to, from) in [(0, 3), (3, 0), (500, 0), (0, 500)] {
            let mut memory = counting(bytes + 500);
            let expected = memory[from..from + bytes].to_vec();
            let base = at(&mut memory, 0);
            copy(base.offset(to).unwrap(), base.offset(from).unwrap(), bytes);
            assert!(memory[to..to + bytes] == expected, "{bytes} {to} {from}");
        }
    }
}
#[test]
fn a_pattern_of_any_size_repeats() {
    for period in [1, 2, 3, 4, 7, 8, 16, 100, 4096, 5000, 40_000] {
        for bytes in [period, 2 * period + 1, 100_003, PARALLEL_FROM + 5 * period + 1] {
            let pattern = counting(period);
            let mut to = vec![0xee; bytes + 1];
            fill(at(&mut to, 0), &pattern, bytes);
            assert!((0..bytes).all(|i| to[i] == pattern[i % period]), "{period} {bytes}");
            assert_eq!(to[bytes], 0xee);
        }
    }
}
#[test]
fn a_pattern_of_equal_bytes_and_an_empty_one() {
    let mut to = vec![1; 100];
    fill(at(&mut to, 10), &[9; 6], 80);
    assert!((0..100).all(|i| to[i] == if (10..90).contains(&i) { 9 } else { 1 }));
    fill(at(&mut to, 0), &[], 100);
    assert_eq!(to[0], 1);
}
#[test]
fn rectangles_leave_what_is_between_their_rows() {
    for (width, height) in [(5, 4), (5000, 3000)] {
        let (to_pitch, from_pitch) = (width + 3, width + 1);
        let mut from = counting(from_pitch * height);
        let mut to = vec![0xee; to_pitch * height];
        let target = Rows { start: at(&mut to, 0), pitch: to_pitch };
        copy_2d(target, Rows { start: at(&mut from, 0), pitch: from_pitch }, width, height);
        for row in 0..height {
            let (read, written) = (&from[row * from_pitch..], &to[row * to_pitch..]);
            assert!(written[..width] == read[..width]);
            assert_eq!(written[width..to_pitch], [0xee; 3]);
        }
        fill_2d(target, &[1, 2, 3], width, height);
        for (y, row) in to.chunks(to_pitch).enumerate() {
            assert!((0..width).all(|x| row[x] == [1, 2, 3][(y * width + x) % 3]), "row {y}");
            assert_eq!(row[width..], [0xee; 3]);
        }
    }
}
#[test]
fn overlapping_rectangles_move_in_both_directions() {
    let (width, pitch, height) = (40, 64, 50);
    for (to, from) in [(0, 70), (70, 0)] {
        let mut memory = counting(pitch * height + 70);
        let before = memory.clone();
        let base = at(&mut memory, 0);
        let rows = |offset| Rows { start: base.offset(offset).unwrap(), pitch };
        copy_2d(rows(to), rows(from), width, height);
        for row in 0..height {
            let (to, from) = (to + row * pitch, from + row * pitch);
            assert_eq!(memory[to..to + width], before[from..from + width]);
        }
    }
}
#[test]
fn empty_rectangles_touch_nothing() {
    let mut to = vec![1; 8];
    let rows = Rows { start: at(&mut to, 0), pitch: 4 };
    copy_2d(rows, rows, 0, 4);
    fill_2d(rows, &[2], 4, 0);
    assert_eq!(to, [1; 8]);
}
#[test]
fn boxes_leave_what_is_between_their_rows_and_planes() {
    for [width, height, depth] in [[5, 4, 3], [1, 1, 7], [900, 70, 80]] {
        let (pitch, slice) = (width + 3, (width + 3) * (height + 2));
        let mut from = counting(slice * depth);
        let mut to = vec![0xee; width * height * depth + 1];
        let source = Planes { base: at(&mut from, 0), pitch, slice };
        let target = Planes { base: at(&mut to, 0), pitch: width, slice: width * height };
        copy_3d(target, source, width, height, depth);
        for (n, byte) in to[..width * height * depth].iter().enumerate() {
            let (x, y, z) = (n % width, n / width % height, n / (width * height));
            assert_eq!(*byte, from[x + y * pitch + z * slice], "{x} {y} {z}");
        }
        assert_eq!(to[width * height * depth], 0xee);
        copy_3d(source, target, width, height, 0);
    }
}
#[test]
fn overlapping_boxes_move_in_both_directions() {
    for (to, from) in [(0, 1), (1, 0), (0, 57), (57, 0)] {
        let mut memory = counting(1000);
        let before = memory.clone();
        let base = at(&mut memory, 0);
        let planes = |offset| Planes { base: base.offset(offset).unwrap(), pitch: 10, slice: 100 };
        copy_3d(planes(to), planes(from), 6, 5, 4);
        for n in 0..120 {
            let place = n % 6 + n / 6 % 5 * 10 + n / 30 * 100;
            assert_eq!(memory[to + place], before[from + place], "{to} {from} {n}");
        }
    }
}
#[test]
fn the_pieces_of_a_large_amount_are_all_of_it_once() {
    for bytes in [0, 1, 4096, (4 << 20) + 123, (64 << 20) + 1] {
        let seen = std::sync::Mutex::new(vec![]);
        for_each_piece(bytes, |at, len| seen.lock().unwrap().push((at, len)));
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        let end = seen.iter().fold(0, |end, &(at, len)| {
            assert_eq!(at, end);
            at + len
        });
        assert_eq!(end, bytes);
    }
}
