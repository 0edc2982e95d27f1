//! Buffers and parts of them, as a C program has them: creation, information, native handles,
//! commands, what is refused, and what releases take away and when.
mod common;
use common::{mems::*, ur::*};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_mem_flags_t as F;
use ur_result_t as R;

fn host(bytes: &mut [u8]) -> *mut c_void {
    bytes.as_mut_ptr().cast()
}
/// The code of a refusal, which says why.
#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Outcome<T>) -> R {
    outcome.expect_err("a refusal").code
}
fn all(mems: &Mems, mem: ur_mem_handle_t) -> Vec<u8> {
    let mut bytes = vec![0; mems.info::<usize>(mem, ur_mem_info_t::SIZE).unwrap()];
    mems.read(mem, 0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_buffer_tells_its_size_its_context_and_its_references() {
    let mems = Mems::new();
    let mem = mems.buffer(ANY, 1001, null_mut()).unwrap();
    assert_eq!(mems.info(mem, ur_mem_info_t::SIZE), Ok(1001_usize));
    let mut context = ur_context_handle_t::NULL;
    let (name, at) = (ur_mem_info_t::CONTEXT, (&raw mut context).cast());
    assert_eq!(call!(mem.get_info(mem, name, 8, at, null_mut())), R::SUCCESS);
    assert_eq!(context.0, mems.ur.context.0);
    assert_eq!(call!(mem.retain(mem)), R::SUCCESS);
    assert_eq!(mems.info(mem, ur_mem_info_t::REFERENCE_COUNT), Ok(2_u32));
    mems.release(mem);
    assert_eq!(mems.info(mem, ur_mem_info_t::REFERENCE_COUNT), Ok(1_u32));
    mems.release(mem);
    assert_eq!(call!(mem.release(mem)), R::ERROR_INVALID_MEM_OBJECT);
}
#[test]
fn flags_decide_whose_memory_a_buffer_is() {
    let mems = Mems::new();
    let mut bytes = counting(500);
    let copy = mems.buffer(F::ALLOC_COPY_HOST_POINTER, 500, host(&mut bytes)).unwrap();
    let both = F::ALLOC_COPY_HOST_POINTER | F::ALLOC_HOST_POINTER | F::READ_ONLY;
    let pinned = mems.buffer(both, 500, host(&mut bytes)).unwrap();
    let own = mems.buffer(F::USE_HOST_POINTER | ANY, 500, host(&mut bytes)).unwrap();
    for mem in [copy, pinned, own] {
        assert_eq!(all(&mems, mem), counting(500));
    }
    mems.fill(own, &[9], 0, 500).unwrap();
    mems.finish();
    assert_eq!(bytes, [9; 500], "it is the program's own memory");
    assert_eq!(all(&mems, copy), counting(500), "that is a copy");
    mems.release_all([copy, pinned, own]);
    assert_eq!(bytes, [9; 500]);
}
#[test]
fn what_makes_no_buffer_is_refused() {
    let mems = Mems::new();
    let mut bytes = [0; 16];
    let at = host(&mut bytes);
    let none = null_mut();
    let cases = [
        (ANY, 0, none, R::ERROR_INVALID_BUFFER_SIZE),
        (ANY, usize::MAX, none, R::ERROR_INVALID_BUFFER_SIZE),
        (ANY, 1 << 60, none, R::ERROR_INVALID_BUFFER_SIZE),
        (F::USE_HOST_POINTER, 16, none, R::ERROR_INVALID_HOST_PTR),
        (F::ALLOC_COPY_HOST_POINTER, 16, none, R::ERROR_INVALID_HOST_PTR),
        (ANY, 16, at, R::ERROR_INVALID_HOST_PTR),
        (F::ALLOC_HOST_POINTER, 16, at, R::ERROR_INVALID_HOST_PTR),
        (F::READ_WRITE | F::READ_ONLY, 16, none, R::ERROR_INVALID_VALUE),
        (F::READ_WRITE | F::WRITE_ONLY, 16, none, R::ERROR_INVALID_VALUE),
        (F::WRITE_ONLY | F::READ_ONLY, 16, none, R::ERROR_INVALID_VALUE),
        (F::USE_HOST_POINTER | F::ALLOC_HOST_POINTER, 16, at, R::ERROR_INVALID_VALUE),
        (F::USE_HOST_POINTER | F::ALLOC_COPY_HOST_POINTER, 16, at, R::ERROR_INVALID_VALUE),
        (F(1 << 20), 16, none, R::ERROR_INVALID_ENUMERATION),
    ];
    for (flags, size, host, expected) in cases {
        let refused = mems.buffer(flags, size, host);
        assert_eq!(code(refused), expected, "{:#x}, {size} bytes, {host:?}", flags.0);
    }
    for bad in [null_mut(), mems.queue.0] {
        let (bad, mut mem) = (ur_context_handle_t(bad), ur_mem_handle_t::NULL);
        assert_ne!(call!(mem.buffer_create(bad, ANY, 16, null(), &mut mem)), R::SUCCESS);
        assert!(mem.0.is_null());
    }
    let context = mems.ur.context;
    let answer = call!(mem.buffer_create(context, ANY, 16, null(), null_mut()));
    assert_eq!(answer, R::ERROR_INVALID_NULL_POINTER);
}
#[test]
fn parts_are_windows_into_their_buffer() {
    let mems = Mems::new();
    let whole = mems.holding(&counting(1000));
    let part = mems.part(whole, F::default(), 100, 50).unwrap();
    assert_eq!(mems.info(part, ur_mem_info_t::SIZE), Ok(50_usize));
    assert_eq!(all(&mems, part), counting(1000)[100..150]);
    mems.fill(part, &[1, 2], 10, 4).unwrap();
    let mut expected = counting(1000);
    expected[110..114].copy_from_slice(&[1, 2, 1, 2]);
    assert_eq!(all(&mems, whole), expected);
    assert_eq!(code(mems.write(part, 48, &[0; 3])), R::ERROR_INVALID_SIZE);
    mems.release(whole);
    assert_eq!(all(&mems, part), expected[100..150], "a part keeps its buffer");
    let gone = mems.info::<usize>(whole, ur_mem_info_t::SIZE);
    assert_eq!(code(gone), R::ERROR_INVALID_MEM_OBJECT, "though C has no reference to it");
    mems.release(part);
}
#[test]
fn what_makes_no_part_is_refused() {
    let mems = Mems::new();
    let whole = mems.holding(&[0; 1000]);
    let none = F::default();
    let sizes = [(0, 0), (0, 1001), (1000, 1), (999, 2), (usize::MAX, 2), (2, usize::MAX)];
    for (origin, size) in sizes {
        let refused = mems.part(whole, none, origin, size);
        assert_eq!(code(refused), R::ERROR_INVALID_BUFFER_SIZE, "{size} from {origin}");
    }
    let part = mems.part(whole, none, 0, 1000).unwrap();
    assert_eq!(code(mems.part(part, none, 0, 10)), R::ERROR_INVALID_MEM_OBJECT);
    assert_eq!(code(mems.part(whole, F(1 << 9), 0, 10)), R::ERROR_INVALID_ENUMERATION);
    for flags in [F::USE_HOST_POINTER, F::ALLOC_HOST_POINTER, F::ALLOC_COPY_HOST_POINTER] {
        assert_eq!(code(mems.part(whole, flags, 0, 10)), R::ERROR_INVALID_VALUE);
    }
    for (of, may, may_not) in [
        (F::READ_ONLY, F::READ_ONLY, F::READ_WRITE),
        (F::READ_ONLY, F::READ_ONLY, F::WRITE_ONLY),
        (F::WRITE_ONLY, F::WRITE_ONLY, F::READ_WRITE),
        (F::READ_WRITE, F::READ_ONLY, F::READ_ONLY | F::WRITE_ONLY),
    ] {
        let whole = mems.buffer(of, 100, null_mut()).unwrap();
        mems.release(mems.part(whole, may, 0, 10).unwrap());
        assert_eq!(code(mems.part(whole, may_not, 0, 10)), R::ERROR_INVALID_VALUE);
        mems.release(whole);
    }
    let (kind, mut out) = (ur_buffer_create_type_t(7), ur_mem_handle_t::NULL);
    let stype = ur_structure_type_t::BUFFER_REGION;
    let region = ur_buffer_region_t { stype, pNext: null(), origin: 0, size: 1 };
    let answer = call!(mem.buffer_partition(whole, none, kind, &region, &mut out));
    assert_eq!(answer, R::ERROR_INVALID_ENUMERATION);
    assert_eq!(all(&mems, whole), [0; 1000]);
    mems.release_all([part, whole]);
}
#[test]
fn a_native_handle_is_another_reference_to_the_same_buffer() {
    let mems = Mems::new();
    let mem = mems.holding(&[3; 64]);
    let (mut native, mut again) = (0, ur_mem_handle_t::NULL);
    assert_eq!(call!(mem.get_native_handle(mem, mems.ur.device, &mut native)), R::SUCCESS);
    let context = mems.ur.context;
    let make = |native, context, to: &mut ur_mem_handle_t| {
        call!(mem.buffer_create_with_native_handle(native, context, null(), to))
    };
    assert_eq!(make(native, context, &mut again), R::SUCCESS);
    assert_eq!(mems.info(mem, ur_mem_info_t::REFERENCE_COUNT), Ok(2_u32));
    mems.release(mem);
    assert_eq!(all(&mems, again), [3; 64]);
    let mut none = ur_mem_handle_t::NULL;
    let elsewhere = mems.ur.new_context();
    assert_eq!(make(native, elsewhere, &mut none), R::ERROR_INVALID_CONTEXT);
    for garbage in [0, 8, native + 8, mems.queue.0.addr() as u64 as ur_native_handle_t] {
        assert_eq!(make(garbage, context, &mut none), R::ERROR_INVALID_MEM_OBJECT, "{garbage:#x}");
    }
    mems.release(again);
    assert_eq!(make(native, context, &mut none), R::ERROR_INVALID_MEM_OBJECT);
    assert!(none.0.is_null());
}

#[test]
fn ranges_are_read_written_copied_and_filled() {
    let mems = Mems::new();
    let (one, other) = (mems.holding(&[0; 300]), mems.holding(&[7; 300]));
    mems.write(one, 100, &counting(50)).unwrap();
    mems.copy([one, other], [100, 10], 50).unwrap();
    let mut there = [0; 50];
    mems.read(other, 10, &mut there).unwrap();
    assert_eq!(there[..], counting(50));
    mems.copy([one, one], [100, 150], 50).expect("they only touch");
    for pattern in [1, 2, 4, 8, 16, 32, 64, 128] {
        let bytes = counting(pattern);
        mems.fill(one, &bytes, 0, 256).unwrap();
        assert!(all(&mems, one)[..256].chunks(pattern).all(|chunk| chunk == bytes), "{pattern}");
    }
    mems.release_all([one, other]);
}
#[test]
fn ranges_past_the_end_and_bad_patterns_change_nothing() {
    let mems = Mems::new();
    let (mem, other) = (mems.holding(&[5; 100]), mems.holding(&[6; 200]));
    let mut small = vec![0; 200];
    let bad = R::ERROR_INVALID_SIZE;
    for (offset, size) in [(0, 101), (100, 1), (1, 100), (usize::MAX, 2), (0, 0)] {
        assert_eq!(code(mems.read(mem, offset, &mut small[..size])), bad, "{offset} {size}");
        assert_eq!(code(mems.write(mem, offset, &small[..size])), bad);
        assert_eq!(code(mems.copy([mem, other], [offset, 0], size)), bad);
        assert_eq!(code(mems.copy([other, mem], [0, offset], size)), bad);
        assert_eq!(code(mems.fill(mem, &[1], offset, size)), bad);
        assert_eq!(code(mems.map(mem, ur_map_flags_t::READ, offset, size)), bad);
    }
    let queue = mems.queue;
    for (offset, size) in [(usize::MAX, usize::MAX), (1, usize::MAX), (usize::MAX, 1)] {
        let (at, none) = (host(&mut small), null_mut::<ur_event_handle_t>());
        let read = enqueue_read(queue, mem, offset, size, at, none);
        assert_eq!(read, bad, "{offset} {size}");
    }
    let cases: [(&[u8], usize, usize); 6] = [
        (&[], 0, 10),
        (&[1; 3], 0, 9),
        (&[1; 8], 0, 4),
        (&[1; 4], 0, 10),
        (&[1; 4], 2, 8),
        (&[1; 12], 0, 96),
    ];
    for (pattern, offset, size) in cases {
        let refused = code(mems.fill(mem, pattern, offset, size));
        assert_eq!(refused, bad, "{} bytes {size} from {offset}", pattern.len());
    }
    for [from, to] in [[0, 49], [49, 0], [10, 10]] {
        let refused = code(mems.copy([mem, mem], [from, to], 50));
        assert_eq!(refused, R::ERROR_OVERLAPPING_REGIONS, "{from} {to}");
    }
    let part = mems.part(mem, F::default(), 40, 50).unwrap();
    let refused = code(mems.copy([mem, part], [30, 0], 20));
    assert_eq!(refused, R::ERROR_OVERLAPPING_REGIONS, "a part is its buffer");
    assert_eq!(all(&mems, mem), [5; 100]);
    assert_eq!(all(&mems, other), [6; 200]);
    mems.release_all([part, mem, other]);
}
fn enqueue_read(
    queue: ur_queue_handle_t,
    mem: ur_mem_handle_t,
    offset: usize,
    size: usize,
    to: *mut c_void,
    event: *mut ur_event_handle_t,
) -> R {
    call!(enqueue.mem_buffer_read(queue, mem, true, offset, size, to, 0, null(), event))
}

/// A box copied by plain loops.
fn plain(to: &mut [u8], from: &[u8], boxes: Boxes) {
    let Boxes { one, other, region, pitches } = boxes;
    let [width, height, depth] = region.map(|n| n as usize);
    let steps = |row: usize, slice: usize| {
        let row = if row == 0 { width } else { row };
        [row, if slice == 0 { row * height } else { slice }]
    };
    let place = |origin: [u64; 3], [row, slice]: [usize; 2], y: usize, z: usize| {
        let [x, y0, z0] = origin.map(|n| n as usize);
        x + (y + y0) * row + (z + z0) * slice
    };
    let (source, target) = (steps(pitches[0], pitches[1]), steps(pitches[2], pitches[3]));
    for (y, z) in (0..depth).flat_map(|z| (0..height).map(move |y| (y, z))) {
        let (a, b) = (place(one, source, y, z), place(other, target, y, z));
        to[b..b + width].copy_from_slice(&from[a..a + width]);
    }
}
fn shapes() -> Vec<Boxes> {
    let boxes = |one, other, region, pitches| Boxes { one, other, region, pitches };
    vec![
        boxes([0, 0, 0], [0, 0, 0], [10, 1, 1], [0, 0, 0, 0]),
        boxes([3, 0, 0], [5, 0, 0], [10, 7, 1], [20, 0, 16, 0]),
        boxes([0, 2, 1], [4, 1, 0], [16, 5, 3], [16, 160, 24, 240]),
        boxes([1, 1, 1], [1, 1, 1], [5, 4, 3], [10, 60, 12, 60]),
        boxes([0, 0, 0], [0, 0, 0], [32, 8, 4], [0, 0, 0, 0]),
        boxes([0, 0, 2], [0, 0, 0], [8, 4, 2], [8, 32, 8, 64]),
        boxes([0, 0, 0], [0, 0, 0], [1, 1, 9], [1, 100, 1, 3]),
    ]
}
/// The same the other way round.
fn turned(boxes: Boxes) -> Boxes {
    let Boxes { one, other, region, pitches: [a, b, c, d] } = boxes;
    Boxes { one: other, other: one, region, pitches: [c, d, a, b] }
}
#[test]
fn boxes_go_where_plain_loops_put_them() {
    let mems = Mems::new();
    for boxes in shapes() {
        let (one, other) = (counting(2000), vec![0xee; 2000]);
        let mut expected = other.clone();
        plain(&mut expected, &one, boxes);
        let (source, target) = (mems.holding(&one), mems.holding(&other));
        mems.copy_box([source, target], boxes).unwrap();
        assert!(all(&mems, target) == expected, "copied: {boxes:?}");
        let mut read = other.clone();
        mems.read_box(source, boxes, &mut read).unwrap();
        assert!(read == expected, "read: {boxes:?}");
        let written = mems.holding(&other);
        mems.write_box(written, turned(boxes), &one).unwrap();
        assert!(all(&mems, written) == expected, "written: {boxes:?}");
        mems.release_all([source, target, written]);
    }
}
#[test]
fn large_boxes_are_copied_whole() {
    let mems = Mems::new();
    let pitches = [1024, 1024 * 64, 1030, 1030 * 70];
    let boxes = Boxes { one: [7, 3, 1], other: [0, 1, 0], region: [1001, 60, 90], pitches };
    let (one, mut expected) = (counting(92 << 16), vec![0; 1030 * 70 * 91]);
    let (source, target) = (mems.holding(&one), mems.holding(&expected));
    plain(&mut expected, &one, boxes);
    mems.copy_box([source, target], boxes).unwrap();
    assert!(all(&mems, target) == expected);
    mems.release_all([source, target]);
}
#[test]
fn boxes_that_do_not_fit_are_refused_and_change_nothing() {
    let mems = Mems::new();
    let (mem, other) = (mems.holding(&[1; 1000]), mems.holding(&[2; 1000]));
    let good = Boxes { one: [0; 3], other: [0; 3], region: [10, 4, 3], pitches: [10, 40, 10, 40] };
    let with = |change: &dyn Fn(&mut Boxes)| {
        let mut boxes = good;
        change(&mut boxes);
        boxes
    };
    let cases = [
        with(&|b| b.region[0] = 0),
        with(&|b| b.region[1] = 0),
        with(&|b| b.region[2] = 0),
        with(&|b| b.pitches[0] = 9),
        with(&|b| b.pitches[1] = 39),
        with(&|b| b.pitches[1] = 45),
        with(&|b| b.pitches[2] = 9),
        with(&|b| b.pitches[3] = 39),
        with(&|b| b.pitches[3] = 45),
        with(&|b| b.one[0] = 1000),
        with(&|b| b.one[1] = 100),
        with(&|b| b.one[2] = 23),
        with(&|b| b.one[0] = u64::MAX),
        with(&|b| b.one[1] = u64::MAX / 4),
        with(&|b| b.one[2] = u64::MAX - 1),
        with(&|b| b.region = [u64::MAX, 1, 1]),
        with(&|b| b.region = [1 << 33, 1 << 33, 1]),
        with(&|b| (b.region, b.pitches) = ([1, 2, 2], [usize::MAX, 0, 0, 0])),
        with(&|b| (b.region, b.pitches) = ([1, 1, 3], [1, usize::MAX, 0, 0])),
    ];
    let mut memory = vec![3; 1000];
    for boxes in cases {
        let bad = R::ERROR_INVALID_SIZE;
        assert_eq!(code(mems.copy_box([mem, other], boxes)), bad, "{boxes:?}");
        assert_eq!(code(mems.copy_box([other, mem], turned(boxes))), bad, "{boxes:?}");
        assert_eq!(code(mems.read_box(mem, boxes, &mut memory)), bad, "{boxes:?}");
        assert_eq!(code(mems.write_box(mem, boxes, &memory)), bad, "{boxes:?}");
    }
    assert!(all(&mems, mem) == [1; 1000] && all(&mems, other) == [2; 1000] && memory == [3; 1000]);
    mems.release_all([mem, other]);
}
#[test]
fn boxes_of_one_buffer_may_touch_but_not_overlap() {
    let mems = Mems::new();
    let mem = mems.holding(&counting(1500));
    let pitches = [20, 200, 20, 200];
    let side_by_side = Boxes { one: [0; 3], other: [10, 0, 0], region: [10, 10, 3], pitches };
    let mut expected = counting(1500);
    plain(&mut expected, &counting(1500), side_by_side);
    mems.copy_box([mem, mem], side_by_side).unwrap();
    assert!(all(&mems, mem) == expected);
    for other in [[9, 0, 0], [0, 9, 2], [0, 0, 0], [5, 5, 1]] {
        let boxes = Boxes { other, ..side_by_side };
        let refused = code(mems.copy_box([mem, mem], boxes));
        assert_eq!(refused, R::ERROR_OVERLAPPING_REGIONS, "{boxes:?}");
        let refused = code(mems.copy_box([mem, mem], turned(boxes)));
        assert_eq!(refused, R::ERROR_OVERLAPPING_REGIONS, "{boxes:?}");
    }
    assert!(all(&mems, mem) == expected);
    mems.release(mem);
}
