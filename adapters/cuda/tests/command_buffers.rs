//! Command buffers as a C program has them, on whatever driver of CUDA there is; without a device the tests say so and are
//! skipped.
mod c;
#[path = "c/command_buffers.rs"]
mod command_buffers_of_any;
#[path = "../../level-zero/tests/c/gate.rs"]
mod gate;
#[path = "c/usm.rs"]
mod usm;

use c::*;
use command_buffers_of_any::*;
use gate::Gate;
use std::ptr::{null, null_mut};
use ur_sys::{
    ur_mem_flags_t, ur_mem_handle_t, ur_queue_flags_t, ur_result_t as R,
    ur_virtual_mem_access_flags_t as Access,
};
use usm::*;

static ZERO: u32 = 0;

/// The one driver that refuses a command when it is submitted and not before.
#[test]
fn a_command_that_the_driver_refuses_ends_the_execution_and_what_came_before_it_stands() {
    let Some(cuda) = Cuda::new() else { return };
    let (context, granule, access) = (cuda.context, granule(&cuda), Access::READ_WRITE);
    let [a, b] = [(); 2].map(|()| cuda.device_memory(BYTES));
    let memory = physical(&cuda, granule);
    let Virtual { at: gone, .. } = map(&cuda, memory, granule, access);
    let [in_order, out_of_order] = two_queues(&cuda, ur_queue_flags_t::default());
    for (queue, other) in [(in_order, out_of_order), (out_of_order, in_order)] {
        let recorded = Recorded::new(&cuda, true, false);
        let (mut first, mut last) = (NO_EVENT, NO_EVENT);
        recorded.fill(a, 1, &[], &mut first);
        recorded.fill(gone, 2, &[], null_mut());
        recorded.fill(b, 3, &[], &mut last);
        recorded.finalize();
        for byte in [4_u8, 5] {
            [a, b].into_iter().for_each(|at| cuda.write(at, &[byte; BYTES]));
            assert_eq!(call!(virtual_mem.unmap(context, gone, granule)), R::SUCCESS);
            assert_eq!(recorded.try_run(queue), Err(R::ERROR_INVALID_VALUE));
            assert_eq!(call!(event.wait(1, &first)), R::SUCCESS);
            assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
            holds(&cuda, a, 1);
            holds(&cuda, b, byte);
            let mapped = call!(virtual_mem.map(context, gone, granule, memory, 0, access));
            assert_eq!(mapped, R::SUCCESS);
            // All of it again, also in a queue of the other kind.
            wait_and_release(recorded.run(other));
            [(a, 1), (gone, 2), (b, 3)].into_iter().for_each(|(at, byte)| holds(&cuda, at, byte));
            assert_eq!(call!(event.wait(1, &last)), R::SUCCESS);
        }
        [first, last].into_iter().for_each(wait_and_release);
        recorded.release();
    }
    unmap(&cuda, Virtual { at: gone, bytes: granule });
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
    [in_order, out_of_order].into_iter().for_each(release_queue);
    [a, b].into_iter().for_each(|at| cuda.free(at));
}
#[test]
fn kernels_and_buffers_are_there_until_the_executions_of_a_released_command_buffer_are_over() {
    let Some(cuda) = Cuda::new() else { return };
    let (five, none) = (5_u32, null_mut());
    for queue in two_queues(&cuda, ur_queue_flags_t::default()) {
        let mut buffer = ur_mem_handle_t::NULL;
        let (flags, bytes) = (ur_mem_flags_t::READ_WRITE, size_of::<[u32; 64]>());
        let made = call!(mem.buffer_create(cuda.context, flags, bytes, null(), &mut buffer));
        assert_eq!(made, R::SUCCESS);
        let kernel = cuda.kernel_of(include_str!("kernels.ptx"), c"add");
        let recorded = Recorded::new(&cuda, true, false);
        let zero = (&raw const ZERO).cast();
        let cleared = call!(command_buffer_exp.append_mem_buffer_fill_exp(
            recorded.handle,
            buffer,
            zero,
            4,
            0,
            bytes,
            0,
            null(),
            0,
            null(),
            null_mut(),
            none,
            null_mut()
        ));
        assert_eq!(cleared, R::SUCCESS);
        for _ in 0..3 {
            let arguments = [memory(0, buffer), value(1, &five)];
            let (global, local) = ([64_usize], [64_usize]);
            let appended = call!(command_buffer_exp.append_kernel_launch_with_args_exp(
                recorded.handle,
                kernel,
                1,
                null(),
                global.as_ptr(),
                local.as_ptr(),
                arguments.len() as u32,
                arguments.as_ptr(),
                0,
                null_mut(),
                0,
                null(),
                0,
                null(),
                null_mut(),
                none,
                null_mut()
            ));
            assert_eq!(appended, R::SUCCESS);
        }
        cuda.release(kernel);
        recorded.finalize();
        let gate = Gate::shut();
        gate.hold(queue);
        let runs = [(); 3].map(|()| recorded.run(queue));
        recorded.release();
        gate.open();
        runs.into_iter().for_each(wait_and_release);
        let mut found = [0_u32; 64];
        let to = found.as_mut_ptr().cast();
        let read =
            call!(enqueue.mem_buffer_read(queue, buffer, true, 0, bytes, to, 0, null(), none));
        assert_eq!((read, found), (R::SUCCESS, [15; 64]));
        assert_eq!(call!(mem.release(buffer)), R::SUCCESS);
        release_queue(queue);
    }
}
