//! Bytes get from one device to another, be there a link or not. On whatever driver of Level Zero there is; with fewer
//! than two devices the tests say so and are skipped.
mod c;
#[path = "../../cuda/tests/c/crossing.rs"]
mod crossing;
#[path = "c/gate.rs"]
mod gate;

use c::*;
use gate::Gate;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::{ur_result_t as R, *};

/// Two devices that do not reach each other's memory, in one context.
struct Apart {
    devices: [ur_device_handle_t; 2],
    context: ur_context_handle_t,
    queue: ur_queue_handle_t,
    memory: [*mut c_void; 2],
}
const BYTES: usize = 4096;
impl Apart {
    fn new() -> Self {
        let devices = [One::new().unwrap().device, One::of(1).unwrap().device];
        let mut context = ur_context_handle_t::NULL;
        assert_eq!(call!(context.create(2, devices.as_ptr(), null(), &mut context)), R::SUCCESS);
        let memory = devices.map(|device| {
            let (mut at, pool) = (null_mut(), ur_usm_pool_handle_t::NULL);
            let code = call!(usm.device_alloc(context, device, null(), pool, BYTES, &mut at));
            assert_eq!(code, R::SUCCESS);
            at
        });
        let mut made = Self { devices, context, queue: ur_queue_handle_t::NULL, memory };
        made.queue = made.queue_of(0);
        made
    }
    fn queue_of(&self, device: usize) -> ur_queue_handle_t {
        let mut queue = ur_queue_handle_t::NULL;
        let code = call!(queue.create(self.context, self.devices[device], null(), &mut queue));
        assert_eq!(code, R::SUCCESS);
        queue
    }
    fn copy(&self, to: *mut c_void, from: *const c_void, is_awaited: bool) -> Result<(), R> {
        let (queue, none) = (self.queue, null_mut());
        let code = call!(enqueue.usm_memcpy(queue, is_awaited, to, from, BYTES, 0, null(), none));
        if code == R::SUCCESS { Ok(()) } else { Err(code) }
    }
    fn read(&self, from: *const c_void) -> [u8; BYTES] {
        let mut all = [0; BYTES];
        self.copy(all.as_mut_ptr().cast(), from, true).unwrap();
        all
    }
    fn barrier(
        queue: ur_queue_handle_t,
        wait: Option<ur_event_handle_t>,
    ) -> Result<ur_event_handle_t, R> {
        let mut event = ur_event_handle_t::NULL;
        let (count, list) =
            (wait.iter().len() as u32, wait.as_ref().map_or(null(), |one| &raw const *one));
        let code = call!(enqueue.events_wait_with_barrier(queue, count, list, &mut event));
        if code == R::SUCCESS { Ok(event) } else { Err(code) }
    }
}
impl Drop for Apart {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for at in self.memory {
            assert_eq!(call!(usm.free(self.context, at)), R::SUCCESS);
        }
        assert_eq!(call!(queue.release(self.queue)), R::SUCCESS);
        assert_eq!(call!(context.release(self.context)), R::SUCCESS);
    }
}
fn end(event: ur_event_handle_t) -> R {
    let code = call!(event.wait(1, &raw const event));
    assert_eq!(call!(event.release(event)), R::SUCCESS);
    code
}

/// What the driver would refuse in a list is done between two of them, each time that the recording is executed.
#[test]
fn recorded_copies_and_fills_of_memory_that_the_device_does_not_reach_are_done_each_time() {
    let name =
        "recorded_copies_and_fills_of_memory_that_the_device_does_not_reach_are_done_each_time";
    if !is_inside(name, &[("ZE_SOFTWARE_DEVICES", "2"), ("ZE_SOFTWARE_PEER", "0")]) {
        return;
    }
    let apart = Apart::new();
    let [here, there] = apart.memory;
    let mut buffer = ur_exp_command_buffer_handle_t::NULL;
    let (context, device, none) = (apart.context, apart.devices[0], null_mut());
    let code =
        call!(command_buffer_exp.create_exp(context, device, &IN_ORDER_COMMANDS, &mut buffer));
    assert_eq!(code, R::SUCCESS);
    let add = |from: *const c_void, to: *mut c_void, bytes: usize| {
        let (waits, events, point, event, command) =
            (null(), null(), null_mut(), null_mut(), null_mut());
        let code = call!(command_buffer_exp.append_usm_memcpy_exp(
            buffer, to, from, bytes, 0, waits, 0, events, point, event, command
        ));
        assert_eq!(code, R::SUCCESS);
    };
    let fill = |to: *mut c_void, byte: u8, bytes: usize| {
        let (waits, events, point, event, command) =
            (null(), null(), null_mut(), null_mut(), null_mut());
        let pattern: *const c_void = (&raw const byte).cast();
        let code = call!(command_buffer_exp.append_usm_fill_exp(
            buffer, to, pattern, 1usize, bytes, 0, waits, 0, events, point, event, command
        ));
        assert_eq!(code, R::SUCCESS);
    };
    // Round the devices: what is here goes there, is overwritten in part there, comes back, and is overwritten in part here.
    add(here, there, BYTES);
    fill(there.wrapping_byte_add(16), 7, 16);
    add(there, here, BYTES);
    fill(here, 9, 8);
    assert_eq!(call!(command_buffer_exp.finalize_exp(buffer)), R::SUCCESS);
    for round in [1_u8, 2, 3] {
        apart.copy(here, [round; BYTES].as_ptr().cast(), true).unwrap();
        let mut event = ur_event_handle_t::NULL;
        let to = &raw mut event;
        let code = call!(enqueue_exp.command_buffer_exp(apart.queue, buffer, 0, null(), to));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(end(event), R::SUCCESS);
        let mut wanted = [round; BYTES];
        wanted[16..32].fill(7);
        assert_eq!(apart.read(there), wanted);
        wanted[..8].fill(9);
        assert_eq!(apart.read(here), wanted);
    }
    // And twice in a row without a wait between.
    for _ in 0..2 {
        let code = call!(enqueue_exp.command_buffer_exp(apart.queue, buffer, 0, null(), none));
        assert_eq!(code, R::SUCCESS);
    }
    assert_eq!(call!(queue.finish(apart.queue)), R::SUCCESS);
    assert_eq!(apart.read(there)[..9], [9, 9, 9, 9, 9, 9, 9, 9, 3]);
    assert_eq!(call!(command_buffer_exp.release_exp(buffer)), R::SUCCESS);
}

/// The driver runs what is behind a copy that failed on its way through the host; the application learns that it is worthless.
#[test]
fn commands_behind_a_copy_that_failed_on_its_way_through_the_host_fail_too() {
    let refused = [1, 2].map(|nth| format!("zeCommandListAppendMemoryCopy:{nth}=0x70000001"));
    let name = "commands_behind_a_copy_that_failed_on_its_way_through_the_host_fail_too";
    let variables = [
        ("ZE_SOFTWARE_DEVICES", "2"),
        ("ZE_SOFTWARE_PEER", "0"),
        ("ZE_SOFTWARE_FAIL", &refused.join(",")),
    ];
    if !is_inside(name, &variables) {
        return;
    }
    let apart = Apart::new();
    let [here, there] = apart.memory;
    let (other, gate) = (apart.queue_of(0), Gate::shut());
    gate.hold(apart.queue); // nothing fails before all that depends on it is enqueued
    apart.copy(there, here, false).unwrap();
    // In its queue, and in another one that waits for that.
    let behind = Apart::barrier(apart.queue, None).unwrap();
    let failed = R::ERROR_IN_EVENT_LIST_EXEC_STATUS;
    let elsewhere = Apart::barrier(other, Some(behind)).unwrap();
    let next = Apart::barrier(other, None).unwrap();
    gate.open();
    assert_eq!([end(elsewhere), end(next)], [failed; 2]);
    assert_eq!(call!(queue.finish(other)), R::SUCCESS, "it is its own queue's to tell");
    assert_eq!(Apart::barrier(other, Some(behind)), Err(failed), "it is known to have failed");
    assert_eq!(end(behind), failed);
    assert_eq!(end(Apart::barrier(apart.queue, None).unwrap()), failed, "until somebody is told");
    assert_eq!(call!(queue.finish(apart.queue)), R::ERROR_DEVICE_LOST);
    assert_eq!(end(Apart::barrier(apart.queue, None).unwrap()), R::SUCCESS);
    // One that is behind a failed one is not tried: the second refusal is still to come, for one that nobody is behind.
    apart.copy(there, here, false).unwrap();
    apart.copy(there, here, false).unwrap();
    assert_eq!(call!(queue.finish(apart.queue)), R::ERROR_DEVICE_LOST);
    assert_eq!(call!(queue.finish(apart.queue)), R::SUCCESS, "all is told at once");
    apart.copy(there, here, true).unwrap();
    assert_eq!(call!(queue.release(other)), R::SUCCESS);
}

/// The first copy that the driver is asked for is refused: one that passes through the host, and that no queue carries.
#[test]
fn a_copy_between_devices_that_fails_on_its_way_through_the_host_fails_its_event_and_its_queue() {
    let refused = [1, 2, 3].map(|nth| format!("zeCommandListAppendMemoryCopy:{nth}=0x70000001"));
    if !is_inside(
        "a_copy_between_devices_that_fails_on_its_way_through_the_host_fails_its_event_and_its_queue",
        &[
            ("ZE_SOFTWARE_DEVICES", "2"),
            ("ZE_SOFTWARE_PEER", "0"),
            ("ZE_SOFTWARE_FAIL", &refused.join(",")),
        ],
    ) {
        return;
    }
    let (one, other) = (One::new().unwrap(), One::of(1).unwrap());
    let devices = [one.device, other.device];
    let mut context = ur_context_handle_t::NULL;
    assert_eq!(call!(context.create(2, devices.as_ptr(), null(), &mut context)), R::SUCCESS);
    let mut queue = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(context, one.device, null(), &mut queue)), R::SUCCESS);
    let memory = devices.map(|device| {
        let (mut at, pool) = (null_mut(), ur_usm_pool_handle_t::NULL);
        let code = call!(usm.device_alloc(context, device, null(), pool, 4096, &mut at));
        assert_eq!(code, R::SUCCESS);
        at
    });
    let copy = |blocking: bool, event: *mut ur_event_handle_t| {
        let [to, from] = memory;
        call!(enqueue.usm_memcpy(queue, blocking, to, from, 4096, 0, null(), event))
    };
    let mut event = ur_event_handle_t::NULL;
    assert_eq!(copy(false, &mut event), R::SUCCESS);
    let failed = R::ERROR_IN_EVENT_LIST_EXEC_STATUS;
    assert_eq!(call!(event.wait(1, &event)), failed);
    let (mut status, to) = (ur_event_status_t::COMPLETE, ur_event_info_t::COMMAND_EXECUTION_STATUS);
    let asked = call!(event.get_info(event, to, 4, (&raw mut status).cast(), null_mut()));
    assert_eq!((asked, status), (R::SUCCESS, ur_event_status_t::ERROR));
    assert_eq!(call!(event.release(event)), R::SUCCESS);
    assert_eq!(call!(queue.finish(queue)), R::ERROR_DEVICE_LOST, "what failed is told once");
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert_eq!(copy(true, null_mut()), R::ERROR_DEVICE_LOST);
    // Without an event only the queue can tell.
    assert_eq!(copy(false, null_mut()), R::SUCCESS);
    assert_eq!(call!(queue.finish(queue)), R::ERROR_DEVICE_LOST);
    assert_eq!(copy(true, null_mut()), R::SUCCESS, "and the queue works on");
    for at in memory {
        assert_eq!(call!(usm.free(context, at)), R::SUCCESS);
    }
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    assert_eq!(call!(context.release(context)), R::SUCCESS);
}
/// The driver keeps the state of such an event in memory of the device, and would have a list of the other write there.
#[test]
fn a_reusable_event_is_not_signalled_by_a_device_that_does_not_reach_its_own() {
    let name = "a_reusable_event_is_not_signalled_by_a_device_that_does_not_reach_its_own";
    let apart = [
        ("ZE_SOFTWARE_DEVICES", "2"),
        ("ZE_SOFTWARE_PEER", "0"),
        ("ZE_SOFTWARE_EVENT_POOL", "strict"),
    ];
    if !is_inside(name, &apart) {
        return;
    }
    let apart = Apart::new();
    let (stype, flags) = (ur_structure_type_t::EXP_EVENT_DESC, ur_exp_event_flags_t::default());
    let desc = ur_exp_event_desc_t { stype, pNext: null(), flags };
    let mut event = ur_event_handle_t::NULL;
    let made = call!(event_exp.create_exp(apart.context, apart.devices[0], &desc, &mut event));
    assert_eq!(made, R::SUCCESS);
    let there = apart.queue_of(1);
    let mut signal =
        |queue| call!(enqueue.events_wait_with_barrier_ext(queue, null(), 0, null(), &mut event));
    assert_eq!(signal(there), R::ERROR_INVALID_VALUE);
    assert_eq!(signal(apart.queue), R::SUCCESS);
    // Waits cross.
    let after = Apart::barrier(there, Some(event)).unwrap();
    assert_eq!(end(after), R::SUCCESS);
    assert_eq!(call!(event.release(event)), R::SUCCESS);
    assert_eq!(call!(queue.release(there)), R::SUCCESS);
}

/// What a driver can do is found out once, by trying: what has run out then says nothing of it.
#[test]
fn a_shortage_when_the_driver_is_tried_passes() {
    let name = "a_shortage_when_the_driver_is_tried_passes";
    // The first event that it is tried with, and the first that is shared: for the queue, which does without.
    for fails in [1, 2] {
        let names = ["zeEventCounterBasedCreate", "zexCounterBasedEventCreate2"];
        let fails = names.map(|name| format!("{name}:{fails}=0x70000003")).join(",");
        if !is_inside(name, &[("ZE_SOFTWARE_FAIL", &fails)]) {
            continue;
        }
        let Some(zero) = Zero::new() else { return };
        let stype = ur_structure_type_t::EXP_EVENT_DESC;
        let flags = ur_exp_event_flags_t::IPC_EXP;
        let desc = ur_exp_event_desc_t { stype, pNext: null_mut(), flags };
        let make = || {
            let mut event = ur_event_handle_t::NULL;
            let made = call!(event_exp.create_exp(zero.context, zero.device, &desc, &mut event));
            if made == R::SUCCESS {
                assert_eq!(call!(event.release(event)), R::SUCCESS);
            }
            made
        };
        assert_eq!(make(), R::SUCCESS);
        return;
    }
}
