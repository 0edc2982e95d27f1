//! A program that does a little of everything with a driver that may refuse any one call: several queues behind a host task, copies,
//! fills, barriers, command buffers, events that are signalled again and again, blocking calls, and at last the release of all of it.
use crate::{call, gate::Gate};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::{ur_event_status_t as Status, ur_queue_flags_t as Flags, ur_result_t as R, *};

const BYTES: usize = 4096;
/// The flags of its queues.
const QUEUES: [Flags; 5] = [
    Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE,
    Flags(0),
    Flags::PROFILING_ENABLE,
    Flags::SUBMISSION_BATCHED,
    Flags(0),
];

/// What it has made, and what has to be released.
struct Made {
    context: ur_context_handle_t,
    devices: Vec<ur_device_handle_t>,
    queues: Vec<ur_queue_handle_t>,
    memory: Vec<*mut c_void>,
    events: Vec<ur_event_handle_t>,
    buffers: Vec<ur_exp_command_buffer_handle_t>,
}
/// The event of a call that succeeded.
fn made(code: R, event: ur_event_handle_t) -> Option<ur_event_handle_t> {
    (code == R::SUCCESS).then_some(event)
}
fn is_over(event: ur_event_handle_t) -> bool {
    let (mut status, name) = (Status::SUBMITTED, ur_event_info_t::COMMAND_EXECUTION_STATUS);
    let to = (&raw mut status).cast();
    assert_eq!(call!(event.get_info(event, name, size_of::<Status>(), to, null_mut())), R::SUCCESS);
    status == Status::COMPLETE || status == Status::ERROR
}
impl Made {
    /// `None`: the driver refused what nothing goes without.
    fn new() -> Option<Self> {
        let (mut adapter, mut platform) = (ur_adapter_handle_t::NULL, ur_platform_handle_t::NULL);
        if call!(adapter.get(1, &mut adapter, null_mut())) != R::SUCCESS
            || call!(platform.get(adapter, 1, &mut platform, null_mut())) != R::SUCCESS
            || platform == ur_platform_handle_t::NULL
        {
            return None;
        }
        let (mut devices, mut count) = ([ur_device_handle_t::NULL; 2], 0);
        let all = ur_device_type_t::ALL;
        let code = call!(device.get(platform, all, 2, devices.as_mut_ptr(), &mut count));
        if code != R::SUCCESS || count == 0 {
            return None;
        }
        let devices = devices[..count.min(2) as usize].to_vec();
        let (mut context, n) = (ur_context_handle_t::NULL, devices.len() as u32);
        if call!(context.create(n, devices.as_ptr(), null(), &mut context)) != R::SUCCESS {
            return None;
        }
        let (queues, memory, events, buffers) = Default::default();
        Some(Self { context, devices, queues, memory, events, buffers })
    }
    fn device(&self, number: usize) -> ur_device_handle_t {
        self.devices[number % self.devices.len()]
    }
    fn queue(&mut self, number: usize, flags: Flags) -> Option<ur_queue_handle_t> {
        let stype = ur_structure_type_t::QUEUE_PROPERTIES;
        let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
        let (mut queue, device) = (ur_queue_handle_t::NULL, self.device(number));
        let code = call!(queue.create(self.context, device, &properties, &mut queue));
        (code == R::SUCCESS).then(|| self.queues.push(queue))?;
        Some(queue)
    }
    fn memory(&mut self, number: usize) -> Option<*mut c_void> {
        let (mut at, pool, device) = (null_mut(), ur_usm_pool_handle_t::NULL, self.device(number));
        let code = call!(usm.device_alloc(self.context, device, null(), pool, BYTES, &mut at));
        (code == R::SUCCESS).then(|| self.memory.push(at))?;
        Some(at)
    }
    /// Each kind of command once in each queue, behind what the others were told last.
    fn enqueue(&mut self) {
        let mut last: Vec<ur_event_handle_t> = vec![];
        for round in 0..3 {
            for (number, queue) in self.queues.clone().into_iter().enumerate() {
                let at = |n: usize| self.memory[(number + n) % self.memory.len()];
                let (waits, list) = (last.len() as u32, last.as_ptr());
                let list = if waits == 0 { null() } else { list };
                let (mut event, byte) = (ur_event_handle_t::NULL, round as u8);
                let (pattern, none) = ((&raw const byte).cast(), null());
                let code = call!(enqueue.usm_fill(
                    queue,
                    at(0),
                    1,
                    pattern,
                    BYTES,
                    waits,
                    list,
                    &mut event
                ));
                let filled = made(code, event);
                let code = call!(enqueue.usm_memcpy(
                    queue,
                    false,
                    at(1),
                    at(2),
                    BYTES,
                    0,
                    none,
                    &mut event
                ));
                let copied = made(code, event);
                let (pitch, rows) = (64, 16);
                let code = call!(enqueue.usm_memcpy_2d(
                    queue,
                    false,
                    at(3),
                    pitch,
                    at(0),
                    pitch,
                    32,
                    rows,
                    waits,
                    list,
                    &mut event
                ));
                let rows = made(code, event);
                let code = call!(enqueue.events_wait_with_barrier(queue, waits, list, &mut event));
                let barrier = made(code, event);
                let _code =
                    call!(enqueue.usm_fill(queue, at(1), 1, pattern, BYTES, 0, none, null_mut()));
                let of_buffer = self.buffers.first().and_then(|buffer| {
                    let code = call!(
                        enqueue_exp.command_buffer_exp(queue, *buffer, waits, list, &mut event)
                    );
                    made(code, event)
                });
                let ends = [filled, copied, rows, barrier, of_buffer];
                self.events.extend(ends.into_iter().flatten());
                last.extend(ends[number % 4]);
                if last.len() > 3 {
                    last.remove(0);
                }
            }
        }
    }
    /// A command buffer, finalized.
    fn record(&mut self) -> Option<()> {
        let desc = &crate::c::IN_ORDER_COMMANDS;
        let mut buffer = ur_exp_command_buffer_handle_t::NULL;
        let code =
            call!(command_buffer_exp.create_exp(self.context, self.device(0), desc, &mut buffer));
        if code != R::SUCCESS {
            return None;
        }
        let (to, from, none) = (self.memory[0], self.memory[1], null_mut());
        let code = call!(command_buffer_exp.append_usm_memcpy_exp(
            buffer,
            to,
            from,
            BYTES,
            0,
            null(),
            0,
            null(),
            null_mut(),
            null_mut(),
            none
        ));
        if code != R::SUCCESS || call!(command_buffer_exp.finalize_exp(buffer)) != R::SUCCESS {
            assert_eq!(call!(command_buffer_exp.release_exp(buffer)), R::SUCCESS);
            return None;
        }
        self.buffers.push(buffer);
        Some(())
    }
    /// An event that one queue signals and another one waits for.
    fn signal(&mut self) -> Option<()> {
        if self.queues.len() < QUEUES.len() {
            return None; // the first one may be of another device than the event
        }
        let stype = ur_structure_type_t::EXP_EVENT_DESC;
        let desc = ur_exp_event_desc_t { stype, pNext: null(), flags: Default::default() };
        let (mut event, mut after) = (ur_event_handle_t::NULL, ur_event_handle_t::NULL);
        let code = call!(event_exp.create_exp(self.context, self.device(0), &desc, &mut event));
        made(code, event)?;
        self.events.push(event);
        let (one, other) = (*self.queues.first()?, *self.queues.last()?);
        let mut signalled = event;
        let (no, none) = (null(), null());
        let _code = call!(enqueue.events_wait_with_barrier_ext(one, no, 0, none, &mut signalled));
        let code = call!(enqueue.events_wait(other, 1, &event, &mut after));
        self.events.extend(made(code, after));
        Some(())
    }
    /// What blocks until its commands are done: when it returns nothing writes to the caller's memory any more.
    fn block(&self) {
        let mut here = vec![0_u8; BYTES];
        for queue in &self.queues {
            let (to, from, none) = (here.as_mut_ptr().cast(), self.memory[0], null_mut());
            let _code = call!(enqueue.usm_memcpy(*queue, true, to, from, BYTES, 0, null(), none));
            let _code = call!(enqueue.usm_memcpy_2d(
                *queue,
                true,
                to,
                64,
                from,
                64,
                32,
                16,
                0,
                null(),
                none
            ));
            let before = here.clone();
            assert_eq!(before, here, "something writes after the call has returned");
        }
    }
    /// All events end, and tell so.
    fn wait(&self) {
        for event in &self.events {
            let _code = call!(event.wait(1, event));
        }
        for queue in &self.queues {
            let _code = call!(queue.finish(*queue));
        }
        for event in &self.events {
            while !is_over(*event) {
                std::thread::yield_now();
            }
        }
    }
    fn release(self) {
        for at in self.memory {
            let _code = call!(usm.free(self.context, at));
        }
        for event in self.events {
            assert_eq!(call!(event.release(event)), R::SUCCESS);
        }
        for buffer in self.buffers {
            assert_eq!(call!(command_buffer_exp.release_exp(buffer)), R::SUCCESS);
        }
        for queue in self.queues {
            assert_eq!(call!(queue.release(queue)), R::SUCCESS);
        }
        assert_eq!(call!(context.release(self.context)), R::SUCCESS);
    }
}
pub fn run() {
    // The second time nothing is refused any more, unless the first one was too short for that.
    for _ in 0..2 {
        let Some(mut all) = Made::new() else { continue };
        let gate = Gate::shut();
        for (number, flags) in QUEUES.into_iter().enumerate() {
            if let Some(queue) = all.queue(number, flags)
                && number % 2 == 0
            {
                let _code = gate.try_to_hold(queue);
            }
        }
        for number in 0..4 {
            let _refused = all.memory(number);
        }
        if !all.memory.is_empty() && !all.queues.is_empty() {
            let _recorded = all.memory.len() > 1 && all.record().is_some();
            all.enqueue();
            let _signalled = all.signal();
            gate.open();
            all.enqueue();
            all.block();
        }
        gate.open();
        all.wait();
        all.release();
    }
}
