//! What command buffers promise on every driver with devices: the tests of the files that name this one.
use crate::{c::*, call, gate::Gate};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::{ur_event_status_t as Status, ur_profiling_info_t as Time, ur_result_t as R, *};

pub type Point = ur_exp_command_buffer_sync_point_t;
pub const NO_EVENT: ur_event_handle_t = ur_event_handle_t::NULL;
/// What allocations of these tests have.
pub const BYTES: usize = 4096;

/// A command buffer.
pub struct Recorded<'one> {
    _one: &'one One,
    pub handle: ur_exp_command_buffer_handle_t,
}
impl<'one> Recorded<'one> {
    pub fn new(one: &'one One, is_in_order: bool, is_profiled: bool) -> Self {
        let desc = ur_exp_command_buffer_desc_t {
            isInOrder: is_in_order.into(),
            enableProfiling: is_profiled.into(),
            ..IN_ORDER_COMMANDS
        };
        let mut handle = ur_exp_command_buffer_handle_t::NULL;
        let (context, device) = (one.context, one.device);
        let code = call!(command_buffer_exp.create_exp(context, device, &desc, &mut handle));
        assert_eq!(code, R::SUCCESS);
        Self { _one: one, handle }
    }
    /// A fill with a byte; the event of the command if there is a place for it.
    pub fn fill(
        &self,
        to: *mut c_void,
        byte: u8,
        after: &[Point],
        event: *mut ur_event_handle_t,
    ) -> Point {
        let (pattern, mut point) = ((&raw const byte).cast(), 0);
        let (count, list) =
            (after.len() as u32, if after.is_empty() { null() } else { after.as_ptr() });
        let code = call!(command_buffer_exp.append_usm_fill_exp(
            self.handle,
            to,
            pattern,
            1,
            BYTES,
            count,
            list,
            0,
            null(),
            &mut point,
            event,
            null_mut()
        ));
        assert_eq!(code, R::SUCCESS);
        point
    }
    pub fn copy(&self, to: *mut c_void, from: *const c_void, after: &[Point]) -> Point {
        let (mut point, none) = (0, null_mut());
        let (count, list) =
            (after.len() as u32, if after.is_empty() { null() } else { after.as_ptr() });
        let code = call!(command_buffer_exp.append_usm_memcpy_exp(
            self.handle,
            to,
            from,
            BYTES,
            count,
            list,
            0,
            null(),
            &mut point,
            none,
            null_mut()
        ));
        assert_eq!(code, R::SUCCESS);
        point
    }
    pub fn finalize(&self) {
        assert_eq!(call!(command_buffer_exp.finalize_exp(self.handle)), R::SUCCESS);
    }
    pub fn try_run(&self, queue: ur_queue_handle_t) -> Result<ur_event_handle_t, R> {
        let mut event = NO_EVENT;
        match call!(enqueue_exp.command_buffer_exp(queue, self.handle, 0, null(), &mut event)) {
            R::SUCCESS => Ok(event),
            code => Err(code),
        }
    }
    pub fn run(&self, queue: ur_queue_handle_t) -> ur_event_handle_t {
        self.try_run(queue).unwrap()
    }
    pub fn release(self) {
        assert_eq!(call!(command_buffer_exp.release_exp(self.handle)), R::SUCCESS);
    }
}
pub fn queue_of(one: &One, flags: ur_queue_flags_t) -> ur_queue_handle_t {
    let stype = ur_structure_type_t::QUEUE_PROPERTIES;
    let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
    let mut queue = ur_queue_handle_t::NULL;
    let (context, device) = (one.context, one.device);
    assert_eq!(call!(queue.create(context, device, &properties, &mut queue)), R::SUCCESS);
    queue
}
/// In order, and out of order.
pub fn two_queues(one: &One, flags: ur_queue_flags_t) -> [ur_queue_handle_t; 2] {
    [flags, flags | ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE].map(|all| queue_of(one, all))
}
pub fn release_queue(queue: ur_queue_handle_t) {
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}
pub fn wait_and_release(event: ur_event_handle_t) {
    assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
    assert_eq!(call!(event.release(event)), R::SUCCESS);
}
pub fn status(event: ur_event_handle_t) -> Status {
    let (mut status, name) = (0_u32, ur_event_info_t::COMMAND_EXECUTION_STATUS);
    let to = (&raw mut status).cast();
    assert_eq!(call!(event.get_info(event, name, 4, to, null_mut())), R::SUCCESS);
    Status(status as _)
}
pub fn is_over(event: ur_event_handle_t) -> bool {
    matches!(status(event), Status::COMPLETE | Status::ERROR)
}
#[track_caller]
pub fn holds(one: &One, at: *const c_void, byte: u8) {
    let found: [u8; BYTES] = one.read(at);
    let other = found.iter().find(|found| **found != byte);
    assert_eq!(other, None, "and not {byte} everywhere");
}

#[test]
fn commands_follow_one_another_as_recorded_in_queues_of_both_kinds() {
    let Some(one) = One::new() else { return };
    let [a, b, c, d] = [(); 4].map(|()| one.device_memory(BYTES));
    for queue in two_queues(&one, ur_queue_flags_t::default()) {
        for is_in_order in [true, false] {
            let recorded = Recorded::new(&one, is_in_order, false);
            let or = |points: Vec<Point>| if is_in_order { vec![] } else { points };
            let first = recorded.fill(a, 1, &[], null_mut());
            let other = recorded.fill(d, 9, &[], null_mut());
            let copied = recorded.copy(b, a, &or(vec![first]));
            let second = recorded.fill(a, 2, &or(vec![copied]), null_mut());
            let last = recorded.copy(c, a, &or(vec![second, other]));
            recorded.copy(d, c, &or(vec![last]));
            recorded.finalize();
            for _ in 0..20 {
                [a, b, c, d].into_iter().for_each(|at| one.write(at, &[7_u8; BYTES]));
                wait_and_release(recorded.run(queue));
                for (at, byte) in [(a, 2), (b, 1), (c, 2), (d, 2)] {
                    holds(&one, at, byte);
                }
            }
            recorded.release();
        }
        release_queue(queue);
    }
    [a, b, c, d].into_iter().for_each(|at| one.free(at));
}
#[test]
fn an_execution_follows_the_one_before_on_another_queue_and_what_is_in_its_own() {
    let Some(one) = One::new() else { return };
    let [a, b] = [(); 2].map(|()| one.device_memory(BYTES));
    let [in_order, out_of_order] = two_queues(&one, ur_queue_flags_t::default());
    for (queue, other) in [(in_order, out_of_order), (out_of_order, in_order)] {
        let recorded = Recorded::new(&one, true, false);
        recorded.copy(b, a, &[]);
        recorded.fill(a, 3, &[], null_mut());
        recorded.finalize();
        one.write(a, &[5_u8; BYTES]);
        let gate = Gate::shut();
        gate.hold(queue);
        // An out-of-order queue would not wait for what holds it up.
        let mut held = NO_EVENT;
        assert_eq!(
            call!(enqueue.events_wait_with_barrier(queue, 0, null(), &mut held)),
            R::SUCCESS
        );
        let first = recorded.run(queue);
        let second = recorded.run(other);
        assert_eq!([first, second].map(is_over), [false; 2]);
        gate.open();
        wait_and_release(second);
        assert!(is_over(held), "{queue:?}");
        holds(&one, b, 3); // the second one copied what the first one filled
        [first, held].into_iter().for_each(wait_and_release);
        // What comes later in the queue comes behind all of it.
        let [x, y] = [(a, 8_u8), (b, 3)];
        let pattern = (&raw const x.1).cast();
        let (run, mut last) = (recorded.run(queue), NO_EVENT);
        let filled = call!(enqueue.usm_fill(queue, x.0, 1, pattern, BYTES, 1, &run, &mut last));
        assert_eq!(filled, R::SUCCESS);
        wait_and_release(last);
        wait_and_release(run);
        [x, y].into_iter().for_each(|(at, byte)| holds(&one, at, byte));
        recorded.release();
    }
    [in_order, out_of_order].into_iter().for_each(release_queue);
    [a, b].into_iter().for_each(|at| one.free(at));
}
#[test]
fn the_event_of_a_command_is_signalled_by_each_execution_anew() {
    let Some(one) = One::new() else { return };
    let [a, b] = [(); 2].map(|()| one.device_memory(BYTES));
    let [other, another] = two_queues(&one, ur_queue_flags_t::default());
    for queue in [other, another] {
        let (recorded, mut event) = (Recorded::new(&one, false, false), NO_EVENT);
        recorded.fill(a, 4, &[], &mut event);
        recorded.finalize();
        for byte in 0..3_u8 {
            one.write(a, &[byte; BYTES]);
            let gate = Gate::shut();
            gate.hold(queue);
            assert_eq!(
                call!(enqueue.events_wait_with_barrier(queue, 0, null(), null_mut())),
                R::SUCCESS
            );
            let run = recorded.run(queue);
            assert!(!is_over(event), "execution {byte}");
            let mut copied = NO_EVENT;
            let copy =
                call!(enqueue.usm_memcpy(one.queue, false, b, a, BYTES, 1, &event, &mut copied));
            assert_eq!(copy, R::SUCCESS);
            gate.open();
            wait_and_release(copied);
            holds(&one, b, 4);
            wait_and_release(run);
            assert_eq!(status(event), Status::COMPLETE);
        }
        wait_and_release(event);
        recorded.release();
    }
    [other, another].into_iter().for_each(release_queue);
    [a, b].into_iter().for_each(|at| one.free(at));
}
#[test]
fn an_execution_tells_its_times_where_the_queue_or_the_command_buffer_was_made_for_that() {
    let Some(one) = One::new() else { return };
    let time = |event, name| {
        let (mut time, to) = (0_u64, null_mut());
        let place = (&raw mut time).cast();
        match call!(event.get_profiling_info(event, name, 8, place, to)) {
            R::SUCCESS => Ok(time),
            code => Err(code),
        }
    };
    let a = one.device_memory(BYTES);
    for (is_profiled, flags) in [
        (false, ur_queue_flags_t::PROFILING_ENABLE),
        (true, ur_queue_flags_t::default()),
        (false, ur_queue_flags_t::default()),
    ] {
        let tells = is_profiled || flags == ur_queue_flags_t::PROFILING_ENABLE;
        for queue in two_queues(&one, flags) {
            let recorded = Recorded::new(&one, false, is_profiled);
            let first = recorded.fill(a, 1, &[], null_mut());
            recorded.fill(a, 2, &[first], null_mut());
            recorded.finalize();
            let mut ended = 0;
            for _ in 0..3 {
                let run = recorded.run(queue);
                assert_eq!(call!(event.wait(1, &run)), R::SUCCESS);
                let names = [Time::COMMAND_SUBMIT, Time::COMMAND_START, Time::COMMAND_END];
                let times = names.map(|name| time(run, name));
                if tells {
                    let times = times.map(Result::unwrap);
                    assert!(times.is_sorted() && times[1] >= ended, "{times:?} after {ended}");
                    ended = times[2];
                } else {
                    assert_eq!(times, [Err(R::ERROR_PROFILING_INFO_NOT_AVAILABLE); 3]);
                }
                wait_and_release(run);
            }
            recorded.release();
            release_queue(queue);
        }
    }
    one.free(a);
}
#[test]
fn an_empty_one_is_over_when_what_it_waits_for_is() {
    let Some(one) = One::new() else { return };
    for queue in two_queues(&one, ur_queue_flags_t::default()) {
        let recorded = Recorded::new(&one, false, false);
        recorded.finalize();
        let (gate, mut held, mut run) = (Gate::shut(), NO_EVENT, NO_EVENT);
        gate.hold(one.queue);
        assert_eq!(call!(enqueue.events_wait(one.queue, 0, null(), &mut held)), R::SUCCESS);
        let code =
            call!(enqueue_exp.command_buffer_exp(queue, recorded.handle, 1, &held, &mut run));
        assert_eq!(code, R::SUCCESS);
        assert!(!is_over(run));
        gate.open();
        wait_and_release(run);
        assert!(is_over(held));
        wait_and_release(held);
        recorded.release();
        release_queue(queue);
    }
}
