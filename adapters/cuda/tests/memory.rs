//! Memory as a C program has it, on whatever driver of CUDA there is; without a device the tests say so and are
//! skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "c/memory.rs"]
mod memory_of_any;
#[path = "c/usm.rs"]
mod usm;

use c::*;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicBool, Ordering::*},
    time::{Duration, Instant},
};
use ur_cuda::driver::{self, Dialect, RawContext};
use ur_sys::{
    ur_buffer_properties_t, ur_mem_flags_t as F, ur_mem_handle_t, ur_result_t as R,
    ur_structure_type_t, ur_virtual_mem_access_flags_t as Access,
};
use usm::*;

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

/// Opened by the test below alone.
static LAST: AtomicBool = AtomicBool::new(false);
unsafe extern "C" fn wait_for_the_last(_data: *mut c_void) {
    let started = Instant::now();
    while !LAST.load(Acquire) && started.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    LAST.store(true, Release); // a call that waits for this comes back and is found out
}
#[test]
fn copies_to_addresses_where_nothing_is_mapped_are_refused_and_take_nothing_with_them() {
    let Some(cuda) = Cuda::new() else { return };
    let (context, granule, mut base) = (cuda.context, granule(&cuda), null_mut());
    assert_eq!(call!(virtual_mem.reserve(context, null(), 2 * granule, &mut base)), R::SUCCESS);
    let (memory, access) = (physical(&cuda, granule), Access::READ_WRITE);
    assert_eq!(call!(virtual_mem.map(context, base, granule, memory, 0, access)), R::SUCCESS);
    let at = base.wrapping_byte_add(granule); // behind what is mapped
    let (on_device, numbers) = (cuda.device_memory(4096), numbers(3));
    let (queue, none) = (cuda.queue, null_mut());
    let hold = || {
        let (wait, data) = (wait_for_the_last, null_mut());
        call!(enqueue_exp.host_task_exp(queue, Some(wait), data, null(), 0, null(), none))
    };
    assert_eq!(hold(), R::SUCCESS);
    let copy = |to: *mut c_void, from: *const c_void| {
        call!(enqueue.usm_memcpy(queue, false, to, from, 4096, 0, null(), none))
    };
    let mut got = [0_u32; 1024];
    // More often than there are pinned pieces for copies that the caller does not wait for.
    for _ in 0..300 {
        assert_eq!(copy(at, numbers.as_ptr().cast()), R::ERROR_INVALID_VALUE);
        assert_eq!(copy(at, on_device), R::ERROR_INVALID_VALUE);
        assert_eq!(copy(got.as_mut_ptr().cast(), at), R::ERROR_INVALID_VALUE);
        assert_ne!(copy(at.wrapping_byte_sub(2048), numbers.as_ptr().cast()), R::SUCCESS);
    }
    // Of pieces that are under way there are enough when these are not.
    LAST.store(true, Release);
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    LAST.store(false, Release);
    assert_eq!((hold(), copy(on_device, numbers.as_ptr().cast())), (R::SUCCESS, R::SUCCESS));
    assert_eq!(copy(got.as_mut_ptr().cast(), on_device), R::SUCCESS);
    assert!(!LAST.swap(true, AcqRel), "a copy waited for the queue");
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert!(got == numbers);
    assert_eq!(call!(virtual_mem.unmap(context, base, granule)), R::SUCCESS);
    assert_eq!(call!(virtual_mem.free(context, base, 2 * granule)), R::SUCCESS);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
    cuda.free(on_device);
}

#[test]
fn no_call_is_killed_by_addresses_where_nothing_is_mapped() {
    let Some(cuda) = Cuda::new() else { return };
    let hollow = Hollow::new(&cuda);
    hollow.refuses_commands();
    let (context, queue, none) = (cuda.context, cuda.queue, null_mut());
    for at in hollow.places() {
        for (flags, bytes) in [(F::ALLOC_COPY_HOST_POINTER, 4096), (F::USE_HOST_POINTER, 4096)] {
            let mut buffer = ur_mem_handle_t::NULL;
            let properties = ur_buffer_properties_t {
                stype: ur_structure_type_t::BUFFER_PROPERTIES,
                pNext: null_mut(),
                pHost: at,
            };
            let made = call!(mem.buffer_create(context, flags, bytes, &properties, &mut buffer));
            assert_eq!(made, R::ERROR_INVALID_VALUE);
        }
    }
    let mut buffer = ur_mem_handle_t::NULL;
    let made = call!(mem.buffer_create(context, F::READ_WRITE, 4096, null(), &mut buffer));
    assert_eq!(made, R::SUCCESS);
    for blocking in [true, false] {
        let at = hollow.base();
        let read =
            call!(enqueue.mem_buffer_read(queue, buffer, blocking, 0, 4096, at, 0, null(), none));
        let write =
            call!(enqueue.mem_buffer_write(queue, buffer, blocking, 0, 4096, at, 0, null(), none));
        assert_eq!((read, write), (R::ERROR_INVALID_VALUE, R::ERROR_INVALID_VALUE));
    }
    assert_eq!(call!(mem.release(buffer)), R::SUCCESS);
    hollow.end();
}

/// Opened by the test below alone.
static LONG: AtomicBool = AtomicBool::new(false);
unsafe extern "C" fn wait_before_the_long(_data: *mut c_void) {
    let started = Instant::now();
    while !LONG.load(Acquire) && started.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    LONG.store(true, Release); // a call that waits for this comes back and is found out
}
#[test]
fn a_fill_with_a_pattern_of_any_length_waits_for_nothing_and_takes_the_pattern_at_once() {
    let Some(cuda) = Cuda::new() else { return };
    let (queue, none, once, words) = (cuda.queue, null_mut(), 9 << 20, (9_usize << 20) / 4);
    let number = |n: usize| (n as u32).wrapping_mul(2_654_435_761); // no two alike
    let mut pattern: Vec<u32> = (0..words).map(number).collect();
    let (at, mut got) = (cuda.device_memory(2 * once), vec![0_u32; 2 * words]);
    let wait: unsafe extern "C" fn(*mut c_void) = wait_before_the_long;
    let held =
        call!(enqueue_exp.host_task_exp(queue, Some(wait), null_mut(), null(), 0, null(), none));
    assert_eq!(held, R::SUCCESS);
    let from = pattern.as_ptr().cast();
    let fill = call!(enqueue.usm_fill(queue, at, once, from, 2 * once, 0, null(), none));
    assert_eq!(fill, R::SUCCESS);
    assert!(!LONG.swap(true, AcqRel), "the fill waited for the queue");
    pattern.fill(0);
    let to = got.as_mut_ptr().cast();
    let read = call!(enqueue.usm_memcpy(queue, true, to, at, 2 * once, 0, null(), none));
    assert_eq!(read, R::SUCCESS);
    assert!((0..2 * words).all(|n| got[n] == number(n % words)));
    cuda.free(at);
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

#[test]
fn fills_of_patterns_that_the_driver_has_a_call_for_are_one_call_whatever_their_form() {
    let Some(cuda) = Cuda::new() else { return };
    let library = unsafe { libloading::Library::new("libcuda.so.1") }.unwrap();
    let calls = unsafe { library.get::<unsafe extern "C" fn() -> u64>(b"softCudaCalls") };
    let Ok(calls) = calls else {
        return println!("skipped: this driver does not count its calls");
    };
    const PITCH: usize = 256;
    let at = cuda.device_memory(64 * PITCH);
    let fill = |pattern: &[u8], width: usize, height: usize| {
        cuda.write(at, &[0_u8; 64 * PITCH]);
        let (bytes, none) = (pattern.as_ptr().cast(), null_mut());
        let before = unsafe { calls() };
        let (queue, length) = (cuda.queue, pattern.len());
        let code = call!(enqueue.usm_fill_2d(
            queue,
            at,
            PITCH,
            length,
            bytes,
            width,
            height,
            0,
            null(),
            none
        ));
        assert_eq!(code, R::SUCCESS);
        let made = unsafe { calls() } - before;
        let found: [u8; 64 * PITCH] = cuda.read(at);
        let mut running = pattern.iter().cycle();
        for (number, row) in found.chunks(PITCH).enumerate() {
            let (inside, outside) = row.split_at(if number < height { width } else { 0 });
            assert!(inside.iter().all(|byte| Some(byte) == running.next()), "{pattern:?}");
            assert!(outside.iter().all(|byte| *byte == 0), "{pattern:?}");
        }
        made
    };
    let patterns: [&[u8]; 7] = [
        &[1],
        &[1, 2],
        &[1, 2, 3, 4],
        &[1, 2, 1, 2],
        &[1, 2, 3, 4, 1, 2, 3, 4],
        &[3; 16],
        &[1, 2].repeat(32),
    ];
    // Rows with room between them, and rows without.
    for (width, height) in [(64, 32), (PITCH, 64)] {
        let least = fill(&[9], width, height);
        for pattern in patterns {
            assert_eq!(fill(pattern, width, height), least, "{pattern:?}, {width} bytes a row");
        }
    }
    cuda.free(at);
}
