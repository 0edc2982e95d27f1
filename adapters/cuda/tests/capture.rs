//! Beside others of the process who capture streams into graphs, as PyTorch does: their captures survive what is
//! called here, no call of ours fails for them, and nothing is taken for done that is not. On whatever driver of CUDA
//! there is; without a device the tests say so and are skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "c/usm.rs"]
mod usm;

use c::*;
use libloading::Library;
use std::{
    ffi::{c_char, c_void},
    ptr::{null, null_mut},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    thread,
};
use ur_lock::locked;
use ur_sys::{ur_result_t as R, *};
use usm::numbers;

const NO_EVENT: ur_event_handle_t = ur_event_handle_t::NULL;

/// Captures are the whole process's: one test at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    locked(&TURN)
}
/// Calls a function of the driver's, as a library beside us does.
macro_rules! driver {
    ($name:literal $(, $argument:expr => $type:ty)*) => {{
        static DRIVER: OnceLock<Library> = OnceLock::new();
        let driver = DRIVER.get_or_init(|| unsafe { Library::new("libcuda.so.1") }.unwrap());
        let f = unsafe { driver.get::<unsafe extern "C" fn($($type),*) -> i32>($name.as_bytes()) };
        let f = f.expect($name);
        unsafe { f($($argument),*) }
    }};
}
fn native(cuda: &Cuda) -> usize {
    let mut native: ur_native_handle_t = 0;
    assert_eq!(call!(context.get_native_handle(cuda.context, &mut native)), R::SUCCESS);
    native
}
/// A stream that a library made in the context with that number; `flags` 1: not ordered with the default stream.
fn stream_in(context: usize, flags: u32) -> usize {
    let (mut stream, mut popped) = (0_usize, 0_usize);
    assert_eq!(driver!("cuCtxPushCurrent_v2", context => usize), 0);
    assert_eq!(driver!("cuStreamCreate", &mut stream => *mut usize, flags => u32), 0);
    assert_eq!(driver!("cuCtxPopCurrent_v2", &mut popped => *mut usize), 0);
    stream
}
fn begin(stream: usize, mode: u32) {
    assert_eq!(driver!("cuStreamBeginCapture_v2", stream => usize, mode => u32), 0);
}
/// What ending a capture answers: 901 if somebody broke it.
fn end(stream: usize) -> i32 {
    let mut graph = 0_usize;
    let code = driver!("cuStreamEndCapture", stream => usize, &mut graph => *mut usize);
    if graph != 0 {
        assert_eq!(driver!("cuGraphDestroy", graph => usize), 0);
    }
    code
}
/// Ends a capture and launches what was captured so often, each time `before` and `after` something. A graph with fills is
/// made executable in the context that is current.
fn replays(
    (stream, context): (usize, usize),
    times: usize,
    mut before: impl FnMut(),
    mut after: impl FnMut(usize),
) {
    let (mut graph, mut ready, mut popped) = (0_usize, 0_usize, 0_usize);
    assert_eq!(driver!("cuCtxPushCurrent_v2", context => usize), 0);
    assert_eq!(driver!("cuStreamEndCapture", stream => usize, &mut graph => *mut usize), 0);
    let to = &mut ready;
    let made = driver!("cuGraphInstantiateWithFlags", to => *mut usize, graph => usize, 0 => u64);
    assert_eq!(made, 0);
    assert_eq!(driver!("cuGraphDestroy", graph => usize), 0); // what was made of it stays
    for time in 0..times {
        before();
        assert_eq!(driver!("cuGraphLaunch", ready => usize, stream => usize), 0);
        assert_eq!(driver!("cuStreamSynchronize", stream => usize), 0);
        after(time);
    }
    assert_eq!(driver!("cuGraphExecDestroy", ready => usize), 0);
    assert_eq!(driver!("cuCtxPopCurrent_v2", &mut popped => *mut usize), 0);
}
const MODES: [(u32, &str); 3] = [(0, "global"), (1, "thread_local"), (2, "relaxed")];

/// Holds a queue up until it is opened.
struct Gate(Arc<AtomicBool>);
impl Gate {
    fn before(queue: ur_queue_handle_t) -> Self {
        let gate = Self(Arc::default());
        let data = Arc::into_raw(gate.0.clone()).cast_mut().cast();
        let none = null_mut();
        let code =
            call!(enqueue_exp.host_task_exp(queue, Some(pass), data, null(), 0, null(), none));
        assert_eq!(code, R::SUCCESS);
        gate
    }
    fn open(&self) {
        self.0.store(true, Release);
    }
}
impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}
unsafe extern "C" fn pass(data: *mut c_void) {
    let gate = unsafe { Arc::from_raw(data.cast_const().cast::<AtomicBool>()) };
    while !gate.load(Acquire) {
        thread::sleep(std::time::Duration::from_micros(100));
    }
}
fn fill(queue: ur_queue_handle_t, at: *mut c_void, bytes: usize) -> Result<ur_event_handle_t, R> {
    let (mut event, pattern) = (NO_EVENT, 7_u8);
    let from = (&raw const pattern).cast();
    match call!(enqueue.usm_fill(queue, at, 1, from, bytes, 0, null(), &mut event)) {
        R::SUCCESS => Ok(event),
        code => Err(code),
    }
}
/// A queue of that kind, and its native stream.
fn queue_of(cuda: &Cuda, flags: ur_queue_flags_t) -> (ur_queue_handle_t, usize) {
    let stype = ur_structure_type_t::QUEUE_PROPERTIES;
    let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
    let (mut queue, mut native) = (ur_queue_handle_t::NULL, 0);
    let (context, device) = (cuda.context, cuda.device);
    assert_eq!(call!(queue.create(context, device, &properties, &mut queue)), R::SUCCESS);
    assert_eq!(call!(queue.get_native_handle(queue, null_mut(), &mut native)), R::SUCCESS);
    (queue, native)
}
fn finish_and_release(queue: ur_queue_handle_t) {
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}
const KINDS: [ur_queue_flags_t; 2] =
    [ur_queue_flags_t(0), ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE];
fn adopted(cuda: &Cuda, stream: usize) -> Result<ur_queue_handle_t, R> {
    let mut queue = ur_queue_handle_t::NULL;
    let (device, none) = (cuda.device, null());
    match call!(queue.create_with_native_handle(stream, cuda.context, device, none, &mut queue)) {
        R::SUCCESS => Ok(queue),
        code => Err(code),
    }
}

/// Gives back what tests before have freed: some of it the driver takes only when all streams are idle, and a test
/// behind a gate would wait for itself.
fn settle(cuda: &Cuda) {
    assert_eq!(call!(device_exp.wait_exp(cuda.device)), R::SUCCESS);
    cuda.free(cuda.device_memory(1 << 20));
}
/// The bytes of the device's memory that nobody has.
fn unused(cuda: &Cuda) -> u64 {
    let (mut bytes, info) = (0_u64, ur_device_info_t::GLOBAL_MEM_FREE);
    let to = (&raw mut bytes).cast();
    assert_eq!(call!(device.get_info(cuda.device, info, 8usize, to, null_mut())), R::SUCCESS);
    bytes
}
/// Everything that a program does between two frames.
fn work(cuda: &Cuda) {
    let (at, mut host) = (cuda.device_memory(8 << 20), null_mut());
    let pool = ur_usm_pool_handle_t::NULL;
    assert_eq!(call!(usm.host_alloc(cuda.context, null(), pool, 3 << 20, &mut host)), R::SUCCESS);
    let filled = fill(cuda.queue, at, 8 << 20).unwrap();
    let (name, mut status) = (ur_event_info_t::COMMAND_EXECUTION_STATUS, 0_u32);
    let to = (&raw mut status).cast();
    assert_eq!(call!(event.get_info(filled, name, 4, to, null_mut())), R::SUCCESS);
    assert_ne!(ur_event_status_t(status as _), ur_event_status_t::ERROR);
    assert_eq!(call!(event.wait(1, &filled)), R::SUCCESS);
    cuda.write(at, &numbers(5));
    assert_eq!(cuda.read::<u32, 1024>(at), numbers(5));
    let mut another = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(cuda.context, cuda.device, null(), &mut another)), R::SUCCESS);
    cuda.release_event(fill(another, host, 3 << 20).unwrap());
    assert_eq!(call!(queue.finish(another)), R::SUCCESS);
    assert_eq!(call!(queue.release(another)), R::SUCCESS);
    cuda.release_event(filled);
    cuda.release_event(fill(cuda.queue, at, 8 << 20).unwrap());
    cuda.free(at);
    cuda.free(host);
    assert_eq!(call!(queue.finish(cuda.queue)), R::SUCCESS);
    assert_eq!(call!(device_exp.wait_exp(cuda.device)), R::SUCCESS);
}
const ROUNDS: usize = 20;
#[test]
fn captures_in_every_mode_survive_what_another_thread_does_here_and_nothing_of_it_fails() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let context = native(&cuda);
    for flags in [1, 0] {
        for (mode, name) in MODES {
            // Ended by whoever ends first: a thread that panics holds up no other.
            let ((begun, is_begun), (go, may_go)) = (mpsc::channel(), mpsc::channel());
            thread::scope(|scope| {
                let captures = scope.spawn(move || {
                    let stream = stream_in(context, flags);
                    let once = |_| {
                        begin(stream, mode);
                        begun.send(()).unwrap();
                        let _through = may_go.recv();
                        end(stream)
                    };
                    let codes: Vec<i32> = (0..ROUNDS).map(once).collect();
                    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
                    codes
                });
                let go = go; // gone with this closure
                for () in is_begun {
                    work(&cuda);
                    go.send(()).unwrap();
                }
                assert_eq!(captures.join().unwrap(), [0; ROUNDS], "{name}, flags {flags}");
            });
        }
    }
}
#[test]
fn memory_in_use_is_not_given_away_while_somebody_captures() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let stream = stream_in(native(&cuda), 1);
    for (mode, name) in MODES {
        settle(&cuda);
        let gate = Gate::before(cuda.queue);
        let at = cuda.device_memory(1 << 20);
        let filled = fill(cuda.queue, at, 1 << 20).unwrap();
        begin(stream, mode);
        let (context, at_number) = (cuda.context.0.expose_provenance(), at.expose_provenance());
        // On another thread, which the driver forbids most in the first mode.
        let again = thread::scope(|scope| {
            let there = scope.spawn(|| {
                let context = ur_context_handle_t(std::ptr::with_exposed_provenance_mut(context));
                let at = std::ptr::with_exposed_provenance_mut(at_number);
                assert_eq!(call!(usm.free(context, at)), R::SUCCESS);
            });
            there.join().unwrap();
            cuda.device_memory(1 << 20)
        });
        assert_ne!(again.addr(), at.addr(), "{name}: a command still uses it");
        gate.open();
        assert_eq!(end(stream), 0, "{name}");
        assert_eq!(call!(event.wait(1, &filled)), R::SUCCESS);
        cuda.release_event(filled);
        cuda.free(again);
        assert_eq!(call!(queue.finish(cuda.queue)), R::SUCCESS);
    }
    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
}
fn shared_event(cuda: &Cuda) -> ur_event_handle_t {
    let (stype, flags) = (ur_structure_type_t::EXP_EVENT_DESC, ur_exp_event_flags_t::IPC_EXP);
    let desc = ur_exp_event_desc_t { stype, pNext: null(), flags };
    let mut event = NO_EVENT;
    let code = call!(event_exp.create_exp(cuda.context, cuda.device, &desc, &mut event));
    assert_eq!(code, R::SUCCESS);
    event
}
#[test]
fn a_captured_queue_takes_what_can_be_replayed_and_refuses_what_cannot_and_the_capture_survives() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let (stream, at) = (stream_in(native(&cuda), 1), cuda.device_memory(4096));
    let (queue, mut shared) = (adopted(&cuda, stream).unwrap(), shared_event(&cuda));
    let signal = |shared: &mut ur_event_handle_t| {
        call!(enqueue.events_wait_with_barrier_ext(queue, null(), 0, null(), shared))
    };
    assert_eq!(signal(&mut shared), R::SUCCESS);
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    for (mode, name) in MODES {
        begin(stream, mode);
        let refused = R::ERROR_INVALID_OPERATION;
        assert_eq!(signal(&mut shared), refused, "{name}");
        let said = ur_adapter::error::last_error().unwrap_or_default();
        assert!(said.contains("captured into a graph"), "{said}");
        let waits = call!(enqueue.events_wait(queue, 1, &shared, null_mut()));
        assert_eq!(waits, refused, "{name}");
        let mut word = 0_u32;
        let to = (&raw mut word).cast();
        let none = null_mut();
        let blocking = call!(enqueue.usm_memcpy(queue, true, to, at, 4, 0, null(), none));
        assert_eq!((blocking, call!(queue.finish(queue))), (refused, refused), "{name}");
        let recorded = fill(queue, at, 4096).unwrap();
        let (info, mut status) = (ur_event_info_t::COMMAND_EXECUTION_STATUS, 0_u32);
        let to = (&raw mut status).cast();
        assert_eq!(call!(event.get_info(recorded, info, 4, to, null_mut())), R::SUCCESS);
        assert_eq!(ur_event_status_t(status as _), ur_event_status_t::SUBMITTED, "{name}");
        cuda.release_event(recorded);
        // What is freed meanwhile waits for the end of the capture.
        let freed = cuda.device_memory(1 << 20);
        cuda.free(freed);
        let again = cuda.device_memory(1 << 20);
        assert_ne!(again.addr(), freed.addr(), "{name}");
        assert_eq!(end(stream), 0, "{name}");
        cuda.free(again);
        assert_eq!(signal(&mut shared), R::SUCCESS, "{name}");
        assert_eq!(call!(event.wait(1, &shared)), R::SUCCESS, "{name}");
        assert_eq!(call!(queue.finish(queue)), R::SUCCESS, "{name}");
    }
    cuda.release_event(shared);
    cuda.free(at);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
}
/// A command buffer of two fills, for both of which there is an event.
fn two_fills(
    cuda: &Cuda,
    at: [*mut c_void; 2],
) -> (ur_exp_command_buffer_handle_t, ur_event_handle_t) {
    let mut recorded = ur_exp_command_buffer_handle_t::NULL;
    let (context, device) = (cuda.context, cuda.device);
    let code =
        call!(command_buffer_exp.create_exp(context, device, &IN_ORDER_COMMANDS, &mut recorded));
    assert_eq!(code, R::SUCCESS);
    let (pattern, mut event, none) = (7_u8, NO_EVENT, null_mut());
    for at in at {
        let code = call!(command_buffer_exp.append_usm_fill_exp(
            recorded,
            at,
            (&raw const pattern).cast(),
            1,
            4096,
            0,
            null(),
            0,
            null(),
            null_mut(),
            if event == NO_EVENT { &mut event } else { null_mut() },
            none
        ));
        assert_eq!(code, R::SUCCESS);
    }
    assert_eq!(call!(command_buffer_exp.finalize_exp(recorded)), R::SUCCESS);
    (recorded, event)
}
unsafe extern "C" fn never(_: ur_event_handle_t, _: ur_execution_info_t, _: *mut c_void) {
    unreachable!("it was refused");
}
#[test]
fn a_command_buffer_is_captured_as_its_commands_and_executions_take_no_notice() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let (stream, at) = (stream_in(native(&cuda), 1), [(); 2].map(|()| cuda.device_memory(4096)));
    let queue = adopted(&cuda, stream).unwrap();
    let (recorded, first) = two_fills(&cuda, at);
    let run = |queue: ur_queue_handle_t| {
        let mut event = NO_EVENT;
        let code = call!(enqueue_exp.command_buffer_exp(queue, recorded, 0, null(), &mut event));
        assert_eq!(code, R::SUCCESS, "{:?}", ur_adapter::error::last_error());
        event
    };
    for (mode, name) in MODES {
        settle(&cuda);
        // An execution is under way elsewhere, which the capture must not be made to wait for.
        let gate = Gate::before(cuda.queue);
        let before = run(cuda.queue);
        begin(stream, mode);
        let captured = run(queue);
        gate.open();
        assert_eq!(call!(event.wait(1, &before)), R::SUCCESS, "{name}");
        assert_eq!(call!(event.wait(1, &captured)), R::ERROR_INVALID_OPERATION, "{name}");
        let complete = ur_execution_info_t::COMPLETE;
        let told = call!(event.set_callback(captured, complete, Some(never), null_mut()));
        assert_eq!(told, R::ERROR_INVALID_OPERATION, "{name}");
        // Nor does the next one wait for what runs nowhere.
        let after = run(cuda.queue);
        assert_eq!(call!(event.wait(1, &after)), R::SUCCESS, "{name}");
        assert_eq!(call!(event.wait(1, &first)), R::SUCCESS, "{name}");
        [before, captured, after].into_iter().for_each(|event| cuda.release_event(event));
        let clear = || at.into_iter().for_each(|at| cuda.write(at, &[0_u8; 4096]));
        replays((stream, native(&cuda)), 2, clear, |_| {
            let filled = at.iter().all(|at| cuda.read::<u8, 4096>(*at) == [7; 4096]);
            assert!(filled, "{name}");
        });
    }
    cuda.release_event(first);
    assert_eq!(call!(command_buffer_exp.release_exp(recorded)), R::SUCCESS);
    at.into_iter().for_each(|at| cuda.free(at));
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
}
#[test]
fn what_is_refused_while_a_queue_is_captured_fails_no_signal_of_before() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let (stream, at) = (stream_in(native(&cuda), 1), cuda.device_memory(4096));
    let (queue, mut shared) = (adopted(&cuda, stream).unwrap(), shared_event(&cuda));
    for (mode, name) in MODES {
        let gate = Gate::before(queue);
        let ext =
            call!(enqueue.events_wait_with_barrier_ext(queue, null(), 0, null(), &raw mut shared));
        assert_eq!(ext, R::SUCCESS, "{name}");
        begin(stream, mode);
        let (mut word, none) = (0_u32, null_mut());
        let to = (&raw mut word).cast();
        let blocking = call!(enqueue.usm_memcpy(queue, true, to, at, 4, 0, null(), none));
        let refused = R::ERROR_INVALID_OPERATION;
        assert_eq!((blocking, call!(queue.finish(queue))), (refused, refused), "{name}");
        // As long as the signal is owed a thread asks whether the device is lost: through nothing that is captured.
        cuda.release_event(fill(queue, at, 4096).unwrap());
        thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(end(stream), 0, "{name}");
        gate.open();
        assert_eq!(call!(event.wait(1, &shared)), R::SUCCESS, "{name}");
        assert_eq!(call!(queue.finish(queue)), R::SUCCESS, "{name}");
    }
    cuda.release_event(shared);
    cuda.free(at);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
}
#[test]
fn memory_is_given_back_that_was_freed_while_a_queue_over_a_stream_of_others_and_another_were_busy()
{
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    const BYTES: usize = 64 << 20;
    settle(&cuda);
    let (stream, before) = (stream_in(native(&cuda), 1), unused(&cuda));
    for _ in 0..16 {
        let (theirs, other) = (adopted(&cuda, stream).unwrap(), queue_of(&cuda, KINDS[1]).0);
        let at = cuda.device_memory(BYTES);
        let gates = [theirs, other].map(Gate::before);
        cuda.free(at);
        assert_eq!(call!(queue.release(theirs)), R::SUCCESS);
        gates.iter().for_each(Gate::open);
        finish_and_release(other);
        assert_eq!(driver!("cuStreamSynchronize", stream => usize), 0);
    }
    settle(&cuda);
    let lost = before.saturating_sub(unused(&cuda));
    assert!(lost < 4 * BYTES as u64, "{lost} bytes are not given back");
    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
}
#[test]
fn memory_is_given_back_that_is_freed_in_a_capture_in_which_the_queue_is_released_and_later() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    const BYTES: usize = 64 << 20;
    settle(&cuda);
    let before = unused(&cuda);
    for _ in 0..8 {
        let stream = stream_in(native(&cuda), 1);
        let (theirs, other) = (adopted(&cuda, stream).unwrap(), queue_of(&cuda, KINDS[1]).0);
        let [meanwhile, later] = [(); 2].map(|()| cuda.device_memory(BYTES));
        for (queue, at) in [(theirs, later), (other, meanwhile)] {
            cuda.release_event(fill(queue, at, BYTES).unwrap());
            assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
        }
        begin(stream, 2);
        cuda.free(meanwhile);
        assert_eq!(call!(queue.release(theirs)), R::SUCCESS);
        assert_eq!(end(stream), 0);
        assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
        cuda.free(later);
        finish_and_release(other);
    }
    settle(&cuda);
    let lost = before.saturating_sub(unused(&cuda));
    assert!(lost < 4 * BYTES as u64, "{lost} bytes are not given back");
}
/// Also if a check fails.
struct EndsIt<'c>(&'c AtomicBool);
impl Drop for EndsIt<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}
/// Handles may be used by any thread.
struct Shared<'c>(&'c Cuda, &'c AtomicBool);
unsafe impl Send for Shared<'_> {}
impl Shared<'_> {
    fn free_until_it_is_over(self) {
        let (cuda, busy) = (self.0, queue_of(self.0, KINDS[1]).0);
        while !self.1.load(Acquire) {
            let at = cuda.device_memory(1 << 20);
            cuda.release_event(fill(busy, at, 1 << 20).unwrap());
            cuda.free(at);
        }
        finish_and_release(busy);
    }
}
/// Its events live on, and another thread frees memory all the time, for which the driver is asked what each stream has done.
#[test]
fn the_application_may_destroy_its_stream_when_the_queue_over_it_is_released() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let unknown = || soft::<unsafe extern "C" fn() -> u64>("softCudaUnknownStreams");
    settle(&cuda);
    let (is_over, before) = (AtomicBool::new(false), unknown().map(|count| unsafe { count() }));
    thread::scope(|scope| {
        let _ends_it = EndsIt(&is_over);
        let shared = Shared(&cuda, &is_over);
        scope.spawn(move || shared.free_until_it_is_over());
        for round in 0..200 {
            let stream = stream_in(native(&cuda), 1);
            let theirs = adopted(&cuda, stream).unwrap();
            let at = cuda.device_memory(1 << 20);
            let filled = fill(theirs, at, 1 << 20).unwrap();
            cuda.free(at);
            if round % 2 == 0 {
                begin(stream, 2);
            }
            assert_eq!(call!(queue.release(theirs)), R::SUCCESS);
            if round % 2 == 0 {
                end(stream); // the other thread may have broken it: the driver has no query that cannot
            }
            assert_eq!(driver!("cuStreamSynchronize", stream => usize), 0);
            assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
            assert_eq!(call!(event.wait(1, &filled)), R::SUCCESS);
            cuda.release_event(filled);
        }
    });
    assert_eq!(unknown().map(|count| unsafe { count() }), before, "uses of destroyed streams");
}
/// Another thread calls the driver with the stream when the process forks; the child does not have that thread.
#[test]
fn a_forked_child_releases_a_queue_over_a_native_stream_and_ends() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    settle(&cuda);
    let is_over = AtomicBool::new(false);
    let stream = stream_in(native(&cuda), 1);
    let theirs = adopted(&cuda, stream).unwrap();
    thread::scope(|scope| {
        let _ends_it = EndsIt(&is_over);
        let shared = Shared(&cuda, &is_over);
        scope.spawn(move || shared.free_until_it_is_over());
        for number in 0..150 {
            let child = unsafe { libc::fork() };
            if child == 0 {
                let _whatever = call!(queue.release(theirs));
                unsafe { libc::_exit(0) };
            }
            let (begun, mut status) = (std::time::Instant::now(), -1);
            while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
                if begun.elapsed().as_secs() >= 20 {
                    unsafe { libc::kill(child, libc::SIGKILL) };
                }
                thread::sleep(std::time::Duration::from_micros(200));
            }
            assert_eq!(status, 0, "child {number} did not end");
        }
    });
    assert_eq!(call!(queue.release(theirs)), R::SUCCESS);
    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
}
#[test]
fn memory_that_a_command_of_the_application_uses_is_kept_though_its_queue_is_released_in_a_capture()
{
    unsafe extern "C" fn hold(is_open: *mut c_void) {
        let (is_open, begun) =
            (unsafe { &*is_open.cast::<AtomicBool>() }, std::time::Instant::now());
        while !is_open.load(Acquire) && begun.elapsed().as_secs() < 10 {
            thread::sleep(std::time::Duration::from_micros(200));
        }
    }
    type Hold = unsafe extern "C" fn(*mut c_void);
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    const BYTES: usize = 64 << 20;
    settle(&cuda);
    let stream = stream_in(native(&cuda), 1);
    let (theirs, other) = (adopted(&cuda, stream).unwrap(), queue_of(&cuda, KINDS[1]).0);
    let (at, gate) = (cuda.device_memory(BYTES), Gate::before(other));
    let (word, mut popped) = ((&raw const IS_OPEN).cast_mut().cast::<c_void>(), 0_usize);
    assert_eq!(driver!("cuCtxPushCurrent_v2", native(&cuda) => usize), 0);
    let held = driver!("cuLaunchHostFunc", stream => usize, hold => Hold, word => *mut c_void);
    let memory = at.addr() as u64;
    let set =
        driver!("cuMemsetD8Async", memory => u64, 0x55 => u8, BYTES => usize, stream => usize);
    assert_eq!((held, set), (0, 0));
    cuda.free(at);
    begin(stream, 2);
    assert_eq!(call!(queue.release(theirs)), R::SUCCESS);
    assert_eq!(end(stream), 0);
    gate.open();
    finish_and_release(other);
    let again = cuda.device_memory(BYTES); // and what is over is given back
    assert_ne!(again.addr(), at.addr());
    IS_OPEN.store(true, Release);
    assert_eq!(driver!("cuStreamSynchronize", stream => usize), 0, "the memory was gone");
    cuda.free(again);
    assert_eq!(driver!("cuCtxPopCurrent_v2", &mut popped => *mut usize), 0);
    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
}
/// More are freed than an own stream has marks; or the driver has refused what is behind the last command.
#[test]
fn memory_that_a_command_uses_is_kept_though_its_queue_is_released_in_a_capture_and_marks_are_many_or_refused()
 {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    type Fail = unsafe extern "C" fn(*const c_char, u64);
    let fail = soft::<Fail>("softCudaFail");
    const BYTES: usize = 64 << 20;
    let ways = if fail.is_some() { &[false, true][..] } else { &[false] };
    for is_refused in ways {
        settle(&cuda);
        let stream = stream_in(native(&cuda), 1);
        let theirs = adopted(&cuda, stream).unwrap();
        let gate = Gate::before(theirs);
        let at = cuda.device_memory(BYTES);
        for _ in 0..if *is_refused { 0 } else { 100 } {
            let small = cuda.device_memory(4096);
            cuda.release_event(fill(theirs, small, 4096).unwrap());
            cuda.free(small);
        }
        let filled = fill(theirs, at, BYTES).unwrap();
        if let Some(fail) = fail.filter(|_| *is_refused) {
            unsafe { fail(c"cuEventRecord".as_ptr(), 0) };
            let barrier = call!(enqueue.events_wait_with_barrier(theirs, 0, null(), null_mut()));
            assert_ne!(barrier, R::SUCCESS, "the driver refused its end");
        }
        begin(stream, 2);
        cuda.free(at);
        assert_eq!(call!(queue.release(theirs)), R::SUCCESS);
        assert_eq!(end(stream), 0);
        let again = cuda.device_memory(BYTES); // and what is over is given back
        assert_ne!(again.addr(), at.addr());
        gate.open();
        assert_eq!(call!(event.wait(1, &filled)), R::SUCCESS);
        assert_eq!(driver!("cuStreamSynchronize", stream => usize), 0, "the memory was gone");
        cuda.release_event(filled);
        cuda.free(again);
        assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
    }
}
/// The signal comes only when the call has returned.
#[test]
fn waiting_for_a_captured_queue_is_refused_though_the_queue_waits_for_a_shared_event() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    for flags in KINDS {
        let (queue, stream) = queue_of(&cuda, flags);
        let mut shared = shared_event(&cuda);
        let gate = Gate::before(cuda.queue);
        let signal = call!(enqueue.events_wait_with_barrier_ext(
            cuda.queue,
            null(),
            0,
            null(),
            &raw mut shared
        ));
        let waits = call!(enqueue.events_wait_with_barrier(queue, 1, &shared, null_mut()));
        assert_eq!((signal, waits), (R::SUCCESS, R::SUCCESS));
        begin(stream, 2);
        assert_eq!(call!(queue.finish(queue)), R::ERROR_INVALID_OPERATION);
        assert_eq!(end(stream), 0);
        gate.open();
        assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
        cuda.release_event(shared);
        finish_and_release(queue);
    }
}
#[test]
fn a_released_queue_over_the_default_stream_is_busy_as_long_as_the_stream_is() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let (context, device) = (cuda.context, cuda.device);
    let stype = ur_structure_type_t::QUEUE_PROPERTIES;
    let flags = ur_queue_flags_t::USE_DEFAULT_STREAM;
    let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
    let mut queue = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(context, device, &properties, &mut queue)), R::SUCCESS);
    settle(&cuda);
    let gate = Gate::before(queue);
    let at = cuda.device_memory(1 << 20);
    let filled = fill(queue, at, 1 << 20).unwrap();
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    // Queues that are over are looked at when one is made, on a thread on which no context is current.
    let mut another = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(context, device, null(), &mut another)), R::SUCCESS);
    cuda.free(at);
    let again = cuda.device_memory(1 << 20);
    assert_ne!(again.addr(), at.addr(), "a command of the released queue still uses it");
    gate.open();
    assert_eq!(call!(event.wait(1, &filled)), R::SUCCESS);
    cuda.release_event(filled);
    cuda.free(again);
    assert_eq!(call!(queue.release(another)), R::SUCCESS);
}
#[test]
fn a_stream_of_another_context_and_one_of_each_thread_are_refused_with_a_reason() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    assert_eq!(adopted(&cuda, 2), Err(R::ERROR_INVALID_VALUE));
    let said = ur_adapter::error::last_error().unwrap_or_default();
    assert!(said.contains("CU_STREAM_PER_THREAD"), "{said}");
    let Some(other) = Cuda::of(1) else {
        println!("skipped: it takes 2 devices to have a stream of another context");
        return;
    };
    let stream = stream_in(native(&other), 1);
    assert_eq!(adopted(&cuda, stream), Err(R::ERROR_INVALID_VALUE));
    let said = ur_adapter::error::last_error().unwrap_or_default();
    assert!(said.contains("another context"), "{said}");
    let queue = adopted(&other, stream).unwrap();
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
}
/// Memory of the driver's pool, in the order of the queue.
fn ordered(cuda: &Cuda) -> *mut c_void {
    let (pool, mut at, none) = (ur_usm_pool_handle_t::NULL, null_mut(), null_mut());
    let (queue, to) = (cuda.queue, &raw mut at);
    let code =
        call!(enqueue_exp.usm_device_alloc_exp(queue, pool, 4096, null(), 0, null(), to, none));
    assert_eq!(code, R::SUCCESS, "{:?}", ur_adapter::error::last_error());
    at
}
#[test]
fn what_is_zeroed_copied_and_given_back_to_a_pool_breaks_no_capture_of_a_stream_in_step_with_the_default_one()
 {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    settle(&cuda);
    let stype = ur_structure_type_t::USM_POOL_DESC;
    let flags = ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK;
    let mut desc = ur_usm_pool_desc_t { stype, pNext: null_mut(), flags };
    let mut pool = ur_usm_pool_handle_t::NULL;
    assert_eq!(call!(usm.pool_create(cuda.context, &mut desc, &mut pool)), R::SUCCESS);
    let (context, device) = (cuda.context, cuda.device);
    let stream = stream_in(native(&cuda), 0);
    for (mode, name) in MODES {
        begin(stream, mode);
        let mut zeroed = null_mut();
        let code = call!(usm.device_alloc(context, device, null(), pool, 4096, &mut zeroed));
        assert_eq!(code, R::SUCCESS, "{name}");
        assert_eq!(cuda.read::<u32, 1024>(zeroed), [0; 1024], "{name}");
        let (from, mut to): ([u32; 1024], _) = (numbers(3), [0_u32; 1024]);
        let copy = |to: *mut c_void, from: *const c_void| {
            assert_eq!(
                call!(usm_exp.context_memcpy_exp(context, to, from.cast_mut(), 4096)),
                R::SUCCESS,
                "{name}"
            );
        };
        copy(zeroed, from.as_ptr().cast());
        copy(to.as_mut_ptr().cast(), zeroed);
        assert_eq!(to, from, "{name}");
        cuda.free(zeroed);
        // Not in the queue's order: it goes back when the commands before have ended.
        cuda.free(ordered(&cuda));
        assert_eq!(call!(queue.finish(cuda.queue)), R::SUCCESS, "{name}");
        cuda.free(cuda.device_memory(64));
        assert_eq!(end(stream), 0, "{name}");
    }
    assert_eq!(call!(usm.pool_release(pool)), R::SUCCESS);
    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
}
#[test]
fn a_queue_that_is_released_while_its_stream_is_captured_keeps_what_its_commands_use() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    for (mode, name) in MODES {
        // Freed after the release, and before it.
        for freed_first in [false, true] {
            settle(&cuda);
            let stream = stream_in(native(&cuda), 1);
            let queue = adopted(&cuda, stream).unwrap();
            let gate = Gate::before(queue);
            let at = cuda.device_memory(1 << 20);
            let (pattern, none) = (7_u8, null_mut());
            let from = (&raw const pattern).cast();
            let filled = call!(enqueue.usm_fill(queue, at, 1, from, 1 << 20, 0, null(), none));
            assert_eq!(filled, R::SUCCESS);
            begin(stream, mode);
            if freed_first {
                cuda.free(at);
            }
            assert_eq!(call!(queue.release(queue)), R::SUCCESS);
            if !freed_first {
                cuda.free(at);
            }
            let again = cuda.device_memory(1 << 20);
            assert_ne!(again.addr(), at.addr(), "{name}: a command of the queue still uses it");
            assert_eq!(end(stream), 0, "{name}");
            let third = cuda.device_memory(1 << 20);
            assert_ne!(third.addr(), at.addr(), "{name}: and after the capture");
            // The stream is its owner's to destroy: nobody asks it any more.
            assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
            gate.open();
            cuda.free(again);
            cuda.free(third);
        }
    }
}
#[test]
fn memory_in_use_in_the_default_stream_is_kept_while_a_stream_in_step_with_it_is_captured() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let (stype, flags) =
        (ur_structure_type_t::QUEUE_PROPERTIES, ur_queue_flags_t::USE_DEFAULT_STREAM);
    let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
    let mut queue = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(cuda.context, cuda.device, &properties, &mut queue)), R::SUCCESS);
    let stream = stream_in(native(&cuda), 0);
    for (mode, name) in MODES {
        settle(&cuda);
        let gate = Gate::before(queue);
        let at = cuda.device_memory(1 << 20);
        let filled = fill(queue, at, 1 << 20).unwrap();
        begin(stream, mode);
        cuda.free(at);
        let again = cuda.device_memory(1 << 20);
        assert_ne!(again.addr(), at.addr(), "{name}: a command still uses it");
        assert_eq!(end(stream), 0, "{name}");
        gate.open();
        assert_eq!(call!(event.wait(1, &filled)), R::SUCCESS, "{name}");
        cuda.release_event(filled);
        cuda.free(again);
    }
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    assert_eq!(driver!("cuStreamDestroy_v2", stream => usize), 0);
}
#[test]
fn an_out_of_order_queue_is_captured_as_a_whole_and_goes_on_afterwards() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let (queue, native) = queue_of(&cuda, ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let at = cuda.device_memory(4096);
    let fills = || [(); 16].map(|()| fill(queue, at, 4096).unwrap());
    for (mode, name) in MODES {
        let before = fills();
        assert_eq!(call!(queue.finish(queue)), R::SUCCESS, "{name}");
        begin(native, mode);
        let captured = fills();
        let barrier = call!(enqueue.events_wait_with_barrier(queue, 0, null(), null_mut()));
        assert_eq!(barrier, R::SUCCESS, "{name}");
        for event in &captured {
            assert_eq!(call!(event.wait(1, event)), R::ERROR_INVALID_OPERATION, "{name}");
        }
        assert_eq!(end(native), 0, "{name}");
        let after = fills();
        for event in before.iter().chain(&after) {
            assert_eq!(call!(event.wait(1, event)), R::SUCCESS, "{name}");
        }
        [before, captured, after]
            .as_flattened()
            .iter()
            .for_each(|event| cuda.release_event(*event));
    }
    cuda.free(at);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}
/// Counts how often it is called.
unsafe extern "C" fn count(calls: *mut c_void) {
    unsafe { &*calls.cast::<AtomicUsize>() }.fetch_add(1, AcqRel);
}
#[test]
fn a_graph_calls_what_was_captured_and_writes_patterns_each_time_that_it_runs() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    const LONG: usize = 128;
    let (at, bytes) = (cuda.device_memory(8192), 4096);
    let (rows, pitch, width, height) = (at.wrapping_byte_add(4096), 64, 30, 8);
    for flags in KINDS {
        let ((queue, stream), calls) = (queue_of(&cuda, flags), AtomicUsize::new(0));
        let none = null_mut();
        begin(stream, 2);
        let data = (&raw const calls).cast_mut().cast();
        let called =
            call!(enqueue_exp.host_task_exp(queue, Some(count), data, null(), 0, null(), none));
        assert_eq!(called, R::SUCCESS, "{:?}", ur_adapter::error::last_error());
        // The patterns are the caller's again when the calls have returned.
        let mut long: [u8; LONG] = std::array::from_fn(|i| i as u8);
        let from = long.as_ptr().cast();
        let filled = call!(enqueue.usm_fill(queue, at, LONG, from, bytes, 0, null(), none));
        assert_eq!(filled, R::SUCCESS);
        long.fill(0xee);
        let mut odd = [1_u8, 2, 3, 4];
        let from = odd.as_ptr().cast();
        let filled =
            call!(enqueue.usm_fill_2d(queue, rows, pitch, 4, from, width, height, 0, null(), none));
        assert_eq!(filled, R::SUCCESS);
        odd.fill(0xee);
        std::hint::black_box((long, odd));
        let clear = || cuda.write(at, &[0_u8; 8192]);
        replays((stream, native(&cuda)), 3, clear, |time| {
            assert_eq!(calls.load(Acquire), time + 1, "{flags:?}");
            let seen = cuda.read::<u8, 8192>(at);
            assert!(seen[..bytes].iter().enumerate().all(|(i, b)| *b == (i % LONG) as u8));
            for (y, row) in seen[4096..].chunks(pitch).take(height).enumerate() {
                let expected = |x| ((y * width + x) % 4 + 1) as u8;
                assert!((0..width).all(|x| row[x] == expected(x)), "row {y}: {:?}", &row[..width]);
                assert!(row[width..].iter().all(|b| *b == 0), "row {y}");
            }
        });
        finish_and_release(queue);
    }
    cuda.free(at);
}
#[test]
fn what_is_done_once_is_refused_while_a_queue_is_captured_and_the_capture_survives() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let none = null_mut();
    let refused = R::ERROR_GRAPH_CAPTURE_UNSUPPORTED;
    for flags in KINDS {
        let (queue, stream) = queue_of(&cuda, flags);
        let (at, mut buffer) = (cuda.device_memory(4096), ur_mem_handle_t::NULL);
        let (kind, no_pool) = (ur_mem_flags_t::READ_WRITE, ur_usm_pool_handle_t::NULL);
        let made = call!(mem.buffer_create(cuda.context, kind, 4096, null(), &mut buffer));
        assert_eq!(made, R::SUCCESS);
        let map = || {
            let (mut mapped, write) = (null_mut(), ur_map_flags_t::WRITE);
            let to = &mut mapped;
            let code = call!(enqueue.mem_buffer_map(
                queue,
                buffer,
                false,
                write,
                0,
                4096,
                0,
                null(),
                none,
                to
            ));
            (code, mapped)
        };
        let unmap = |mapped| call!(enqueue.mem_unmap(queue, buffer, mapped, 0, null(), none));
        let (code, mapped) = map();
        assert_eq!((code, call!(queue.finish(queue))), (R::SUCCESS, R::SUCCESS));
        begin(stream, 2);
        let free = || call!(enqueue_exp.usm_free_exp(queue, no_pool, at, 0, null(), none));
        assert_eq!(free(), refused);
        assert_eq!(unmap(mapped), refused);
        assert_eq!(map().0, refused);
        cuda.release_event(fill(queue, at, 4096).unwrap()); // it is there
        assert_eq!(end(stream), 0);
        assert_eq!(unmap(mapped), R::SUCCESS);
        let (code, mapped) = map();
        assert_eq!((code, unmap(mapped), free()), (R::SUCCESS, R::SUCCESS, R::SUCCESS));
        assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
        assert_eq!(call!(mem.release(buffer)), R::SUCCESS);
        assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    }
}
#[test]
fn a_captured_command_may_be_behind_what_is_over_and_is_refused_behind_what_runs() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let at = cuda.device_memory(4096);
    for flags in KINDS {
        settle(&cuda);
        let (queue, stream) = queue_of(&cuda, flags);
        let behind = |event: ur_event_handle_t| {
            call!(enqueue.events_wait_with_barrier(queue, 1, &event, null_mut()))
        };
        let over = [fill(cuda.queue, at, 4096).unwrap(), fill(queue, at, 4096).unwrap()];
        for queue in [cuda.queue, queue] {
            assert_eq!(call!(queue.finish(queue)), R::SUCCESS); // nobody asks for the events
        }
        let (gate, mut own_runs) = (Gate::before(cuda.queue), NO_EVENT);
        let runs = fill(cuda.queue, at, 4096).unwrap();
        begin(stream, 0);
        for event in over {
            assert_eq!(behind(event), R::SUCCESS, "{:?}", ur_adapter::error::last_error());
        }
        assert_eq!(behind(runs), R::ERROR_INVALID_OPERATION);
        let said = ur_adapter::error::last_error().unwrap_or_default();
        assert!(said.contains("waiting for a command that runs"), "{said}");
        assert_eq!(end(stream), 0);
        gate.open();
        // Also in the queue itself: the graph may be launched elsewhere.
        let gate = Gate::before(queue);
        let own = call!(enqueue.events_wait_with_barrier(queue, 0, null(), &mut own_runs));
        assert_eq!(own, R::SUCCESS);
        begin(stream, 0);
        assert_eq!(behind(own_runs), R::ERROR_INVALID_OPERATION);
        assert_eq!(end(stream), 0);
        gate.open();
        cuda.release_event(own_runs);
        assert_eq!((behind(runs), call!(queue.finish(queue))), (R::SUCCESS, R::SUCCESS));
        over.into_iter().chain([runs]).for_each(|event| cuda.release_event(event));
        assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    }
    cuda.free(at);
}
#[test]
fn a_capture_that_is_broken_is_said_to_be_and_an_event_of_an_earlier_one_breaks_none() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let (at, none) = (cuda.device_memory(4096), null_mut());
    for flags in KINDS {
        let (queue, stream) = queue_of(&cuda, flags);
        begin(stream, 2);
        let earlier = fill(queue, at, 4096).unwrap();
        assert_eq!(end(stream), 0);
        begin(stream, 2);
        let behind = call!(enqueue.events_wait_with_barrier(cuda.queue, 1, &earlier, none));
        assert_eq!(behind, R::ERROR_INVALID_OPERATION);
        let behind = call!(enqueue.events_wait_with_barrier(queue, 1, &earlier, none));
        assert_eq!(behind, R::ERROR_INVALID_OPERATION);
        cuda.release_event(fill(queue, at, 4096).unwrap());
        assert_eq!(end(stream), 0);
        let behind = call!(enqueue.events_wait_with_barrier(queue, 1, &earlier, none));
        assert_eq!(behind, R::ERROR_INVALID_OPERATION, "it has not run");
        assert_eq!(call!(event.wait(1, &earlier)), R::ERROR_INVALID_OPERATION);
        let said = ur_adapter::error::last_error().unwrap_or_default();
        assert!(said.contains("wait for what the graph is launched in"), "{said}");
        cuda.release_event(earlier);
        begin(stream, 2);
        assert_ne!(driver!("cuStreamQuery", stream => usize), 0); // breaks it
        let (calls, long) = (AtomicUsize::new(0), std::array::from_fn::<u8, 128, _>(|i| i as u8));
        let data = (&raw const calls).cast_mut().cast();
        let task =
            call!(enqueue_exp.host_task_exp(queue, Some(count), data, null(), 0, null(), none));
        let from = long.as_ptr().cast();
        let filled = call!(enqueue.usm_fill(queue, at, 128, from, 4096, 0, null(), none));
        assert_eq!((task, filled), (R::ERROR_INVALID_OPERATION, R::ERROR_INVALID_OPERATION));
        let barrier = call!(enqueue.events_wait_with_barrier(queue, 0, null(), none));
        assert_eq!(barrier, R::ERROR_INVALID_OPERATION);
        assert_ne!(end(stream), 0);
        finish_and_release(queue);
    }
    cuda.free(at);
}
/// Fills memory through the native stream.
unsafe extern "C" fn sets(_: ur_queue_handle_t, data: *mut c_void) {
    let [stream, at, calls] = unsafe { &mut *data.cast::<[usize; 3]>() };
    let set = driver!("cuMemsetD8Async", *at => usize, 9 => u8, 4096 => usize, *stream => usize);
    *calls += usize::from(set == 0);
}
#[test]
fn a_native_command_is_captured_whatever_was_before_it() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let at = cuda.device_memory(4096);
    for flags in KINDS {
        let (queue, stream) = queue_of(&cuda, flags);
        let mut data = [stream, at.expose_provenance(), 0];
        let mut native_command = || {
            let (to, none, list) = ((&raw mut data).cast(), null_mut(), null());
            let (mems, properties) = (null(), null());
            call!(enqueue_exp.native_command_exp(
                queue,
                Some(sets),
                to,
                0,
                mems,
                properties,
                0,
                list,
                none
            ))
        };
        assert_eq!(native_command(), R::SUCCESS);
        let barrier = call!(enqueue.events_wait_with_barrier(queue, 0, null(), null_mut()));
        assert_eq!((barrier, call!(queue.finish(queue))), (R::SUCCESS, R::SUCCESS));
        begin(stream, 2);
        let captured = native_command();
        assert_eq!(captured, R::SUCCESS, "{:?}", ur_adapter::error::last_error());
        let clear = || cuda.write(at, &[0_u8; 4096]);
        replays((stream, native(&cuda)), 2, clear, |_| {
            assert!(cuda.read::<u8, 4096>(at) == [9; 4096], "{flags:?}");
        });
        assert_eq!((native_command(), call!(queue.finish(queue))), (R::SUCCESS, R::SUCCESS));
        assert_eq!(call!(queue.release(queue)), R::SUCCESS);
        assert_eq!(data[2], 3);
    }
    cuda.free(at);
}
#[test]
fn a_stream_that_the_queue_owns_may_be_captured_and_used_by_others_too() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    let (stream, at) = (stream_in(native(&cuda), 1), cuda.device_memory(4096));
    let (mut queue, stype) =
        (ur_queue_handle_t::NULL, ur_structure_type_t::QUEUE_NATIVE_PROPERTIES);
    let properties =
        ur_queue_native_properties_t { stype, pNext: null_mut(), isNativeHandleOwned: true };
    let (context, device) = (cuda.context, cuda.device);
    let (props, to) = (&properties, &mut queue);
    let made = call!(queue.create_with_native_handle(stream, context, device, props, to));
    assert_eq!(made, R::SUCCESS);
    begin(stream, 0);
    let captured = fill(queue, at, 4096).unwrap();
    let (info, mut status) = (ur_event_info_t::COMMAND_EXECUTION_STATUS, 0_u32);
    let into = (&raw mut status).cast();
    assert_eq!(call!(event.get_info(captured, info, 4, into, null_mut())), R::SUCCESS);
    assert_eq!(ur_event_status_t(status as _), ur_event_status_t::SUBMITTED);
    assert_eq!(call!(event.wait(1, &captured)), R::ERROR_INVALID_OPERATION);
    cuda.release_event(captured);
    assert_eq!(end(stream), 0);
    // What the application enqueues is waited for.
    static DONE: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn slow(_: *mut c_void) {
        thread::sleep(std::time::Duration::from_millis(50));
        DONE.store(true, Release);
    }
    let function: unsafe extern "C" fn(*mut c_void) = slow;
    let mut popped = 0_usize;
    assert_eq!(driver!("cuCtxPushCurrent_v2", native(&cuda) => usize), 0);
    let launched = driver!(
        "cuLaunchHostFunc", stream => usize,
        function => unsafe extern "C" fn(*mut c_void), null_mut() => *mut c_void
    );
    assert_eq!(driver!("cuCtxPopCurrent_v2", &mut popped => *mut usize), 0);
    assert_eq!((launched, call!(queue.finish(queue))), (0, R::SUCCESS));
    assert!(DONE.load(Acquire));
    cuda.free(at);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}
/// A function that only the software driver has.
fn soft<T: Copy>(name: &str) -> Option<T> {
    let driver = unsafe { Library::new("libcuda.so.1") }.ok()?;
    let function = unsafe { driver.get::<T>(name.as_bytes()) }.ok().map(|function| *function);
    if function.is_none() {
        println!("skipped: the software driver alone refuses what it is told to");
    }
    function
}
#[test]
fn a_command_that_is_refused_returns_though_a_capture_begins_meanwhile() {
    let _turn = turn();
    let Some(cuda) = Cuda::new() else { return };
    type Fail = unsafe extern "C" fn(*const c_char, u64);
    type Times = unsafe extern "C" fn(u64);
    type Calls = unsafe extern "C" fn(*const c_char) -> u64;
    let Some(fail) = soft::<Fail>("softCudaFail") else { return };
    let (times, calls) =
        (soft::<Times>("softCudaFailTimes").unwrap(), soft::<Calls>("softCudaCallsOf").unwrap());
    let name = c"cuEventRecord".as_ptr();
    let at = cuda.device_memory(4096);
    for flags in KINDS {
        let (queue, stream) = queue_of(&cuda, flags);
        cuda.release_event(fill(queue, at, 4096).unwrap());
        assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
        let before = unsafe { calls(name) };
        thread::scope(|scope| {
            scope.spawn(move || {
                while unsafe { calls(c"cuEventRecord".as_ptr()) } < before + 10 {
                    thread::yield_now();
                }
                begin(stream, 2);
                thread::sleep(std::time::Duration::from_millis(30));
                assert_eq!(end(stream), 0);
            });
            // The end of the command, and then the mark behind what the driver has of it, until the capture has begun.
            let refuse = |so_many, before| {
                unsafe { times(so_many) };
                unsafe { fail(name, before) };
            };
            refuse(12, 0);
            let refused = fill(queue, at, 4096);
            refuse(1, u64::MAX);
            assert!(refused.is_err());
        });
        let barrier = call!(enqueue.events_wait_with_barrier(queue, 0, null(), null_mut()));
        assert_eq!(barrier, R::SUCCESS, "{:?}", ur_adapter::error::last_error());
        cuda.release_event(fill(queue, at, 4096).unwrap());
        finish_and_release(queue);
    }
    cuda.free(at);
}
