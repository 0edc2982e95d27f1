//! Memory as a C program has it, on whatever driver of CUDA there is; without a device the tests say so and are
//! skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "c/usm.rs"]
mod usm;

use c::*;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicBool, Ordering::*},
    time::{Duration, Instant},
};
use ur_adapters::cuda_family::driver::{self, Dialect, RawContext};
use ur_sys::{
    ur_queue_handle_t, ur_result_t as R, ur_structure_type_t, ur_usm_alloc_info_t as Info,
    ur_usm_pool_desc_t, ur_usm_pool_flags_t, ur_usm_pool_info_t, ur_usm_type_t,
    ur_virtual_mem_access_flags_t as Access,
};
use usm::*;

fn alloc(cuda: &Cuda, bytes: usize) -> Result<*mut c_void, R> {
    let mut at = null_mut();
    match call!(usm.device_alloc(cuda.context, cuda.device, null(), NONE, bytes, &mut at)) {
        R::SUCCESS => Ok(at),
        code => Err(code),
    }
}

#[test]
fn every_address_of_an_allocation_tells_whose_it_is() {
    let Some(cuda) = Cuda::new() else { return };
    for bytes in [1, 4096, 1 << 20, 3 << 20, (64 << 20) + 1] {
        let at = cuda.device_memory(bytes);
        let last = at.wrapping_byte_add(bytes - 1);
        assert_eq!(type_of(&cuda, last), ur_usm_type_t::DEVICE);
        assert_eq!(info::<usize>(&cuda, last, Info::BASE_PTR), Ok(at.addr()));
        assert_eq!(info::<usize>(&cuda, last, Info::SIZE), Ok(bytes));
        assert_eq!(info::<usize>(&cuda, last, Info::DEVICE), Ok(cuda.device.0.addr()));
        assert_eq!(
            call!(usm.free(cuda.context, at.wrapping_byte_add(1))),
            R::ERROR_INVALID_MEM_OBJECT
        );
        cuda.free(at);
        assert_eq!(type_of(&cuda, last), ur_usm_type_t::UNKNOWN);
        assert_eq!(call!(usm.free(cuda.context, at)), R::ERROR_INVALID_MEM_OBJECT);
    }
    assert_eq!(alloc(&cuda, 0), Err(R::ERROR_INVALID_USM_SIZE));
    assert_eq!(alloc(&cuda, usize::MAX), Err(R::ERROR_INVALID_USM_SIZE));
}
#[test]
fn host_memory_is_the_hosts_too() {
    let Some(cuda) = Cuda::new() else { return };
    let (mut at, on_device) = (null_mut(), cuda.device_memory(4096));
    assert_eq!(call!(usm.host_alloc(cuda.context, null(), NONE, 4096, &mut at)), R::SUCCESS);
    assert_eq!(type_of(&cuda, at), ur_usm_type_t::HOST);
    cuda.write(on_device, &numbers(7));
    cuda.write(at, &cuda.read::<u32, 1024>(on_device));
    assert_eq!(unsafe { at.cast::<[u32; 1024]>().read() }, numbers(7));
    cuda.free(at);
    cuda.free(on_device);
}
#[test]
fn freed_memory_is_used_again_and_what_a_pool_holds_is_counted() {
    let Some(cuda) = Cuda::new() else { return };
    let (stype, flags) = (ur_structure_type_t::USM_POOL_DESC, ur_usm_pool_flags_t::default());
    let mut desc = ur_usm_pool_desc_t { stype, pNext: null(), flags };
    let mut pool = NONE;
    assert_eq!(call!(usm.pool_create(cuda.context, &mut desc, &mut pool)), R::SUCCESS);
    let used = || {
        let (name, mut bytes) = (ur_usm_pool_info_t::USED_CURRENT_EXP, 0_usize);
        let to = (&raw mut bytes).cast();
        assert_eq!(call!(usm.pool_get_info(pool, name, 8, to, null_mut())), R::SUCCESS);
        bytes
    };
    let mut first = null_mut();
    for round in 0..100 {
        let mut at = null_mut();
        let code =
            call!(usm.device_alloc(cuda.context, cuda.device, null(), pool, 1 << 20, &mut at));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(used(), 1 << 20);
        first = if round == 0 { at } else { first };
        assert_eq!(at, first, "nothing uses it: it is the same again");
        cuda.free(at);
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
    let Some(cuda) = Cuda::new() else { return };
    let bytes = (1 << 20) + 256; // no other test's
    let (freed, queue) = (cuda.device_memory(bytes), cuda.queue);
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
    cuda.free(freed);
    let others: Vec<_> = (0..64).map(|_| cuda.device_memory(bytes)).collect();
    assert!(!others.contains(&freed), "a command that was enqueued before the free may use it");
    GATE.store(true, Release);
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    let again: Vec<_> = (0..64).map(|_| cuda.device_memory(bytes)).collect();
    assert!(again.contains(&freed), "now nothing does");
    others.into_iter().chain(again).for_each(|at| cuda.free(at));
}
#[test]
fn memory_comes_and_goes_in_a_queues_order() {
    let Some(cuda) = Cuda::new() else { return };
    let (queue, mut at) = (cuda.queue, null_mut());
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
        assert_eq!(type_of(&cuda, at), ur_usm_type_t::DEVICE);
        cuda.write(at, &numbers(3));
        assert_eq!(cuda.read::<u32, 1024>(at), numbers(3));
        let code = call!(enqueue_exp.usm_free_exp(queue, NONE, at, 0, null(), null_mut()));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(type_of(&cuda, at), ur_usm_type_t::UNKNOWN);
    }
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert_ne!(queue, ur_queue_handle_t::NULL);
}
#[test]
fn registered_host_memory_is_known_until_it_is_not() {
    let Some(cuda) = Cuda::new() else { return };
    let mut memory = vec![0_u32; 1 << 16];
    let (at, bytes) = (memory.as_mut_ptr().cast::<c_void>(), 4 << 16);
    let register = || call!(usm_exp.host_alloc_register_exp(cuda.context, at, bytes, null()));
    assert_eq!(register(), R::SUCCESS);
    assert_eq!(register(), R::ERROR_INVALID_VALUE);
    assert_eq!(type_of(&cuda, at.wrapping_byte_add(100)), ur_usm_type_t::HOST);
    assert_eq!(call!(usm_exp.host_alloc_unregister_exp(cuda.context, at)), R::SUCCESS);
    assert_eq!(call!(usm_exp.host_alloc_unregister_exp(cuda.context, at)), R::ERROR_INVALID_VALUE);
    assert_eq!(type_of(&cuda, at), ur_usm_type_t::UNKNOWN);
}

#[test]
fn two_mappings_of_one_memory_show_the_same() {
    let Some(cuda) = Cuda::new() else { return };
    let bytes = 2 * granule(&cuda);
    let memory = physical(&cuda, bytes);
    let (one, other) = (
        map(&cuda, memory, bytes, Access::READ_WRITE),
        map(&cuda, memory, bytes, Access::READ_WRITE),
    );
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
    cuda.write(one.at, &numbers(11));
    assert_eq!(cuda.read::<u32, 1024>(other.at), numbers(11));
    let half = bytes / 2;
    assert_eq!(call!(virtual_mem.unmap(cuda.context, one.at, half)), R::ERROR_INVALID_VALUE);
    let code = call!(virtual_mem.set_access(cuda.context, one.at, bytes, Access::READ_ONLY));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(cuda.read::<u32, 1024>(one.at), numbers(11));
    unmap(&cuda, one);
    assert_eq!(cuda.read::<u32, 1024>(other.at), numbers(11));
    unmap(&cuda, other);
}
#[test]
fn an_offset_that_the_driver_does_not_take_is_said_to_be_unsupported() {
    let Some(cuda) = Cuda::new() else { return };
    let granule = granule(&cuda);
    let (memory, mut at) = (physical(&cuda, 2 * granule), null_mut());
    assert_eq!(call!(virtual_mem.reserve(cuda.context, null(), granule, &mut at)), R::SUCCESS);
    for offset in [granule, 0] {
        let (context, access) = (cuda.context, Access::READ_WRITE);
        match call!(virtual_mem.map(context, at, granule, memory, offset, access)) {
            R::SUCCESS => {
                assert_eq!(call!(virtual_mem.unmap(context, at, granule)), R::SUCCESS);
            }
            code => assert_eq!(code, R::ERROR_UNSUPPORTED_FEATURE),
        }
    }
    let past =
        call!(virtual_mem.map(cuda.context, at, granule, memory, 2 * granule, Access::READ_WRITE));
    assert_eq!(past, R::ERROR_INVALID_VALUE);
    assert_eq!(call!(virtual_mem.free(cuda.context, at, granule)), R::SUCCESS);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
}

/// Nanoseconds for one round, the median of many.
fn median(mut round: impl FnMut()) -> u128 {
    let mut all: Vec<_> = (0..200)
        .map(|_| {
            let started = Instant::now();
            round();
            started.elapsed().as_nanos()
        })
        .collect();
    all.sort_unstable();
    all[100]
}
#[test]
fn a_megabyte_comes_and_goes_many_times_faster_than_the_drivers_own() {
    let Some(cuda) = Cuda::new() else { return };
    if std::env::var("CAUSEWAY_CUDA").as_deref() != Ok("real") {
        println!("skipped: a software driver's own time tells nothing");
        return;
    }
    let ours = median(|| cuda.free(cuda.device_memory(1 << 20)));
    let (driver, mut at) = (driver::Cuda::driver(), 0);
    let mut native = 0;
    assert_eq!(call!(context.get_native_handle(cuda.context, &mut native)), R::SUCCESS);
    let context = RawContext::from_addr(native).unwrap();
    assert_eq!(unsafe { driver.context_push(context) }.status(), Some(0));
    let raw = median(|| {
        assert_eq!(unsafe { driver.alloc(&mut at, 1 << 20) }.status(), Some(0));
        assert_eq!(unsafe { driver.free(at) }.status(), Some(0));
    });
    let mut popped = None;
    assert_eq!(unsafe { driver.context_pop(&mut popped) }.status(), Some(0));
    println!("alloc and free of 1 MiB: {ours} ns, the driver's own {raw} ns");
    let least = if cfg!(debug_assertions) { 5 } else { 20 };
    assert!(raw >= least * ours, "{ours} ns against the driver's {raw} ns");
}
