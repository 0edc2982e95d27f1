//! Copies, fills and host functions.
use super::*;

fn memcpy(
    queue: ur_queue_handle_t,
    blocking: bool,
    to: &mut [u8],
    from: &[u8],
    events: &[ur_event_handle_t],
) -> ur_event_handle_t {
    let mut event = ur_event_handle_t::NULL;
    let (count, events) = list(events);
    let enqueue = TABLE.enqueue.usm_memcpy.unwrap();
    let (to, from, bytes) = (to.as_mut_ptr().cast(), from.as_ptr().cast(), from.len());
    let code = unsafe { enqueue(queue, blocking, to, from, bytes, count, events, &mut event) };
    assert_eq!(code, OK);
    event
}

#[test]
fn copies_arrive_small_and_large_blocking_and_not() {
    for flags in [IN_ORDER, OUT_OF_ORDER] {
        let queue = queue(flags);
        for bytes in [1, 1000, 100_000, 9 << 20] {
            let from: Vec<u8> = (0..bytes).map(|i| (i * 7 % 251) as u8).collect();
            for blocking in [true, false] {
                let mut to = vec![0; bytes];
                let event = memcpy(queue, blocking, &mut to, &from, &[]);
                if blocking {
                    assert_eq!(status(event), ur_event_status_t::COMPLETE);
                } else {
                    assert_eq!(wait(&[event]), OK);
                }
                assert!(std::hint::black_box(&to) == &from, "{bytes} bytes");
                release(event);
            }
        }
    }
}

#[test]
fn fills_repeat_patterns_of_any_size() {
    let queue = queue(IN_ORDER);
    let fill = TABLE.enqueue.usm_fill.unwrap();
    for (pattern, times) in [(1, 5), (3, 7), (16, 2), (40, 500), (128, 40_000)] {
        let pattern: Vec<u8> = (0..pattern).map(|i| i as u8 + 1).collect();
        let mut to = vec![0u8; pattern.len() * times];
        let (mem, with) = (to.as_mut_ptr().cast(), pattern.as_ptr().cast());
        let bytes = to.len();
        let mut event = ur_event_handle_t::NULL;
        let code = unsafe { fill(queue, mem, pattern.len(), with, bytes, 0, null(), &mut event) };
        assert_eq!((code, wait(&[event])), (OK, OK));
        release(event);
        assert!(std::hint::black_box(&to) == &pattern.repeat(times));
    }
    let mut to = [0u8; 8];
    let mut try_fill = |pattern: usize, bytes: usize| unsafe {
        fill(
            queue,
            to.as_mut_ptr().cast(),
            pattern,
            [1u8; 8].as_ptr().cast(),
            bytes,
            0,
            null(),
            null_mut(),
        )
    };
    for (pattern, bytes) in [(0, 8), (3, 8), (8, 4), (4, 0)] {
        assert_eq!(try_fill(pattern, bytes), ur_result_t::ERROR_INVALID_SIZE);
    }
}

#[test]
fn rectangles_are_copied_and_filled_row_by_row() {
    for flags in [IN_ORDER, OUT_OF_ORDER] {
        let queue = queue(flags);
        let from: Vec<u8> = (0..60).collect();
        let mut to = vec![0u8; 80];
        let copy = TABLE.enqueue.usm_memcpy_2d.unwrap();
        let (dst, src) = (to.as_mut_ptr().cast(), from.as_ptr().cast());
        let code = unsafe { copy(queue, true, dst, 20, src, 15, 5, 4, 0, null(), null_mut()) };
        assert_eq!(code, OK);
        let fill = TABLE.enqueue.usm_fill_2d.unwrap();
        let (mem, pattern) = (to[10..].as_mut_ptr().cast(), [200u8, 201].as_ptr().cast());
        let code = unsafe { fill(queue, mem, 20, 2, pattern, 4, 2, 0, null(), null_mut()) };
        assert_eq!((code, finish(queue)), (OK, OK));
        let to = std::hint::black_box(to);
        for row in 0..4 {
            assert_eq!(to[row * 20..][..5], from[row * 15..][..5]);
            let filled = if row < 2 { [200, 201, 200, 201] } else { [0; 4] };
            assert_eq!(to[row * 20 + 10..][..4], filled);
            assert_eq!(to[row * 20 + 5..][..5], [0; 5]);
        }
        let try_copy = |to_pitch, from_pitch, width, height| unsafe {
            let (dst, src) = (to.as_ptr().cast_mut().cast(), from.as_ptr().cast());
            copy(queue, false, dst, to_pitch, src, from_pitch, width, height, 0, null(), null_mut())
        };
        for (to_pitch, from_pitch, width, height) in
            [(0, 15, 5, 4), (20, 0, 5, 4), (4, 15, 5, 4), (20, 4, 5, 4), (20, 15, 5, 0)]
        {
            let code = try_copy(to_pitch, from_pitch, width, height);
            assert_eq!(code, ur_result_t::ERROR_INVALID_SIZE);
        }
        assert_eq!(try_copy(usize::MAX, usize::MAX, 8, 2), ur_result_t::ERROR_INVALID_SIZE);
    }
}

#[test]
fn commands_that_leave_their_allocation_are_refused() {
    let (queue, mut usm) = (queue(IN_ORDER), null_mut());
    let alloc = TABLE.usm.device_alloc.unwrap();
    let (context, no_pool) = (context(), ur_usm_pool_handle_t::NULL);
    assert_eq!(unsafe { alloc(context, device(), null(), no_pool, 1000, &mut usm) }, OK);
    let other = [1u8; 2000];
    let (size, from) = (ur_result_t::ERROR_INVALID_SIZE, other.as_ptr().cast());
    let at = |offset| usm.cast::<u8>().wrapping_add(offset).cast::<c_void>();
    let copy = TABLE.enqueue.usm_memcpy.unwrap();
    let fill = TABLE.enqueue.usm_fill.unwrap();
    let copy_2d = TABLE.enqueue.usm_memcpy_2d.unwrap();
    unsafe {
        assert_eq!(copy(queue, true, at(0), from, 1000, 0, null(), null_mut()), OK);
        assert_eq!(copy(queue, true, at(0), from, 1001, 0, null(), null_mut()), size);
        assert_eq!(copy(queue, true, at(900), from, 101, 0, null(), null_mut()), size);
        assert_eq!(copy(queue, true, from.cast_mut(), at(999), 2, 0, null(), null_mut()), size);
        assert_eq!(fill(queue, at(500), 2, from, 502, 0, null(), null_mut()), size);
        let rectangle = |offset, pitch, height| {
            copy_2d(queue, true, at(offset), pitch, from, 20, 20, height, 0, null(), null_mut())
        };
        assert_eq!(rectangle(0, 100, 10), OK);
        assert_eq!(rectangle(80, 100, 10), OK, "the right edge of a larger rectangle");
        assert_eq!(rectangle(81, 100, 10), size);
        assert_eq!(rectangle(0, 101, 10), size);
        assert_eq!(TABLE.usm.free.unwrap()(context, usm), OK);
    }
}

#[test]
fn a_copy_waits_for_its_list() {
    for flags in [IN_ORDER, OUT_OF_ORDER] {
        let (copies, owes, door) = (queue(flags), queue(IN_ORDER), Door::shut());
        let held = door.hold(owes);
        let (from, mut to) = ([5u8; 100], [0u8; 100]);
        let copied = memcpy(copies, false, &mut to, &from, &[held]);
        assert_eq!(status(copied), ur_event_status_t::SUBMITTED);
        door.open();
        assert_eq!(wait(&[copied]), OK);
        assert_eq!(std::hint::black_box(to), from);
        release(copied);
        release(held);
    }
}

#[test]
fn hints_about_memory_keep_their_place_and_refuse_no_bytes() {
    let queue = queue(IN_ORDER);
    let memory = [0u8; 64];
    let at = memory.as_ptr().cast();
    let prefetch = TABLE.enqueue.usm_prefetch.unwrap();
    let advise = TABLE.enqueue.usm_advise.unwrap();
    let (flags, advice) = (ur_usm_migration_flags_t::default(), ur_usm_advice_flags_t::default());
    let mut events = [ur_event_handle_t::NULL; 2];
    unsafe {
        assert_eq!(prefetch(queue, at, 64, flags, 0, null(), &mut events[0]), OK);
        assert_eq!(advise(queue, at, 64, advice, &mut events[1]), OK);
        let none = ur_result_t::ERROR_INVALID_SIZE;
        assert_eq!(prefetch(queue, at, 0, flags, 0, null(), null_mut()), none);
        assert_eq!(advise(queue, at, 0, advice, null_mut()), none);
    }
    assert_eq!(wait(&events), OK);
    events.into_iter().for_each(release);
}

#[test]
fn a_host_task_that_sleeps_holds_up_its_own_queue_only() {
    let (held, free, door) = (queue(IN_ORDER), queue(IN_ORDER), Door::shut());
    release(door.hold(held));
    let behind = barrier(held, &[]);
    let beside = barrier(free, &[]);
    assert_eq!(wait(&[beside]), OK);
    assert_eq!(status(behind), ur_event_status_t::SUBMITTED);
    door.open();
    assert_eq!((finish(held), status(behind)), (OK, ur_event_status_t::COMPLETE));
    release(behind);
    release(beside);
}
