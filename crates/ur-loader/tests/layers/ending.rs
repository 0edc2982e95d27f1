//! A program whose loader ends while another thread calls it.
use super::*;
use std::{io::Write, thread};

/// More reports of leaks than a pipe takes, so that whoever does not read it holds the layers' end up; and a thread
/// that says when the loader has ended for it.
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
