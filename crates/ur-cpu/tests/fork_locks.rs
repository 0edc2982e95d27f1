//! What a forked child is answered that uses objects of its parent while other threads of the parent use them: the threads
//! are not there in the child, and what they had locked at the fork stays locked.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod common;
use common::{code::*, lanes::Any, ur::*};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
};
use ur_result_t as R;

#[test]
fn role() {
    common::role();
}
const FORKS: usize = 60;
/// Held by each test here: what another test's thread is about to make for the whole process at a fork, a child would wait for.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
const NO_EVENT: *mut ur_event_handle_t = null_mut();

/// Has threads of this process `work` while it forks children, which `ask`. A child must be told `UNINITIALIZED`, and may
/// release what it inherited.
fn inherit(work: impl Fn() -> R + Sync, ask: impl Fn() -> R, release: impl Fn() -> R) {
    assert_eq!(work(), R::SUCCESS); // which has made by now what it makes for the whole process
    let is_over = AtomicBool::new(false);
    let wrong = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    assert_eq!(work(), R::SUCCESS);
                }
            });
        }
        let wrong = (0..FORKS).map(|_| child(&ask, &release)).find(|&status| status != 0);
        is_over.store(true, SeqCst);
        wrong
    });
    assert_eq!(wrong, None, "the status of a child that was answered wrongly, or hung");
}
/// The status with which a child ends that asks and releases; 0 if it is answered as it should be.
fn child(ask: impl Fn() -> R, release: impl Fn() -> R) -> i32 {
    match unsafe { libc::fork() } {
        0 => {
            unsafe { libc::alarm(10) }; // ends a child that hangs
            let is_told = ask() == R::ERROR_UNINITIALIZED;
            let is_released = release() == R::SUCCESS;
            unsafe { libc::_exit(i32::from(!is_told) + 2 * i32::from(!is_released)) }
        }
        child => {
            let mut status = 0;
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            status
        }
    }
}

unsafe extern "C" fn delete(_: *mut c_void) {}
#[test]
fn functions_for_the_end_of_a_context() {
    let _alone = alone();
    let ur = Any(Ur::new());
    let add = || call!(context.set_extended_deleter(ur.context, Some(delete), null_mut()));
    inherit(add, add, || call!(context.release(ur.context)));
}
#[test]
fn blocks_of_a_pool() {
    let _alone = alone();
    let (ur, mut pool) = (Any(Ur::new()), ur_usm_pool_handle_t::NULL);
    let (stype, flags) = (ur_structure_type_t::USM_POOL_DESC, ur_usm_pool_flags_t::default());
    let mut desc = ur_usm_pool_desc_t { stype, pNext: null(), flags };
    assert_eq!(call!(usm.pool_create(ur.context, &mut desc, &mut pool)), R::SUCCESS);
    let pool = Any(pool);
    let alloc = || {
        let mut at = null_mut();
        match call!(usm.device_alloc(ur.context, ur.device, null(), *pool, 64, &mut at)) {
            R::SUCCESS => call!(usm.free(ur.context, at)),
            code => code,
        }
    };
    inherit(alloc, alloc, || call!(usm.pool_release(*pool)));
}
#[test]
fn mappings_of_a_buffer() {
    let _alone = alone();
    let ur = Any(Ur::new());
    let queue = Any(ur.new_queue(ur_queue_flags_t::default()));
    let (mut buffer, flags) = (ur_mem_handle_t::NULL, ur_mem_flags_t::READ_WRITE);
    assert_eq!(call!(mem.buffer_create(ur.context, flags, 64, null(), &mut buffer)), R::SUCCESS);
    let buffer = Any(buffer);
    let map = || {
        let (mut at, flags) = (null_mut(), ur_map_flags_t::READ);
        let code = call!(enqueue.mem_buffer_map(
            *queue,
            *buffer,
            true,
            flags,
            0,
            64,
            0,
            null(),
            NO_EVENT,
            &mut at
        ));
        match code {
            R::SUCCESS => call!(enqueue.mem_unmap(*queue, *buffer, at, 0, null(), NO_EVENT)),
            code => code,
        }
    };
    // In the child the queue is new, so that it is the buffer that is asked.
    let unmap = || {
        let (queue, at) = (ur.new_queue(ur_queue_flags_t::default()), (&raw const map).cast_mut());
        call!(enqueue.mem_unmap(queue, *buffer, at.cast(), 0, null(), NO_EVENT))
    };
    inherit(map, unmap, || call!(mem.release(*buffer)));
}
#[test]
fn a_reusable_event() {
    let _alone = alone();
    let ur = Any(Ur::new());
    let (queue, mut event) = (Any(ur.new_queue(ur_queue_flags_t::default())), NO_HANDLE);
    let stype = ur_structure_type_t::EXP_EVENT_DESC;
    let desc = ur_exp_event_desc_t { stype, pNext: null_mut(), flags: Default::default() };
    assert_eq!(call!(event_exp.create_exp(ur.context, ur.device, &desc, &mut event)), R::SUCCESS);
    let event = Any(event);
    let signal = || {
        let mut signalled = *event;
        call!(enqueue.events_wait_with_barrier_ext(*queue, null(), 0, null(), &mut signalled))
    };
    let ask = || {
        let (name, mut status) = (ur_event_info_t::COMMAND_EXECUTION_STATUS, 0_u32);
        call!(event.get_info(*event, name, 4, (&raw mut status).cast(), null_mut()))
    };
    inherit(signal, ask, || call!(event.release(*event)));
}
const NO_HANDLE: ur_event_handle_t = ur_event_handle_t::NULL;
#[test]
fn commands_of_a_queue() {
    let _alone = alone();
    let ur = Any(Ur::new());
    for flags in [ur_queue_flags_t::default(), ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let queue = Any(ur.new_queue(flags));
        let barrier = || call!(enqueue.events_wait_with_barrier(*queue, 0, null(), NO_EVENT));
        inherit(barrier, barrier, || call!(queue.release(*queue)));
    }
}
#[test]
fn builds_of_a_program() {
    let _alone = alone();
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let program = Any(codes.program(example).unwrap());
    let context = Any(codes.ur.context);
    let build = || call!(program.build(*context, *program, null()));
    assert_eq!(build(), R::SUCCESS);
    inherit(build, build, || call!(program.release(*program)));
}
#[test]
fn the_group_size_that_a_kernel_chose() {
    let _alone = alone();
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let (queue, kernel) = (Any(codes.queue), Any(codes.kernel_of(example, "describe")));
    let choose = || {
        let (mut local, global) = ([0_usize; 3], [64_usize; 3]);
        let (zero, to) = ([0_usize; 3], local.as_mut_ptr());
        call!(kernel.get_suggested_local_work_size(
            *kernel,
            *queue,
            3,
            zero.as_ptr(),
            global.as_ptr(),
            to
        ))
    };
    inherit(choose, choose, || call!(kernel.release(*kernel)));
}
