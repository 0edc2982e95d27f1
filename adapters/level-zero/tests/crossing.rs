//! Bytes get from one device to another, be there a link or not. On whatever driver of Level Zero there is; with fewer
//! than two devices the tests say so and are skipped.
mod c;
#[path = "../../cuda/tests/c/crossing.rs"]
mod crossing;

use c::*;
use std::ptr::{null, null_mut};
use ur_sys::{ur_result_t as R, *};

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
