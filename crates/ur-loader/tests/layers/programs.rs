//! Programs that call the loader: one without errors, and one for each error. The programs that keep or give
//! back memory are in `memory`.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
#[path = "ending.rs"]
mod ending;
#[path = "memory.rs"]
mod memory;

use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_loader::{
    config::*,
    entry::*,
    life::{loader_init, loader_tear_down},
};
use ur_sys::*;

/// How many times each of many threads creates and releases its objects.
pub const ROUNDS: usize = 20;
/// How many times adapters are obtained and released in all, and by how many threads.
const ADAPTER_ROUNDS: usize = 1_000_000;
const ADAPTER_THREADS: usize = 4;
/// How many times two threads release a context concurrently.
pub const DOUBLE_RELEASES: usize = 300;
const SIZE: usize = 64;

#[track_caller]
fn ok(result: ur_result_t) {
    assert_eq!(result, ur_result_t::SUCCESS);
}
/// Returns what a call writes to its output parameter.
#[track_caller]
fn made<T>(nothing: T, call: impl FnOnce(*mut T) -> ur_result_t) -> T {
    let mut it = nothing;
    ok(call(&mut it));
    it
}

/// Runs the program of this name, from the loader's start to its end.
pub fn run(name: &str) {
    // Rust programs ignore SIGPIPE; C programs do not.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    match name {
        "again" => (0..3).for_each(|_| once("well")),
        "children" => children(),
        name => once(name),
    }
}
/// Starts two children that run the same program: one is forked and one is executed.
fn children() {
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        unsafe { libc::alarm(60) }; // ends a child that hangs
        let well = std::panic::catch_unwind(|| once("well")).is_ok();
        unsafe { libc::_exit(i32::from(!well)) };
    }
    let mut executed = std::process::Command::new(std::env::current_exe().unwrap());
    executed.args(std::env::args_os().skip(1)).env("PROGRAM", "well");
    let mut executed = executed.stdout(std::process::Stdio::null()).spawn().unwrap();
    once("well");
    assert!(executed.wait().unwrap().success());
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
}
fn once(name: &str) {
    let none = ur_loader_config_handle_t::NULL;
    let config = made(none, |to| unsafe { loader_config_create(to) });
    ok(loader_config_set_mocking_enabled(config, u8::from(name == "images")));
    ok(loader_init(ur_device_init_flags_t(0), config));
    ok(loader_config_release(config));
    let world = World::new();
    match name {
        "well" => well(&world),
        "suspects" => suspects(&world),
        "parameters" => parameters(&world),
        "released" => released(&world),
        "unanswered" => unanswered(&world),
        "parents" => parents(&world),
        "foreign" => foreign(&world),
        "leak" => leak(&world),
        "leaks" => ending::with_many_leaks(&world),
        "memory" => memory::given_back(&world),
        "memory-leak" => memory::kept(&world),
        "memory-failed" => memory::given_back_in_vain(&world),
        "bounds" => bounds(&world),
        "images" => images(&world),
        "threads" => threads(&world),
        "fork" => fork(&world),
        "adapters" => adapters(&world),
        "doubly" => doubly(&world),
        name => panic!("no program is called {name}"),
    }
    ok(unsafe { adapter_release(world.adapter) });
    ok(loader_tear_down());
}

/// An adapter with one of its devices.
#[derive(Clone, Copy)]
struct World {
    adapter: ur_adapter_handle_t,
    platform: ur_platform_handle_t,
    device: ur_device_handle_t,
}
unsafe impl Sync for World {}
impl World {
    fn new() -> Self {
        unsafe {
            let none = null_mut();
            let adapter = made(ur_adapter_handle_t::NULL, |to| adapter_get(1, to, none));
            let platform =
                made(ur_platform_handle_t::NULL, |to| platform_get(adapter, 1, to, none));
            let all = ur_device_type_t::ALL;
            let device =
                made(ur_device_handle_t::NULL, |to| device_get(platform, all, 1, to, null_mut()));
            Self { adapter, platform, device }
        }
    }
    fn context(&self) -> ur_context_handle_t {
        let none = ur_context_handle_t::NULL;
        made(none, |to| unsafe { context_create(1, &self.device, null(), to) })
    }
    fn queue(&self, context: ur_context_handle_t) -> ur_queue_handle_t {
        let none = ur_queue_handle_t::NULL;
        made(none, |to| unsafe { queue_create(context, self.device, null(), to) })
    }
}
fn host_memory(context: ur_context_handle_t) -> *mut c_void {
    let pool = ur_usm_pool_handle_t::NULL;
    made(null_mut(), |to| unsafe { usm_host_alloc(context, null(), pool, SIZE, to) })
}
fn buffer(context: ur_context_handle_t) -> ur_mem_handle_t {
    let flags = ur_mem_flags_t::READ_WRITE;
    let none = ur_mem_handle_t::NULL;
    made(none, |to| unsafe { mem_buffer_create(context, flags, SIZE, null(), to) })
}

fn well(world: &World) {
    unsafe {
        let context = world.context();
        let queue = world.queue(context);
        let at = host_memory(context);
        let none = ur_event_handle_t::NULL;
        let filled = made(none, |to| {
            enqueue_usm_fill(queue, at, 1, c"7".as_ptr().cast(), SIZE, 0, null(), to)
        });
        ok(event_wait(1, &filled));
        // The queue's context is known, and the query gave the program no reference to it.
        let size = size_of::<usize>();
        let same = made(ur_context_handle_t::NULL, |to| {
            queue_get_info(queue, ur_queue_info_t::CONTEXT, size, to.cast(), null_mut())
        });
        assert_eq!(same, context);
        ok(context_retain(same));
        ok(context_release(same));
        ok(event_release(filled));
        ok(usm_free(context, at));
        ok(queue_release(queue));
        ok(context_release(context));
        ok(device_retain(world.device));
        ok(device_release(world.device));
    }
}

/// Correct uses that look wrong to a checker which counts only creations and releases.
fn suspects(world: &World) {
    unsafe {
        let context = world.context();
        let queue = world.queue(context);
        reusable_events(world, context, queue);
        physical_memory(world, context);
        // A sub-buffer is an object of its own.
        let whole = buffer(context);
        let flags = ur_mem_flags_t::READ_WRITE;
        let region = ur_buffer_region_t {
            stype: ur_structure_type_t::BUFFER_REGION,
            pNext: null_mut(),
            origin: 0,
            size: SIZE,
        };
        let kind = ur_buffer_create_type_t::REGION;
        let region = (&raw const region).cast();
        let part =
            made(ur_mem_handle_t::NULL, |to| mem_buffer_partition(whole, flags, kind, region, to));
        let one = c"1".as_ptr().cast();
        let none = null_mut();
        ok(enqueue_mem_buffer_fill(queue, part, one, 1, 0, SIZE, 0, null(), none));
        ok(queue_finish(queue));
        ok(mem_release(part));
        ok(mem_release(whole));
        // Memory that is not from a pool.
        ok(usm_free(context, host_memory(context)));
        ok(queue_release(queue));
        ok(context_release(context));
    }
}
fn reusable_events(world: &World, context: ur_context_handle_t, queue: ur_queue_handle_t) {
    unsafe {
        let desc = ur_exp_event_desc_t {
            stype: ur_structure_type_t::EXP_EVENT_DESC,
            pNext: null_mut(),
            flags: ur_exp_event_flags_t::IPC_EXP,
        };
        let none = ur_event_handle_t::NULL;
        let mut event = made(none, |to| event_create_exp(context, world.device, &desc, to));
        let (mut ticket, mut size) = (null_mut(), 0);
        ok(ipc_get_event_handle_exp(event, &mut ticket, &mut size));
        let mut opened = made(none, |to| ipc_open_event_handle_exp(context, ticket, size, to));
        for _ in 0..3 {
            for event in [&mut event, &mut opened] {
                ok(enqueue_events_wait_with_barrier_ext(queue, null(), 0, null(), event));
                ok(event_wait(1, event));
            }
        }
        ok(ipc_put_event_handle_exp(context, ticket));
        ok(event_release(opened));
        ok(event_release(event));
    }
}
fn physical_memory(world: &World, context: ur_context_handle_t) {
    unsafe {
        let device = world.device;
        let ask = ur_virtual_mem_granularity_info_t::RECOMMENDED;
        let size = made(0usize, |to| {
            let room = size_of::<usize>();
            let to = to.cast();
            virtual_mem_granularity_get_info(context, device, 1, ask, room, to, null_mut())
        });
        let properties = ur_physical_mem_properties_t {
            stype: ur_structure_type_t::PHYSICAL_MEM_PROPERTIES,
            pNext: null_mut(),
            flags: ur_physical_mem_flags_t::ENABLE_IPC,
        };
        let none = ur_physical_mem_handle_t::NULL;
        let here = made(none, |to| physical_mem_create(context, device, size, &properties, to));
        let (mut ticket, mut length) = (null_mut(), 0);
        ok(ipc_get_phys_mem_handle_exp(context, here, &mut ticket, &mut length));
        let opened =
            made(none, |to| ipc_open_phys_mem_handle_exp(context, device, ticket, length, to));
        let at = made(null_mut(), |to| virtual_mem_reserve(context, null(), size, to));
        let access = ur_virtual_mem_access_flags_t::READ_WRITE;
        ok(virtual_mem_map(context, at, size, opened, 0, access));
        ok(virtual_mem_unmap(context, at, size));
        ok(virtual_mem_free(context, at, size));
        ok(ipc_close_phys_mem_handle_exp(context, opened));
        ok(ipc_put_phys_mem_handle_exp(context, ticket));
        ok(physical_mem_release(here));
    }
}

fn parameters(world: &World) {
    unsafe {
        let is = |result, code| assert_eq!(result, code);
        is(queue_finish(ur_queue_handle_t::NULL), ur_result_t::ERROR_INVALID_NULL_HANDLE);
        is(
            context_create(1, &world.device, null(), null_mut()),
            ur_result_t::ERROR_INVALID_NULL_POINTER,
        );
        let wrong = ur_device_type_t(0x7777);
        let mut count = 0;
        is(
            device_get(world.platform, wrong, 0, null_mut(), &mut count),
            ur_result_t::ERROR_INVALID_ENUMERATION,
        );
        let properties = ur_context_properties_t {
            stype: ur_structure_type_t::CONTEXT_PROPERTIES,
            pNext: null_mut(),
            flags: ur_context_flags_t(1 << 30),
        };
        let mut context = ur_context_handle_t::NULL;
        is(
            context_create(1, &world.device, &properties, &mut context),
            ur_result_t::ERROR_INVALID_ENUMERATION,
        );
        let context = world.context();
        let queue = world.queue(context);
        let (pool, mut at) = (ur_usm_pool_handle_t::NULL, null_mut());
        is(usm_host_alloc(context, null(), pool, 0, &mut at), ur_result_t::ERROR_INVALID_USM_SIZE);
        let event = ur_event_handle_t::NULL;
        is(event_wait(0, &event), ur_result_t::ERROR_INVALID_VALUE);
        // No program results, and null is written.
        let (programs, mut linked) =
            (ur_program_handle_t::NULL, ur_program_handle_t(std::ptr::dangling_mut()));
        let code = program_link(context, 0, &programs, null(), &mut linked);
        is(code, ur_result_t::ERROR_INVALID_SIZE);
        assert!(linked.is_null());
        is(
            enqueue_events_wait(queue, 1, &event, null_mut()),
            ur_result_t::ERROR_INVALID_EVENT_WAIT_LIST,
        );
        ok(queue_release(queue));
        ok(context_release(context));
    }
}

/// Refused queries: their output stays unwritten, here without a terminator before inaccessible memory.
fn unanswered(world: &World) {
    unsafe {
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap();
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let pages = libc::mmap(null_mut(), 2 * page, access, kind, -1, 0);
        assert_ne!(pages, libc::MAP_FAILED);
        let end = pages.byte_add(page);
        assert_eq!(libc::mprotect(end, page, libc::PROT_NONE), 0);
        let room = end.byte_sub(1);
        room.cast::<u8>().write(b'x');
        let ask = ur_device_info_t::NAME;
        let code = device_get_info(world.device, ask, 1, room, null_mut());
        assert_eq!(code, ur_result_t::ERROR_INVALID_SIZE);
        let (mut words, mut option) = (end.cast_const().cast(), end.cast_const().cast());
        let code = adapter_get_last_error(world.adapter, &mut words, null_mut());
        assert_eq!(code, ur_result_t::ERROR_INVALID_NULL_POINTER);
        let code = platform_get_backend_option(world.platform, c"no option".as_ptr(), &mut option);
        assert_ne!(code, ur_result_t::SUCCESS);
        assert_eq!(libc::munmap(pages, 2 * page), 0);
    }
}
fn released(world: &World) {
    unsafe {
        let context = world.context();
        ok(context_release(context));
        let (mut count, size) = (0u32, size_of::<u32>());
        let ask = ur_context_info_t::NUM_DEVICES;
        let to = (&raw mut count).cast();
        assert_ne!(context_get_info(context, ask, size, to, null_mut()), ur_result_t::SUCCESS);
        assert_ne!(context_release(context), ur_result_t::SUCCESS);
    }
}
fn parents(world: &World) {
    unsafe {
        let (here, there) = (world.context(), world.context());
        let (queue, mem) = (world.queue(here), buffer(there));
        let zero = c"".as_ptr().cast();
        // The adapter may accept or refuse this.
        let none = null_mut();
        let _ = enqueue_mem_buffer_fill(queue, mem, zero, 1, 0, SIZE, 0, null(), none);
        ok(queue_finish(queue));
        ok(mem_release(mem));
        ok(queue_release(queue));
        ok(context_release(here));
        ok(context_release(there));
    }
}
fn foreign(world: &World) {
    unsafe {
        let context = world.context();
        assert_ne!(queue_finish(ur_queue_handle_t(context.0)), ur_result_t::SUCCESS);
        let adapter = ur_context_handle_t(world.adapter.0);
        assert_ne!(context_retain(adapter), ur_result_t::SUCCESS);
        ok(context_release(context));
    }
}
/// Leaks two references to a context, one of them from its creation, and a queue.
#[inline(never)]
fn leak(world: &World) {
    let context = world.context();
    ok(unsafe { context_retain(context) });
    world.queue(context);
}

fn bounds(world: &World) {
    unsafe {
        let context = world.context();
        let queue = world.queue(context);
        let (one, other) = (host_memory(context), host_memory(context));
        let mem = buffer(context);
        let size = ur_result_t::ERROR_INVALID_SIZE;
        let none = null_mut();
        let copy =
            |to, from, bytes| enqueue_usm_memcpy(queue, true, to, from, bytes, 0, null(), none);
        ok(copy(one, other, SIZE));
        assert_eq!(copy(one, other, SIZE + 1), size);
        assert_eq!(copy(one, other.byte_add(40), 32), size);
        // Ordinary host memory is not checked.
        let mut host = [0u8; SIZE];
        ok(copy(host.as_mut_ptr().cast(), one, SIZE));
        let zero = c"".as_ptr().cast();
        let past = one.byte_add(1);
        assert_eq!(enqueue_usm_fill(queue, past, 1, zero, SIZE, 0, null(), none), size);
        assert_eq!(
            enqueue_usm_memcpy_2d(queue, true, one, 32, other, 16, 16, 3, 0, null(), none),
            size
        );
        // Three rows of four bytes with a pitch of sixteen end 36 bytes after the start of the first.
        let from = |x| ur_rect_offset_t { x, y: 0, z: 0 };
        let rows = ur_rect_region_t { width: 4, height: 3, depth: 1 };
        let mut read = |x, pitch| {
            let (here, into) = (from(x), host.as_mut_ptr().cast());
            enqueue_mem_buffer_read_rect(
                queue,
                mem,
                true,
                here,
                from(0),
                rows,
                pitch,
                0,
                0,
                0,
                into,
                0,
                null(),
                none,
            )
        };
        ok(read(28, 16));
        assert_eq!(read(29, 16), size);
        ok(read(52, 0));
        assert_eq!(read(53, 0), size);
        ok(enqueue_mem_buffer_fill(queue, mem, zero, 1, 56, 8, 0, null(), none));
        assert_eq!(enqueue_mem_buffer_fill(queue, mem, zero, 1, 60, 8, 0, null(), none), size);
        ok(queue_finish(queue));
        ok(usm_free(context, one));
        ok(usm_free(context, other));
        ok(mem_release(mem));
        ok(queue_release(queue));
        ok(context_release(context));
    }
}

/// Images of the mock adapter, which answers for each that it is 8 pixels wide and 4 high.
fn images(world: &World) {
    let _said = ur_mock::replace("urMemImageGetInfo", |call| {
        let number: usize = match call.argument(1) {
            ur_image_info_t::WIDTH => 8,
            ur_image_info_t::HEIGHT => 4,
            _ => 0,
        };
        unsafe { call.argument::<*mut c_void>(3).cast::<usize>().write(number) };
        ur_result_t::SUCCESS
    })
    .unwrap();
    unsafe {
        let context = world.context();
        let queue = world.queue(context);
        let [one, other] = [buffer(context), buffer(context)];
        let copy = |x, y, width, height, depth| {
            let (from, to) =
                (ur_rect_offset_t { x, y, z: 0 }, ur_rect_offset_t { x: 0, y: 0, z: 0 });
            let block = ur_rect_region_t { width, height, depth };
            enqueue_mem_image_copy(queue, one, other, from, to, block, 0, null(), null_mut())
        };
        ok(copy(0, 0, 8, 4, 1));
        ok(copy(7, 3, 1, 1, 1));
        let size = ur_result_t::ERROR_INVALID_SIZE;
        assert_eq!(copy(7, 3, 2, 1, 1), size);
        assert_eq!(copy(0, 1, 8, 4, 1), size);
        assert_eq!(copy(0, 0, 8, 4, 2), size);
        assert_eq!(copy(u64::MAX, 0, 8, 4, 1), size);
        ok(mem_release(one));
        ok(mem_release(other));
        ok(queue_release(queue));
        ok(context_release(context));
    }
}

fn threads(world: &World) {
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| (0..ROUNDS).for_each(|_| well(world)));
        }
    });
}

/// Threads that get the adapter, query it and release it, so that the last reference is dropped by different
/// threads at different times.
fn adapters(world: &World) {
    ok(unsafe { adapter_release(world.adapter) });
    let round = || unsafe {
        let adapter = made(ur_adapter_handle_t::NULL, |to| adapter_get(1, to, null_mut()));
        let (mut count, ask) = (0u32, ur_adapter_info_t::REFERENCE_COUNT);
        ok(adapter_get_info(adapter, ask, size_of::<u32>(), (&raw mut count).cast(), null_mut()));
        ok(adapter_release(adapter));
    };
    std::thread::scope(|scope| {
        for _ in 0..ADAPTER_THREADS {
            scope.spawn(|| (0..ADAPTER_ROUNDS / ADAPTER_THREADS).for_each(|_| round()));
        }
    });
    made(ur_adapter_handle_t::NULL, |to| unsafe { adapter_get(1, to, null_mut()) });
}
/// Pairs of threads that both release the only reference to a context at the same time.
fn doubly(world: &World) {
    let turn = std::sync::Barrier::new(2);
    for _ in 0..DOUBLE_RELEASES {
        let context = world.context().0.addr();
        let release = || {
            turn.wait();
            let context = ur_context_handle_t(context as *mut c_void);
            usize::from(unsafe { context_release(context) } == ur_result_t::SUCCESS)
        };
        let done = std::thread::scope(|scope| {
            let other = scope.spawn(release);
            release() + other.join().unwrap()
        });
        assert_eq!(done, 1);
    }
}

/// Children that call while other threads of the parent do, and end the loader.
fn fork(world: &World) {
    use std::sync::atomic::{AtomicBool, Ordering};
    /// Stops the threads, also when an assertion fails.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    let context = world.context();
    std::thread::scope(|scope| {
        let _end = End(&over);
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    well(world);
                }
            });
        }
        for _ in 0..20 {
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            if child == 0 {
                unsafe {
                    libc::alarm(30); // ends a child that hangs
                    let mut count = 0u32;
                    let to = (&raw mut count).cast();
                    let ask = ur_context_info_t::NUM_DEVICES;
                    let _ = context_get_info(context, ask, 4, to, null_mut());
                    let _ = context_release(context);
                    let _ = context_release(world.context());
                    ur_loader::layers::stop();
                    libc::_exit(0);
                }
            }
            let mut status = 0;
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0, "the child did not end well");
        }
    });
    ok(unsafe { context_release(context) });
}
