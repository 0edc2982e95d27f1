//! What memory promises on every driver with devices: the tests of the files that name this one.
use crate::{c::*, call, usm::*};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicBool, Ordering::*},
    time::{Duration, Instant},
};
use ur_sys::{
    ur_queue_handle_t, ur_result_t as R, ur_structure_type_t, ur_usm_alloc_info_t as Info,
    ur_usm_pool_desc_t, ur_usm_pool_flags_t, ur_usm_pool_info_t, ur_usm_type_t,
    ur_virtual_mem_access_flags_t as Access,
};

pub fn alloc(one: &One, bytes: usize) -> Result<*mut c_void, R> {
    let mut at = null_mut();
    match call!(usm.device_alloc(one.context, one.device, null(), NONE, bytes, &mut at)) {
        R::SUCCESS => Ok(at),
        code => Err(code),
    }
}

#[test]
fn every_address_of_an_allocation_tells_whose_it_is() {
    let Some(one) = One::new() else { return };
    for bytes in [1, 4096, 1 << 20, 3 << 20, (64 << 20) + 1] {
        let at = one.device_memory(bytes);
        let last = at.wrapping_byte_add(bytes - 1);
        assert_eq!(type_of(&one, last), ur_usm_type_t::DEVICE);
        assert_eq!(info::<usize>(&one, last, Info::BASE_PTR), Ok(at.addr()));
        assert_eq!(info::<usize>(&one, last, Info::SIZE), Ok(bytes));
        assert_eq!(info::<usize>(&one, last, Info::DEVICE), Ok(one.device.0.addr()));
        assert_eq!(
            call!(usm.free(one.context, at.wrapping_byte_add(1))),
            R::ERROR_INVALID_MEM_OBJECT
        );
        one.free(at);
        assert_eq!(type_of(&one, last), ur_usm_type_t::UNKNOWN);
        assert_eq!(call!(usm.free(one.context, at)), R::ERROR_INVALID_MEM_OBJECT);
    }
    assert_eq!(alloc(&one, 0), Err(R::ERROR_INVALID_USM_SIZE));
    assert_eq!(alloc(&one, usize::MAX), Err(R::ERROR_INVALID_USM_SIZE));
}
#[test]
fn host_memory_is_the_hosts_too() {
    let Some(one) = One::new() else { return };
    let (mut at, on_device) = (null_mut(), one.device_memory(4096));
    assert_eq!(call!(usm.host_alloc(one.context, null(), NONE, 4096, &mut at)), R::SUCCESS);
    assert_eq!(type_of(&one, at), ur_usm_type_t::HOST);
    one.write(on_device, &numbers(7));
    one.write(at, &one.read::<u32, 1024>(on_device));
    assert_eq!(unsafe { at.cast::<[u32; 1024]>().read() }, numbers(7));
    one.free(at);
    one.free(on_device);
}
#[test]
fn freed_memory_is_used_again_and_what_a_pool_holds_is_counted() {
    let Some(one) = One::new() else { return };
    let (stype, flags) = (ur_structure_type_t::USM_POOL_DESC, ur_usm_pool_flags_t::default());
    let mut desc = ur_usm_pool_desc_t { stype, pNext: null(), flags };
    let mut pool = NONE;
    assert_eq!(call!(usm.pool_create(one.context, &mut desc, &mut pool)), R::SUCCESS);
    let used = || {
        let (name, mut bytes) = (ur_usm_pool_info_t::USED_CURRENT_EXP, 0_usize);
        let to = (&raw mut bytes).cast();
        assert_eq!(call!(usm.pool_get_info(pool, name, 8, to, null_mut())), R::SUCCESS);
        bytes
    };
    let mut first = null_mut();
    for round in 0..100 {
        let mut at = null_mut();
        let code = call!(usm.device_alloc(one.context, one.device, null(), pool, 1 << 20, &mut at));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(used(), 1 << 20);
        first = if round == 0 { at } else { first };
        assert_eq!(at, first, "nothing uses it: it is the same again");
        one.free(at);
        assert_eq!(used(), 0);
    }
    assert_eq!(call!(usm.pool_release(pool)), R::SUCCESS);
}
/// Opens when the test says so.
static GATE: AtomicBool = AtomicBool::new(false);
unsafe extern "C" fn wait_at_the_gate(_data: *mut c_void) {
    let started = Instant::now();
    while !GATE.load(Acquire) && started.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
}
#[test]
fn what_a_command_before_may_use_is_nobody_elses() {
    let Some(one) = One::new() else { return };
    let bytes = (1 << 20) + 256; // no other test's
    let (freed, queue) = (one.device_memory(bytes), one.queue);
    let code = call!(enqueue_exp.host_task_exp(
        queue,
        Some(wait_at_the_gate),
        null_mut(),
        null(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!(code, R::SUCCESS);
    one.free(freed);
    let others: Vec<_> = (0..64).map(|_| one.device_memory(bytes)).collect();
    assert!(!others.contains(&freed), "a command that was enqueued before the free may use it");
    GATE.store(true, Release);
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    let again: Vec<_> = (0..64).map(|_| one.device_memory(bytes)).collect();
    assert!(again.contains(&freed), "now nothing does");
    others.into_iter().chain(again).for_each(|at| one.free(at));
}
/// A command that uses what the caller takes away would end the process, or the queue.
#[test]
fn access_to_mapped_memory_is_taken_away_when_the_commands_before_are_over() {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn hold(_data: *mut c_void) {
        std::thread::sleep(Duration::from_millis(100));
        IS_OVER.store(true, Release);
    }
    let Some(one) = One::new() else { return };
    let (bytes, queue, none) = (granule(&one), one.queue, null_mut());
    let memory = physical(&one, bytes);
    let mapped = map(&one, memory, bytes, Access::READ_WRITE);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
    let task = Some(hold as unsafe extern "C" fn(*mut c_void));
    let held =
        call!(enqueue_exp.host_task_exp(queue, task, null_mut(), null(), 0, null(), null_mut()));
    assert_eq!(held, R::SUCCESS);
    let byte = 7_u8;
    let from = (&raw const byte).cast();
    let filled = call!(enqueue.usm_fill(queue, mapped.at, 1, from, bytes, 0, null(), none));
    assert_eq!(filled, R::SUCCESS);
    let set = |access| call!(virtual_mem.set_access(one.context, mapped.at, bytes, access));
    assert_eq!(set(Access::NONE), R::SUCCESS);
    assert!(IS_OVER.load(Acquire), "the command waits for its turn");
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert_eq!(set(Access::READ_WRITE), R::SUCCESS);
    assert_eq!(one.read::<u8, 64>(mapped.at), [7; 64]);
    unmap(&one, mapped);
}
#[test]
fn memory_comes_and_goes_in_a_queues_order() {
    let Some(one) = One::new() else { return };
    let (queue, mut at) = (one.queue, null_mut());
    for _ in 0..10 {
        let code = call!(enqueue_exp.usm_device_alloc_exp(
            queue,
            NONE,
            4096,
            null(),
            0,
            null(),
            &mut at,
            null_mut()
        ));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(type_of(&one, at), ur_usm_type_t::DEVICE);
        one.write(at, &numbers(3));
        assert_eq!(one.read::<u32, 1024>(at), numbers(3));
        let code = call!(enqueue_exp.usm_free_exp(queue, NONE, at, 0, null(), null_mut()));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(type_of(&one, at), ur_usm_type_t::UNKNOWN);
    }
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert_ne!(queue, ur_queue_handle_t::NULL);
}
#[test]
fn registered_host_memory_is_known_until_it_is_not() {
    let Some(one) = One::new() else { return };
    let mut memory = vec![0_u32; 1 << 16];
    let (at, bytes) = (memory.as_mut_ptr().cast::<c_void>(), 4 << 16);
    let register = || call!(usm_exp.host_alloc_register_exp(one.context, at, bytes, null()));
    assert_eq!(register(), R::SUCCESS);
    assert_eq!(register(), R::ERROR_INVALID_VALUE);
    assert_eq!(type_of(&one, at.wrapping_byte_add(100)), ur_usm_type_t::HOST);
    assert_eq!(call!(usm_exp.host_alloc_unregister_exp(one.context, at)), R::SUCCESS);
    assert_eq!(call!(usm_exp.host_alloc_unregister_exp(one.context, at)), R::ERROR_INVALID_VALUE);
    assert_eq!(type_of(&one, at), ur_usm_type_t::UNKNOWN);
}

#[test]
fn two_mappings_of_one_memory_show_the_same() {
    let Some(one) = One::new() else { return };
    let bytes = 2 * granule(&one);
    let memory = physical(&one, bytes);
    let (first, second) = (
        map(&one, memory, bytes, Access::READ_WRITE),
        map(&one, memory, bytes, Access::READ_WRITE),
    );
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
    one.write(first.at, &numbers(11));
    assert_eq!(one.read::<u32, 1024>(second.at), numbers(11));
    let half = bytes / 2;
    assert_eq!(call!(virtual_mem.unmap(one.context, first.at, half)), R::ERROR_INVALID_VALUE);
    let code = call!(virtual_mem.set_access(one.context, first.at, bytes, Access::READ_ONLY));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(one.read::<u32, 1024>(first.at), numbers(11));
    unmap(&one, first);
    assert_eq!(one.read::<u32, 1024>(second.at), numbers(11));
    unmap(&one, second);
}
