//! Memory allocated and freed in a queue's order, and native commands, as a C program has them.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod common;
use common::ur::*;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicU32, Ordering::SeqCst},
};
use ur_result_t as R;

const NO_POOL: ur_usm_pool_handle_t = ur_usm_pool_handle_t::NULL;

struct Program {
    ur: Ur,
    queue: ur_queue_handle_t,
}
impl Program {
    fn new(flags: ur_queue_flags_t) -> Self {
        let ur = Ur::new();
        Self { ur, queue: ur.new_queue(flags) }
    }
    fn both() -> [Self; 2] {
        let out_of_order = ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE;
        [ur_queue_flags_t::default(), out_of_order].map(Self::new)
    }
    fn pool(&self) -> ur_usm_pool_handle_t {
        let stype = ur_structure_type_t::USM_POOL_DESC;
        let mut desc = ur_usm_pool_desc_t { stype, pNext: null(), flags: Default::default() };
        let mut pool = NO_POOL;
        assert_eq!(call!(usm.pool_create(self.ur.context, &mut desc, &mut pool)), R::SUCCESS);
        pool
    }
    fn alloc(
        &self,
        usm: Usm,
        pool: ur_usm_pool_handle_t,
        size: usize,
        wait: &[ur_event_handle_t],
    ) -> Outcome<(*mut c_void, ur_event_handle_t)> {
        let (mut at, mut event) = (null_mut(), ur_event_handle_t::NULL);
        let (count, list) = list(wait);
        let (q, p) = (self.queue, null());
        self.ur.check(match usm {
            Usm::Device => {
                call!(
                    enqueue_exp
                        .usm_device_alloc_exp(q, pool, size, p, count, list, &mut at, &mut event)
                )
            }
            Usm::Shared => {
                call!(
                    enqueue_exp
                        .usm_shared_alloc_exp(q, pool, size, p, count, list, &mut at, &mut event)
                )
            }
            Usm::Host => {
                call!(
                    enqueue_exp
                        .usm_host_alloc_exp(q, pool, size, p, count, list, &mut at, &mut event)
                )
            }
        })?;
        Ok((at, event))
    }
    fn free(
        &self,
        pool: ur_usm_pool_handle_t,
        at: *mut c_void,
        wait: &[ur_event_handle_t],
    ) -> Outcome<ur_event_handle_t> {
        let mut event = ur_event_handle_t::NULL;
        let (count, list) = list(wait);
        let code = call!(enqueue_exp.usm_free_exp(self.queue, pool, at, count, list, &mut event));
        self.ur.check(code).map(|()| event)
    }
    fn finish(&self) {
        assert_eq!(call!(queue.finish(self.queue)), R::SUCCESS);
    }
    fn used(&self, pool: ur_usm_pool_handle_t) -> usize {
        let name = ur_usm_pool_info_t::USED_CURRENT_EXP;
        self.ur.value(|n, to, size| call!(usm.pool_get_info(pool, name, n, to, size))).unwrap()
    }
    fn kind(&self, at: *mut c_void) -> u32 {
        let (context, name) = (self.ur.context, ur_usm_alloc_info_t::TYPE);
        let query = |n, to, size| call!(usm.get_mem_alloc_info(context, at, name, n, to, size));
        self.ur.value(query).unwrap()
    }
    fn command(&self, event: ur_event_handle_t) -> u32 {
        let name = ur_event_info_t::COMMAND_TYPE;
        self.ur.value(|n, to, size| call!(event.get_info(event, name, n, to, size))).unwrap()
    }
    /// An event that is signalled when `open` is called, and one to open it with.
    fn gate(&self) -> Gate {
        let event = ur_event_handle_t(self.ur.new_event(ur_exp_event_flags_t::default()).unwrap());
        Gate { opener: self.ur.new_queue(ur_queue_flags_t::default()), event, held: Box::default() }
    }
}
fn list(wait: &[ur_event_handle_t]) -> (u32, *const ur_event_handle_t) {
    (wait.len() as u32, if wait.is_empty() { null() } else { wait.as_ptr() })
}
fn wait_for(event: ur_event_handle_t) {
    assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
}
/// A queue that stands still until it is let go, and then signals an event.
struct Gate {
    opener: ur_queue_handle_t,
    event: ur_event_handle_t,
    held: Box<AtomicU32>,
}
impl Gate {
    fn close(&mut self) {
        unsafe extern "C" fn stand(held: *mut c_void) {
            let held = unsafe { &*held.cast::<AtomicU32>() };
            while held.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
        }
        let data = (&raw const *self.held).cast_mut().cast();
        let code = call!(enqueue_exp.host_task_exp(
            self.opener,
            Some(stand),
            data,
            null(),
            0,
            null(),
            null_mut()
        ));
        assert_eq!(code, R::SUCCESS);
        let code = call!(enqueue.events_wait_with_barrier_ext(
            self.opener,
            null(),
            0,
            null(),
            &mut self.event
        ));
        assert_eq!(code, R::SUCCESS);
    }
    fn open(&self) {
        self.held.store(1, SeqCst);
    }
}

#[test]
fn memory_of_every_kind_is_allocated_used_and_freed_in_order() {
    for program in Program::both() {
        let pool = program.pool();
        for usm in [Usm::Device, Usm::Shared, Usm::Host] {
            for pool in [NO_POOL, pool] {
                let (at, there) = program.alloc(usm, pool, 4096, &[]).unwrap();
                let fill = 0x2a_u8;
                let mut filled = ur_event_handle_t::NULL;
                let code = call!(enqueue.usm_fill(
                    program.queue,
                    at,
                    1,
                    (&raw const fill).cast(),
                    4096,
                    1,
                    &there,
                    &mut filled
                ));
                assert_eq!(code, R::SUCCESS);
                wait_for(filled);
                let kind = [ur_usm_type_t::DEVICE, ur_usm_type_t::HOST, ur_usm_type_t::SHARED];
                assert_eq!(program.kind(at), kind[usm as usize].0);
                let bytes = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), 4096) };
                assert!(bytes.iter().all(|&byte| byte == fill));
                let gone = program.free(pool, at, &[filled]).unwrap();
                assert_eq!(program.command(gone), ur_command_t::ENQUEUE_USM_FREE_EXP.0);
                wait_for(gone);
                assert_eq!(program.kind(at), ur_usm_type_t::UNKNOWN.0);
            }
        }
        assert_eq!(program.used(pool), 0);
    }
}
#[test]
fn the_memory_of_a_free_is_in_use_until_its_command_ran() {
    for program in Program::both() {
        let pool = program.pool();
        let mut gate = program.gate();
        gate.close();
        let (at, there) = program.alloc(Usm::Device, pool, 1000, &[gate.event]).unwrap();
        let gone = program.free(pool, at, &[there]).unwrap();
        // C has no such allocation any more, but nobody else gets the memory yet.
        assert_eq!(program.kind(at), ur_usm_type_t::UNKNOWN.0);
        assert!(program.used(pool) >= 1000);
        let status = ur_event_info_t::COMMAND_EXECUTION_STATUS;
        let query = |n, to, size| call!(event.get_info(gone, status, n, to, size));
        assert_ne!(program.ur.value::<u32>(query).unwrap(), ur_event_status_t::COMPLETE.0);
        gate.open();
        wait_for(gone);
        assert_eq!(program.used(pool), 0);
    }
}
#[test]
fn an_allocation_without_a_pool_comes_from_the_pool_that_its_device_uses() {
    let program = Program::new(ur_queue_flags_t::default());
    let (context, device, pool) = (program.ur.context, program.ur.device, program.pool());
    assert_eq!(call!(usm_exp.pool_set_device_pool_exp(context, device, pool)), R::SUCCESS);
    let (at, _) = program.alloc(Usm::Device, NO_POOL, 5000, &[]).unwrap();
    assert!(program.used(pool) >= 5000);
    let name = ur_usm_alloc_info_t::POOL;
    let query = |n, to, size| call!(usm.get_mem_alloc_info(context, at, name, n, to, size));
    assert_eq!(program.ur.value::<usize>(query).unwrap(), pool.0.addr());
    program.free(NO_POOL, at, &[]).unwrap();
    program.finish();
    assert_eq!(program.used(pool), 0);
}
#[test]
fn what_cannot_be_allocated_or_freed_is_refused_and_nothing_changes() {
    let program = Program::new(ur_queue_flags_t::default());
    let (pool, other) = (program.pool(), Program::new(ur_queue_flags_t::default()));
    let foreign = other.pool();
    let refused = |outcome: Outcome<(*mut c_void, ur_event_handle_t)>| outcome.unwrap_err().code;
    for size in [0, usize::MAX, 1 << 62] {
        assert_eq!(refused(program.alloc(Usm::Host, pool, size, &[])), R::ERROR_INVALID_USM_SIZE);
    }
    let code = refused(program.alloc(Usm::Device, foreign, 64, &[]));
    assert_eq!(code, R::ERROR_INVALID_VALUE);
    let not_an_event = ur_event_handle_t(program.queue.0);
    let code = refused(program.alloc(Usm::Device, pool, 64, &[not_an_event]));
    assert_eq!(code, R::ERROR_INVALID_EVENT_WAIT_LIST);
    assert_eq!(program.used(pool), 0);

    let (at, _) = program.alloc(Usm::Device, pool, 64, &[]).unwrap();
    let inside = at.wrapping_byte_add(8);
    let mut local = 0_u64;
    for wrong in [inside, (&raw mut local).cast()] {
        let code = program.free(NO_POOL, wrong, &[]).unwrap_err().code;
        assert_eq!(code, R::ERROR_INVALID_MEM_OBJECT);
    }
    assert_eq!(program.free(program.pool(), at, &[]).unwrap_err().code, R::ERROR_INVALID_VALUE);
    let code = program.free(pool, at, &[not_an_event]).unwrap_err().code;
    assert_eq!(code, R::ERROR_INVALID_EVENT_WAIT_LIST);
    assert_eq!(program.kind(at), ur_usm_type_t::DEVICE.0, "it is still there");
    program.free(pool, at, &[]).unwrap();
    let code = program.free(pool, at, &[]).unwrap_err().code;
    assert_eq!(code, R::ERROR_INVALID_MEM_OBJECT, "it was freed already");
}
#[test]
fn a_pool_at_its_maximum_refuses_and_serves_again_after_a_free() {
    let program = Program::new(ur_queue_flags_t::default());
    let pool = program.pool();
    let most = 4_usize << 20;
    let name = ur_usm_pool_info_t::MAXIMUM_SIZE_EXP;
    let value = (&raw const most).cast_mut().cast();
    assert_eq!(call!(usm_exp.pool_set_info_exp(pool, name, value, 8)), R::SUCCESS);
    let (at, _) = program.alloc(Usm::Device, pool, 3 << 20, &[]).unwrap();
    let code = program.alloc(Usm::Host, pool, 2 << 20, &[]).unwrap_err().code;
    assert_eq!(code, R::ERROR_OUT_OF_RESOURCES);
    program.free(pool, at, &[]).unwrap();
    program.finish();
    program.alloc(Usm::Host, pool, 2 << 20, &[]).unwrap();
}

/// What a native command saw.
struct Seen {
    at: *mut u32,
    before: AtomicU32,
    queue: AtomicU32,
}
unsafe extern "C" fn doubles(queue: ur_queue_handle_t, data: *mut c_void) {
    let seen = unsafe { &*data.cast::<Seen>() };
    seen.before.store(unsafe { seen.at.read() }, SeqCst);
    seen.queue.store(u32::from(!queue.0.is_null()), SeqCst);
    // It may use the queue, and wait for it.
    let fill = 14_u32;
    let code = call!(enqueue.usm_fill(
        queue,
        seen.at.cast(),
        4,
        (&raw const fill).cast(),
        4,
        0,
        null(),
        null_mut()
    ));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
}
#[test]
fn a_native_command_runs_in_order_before_its_call_returns() {
    for program in Program::both() {
        let at = program.ur.alloc(Usm::Shared, 64).unwrap();
        let fill = 7_u32;
        let code = call!(enqueue.usm_fill(
            program.queue,
            at,
            4,
            (&raw const fill).cast(),
            64,
            0,
            null(),
            null_mut()
        ));
        assert_eq!(code, R::SUCCESS);
        let seen = Seen { at: at.cast(), before: AtomicU32::new(0), queue: AtomicU32::new(0) };
        let mut event = ur_event_handle_t::NULL;
        let code = call!(enqueue_exp.native_command_exp(
            program.queue,
            Some(doubles),
            (&raw const seen).cast_mut().cast(),
            0,
            null(),
            null(),
            0,
            null(),
            &mut event
        ));
        assert_eq!(code, R::SUCCESS);
        assert_eq!((seen.before.load(SeqCst), seen.queue.load(SeqCst)), (7, 1));
        wait_for(event);
        assert_eq!(unsafe { at.cast::<u32>().read() }, 14);
        assert_eq!(program.command(event), ur_command_t::ENQUEUE_NATIVE_EXP.0);
    }
}
#[test]
fn a_native_command_without_a_function_is_refused() {
    let program = Program::new(ur_queue_flags_t::default());
    let code = call!(enqueue_exp.native_command_exp(
        program.queue,
        None,
        null_mut(),
        0,
        null(),
        null(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!(code, R::ERROR_INVALID_NULL_POINTER);
}
#[test]
fn what_cannot_be_recorded_is_refused_while_a_queue_records() {
    let program = Program::new(ur_queue_flags_t::default());
    let at = program.ur.alloc(Usm::Device, 64).unwrap();
    let begun = call!(queue_exp.begin_graph_capture_exp(program.queue));
    assert_eq!(begun, R::SUCCESS);
    let mut seen = 0_u32;
    unsafe extern "C" fn never(_: ur_queue_handle_t, seen: *mut c_void) {
        unsafe { seen.cast::<u32>().write(1) };
    }
    let code = call!(enqueue_exp.native_command_exp(
        program.queue,
        Some(never),
        (&raw mut seen).cast(),
        0,
        null(),
        null(),
        0,
        null(),
        null_mut()
    ));
    assert_ne!(code, R::SUCCESS);
    assert_eq!(std::hint::black_box(seen), 0, "it was not called");
    let mut event = ur_event_handle_t::NULL;
    let code = call!(enqueue_exp.usm_free_exp(program.queue, NO_POOL, at, 0, null(), &mut event));
    assert_ne!(code, R::SUCCESS);
    assert_eq!(program.kind(at), ur_usm_type_t::DEVICE.0, "it is still there");
    let mut graph = ur_exp_graph_handle_t::NULL;
    assert_eq!(call!(queue_exp.end_graph_capture_exp(program.queue, &mut graph)), R::SUCCESS);
    program.ur.free(at).unwrap();
}
