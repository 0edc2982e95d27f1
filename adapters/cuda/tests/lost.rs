//! What is left when a device is lost: here one whose kernel used an address that it does not reach. Each test runs in a process
//! of its own, since the device stays lost in it.
mod c;
#[path = "../../level-zero/tests/c/calls.rs"]
mod calls;
#[path = "../../level-zero/tests/c/gate.rs"]
mod gate;

use c::*;
use calls::*;
use gate::Gate;
use std::ptr::{null, null_mut};
use ur_sys::{ur_queue_flags_t as Flags, ur_result_t as R, *};

const BYTES: usize = 4096;

#[test]
fn what_a_lost_device_was_to_write_is_read_by_nobody() {
    let name = "what_a_lost_device_was_to_write_is_read_by_nobody";
    if !is_alone(name, &[]) {
        return;
    }
    let Some([lost, well]) = One::pair() else { return };
    let mut mem = ur_mem_handle_t::NULL;
    let flags = ur_mem_flags_t::READ_WRITE;
    let made = call!(mem.buffer_create(lost.context, flags, BYTES, null(), &mut mem));
    assert_eq!(made, R::SUCCESS);
    let fill = |one: &One, byte: u8, bytes| {
        let (queue, pattern, none) = (one.queue, (&raw const byte).cast(), null_mut());
        call!(enqueue.mem_buffer_fill(queue, mem, pattern, 1, 0, bytes, 0, null(), none))
    };
    let read = |one: &One| {
        let (queue, mut seen) = (one.queue, [0_u8; BYTES]);
        let (to, list, none) = (seen.as_mut_ptr().cast(), null(), null_mut());
        let code = call!(enqueue.mem_buffer_read(queue, mem, true, 0, BYTES, to, 0, list, none));
        (code, seen)
    };
    assert_eq!(fill(&well, b'a', BYTES), R::SUCCESS);
    assert_eq!(read(&well), (R::SUCCESS, [b'a'; BYTES]));
    let lose = lost.ready_to_lose();
    let (gate, held) = (Gate::shut(), queue(&well, Flags(0)));
    gate.hold(held);
    let shut = barrier(held, &[]);
    let_go(barrier(lost.queue, &[shut]));
    let_go(shut);
    lose();
    assert_eq!(fill(&lost, b'b', BYTES), R::SUCCESS);
    gate.open();
    assert_eq!(call!(queue.finish(lost.queue)), R::ERROR_DEVICE_LOST);
    // A device that reached for what it may not takes the others of the process with it (driver 580, two H200s).
    for one in [&well, &lost] {
        assert_eq!(read(one).0, R::ERROR_DEVICE_LOST);
        assert_eq!(fill(one, b'c', BYTES), R::ERROR_DEVICE_LOST);
    }
    assert_eq!(call!(mem.release(mem)), R::SUCCESS);
    assert_eq!(call!(queue.release(held)), R::SUCCESS);
}
