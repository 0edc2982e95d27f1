//! Queues with each of their properties, waiting for a whole device, and callbacks of events from any thread at any time.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod common;
use common::{eventually, ur::*};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    thread,
};
use ur_queue_flags_t as F;
use ur_result_t as R;

#[test]
fn role() {
    common::role();
}

fn properties(flags: F, next: *const c_void) -> ur_queue_properties_t {
    let stype = ur_structure_type_t::QUEUE_PROPERTIES;
    ur_queue_properties_t { stype, pNext: next.cast_mut(), flags }
}
fn make(ur: &Ur, properties: &ur_queue_properties_t) -> Result<ur_queue_handle_t, R> {
    let mut queue = ur_queue_handle_t::NULL;
    match call!(queue.create(ur.context, ur.device, properties, &mut queue)) {
        R::SUCCESS => Ok(queue),
        code => {
            assert_eq!(queue, ur_queue_handle_t::NULL);
            Err(code)
        }
    }
}
fn close(queue: ur_queue_handle_t) {
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}

/// A handle on its way to another thread, as C carries it.
#[derive(Clone, Copy)]
struct Carried<H>(H);
unsafe impl<H> Send for Carried<H> {}
unsafe impl<H> Sync for Carried<H> {}
impl<H: Copy> Carried<H> {
    fn handle(&self) -> H {
        self.0
    }
}

/// A gate in a queue: a host task that waits until it is opened.
#[derive(Default)]
struct Gate {
    is_open: AtomicBool,
    is_reached: AtomicBool,
}
unsafe extern "C" fn wait_at_gate(gate: *mut c_void) {
    let gate = unsafe { &*gate.cast::<Gate>() };
    gate.is_reached.store(true, Release);
    while !gate.is_open.load(Acquire) {
        thread::yield_now();
    }
}
impl Gate {
    fn close(&self, queue: ur_queue_handle_t) -> ur_event_handle_t {
        let mut event = ur_event_handle_t::NULL;
        let at = (&raw const *self).cast_mut().cast();
        let (task, no_list) = (Some(wait_at_gate as unsafe extern "C" fn(*mut c_void)), null());
        let code =
            call!(enqueue_exp.host_task_exp(queue, task, at, null(), 0, no_list, &mut event));
        assert_eq!(code, R::SUCCESS);
        event
    }
    fn open(&self) {
        self.is_open.store(true, Release);
    }
}

#[test]
fn every_hint_makes_a_queue_that_works_and_tells_its_flags() {
    let ur = Ur::new();
    let hints = [
        F::DISCARD_EVENTS,
        F::PRIORITY_LOW,
        F::PRIORITY_HIGH,
        F::SUBMISSION_BATCHED,
        F::SUBMISSION_IMMEDIATE,
        F::USE_DEFAULT_STREAM,
        F::SYNC_WITH_DEFAULT_STREAM,
        F::LOW_POWER_EVENTS_SUPPORT_EXP,
    ];
    for order in [F::default(), F::OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        for hint in hints {
            let queue = make(&ur, &properties(order | hint, null())).unwrap();
            let info = ur_queue_info_t::FLAGS;
            let flags: u32 = ur
                .value(|size, to, ret| call!(queue.get_info(queue, info, size, to, ret)))
                .unwrap();
            assert_eq!(flags, (order | hint).bits());
            let gate = Gate::default();
            gate.open();
            let event = gate.close(queue);
            assert_eq!(call!(queue.flush(queue)), R::SUCCESS);
            assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
            assert!(gate.is_reached.load(Acquire), "{hint:?}");
            assert_eq!(call!(event.release(event)), R::SUCCESS);
            close(queue);
        }
    }
    for refused in [
        F::PRIORITY_LOW | F::PRIORITY_HIGH,
        F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE,
        F::ON_DEVICE,
        F::ON_DEVICE_DEFAULT,
    ] {
        let code = make(&ur, &properties(refused, null())).unwrap_err();
        assert_eq!(code, R::ERROR_INVALID_QUEUE_PROPERTIES, "{refused:?}");
    }
    let unknown = make(&ur, &properties(F(1 << 30), null())).unwrap_err();
    assert_eq!(unknown, R::ERROR_INVALID_ENUMERATION);
}
#[test]
fn a_queue_of_low_priority_is_nice() {
    let ur = Ur::new();
    unsafe extern "C" fn ask(to: *mut c_void) {
        let to = unsafe { &*to.cast::<Mutex<Option<i32>>>() };
        let me = Some(rustix::thread::gettid());
        *to.lock().unwrap() = Some(rustix::process::getpriority_process(me).unwrap());
    }
    let nice = |flags| -> i32 {
        let queue = make(&ur, &properties(flags, null())).unwrap();
        let said = Mutex::new(None);
        let to = (&raw const said).cast_mut().cast();
        let (ask, none) = (Some(ask as unsafe extern "C" fn(*mut c_void)), null_mut());
        let code = call!(enqueue_exp.host_task_exp(queue, ask, to, null(), 0, null(), none));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
        close(queue);
        said.into_inner().unwrap().unwrap()
    };
    let usual = nice(F::default());
    assert_eq!(nice(F::PRIORITY_LOW), std::cmp::min(usual + 5, 19));
    assert!(nice(F::PRIORITY_HIGH) <= usual);
}
#[test]
fn the_engine_that_there_is_can_be_chosen_and_no_other() {
    let ur = Ur::new();
    let info = ur_device_info_t::MAX_COMPUTE_QUEUE_INDICES;
    let engines: u32 =
        ur.value(|size, to, ret| call!(device.get_info(ur.device, info, size, to, ret))).unwrap();
    let stype = ur_structure_type_t::QUEUE_INDEX_PROPERTIES;
    for engine in [0, engines - 1, engines, u32::MAX] {
        let index = ur_queue_index_properties_t { stype, pNext: null_mut(), computeIndex: engine };
        let made = make(&ur, &properties(F::default(), (&raw const index).cast()));
        match engine < engines {
            true => close(made.unwrap()),
            false => assert_eq!(made.unwrap_err(), R::ERROR_INVALID_QUEUE_PROPERTIES, "{engine}"),
        }
    }
}
#[test]
fn waiting_for_a_device_is_waiting_for_all_its_queues() {
    let ur = Ur::new();
    let gates = [(); 3].map(|()| Box::leak(Box::new(Gate::default())));
    let queues = [F::default(), F::OUT_OF_ORDER_EXEC_MODE_ENABLE, F::default()]
        .map(|flags| make(&ur, &properties(flags, null())).unwrap());
    let events: Vec<_> = gates.iter().zip(queues).map(|(gate, queue)| gate.close(queue)).collect();
    close(queues[2]); // with its command still to do
    let (is_over, device) = (AtomicBool::new(false), Carried(ur.device));
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(call!(device_exp.wait_exp(device.handle())), R::SUCCESS);
            is_over.store(true, Release);
        });
        for gate in &gates {
            eventually("all are under way", || gate.is_reached.load(Acquire));
            assert!(!is_over.load(Acquire));
            gate.open();
        }
    });
    for event in events {
        let info = ur_event_info_t::COMMAND_EXECUTION_STATUS;
        let status: u32 =
            ur.value(|size, to, ret| call!(event.get_info(event, info, size, to, ret))).unwrap();
        assert_eq!(status, ur_event_status_t::COMPLETE.0);
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
    close(queues[0]);
    close(queues[1]);
    assert_eq!(call!(device_exp.wait_exp(ur_device_handle_t::NULL)), R::ERROR_INVALID_NULL_HANDLE);
}
#[test]
fn waiting_for_a_part_is_not_waiting_for_the_rest() {
    let ur = Ur::new();
    let Some(part) = ur.a_part() else { return };
    let whole = make(&ur, &properties(F::default(), null())).unwrap();
    let mut own = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(ur.context, part, null(), &mut own)), R::SUCCESS);
    let (gate, other) = (Gate::default(), Gate::default());
    let (event, of_part) = (gate.close(whole), other.close(own));
    other.open();
    assert_eq!(call!(device_exp.wait_exp(part)), R::SUCCESS);
    assert!(other.is_reached.load(Acquire));
    gate.open();
    assert_eq!(call!(device_exp.wait_exp(ur.device)), R::SUCCESS);
    for event in [event, of_part] {
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
    close(whole);
    close(own);
    assert_eq!(call!(device.release(part)), R::SUCCESS);
}

static CALLS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
unsafe extern "C" fn count(_: ur_event_handle_t, status: ur_execution_info_t, _: *mut c_void) {
    let at = match status {
        ur_execution_info_t::COMPLETE => 0,
        ur_execution_info_t::RUNNING => 1,
        _ => 2,
    };
    CALLS[at].fetch_add(1, AcqRel);
}
#[test]
fn callbacks_come_once_each_whoever_asks_and_whenever() {
    use ur_execution_info_t as X;
    const THREADS: usize = 8;
    let ur = Ur::new();
    let queue = make(&ur, &properties(F::default(), null())).unwrap();
    let gate = Gate::default();
    let event = gate.close(queue);
    let carried = Carried(event);
    let set =
        move |status| call!(event.set_callback(carried.handle(), status, Some(count), null_mut()));
    let calls = || CALLS.each_ref().map(|calls| calls.load(Acquire));
    let from_all = || {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(move || {
                    for status in [X::COMPLETE, X::RUNNING, X::SUBMITTED] {
                        assert_eq!(set(status), R::SUCCESS);
                    }
                });
            }
        });
    };
    eventually("it runs", || gate.is_reached.load(Acquire));
    from_all();
    assert_eq!(calls(), [0, THREADS, THREADS], "what is past is told at once");
    gate.open();
    assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
    eventually("all are told of the end", || calls()[0] == THREADS);
    from_all();
    assert_eq!(calls(), [2 * THREADS; 3], "what is past is told at once");
    assert_eq!(set(X::QUEUED), R::ERROR_UNSUPPORTED_ENUMERATION);
    assert_eq!(set(X(17)), R::ERROR_INVALID_ENUMERATION);
    let none = call!(event.set_callback(event, X::COMPLETE, None, null_mut()));
    assert_eq!(none, R::ERROR_INVALID_NULL_POINTER);
    assert_eq!(call!(event.release(event)), R::SUCCESS);
    close(queue);
}
#[test]
fn times_are_refused_where_nobody_asked_for_them() {
    let ur = Ur::new();
    let queue = make(&ur, &properties(F::default(), null())).unwrap();
    let mut event = ur_event_handle_t::NULL;
    assert_eq!(call!(enqueue.events_wait(queue, 0, null(), &mut event)), R::SUCCESS);
    assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
    for name in ur_profiling_info_t::VALUES {
        let time = ur.value::<u64>(|size, to, ret| {
            call!(event.get_profiling_info(event, *name, size, to, ret))
        });
        assert_eq!(time.unwrap_err().code, R::ERROR_PROFILING_INFO_NOT_AVAILABLE, "{name:?}");
    }
    assert_eq!(call!(event.release(event)), R::SUCCESS);
    close(queue);
}
