//! The driver refuses one call of a command, each that it makes in turn. Whatever becomes of the command: its memory is the
//! caller's when the call returns, and a queue is not finished before its commands are. On the first platform that there is;
//! without one the tests are skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use crate::{TABLE, driver::refusal::LEFT};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
    thread::sleep,
    time::Duration,
};
use ur_sys::{ur_queue_flags_t as Flags, ur_result_t as R, *};

/// Makes a call of which the `nth` call of the driver is refused; also returns whether there was one.
fn refusing<T>(nth: usize, call: impl FnOnce() -> T) -> (T, bool) {
    LEFT.set(Some(nth));
    let made = call();
    (made, LEFT.take().is_none())
}
macro_rules! call { ($table:ident.$entry:ident($($argument:expr),* $(,)?)) => {
    unsafe { TABLE.$table.$entry.unwrap()($($argument),*) }
} }

const BYTES: usize = 4096;
/// How long a gate stays shut.
const SHUT: Duration = Duration::from_millis(8);
const WAYS: [Flags; 2] = [Flags(0), Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE];

/// A context of the first device that there is.
struct One {
    device: ur_device_handle_t,
    context: ur_context_handle_t,
    memory: *mut c_void,
}
impl One {
    fn new() -> Option<Self> {
        let (mut adapter, mut platform) = (ur_adapter_handle_t::NULL, ur_platform_handle_t::NULL);
        let (mut device, mut context) = (ur_device_handle_t::NULL, ur_context_handle_t::NULL);
        let (all, none, mut count) = (ur_device_type_t::ALL, null_mut(), 0);
        assert_eq!(call!(adapter.get(1, &mut adapter, none)), R::SUCCESS);
        assert_eq!(call!(platform.get(adapter, 1, &mut platform, &mut count)), R::SUCCESS);
        if count == 0 {
            println!("skipped: there is no platform of OpenCL");
            return None;
        }
        assert_eq!(call!(device.get(platform, all, 1, &mut device, none)), R::SUCCESS);
        assert_eq!(call!(context.create(1, &device, null(), &mut context)), R::SUCCESS);
        let (pool, mut memory) = (ur_usm_pool_handle_t::NULL, null_mut());
        match call!(usm.device_alloc(context, device, null(), pool, BYTES, &mut memory)) {
            R::SUCCESS => Some(Self { device, context, memory }),
            code => {
                println!("skipped: the device has no unified shared memory ({code:?})");
                None
            }
        }
    }
    fn queue(&self, flags: Flags) -> ur_queue_handle_t {
        let stype = ur_structure_type_t::QUEUE_PROPERTIES;
        let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
        let mut queue = ur_queue_handle_t::NULL;
        let code = call!(queue.create(self.context, self.device, &properties, &mut queue));
        assert_eq!(code, R::SUCCESS);
        queue
    }
    /// A queue with a barrier behind a function that returns a while after `begin` is called, and the function's queue.
    fn held(&self, flags: Flags) -> ([ur_queue_handle_t; 2], Begin) {
        let begin: Begin = Arc::default();
        let (queue, other, mut event) = (self.queue(flags), self.queue(Flags(0)), NONE);
        let data = Arc::into_raw(Arc::clone(&begin)).cast_mut().cast();
        let (props, list) = (null(), null());
        let held =
            call!(enqueue_exp.host_task_exp(other, Some(hold), data, props, 0, list, &mut event));
        assert_eq!(held, R::SUCCESS);
        let none = null_mut();
        assert_eq!(call!(enqueue.events_wait_with_barrier(queue, 1, &event, none)), R::SUCCESS);
        assert_eq!(call!(event.release(event)), R::SUCCESS);
        ([queue, other], begin)
    }
}
impl Drop for One {
    fn drop(&mut self) {
        assert_eq!(call!(usm.free(self.context, self.memory)), R::SUCCESS);
        assert_eq!(call!(context.release(self.context)), R::SUCCESS);
    }
}
const NONE: ur_event_handle_t = ur_event_handle_t::NULL;
type Begin = Arc<AtomicBool>;
unsafe extern "C" fn hold(data: *mut c_void) {
    let begin = unsafe { Arc::from_raw(data.cast_const().cast::<AtomicBool>()) };
    while !begin.load(Acquire) {
        std::thread::yield_now();
    }
    sleep(SHUT);
}
fn release(queues: [ur_queue_handle_t; 2]) {
    queues.into_iter().for_each(|queue| assert_eq!(call!(queue.release(queue)), R::SUCCESS));
}

#[test]
fn a_blocking_copy_is_over_when_it_returns_whatever_call_is_refused() {
    let Some(one) = One::new() else { return };
    for flags in WAYS {
        for nth in 0.. {
            let (queues, begin) = one.held(flags);
            let host: *mut u8 = Box::leak(Box::new([b'h'; BYTES])).as_mut_ptr();
            begin.store(true, Release);
            let (queue, (to, none)) = (queues[0], (host.cast(), null_mut()));
            let (code, was_refused) = refusing(nth, || {
                call!(enqueue.usm_memcpy(queue, true, to, one.memory, BYTES, 0, null(), none))
            });
            unsafe { host.write_bytes(b'c', BYTES) }; // the caller's again
            for queue in queues {
                let _lost = call!(queue.finish(queue));
            }
            sleep(Duration::from_millis(1));
            let is = |n| unsafe { host.wrapping_add(n).read_volatile() } == b'c';
            assert!((0..BYTES).all(is), "{flags:?}, call {nth}: {code:?}, and written later");
            release(queues);
            if !was_refused {
                assert_eq!(code, R::SUCCESS);
                break;
            }
        }
    }
}
#[test]
fn a_queue_is_not_finished_before_its_commands_whatever_call_is_refused() {
    let Some(one) = One::new() else { return };
    for flags in WAYS {
        for nth in 0.. {
            let (queues, begin) = one.held(flags);
            let (byte, mut event) = (9_u8, NONE);
            let filled = call!(enqueue.usm_fill(
                queues[0],
                one.memory,
                1,
                (&raw const byte).cast(),
                BYTES,
                0,
                null(),
                &mut event
            ));
            assert_eq!(filled, R::SUCCESS);
            begin.store(true, Release);
            let (code, was_refused) = refusing(nth, || call!(queue.finish(queues[0])));
            let (name, mut status) = (ur_event_info_t::COMMAND_EXECUTION_STATUS, 7_u32);
            let to = (&raw mut status).cast();
            assert_eq!(call!(event.get_info(event, name, 4, to, null_mut())), R::SUCCESS);
            let is_over = status == ur_event_status_t::COMPLETE.0;
            assert!(is_over || code != R::SUCCESS, "{flags:?}, call {nth}: {status}");
            assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
            assert_eq!(call!(event.release(event)), R::SUCCESS);
            release(queues);
            if !was_refused {
                assert_eq!(code, R::SUCCESS);
                break;
            }
        }
    }
}
