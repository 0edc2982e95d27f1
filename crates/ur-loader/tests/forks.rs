//! Children that are forked while other threads of the parent are inside the loader: locks that those threads
//! held must not block the child.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
use std::{
    ptr::null_mut,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};
use ur_loader::{config::*, entry::*, life::*};
use ur_sys::*;

const OK: ur_result_t = ur_result_t::SUCCESS;
const CHILDREN: usize = 100;

/// Uses and ends the loader as a program does; returns the number of the step that failed, or 0.
fn cycle() -> i32 {
    unsafe {
        let mut config = ur_loader_config_handle_t::NULL;
        if loader_config_create(&mut config) != OK {
            return 1;
        }
        if loader_init(ur_device_init_flags_t(0), config) != OK {
            return 2;
        }
        let mut count = 0;
        if adapter_get(0, null_mut(), &mut count) != OK || count != 1 {
            return 3;
        }
        if loader_tear_down() != OK || loader_config_release(config) != OK {
            return 4;
        }
    }
    0
}
/// Stops the threads, also when an assertion fails.
struct End<'a>(&'a AtomicBool);
impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn children_start_ask_and_end_the_loader_whatever_other_threads_of_the_parent_were_at() {
    // One adapter, which is linked in, so that no file is opened.
    unsafe { std::env::set_var("ONEAPI_DEVICE_SELECTOR", "native_cpu:*") };
    assert_eq!(cycle(), 0);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = End(&over);
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    assert_eq!(cycle(), 0);
                }
            });
        }
        for _ in 0..CHILDREN {
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            if child == 0 {
                unsafe {
                    libc::alarm(60); // ends a child that hangs
                    libc::_exit(cycle());
                }
            }
            let mut status = 0;
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0, "a child did not end well");
        }
    });
}
