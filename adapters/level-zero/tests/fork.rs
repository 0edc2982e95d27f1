//! A forked child is refused whatever it asks of a queue, of its parent's or a new one, instead of waiting for ever for threads
//! that it does not have. What it releases of its parent's objects stays the parent's: the child does not call the driver, which would
//! destroy what the parent still uses. On the software driver, which names each call.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "forks"
)]
mod c;
#[path = "c/gate.rs"]
mod gate;
#[path = "c/spirv.rs"]
mod spirv;

use c::*;
use gate::Gate;
use std::{
    fs::File,
    io::Read,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::{null, null_mut, with_exposed_provenance_mut},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
};
use ur_sys::{ur_result_t as R, *};

/// Held by each test here: what another test's thread is about to make for the whole process at a fork, a child would wait for.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
/// Runs `work` in a forked child, and returns what the child wrote to its standard error.
fn said_by_a_child(work: impl FnOnce()) -> String {
    let (mut said, (read, write)) = (String::new(), pipe());
    match unsafe { libc::fork() } {
        0 => unsafe {
            assert_eq!(libc::dup2(write.as_raw_fd(), 2), 2);
            let panicked = catch_unwind(AssertUnwindSafe(work)).is_err();
            libc::_exit(i32::from(panicked))
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
    let _alone = alone();
    let Some(zero) = Zero::new() else { return };
    let program = spirv::built(&zero, &spirv::special());
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

#[test]
fn a_child_is_refused_what_would_call_the_driver() {
    if !is_inside("a_child_is_refused_what_would_call_the_driver", &[("ZE_SOFTWARE_TRACE", "1")]) {
        return;
    }
    let _alone = alone();
    let Some(zero) = Zero::new() else { return };
    let words = spirv::special();
    let program = spirv::program(&zero, &words);
    let (il, bytes) = (words.as_ptr().cast(), size_of_val(&*words));
    let create = |program| call!(program.create_with_il(zero.context, il, bytes, null(), program));
    let (page, mut at) = (2_usize << 20, null_mut());
    let reserve = |at| call!(virtual_mem.reserve(zero.context, null(), page, at));
    assert_eq!(reserve(&mut at), R::SUCCESS);
    let stype = ur_structure_type_t::PHYSICAL_MEM_PROPERTIES;
    let flags = ur_physical_mem_flags_t::default();
    let properties = ur_physical_mem_properties_t { stype, pNext: null_mut(), flags };
    let mut memory = ur_physical_mem_handle_t::NULL;
    let make =
        |memory| call!(physical_mem.create(zero.context, zero.device, page, &properties, memory));
    assert_eq!(make(&mut memory), R::SUCCESS);
    let said = said_by_a_child(|| {
        let access = ur_virtual_mem_access_flags_t::READ_WRITE;
        let (mut sampler, mut buffer) = (ur_sampler_handle_t::NULL, ur_mem_handle_t::NULL);
        let sampled = ur_sampler_desc_t {
            stype: ur_structure_type_t::SAMPLER_DESC,
            pNext: null_mut(),
            normalizedCoords: false,
            addressingMode: ur_sampler_addressing_mode_t::NONE,
            filterMode: ur_sampler_filter_mode_t::NEAREST,
        };
        let (mut usm, flags) = (null_mut(), ur_mem_flags_t::READ_WRITE);
        let codes = [
            create(&mut program.clone()),
            call!(program.build(zero.context, program, null())),
            reserve(&mut at.clone()),
            make(&mut memory.clone()),
            call!(virtual_mem.map(zero.context, at, page, memory, 0, access)),
            call!(virtual_mem.unmap(zero.context, at, page)),
            call!(virtual_mem.free(zero.context, at, page)),
            call!(sampler.create(zero.context, &sampled, &mut sampler)),
            call!(mem.buffer_create(zero.context, flags, page, null(), &mut buffer)),
            call!(usm.host_alloc(zero.context, null(), NO_POOL, 64, &mut usm)),
        ];
        for (place, code) in codes.into_iter().enumerate() {
            if code != R::ERROR_UNINITIALIZED {
                eprintln!("call {place}: {code:?}");
            }
        }
    });
    assert_eq!(said, "", "the child called the driver, or was not refused");
    assert_eq!(call!(virtual_mem.free(zero.context, at, page)), R::SUCCESS);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
    assert_eq!(call!(program.release(program)), R::SUCCESS);
}
const NO_POOL: ur_usm_pool_handle_t = ur_usm_pool_handle_t::NULL;

/// The parent's in-order queue, idle or with a command that is held up, and its out-of-order one.
#[test]
fn a_child_is_refused_whatever_it_asks_of_a_queue() {
    let _alone = alone();
    let Some(zero) = Zero::new() else { return };
    let (context, device, none) = (zero.context, zero.device, null_mut());
    let (memory, byte, mut fetched) = (zero.device_memory(64), 7_u8, [0_u8; 64]);
    let mut buffer = ur_exp_command_buffer_handle_t::NULL;
    let desc = ur_exp_command_buffer_desc_t { isUpdatable: 1, ..IN_ORDER_COMMANDS };
    let made = call!(command_buffer_exp.create_exp(context, device, &desc, &mut buffer));
    assert_eq!(made, R::SUCCESS);
    let pattern: *const std::ffi::c_void = (&raw const byte).cast();
    let (points, events, no_point) = (null(), null(), null_mut());
    let mut command = ur_exp_command_buffer_command_handle_t::NULL;
    let mut of_command = ur_event_handle_t::NULL;
    let append = |of_command, command| {
        call!(command_buffer_exp.append_usm_fill_exp(
            buffer, memory, pattern, 1usize, 64usize, 0, points, 0, events, no_point, of_command,
            command
        ))
    };
    assert_eq!(append(&raw mut of_command, &raw mut command), R::SUCCESS);
    assert_eq!(call!(command_buffer_exp.finalize_exp(buffer)), R::SUCCESS);
    let flags = ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let stype = ur_structure_type_t::QUEUE_PROPERTIES;
    let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
    let mut free = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(context, device, &raw const properties, &mut free)), R::SUCCESS);
    let gate = Gate::shut();
    let mut event = ur_event_handle_t::NULL;
    for is_busy in [false, true] {
        if is_busy {
            gate.hold(zero.queue);
        }
        let to = &raw mut event;
        let filled =
            call!(enqueue.usm_fill(zero.queue, memory, 1usize, pattern, 64usize, 0, null(), to));
        assert_eq!(filled, R::SUCCESS);
        if !is_busy {
            assert_eq!(call!(queue.finish(zero.queue)), R::SUCCESS);
        }
        said_by_a_child(|| {
            unsafe { libc::alarm(60) }; // ends a child that hangs
            let refused = |name: &str, code| assert_eq!(code, R::ERROR_UNINITIALIZED, "{name}");
            let mut new = ur_queue_handle_t::NULL;
            refused("create", call!(queue.create(context, device, null(), &mut new)));
            let mut status = ur_event_status_t::COMPLETE;
            let (name, at) = (ur_event_info_t::COMMAND_EXECUTION_STATUS, (&raw mut status).cast());
            refused("status", call!(event.get_info(event, name, 4usize, at, null_mut())));
            refused("wait", call!(event.wait(1, &raw const event)));
            refused("append", append(null_mut(), null_mut()));
            refused("finalize", call!(command_buffer_exp.finalize_exp(buffer)));
            let to = &raw mut of_command;
            refused("signal", call!(command_buffer_exp.update_signal_event_exp(command, to)));
            let waits = call!(command_buffer_exp.update_wait_events_exp(command, 0, null()));
            refused("waits", waits);
            for queue in [zero.queue, free] {
                let (at, waits) = (fetched.as_mut_ptr().cast(), &raw const event);
                let fetch = |count, waits| {
                    call!(enqueue.usm_memcpy(queue, true, at, memory, 64usize, count, waits, none))
                };
                refused("a copy", fetch(0, null()));
                refused("a copy behind an event", fetch(1, waits));
                let barrier = call!(enqueue.events_wait_with_barrier(queue, 0, null(), none));
                refused("a barrier", barrier);
                let replay = call!(enqueue_exp.command_buffer_exp(queue, buffer, 0, null(), none));
                refused("a command buffer", replay);
                refused("flush", call!(queue.flush(queue)));
                refused("finish", call!(queue.finish(queue)));
                let mut native: ur_native_handle_t = 0;
                let native = call!(queue.get_native_handle(queue, null_mut(), &mut native));
                refused("native handle", native);
            }
        });
        if is_busy {
            gate.open();
        }
        assert_eq!(call!(event.wait(1, &raw const event)), R::SUCCESS);
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
    assert_eq!(zero.read::<u8, 64>(memory), [7; 64]);
    assert_eq!(call!(event.release(of_command)), R::SUCCESS);
    assert_eq!(call!(command_buffer_exp.release_exp(buffer)), R::SUCCESS);
    assert_eq!(call!(queue.release(free)), R::SUCCESS);
    zero.free(memory);
}

/// The commands of a capture are the parent's, as is the capture.
#[test]
fn a_child_is_refused_what_it_asks_of_a_capture_and_gives_up_its_handles() {
    let _alone = alone();
    let Some(zero) = Zero::new() else { return };
    let (queue, memory, byte) = (zero.queue, zero.device_memory(64), 7_u8);
    let fill = |event| {
        let pattern = (&raw const byte).cast();
        call!(enqueue.usm_fill(queue, memory, 1usize, pattern, 64usize, 0, null(), event))
    };
    let (mut event, mut graph) = (ur_event_handle_t::NULL, ur_exp_graph_handle_t::NULL);
    assert_eq!(call!(queue_exp.begin_graph_capture_exp(queue)), R::SUCCESS);
    assert_eq!(fill(&raw mut event), R::SUCCESS);
    assert_eq!(call!(queue_exp.get_graph_exp(queue, &mut graph)), R::SUCCESS);
    said_by_a_child(|| {
        unsafe { libc::alarm(60) }; // ends a child that hangs
        let refused = |name: &str, code| assert_eq!(code, R::ERROR_UNINITIALIZED, "{name}");
        let (mut same, mut is_empty) = (ur_exp_graph_handle_t::NULL, false);
        let mut executable = ur_exp_executable_graph_handle_t::NULL;
        refused("fill", fill(null_mut()));
        refused("get graph", call!(queue_exp.get_graph_exp(queue, &mut same)));
        refused("end", call!(queue_exp.end_graph_capture_exp(queue, &mut same)));
        refused("is empty", call!(graph_exp.is_empty_exp(graph, &mut is_empty)));
        refused("instantiate", call!(graph_exp.instantiate_graph_exp(graph, &mut executable)));
        refused("dump", call!(graph_exp.dump_contents_exp(graph, c"/dev/null".as_ptr())));
        assert_eq!(call!(event.release(event)), R::SUCCESS);
        assert_eq!(call!(graph_exp.destroy_exp(graph)), R::SUCCESS);
        assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    });
    assert_eq!(call!(graph_exp.destroy_exp(graph)), R::ERROR_INVALID_ARGUMENT, "still recorded");
    let (mut ended, mut executable) =
        (ur_exp_graph_handle_t::NULL, ur_exp_executable_graph_handle_t::NULL);
    assert_eq!(call!(queue_exp.end_graph_capture_exp(queue, &mut ended)), R::SUCCESS);
    assert_eq!(ended, graph);
    assert_eq!(call!(graph_exp.instantiate_graph_exp(graph, &mut executable)), R::SUCCESS);
    let (none, to) = (null(), null_mut());
    assert_eq!(call!(enqueue_exp.graph_exp(queue, executable, 0, none, to)), R::SUCCESS);
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert_eq!(zero.read::<u8, 64>(memory), [7; 64]);
    assert_eq!(call!(event.release(event)), R::SUCCESS);
    assert_eq!(call!(graph_exp.executable_graph_destroy_exp(executable)), R::SUCCESS);
    assert_eq!(call!(graph_exp.destroy_exp(graph)), R::SUCCESS);
    zero.free(memory);
}

/// A thread of the parent uses a queue meanwhile, so that it mostly holds a lock of the queue at a fork.
#[test]
fn a_child_that_releases_objects_while_its_parent_works_never_hangs() {
    let _alone = alone();
    let Some(zero) = Zero::new() else { return };
    let (context, device, queue) = (zero.context, zero.device, zero.queue);
    let (memory, byte) = (zero.device_memory(64), 7_u8);
    let pattern: *const std::ffi::c_void = (&raw const byte).cast();
    let program = spirv::built(&zero, &spirv::special());
    let mut kernel = ur_kernel_handle_t::NULL;
    assert_eq!(call!(kernel.create(program, c"put".as_ptr(), &mut kernel)), R::SUCCESS);
    let mut buffer = ur_mem_handle_t::NULL;
    let flags = ur_mem_flags_t::READ_WRITE;
    assert_eq!(call!(mem.buffer_create(context, flags, 64, null(), &mut buffer)), R::SUCCESS);
    let (waits, no_event) = (null(), null_mut());
    let filled =
        call!(enqueue.usm_fill(queue, memory, 1usize, pattern, 64usize, 0, waits, no_event));
    assert_eq!(filled, R::SUCCESS);
    let wrote = call!(
        enqueue.mem_buffer_write(queue, buffer, true, 0usize, 1usize, pattern, 0, waits, no_event)
    );
    assert_eq!(wrote, R::SUCCESS);
    let mut commands = ur_exp_command_buffer_handle_t::NULL;
    let desc = IN_ORDER_COMMANDS;
    let made = call!(command_buffer_exp.create_exp(context, device, &desc, &mut commands));
    assert_eq!(made, R::SUCCESS);
    let (points, no_point, no_command) = (null(), null_mut(), null_mut());
    let appended = call!(command_buffer_exp.append_usm_fill_exp(
        commands, memory, pattern, 1usize, 64usize, 0, points, 0, waits, no_point, no_event,
        no_command
    ));
    assert_eq!(appended, R::SUCCESS);
    assert_eq!(call!(command_buffer_exp.finalize_exp(commands)), R::SUCCESS);
    let ran = call!(enqueue_exp.command_buffer_exp(queue, commands, 0, waits, no_event));
    assert_eq!(ran, R::SUCCESS);
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    let is_over = AtomicBool::new(false);
    let addresses = [memory, queue.0.cast()].map(<*mut _>::expose_provenance);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let [memory, queue] = addresses.map(with_exposed_provenance_mut::<std::ffi::c_void>);
            let (byte, queue) = (7_u8, ur_queue_handle_t(queue.cast()));
            while !is_over.load(Acquire) {
                let (pattern, none) = ((&raw const byte).cast(), null_mut());
                let filled = call!(enqueue.usm_fill(
                    queue,
                    memory,
                    1usize,
                    pattern,
                    64usize,
                    0,
                    null(),
                    none
                ));
                assert_eq!(filled, R::SUCCESS);
                assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
            }
        });
        let forked = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..20 {
                said_by_a_child(|| {
                    unsafe { libc::alarm(60) }; // ends a child that hangs
                    assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
                    assert_eq!(call!(program.release(program)), R::SUCCESS);
                    assert_eq!(call!(mem.release(buffer)), R::SUCCESS);
                    assert_eq!(call!(command_buffer_exp.release_exp(commands)), R::SUCCESS);
                });
            }
        }));
        is_over.store(true, Release);
        forked.unwrap();
    });
    assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
    assert_eq!(call!(program.release(program)), R::SUCCESS);
    assert_eq!(call!(mem.release(buffer)), R::SUCCESS);
    assert_eq!(call!(command_buffer_exp.release_exp(commands)), R::SUCCESS);
    zero.free(memory);
}
