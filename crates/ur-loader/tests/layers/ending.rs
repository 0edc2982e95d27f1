//! A program that ends the loader while another thread calls it.
use super::*;
use std::{io::Write, thread};

/// Makes more leak reports than fit into a pipe, so that the end of the layers blocks until the pipe is read;
/// another thread prints when its calls find the loader ended.
pub fn with_many_leaks(world: &World) {
    let none = ur_context_handle_t::NULL;
    for _ in 0..1000 {
        made(none, |to| unsafe { context_create(1, &world.device, null(), to) });
    }
    let adapters = || unsafe { adapter_get(0, null_mut(), &mut 0) };
    thread::spawn(move || {
        while adapters() == ur_result_t::SUCCESS {
            thread::yield_now();
        }
        assert_eq!(adapters(), ur_result_t::ERROR_UNINITIALIZED);
        println!("down");
        std::io::stdout().flush().unwrap();
    });
}
