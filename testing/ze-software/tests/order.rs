//! The order in which commands run, and the states of events and fences.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod driver;
use driver::{IN_ORDER, NONE, World};
use std::ptr::{from_mut, from_ref, null, null_mut};
use ze_sys::*;

const HOST: u32 = ZE_EVENT_POOL_FLAG_HOST_VISIBLE;

#[test]
fn a_command_waits_for_an_event_that_the_host_signals() {
    let w = World::new();
    let pool = w.pool(HOST, 2);
    let (gate, done) = (w.event(pool, 0), w.event(pool, 1));
    let list = w.immediate(IN_ORDER);
    let (mut to, from) = (0_u64, 7_u64);
    w.copy(list, (&raw mut to, &raw const from), done, &mut [gate]);
    assert!(!w.is_over(done), "nothing runs before its dependency");
    assert_eq!(ze!(w.ze, event.pfnHostSynchronize(done, 1_000_000)), ZE_RESULT_NOT_READY);
    assert_eq!(ze!(w.ze, list.pfnHostSynchronize(list, 1_000_000)), ZE_RESULT_NOT_READY);
    ok!(w.ze, event.pfnHostSignal(gate));
    w.wait(done);
    assert_eq!(to, 7);
    ok!(w.ze, event.pfnHostReset(done));
    assert!(!w.is_over(done));
}
#[test]
fn an_in_order_list_runs_what_depends_on_what_came_before() {
    let w = World::new();
    let list = w.immediate(IN_ORDER);
    let mut cells = [0_u64; 65];
    cells[0] = 11;
    let at = cells.as_mut_ptr();
    for i in 0..64 {
        w.copy(list, (at.wrapping_add(i + 1), at.wrapping_add(i)), NONE, &mut []);
    }
    w.finish(list);
    assert_eq!(cells, [11; 65]);
}
#[test]
fn free_commands_overtake_each_other_but_no_barrier() {
    let w = World::new();
    let pool = w.pool(HOST, 1);
    let gate = w.event(pool, 0);
    let list = w.immediate(0);
    let (mut to, one, two, three) = (0_u64, 1_u64, 2_u64, 3_u64);
    let (mut before, mut after) = (0_u64, 0_u64);
    // The gate delays all commands until the last one was appended.
    w.barrier(list, NONE, &mut [gate]);
    w.copy(list, (&raw mut to, &raw const one), NONE, &mut []);
    w.copy(list, (&raw mut to, &raw const two), NONE, &mut []);
    w.barrier(list, NONE, &mut []);
    w.copy(list, (&raw mut before, &raw const to), NONE, &mut []);
    w.barrier(list, NONE, &mut []);
    w.copy(list, (&raw mut to, &raw const three), NONE, &mut []);
    w.barrier(list, NONE, &mut []);
    w.copy(list, (&raw mut after, &raw const to), NONE, &mut []);
    ok!(w.ze, event.pfnHostSignal(gate));
    w.finish(list);
    assert_eq!(before, 1, "the later of two free commands ran first");
    assert_eq!(after, 3, "barriers keep their order");
}
#[test]
fn recorded_lists_run_again_and_fences_tell() {
    let w = World::new();
    let (queue, list) = (w.queue(), w.recorded(0));
    let mut fence = null_mut();
    let desc = ze_fence_desc_t { stype: ZE_STRUCTURE_TYPE_FENCE_DESC, pNext: null(), flags: 0 };
    ok!(w.ze, fence.pfnCreate(queue, &desc, &mut fence));
    let (mut to, mut from) = (0_u64, 5_u64);
    let from = from_mut(&mut from);
    w.copy(list, (&raw mut to, from), NONE, &mut []);
    let mut lists = [list];
    let early = ze!(w.ze, queue.pfnExecuteCommandLists(queue, 1, lists.as_mut_ptr(), fence));
    assert_eq!(early, ZE_RESULT_ERROR_INVALID_ARGUMENT, "it is not closed");
    ok!(w.ze, list.pfnClose(list));
    for value in [5, 6] {
        unsafe { from.write_volatile(value) };
        assert_eq!(ze!(w.ze, fence.pfnQueryStatus(fence)), ZE_RESULT_NOT_READY);
        ok!(w.ze, queue.pfnExecuteCommandLists(queue, 1, lists.as_mut_ptr(), fence));
        ok!(w.ze, fence.pfnHostSynchronize(fence, 30_000_000_000));
        assert_eq!(unsafe { from_ref(&to).read_volatile() }, value);
        ok!(w.ze, fence.pfnReset(fence));
    }
    ok!(w.ze, list.pfnReset(list));
    w.barrier(list, NONE, &mut []);
}
#[test]
fn lists_appended_to_an_immediate_one_run_between_its_commands() {
    let w = World::new();
    let (inner, outer) = (w.recorded(ZE_COMMAND_LIST_FLAG_IN_ORDER), w.immediate(IN_ORDER));
    let pool = w.pool(HOST, 1);
    let done = w.event(pool, 0);
    let (mut a, mut b, mut c, one) = (0_u64, 0_u64, 0_u64, 1_u64);
    w.copy(inner, (&raw mut b, &raw const a), NONE, &mut []);
    ok!(w.ze, list.pfnClose(inner));
    w.copy(outer, (&raw mut a, &raw const one), NONE, &mut []);
    let mut lists = [inner];
    let lists = lists.as_mut_ptr();
    let none = null_mut();
    ok!(w.ze, list_exp.pfnImmediateAppendCommandListsExp(outer, 1, lists, done, 0, none));
    w.copy(outer, (&raw mut c, &raw const b), NONE, &mut []);
    w.finish(outer);
    assert_eq!((a, b, c), (1, 1, 1));
    assert!(w.is_over(done));
}
#[test]
fn timestamps_follow_each_other_and_map_to_the_host() {
    let w = World::new();
    let pool = w.pool(HOST | ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP, 2);
    let (first, second) = (w.event(pool, 0), w.event(pool, 1));
    let list = w.immediate(IN_ORDER);
    let mut written = 0_u64;
    w.barrier(list, first, &mut []);
    ok!(w.ze, list.pfnAppendWriteGlobalTimestamp(list, &mut written, NONE, 0, null_mut()));
    w.barrier(list, second, &mut []);
    w.wait(second);
    let stamps = |event| {
        let mut times = ze_kernel_timestamp_result_t::default();
        let mut mapped = ze_synchronized_timestamp_result_ext_t::default();
        let mut both = ze_event_query_kernel_timestamps_results_ext_properties_t {
            pKernelTimestampsBuffer: &raw mut times,
            pSynchronizedTimestampsBuffer: &raw mut mapped,
            ..Default::default()
        };
        let mut count = 1;
        ok!(w.ze, event.pfnQueryKernelTimestampsExt(event, w.device, &mut count, &mut both));
        assert_eq!(count, 1);
        (times.global, mapped.global)
    };
    let ((a, host_a), (b, host_b)) = (stamps(first), stamps(second));
    assert!(a.kernelStart <= a.kernelEnd && a.kernelEnd <= written && written <= b.kernelStart);
    assert_eq!(host_b.kernelStart - host_a.kernelStart, b.kernelStart - a.kernelStart);
}
#[test]
fn regions_are_copied_and_patterns_spread() {
    let w = World::new();
    let list = w.immediate(IN_ORDER);
    let source: Vec<u8> = (0..64).collect();
    let mut target = vec![0xff_u8; 64];
    let region = |x, y| ze_copy_region_t {
        originX: x,
        originY: y,
        originZ: 0,
        width: 2,
        height: 2,
        depth: 1,
    };
    let (to, from) = (target.as_mut_ptr().cast(), source.as_ptr().cast());
    let (at, of) = (region(1, 0), region(2, 3));
    ok!(
        w.ze,
        list.pfnAppendMemoryCopyRegion(list, to, &at, 8, 0, from, &of, 8, 0, NONE, 0, null_mut())
    );
    let (pattern, rest) = ([1_u8, 2, 3], to.wrapping_byte_add(32));
    let of = pattern.as_ptr().cast();
    ok!(w.ze, list.pfnAppendMemoryFill(list, rest, of, 3, 8, NONE, 0, null_mut()));
    w.finish(list);
    assert_eq!(
        target[..16],
        [255, 26, 27, 255, 255, 255, 255, 255, 255, 34, 35, 255, 255, 255, 255, 255]
    );
    assert_eq!(target[32..41], [1, 2, 3, 1, 2, 3, 1, 2, 255]);
}
#[test]
fn a_synchronous_list_is_done_when_its_append_returns() {
    let w = World::new();
    let desc = ze_command_queue_desc_t {
        stype: ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
        mode: ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS,
        ..Default::default()
    };
    let mut list = null_mut();
    ok!(w.ze, list.pfnCreateImmediate(w.context, w.device, &desc, &mut list));
    let (mut to, from) = (0_u64, 9_u64);
    for _ in 0..100 {
        to = 0;
        w.copy(list, (&raw mut to, &raw const from), NONE, &mut []);
        assert_eq!(unsafe { from_ref(&to).read_volatile() }, 9);
    }
    assert_eq!(to, 9);
}
#[test]
fn a_function_of_the_host_runs_when_its_turn_comes() {
    unsafe extern "C" fn double(number: *mut std::ffi::c_void) {
        unsafe { *number.cast::<u64>() *= 2 };
    }
    let w = World::new();
    let list = w.immediate(IN_ORDER);
    let (mut number, from, mut after) = (0_u64, 21_u64, 0_u64);
    let data = from_mut(&mut number);
    w.copy(list, (data, &raw const from), NONE, &mut []);
    let (data, none) = (data.cast(), null_mut());
    ok!(w.ze, list.pfnAppendHostFunction(list, Some(double), data, null(), NONE, 0, none));
    w.copy(list, (&raw mut after, data.cast()), NONE, &mut []);
    w.finish(list);
    assert_eq!(after, 42);
}
#[test]
fn a_command_that_fails_ends_its_event_and_is_told_by_the_list() {
    let w = World::new();
    let desc = ze_device_mem_alloc_desc_t {
        stype: ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
        ..Default::default()
    };
    let mut at = null_mut();
    ok!(w.ze, mem.pfnAllocDevice(w.context, &desc, 65536, 0, w.device, &mut at));
    let (list, pattern) = (w.immediate(IN_ORDER), 1_u8);
    let done = w.event(w.pool(HOST, 1), 0);
    let of = from_ref(&pattern).cast();
    ok!(w.ze, list.pfnAppendMemoryFill(list, at, of, 1, 1 << 40, done, 0, null_mut()));
    w.wait(done);
    let told = ze!(w.ze, list.pfnHostSynchronize(list, 30_000_000_000));
    assert_eq!(told, ZE_RESULT_ERROR_DEVICE_LOST);
    ok!(w.ze, list.pfnDestroy(list));
    ok!(w.ze, mem.pfnFree(w.context, at));
}
#[test]
fn times_of_events_are_written_where_a_command_says() {
    let w = World::new();
    let pool = w.pool(HOST | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP, 2);
    let mut events = [w.event(pool, 0), w.event(pool, 1)];
    let list = w.immediate(IN_ORDER);
    w.barrier(list, events[0], &mut []);
    w.barrier(list, events[1], &mut []);
    let mut times = [ze_kernel_timestamp_result_t::default(); 3];
    let offsets = [32_usize, 0];
    let (of, to, none) = (events.as_mut_ptr(), times.as_mut_ptr().cast(), null_mut());
    let at = offsets.as_ptr();
    ok!(w.ze, list.pfnAppendQueryKernelTimestamps(list, 2, of, to, at, NONE, 0, none));
    w.finish(list);
    let [second, first, untouched] = times.map(|time| time.global);
    assert!(0 < first.kernelStart && first.kernelStart < first.kernelEnd);
    assert!(first.kernelEnd <= second.kernelStart && second.kernelStart < second.kernelEnd);
    assert_eq!(untouched.kernelEnd, 0);
}
#[test]
fn copy_engines_run_no_kernels_and_fill_short_patterns_only() {
    let w = World::new();
    let desc = ze_command_queue_desc_t {
        stype: ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
        ordinal: 1,
        ..Default::default()
    };
    let mut list = null_mut();
    ok!(w.ze, list.pfnCreateImmediate(w.context, w.device, &desc, &mut list));
    let groups = ze_group_count_t { groupCountX: 1, groupCountY: 1, groupCountZ: 1 };
    let none = null_mut();
    let launch = ze!(w.ze, list.pfnAppendLaunchKernel(list, null_mut(), &groups, NONE, 0, none));
    assert_eq!(launch, ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
    let (pattern, mut to) = ([3_u8; 32], [0_u8; 32]);
    let (at, of) = (to.as_mut_ptr().cast(), pattern.as_ptr().cast());
    let fill = ze!(w.ze, list.pfnAppendMemoryFill(list, at, of, 32, 32, NONE, 0, null_mut()));
    assert_eq!(fill, ZE_RESULT_ERROR_INVALID_SIZE);
    let index = ze_command_queue_desc_t { index: 99, ..desc };
    let none = ze!(w.ze, list.pfnCreateImmediate(w.context, w.device, &index, &mut list));
    assert_eq!(none, ZE_RESULT_ERROR_INVALID_ARGUMENT);
}
#[test]
fn commands_hold_their_order_also_where_they_run_in_the_appending_thread() {
    let mut again = std::process::Command::new(std::env::current_exe().expect("this test"));
    again.env("ZE_SOFTWARE_INLINE", "1").args(["--skip", "also_where"]);
    let run = again.output().expect("it starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}
