//! What a forked child releases of its parent's objects stays the parent's: the child does not call the driver, which would
//! destroy what the parent still uses. On the software driver, which names each call.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "forks"
)]
mod c;
#[path = "c/spirv.rs"]
mod spirv;

use c::*;
use std::{
    fs::File,
    io::Read,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr::null,
};
use ur_sys::{ur_result_t as R, *};

/// Runs `work` in a forked child, and returns what the child wrote to its standard error.
fn said_by_a_child(work: impl FnOnce()) -> String {
    let (mut said, (read, write)) = (String::new(), pipe());
    match unsafe { libc::fork() } {
        0 => unsafe {
            assert_eq!(libc::dup2(write.as_raw_fd(), 2), 2);
            work();
            libc::_exit(0)
        },
        child => {
            assert!(child > 0);
            drop(write);
            File::from(read).read_to_string(&mut said).unwrap();
            let mut status = 0;
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "{said}");
            said
        }
    }
}
fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [-1; 2];
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) }
}

#[test]
fn what_a_child_releases_stays_the_parents() {
    if !is_inside("what_a_child_releases_stays_the_parents", &[("ZE_SOFTWARE_TRACE", "1")]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let (words, mut program) = (spirv::special(), ur_program_handle_t::NULL);
    let (at, bytes) = (words.as_ptr().cast(), size_of_val(&*words));
    assert_eq!(
        call!(program.create_with_il(zero.context, at, bytes, null(), &mut program)),
        R::SUCCESS
    );
    assert_eq!(call!(program.build(zero.context, program, null())), R::SUCCESS);
    let (mut kernel, mut queue) = (ur_kernel_handle_t::NULL, ur_queue_handle_t::NULL);
    assert_eq!(call!(kernel.create(program, c"put".as_ptr(), &mut kernel)), R::SUCCESS);
    assert_eq!(call!(queue.create(zero.context, zero.device, null(), &mut queue)), R::SUCCESS);
    let (memory, byte) = (zero.device_memory(4096), 7_u8);
    let mut event = ur_event_handle_t::NULL;
    let (from, to) = ((&raw const byte).cast(), &raw mut event);
    assert_eq!(
        call!(enqueue.usm_fill(queue, memory, 1usize, from, 4096usize, 0, null(), to)),
        R::SUCCESS
    );
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    let said = said_by_a_child(|| {
        let _released = [
            call!(event.release(event)),
            call!(kernel.release(kernel)),
            call!(program.release(program)),
            call!(queue.release(queue)),
            call!(queue.release(zero.queue)),
            call!(context.release(zero.context)),
        ];
    });
    assert_eq!(said, "", "the child called the driver");
    // All of it still works here.
    assert_eq!(zero.read::<u8, 4096>(memory), [7; 4096]);
    assert_eq!(call!(event.release(event)), R::SUCCESS);
    assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
    assert_eq!(call!(program.release(program)), R::SUCCESS);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    zero.free(memory);
}
