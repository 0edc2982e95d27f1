//! Native handles: numbers for objects, good in this process while the object lives, and nothing else is taken for one.
mod common;
use common::{scene::UNTOUCHED, ur::*};
use std::ptr::{null, null_mut};
use ur_result_t as R;

#[test]
fn role() {
    common::role();
}

/// What no program gets from `GetNativeHandle`; `at` is one that it did.
fn garbage(at: usize) -> [usize; 8] {
    let local = 7_u64;
    [0, 1, 8, usize::MAX, 0x4000_0000_0000, at + 1, at + 8, (&raw const local).addr()]
}

#[test]
fn platform_and_device_come_back_as_themselves() {
    let ur = Ur::new();
    let (a, mut native) = (ur.adapter, 0);
    assert_eq!(call!(platform.get_native_handle(ur.platform, &mut native)), R::SUCCESS);
    let mut back = ur_platform_handle_t::NULL;
    let make = call!(platform.create_with_native_handle(native, a, null(), &mut back));
    assert_eq!((make, back), (R::SUCCESS, ur.platform));
    for wrong in garbage(native) {
        let mut back = ur_platform_handle_t(UNTOUCHED as *mut _);
        let make = call!(platform.create_with_native_handle(wrong, a, null(), &mut back));
        assert_eq!((make, back.0.addr()), (R::ERROR_INVALID_PLATFORM, UNTOUCHED), "{wrong:#x}");
    }
    assert_eq!(call!(device.get_native_handle(ur.device, &mut native)), R::SUCCESS);
    let mut back = ur_device_handle_t::NULL;
    let make = call!(device.create_with_native_handle(native, a, null(), &mut back));
    assert_eq!((make, back), (R::SUCCESS, ur.device));
    for wrong in garbage(native) {
        let make = call!(device.create_with_native_handle(wrong, a, null(), &mut back));
        assert_eq!(make, R::ERROR_INVALID_DEVICE, "{wrong:#x}");
    }
    let none = ur_adapter_handle_t::NULL;
    let make = call!(device.create_with_native_handle(native, none, null(), &mut back));
    assert_eq!(make, R::ERROR_INVALID_NULL_HANDLE);
    let make = call!(device.create_with_native_handle(native, a, null(), null_mut()));
    assert_eq!(make, R::ERROR_INVALID_NULL_POINTER);
    assert_eq!(
        call!(device.get_native_handle(ur.device, null_mut())),
        R::ERROR_INVALID_NULL_POINTER
    );
}
#[test]
fn a_part_of_the_device_is_one_reference_more_and_none_once_released() {
    let ur = Ur::new();
    let Some(part) = ur.a_part() else { return };
    let (mut native, mut back) = (0, ur_device_handle_t::NULL);
    assert_eq!(call!(device.get_native_handle(part, &mut native)), R::SUCCESS);
    let make = || call!(device.create_with_native_handle(native, ur.adapter, null(), &mut back));
    let (mut make, mut back_again) = (make, part);
    assert_eq!(make(), R::SUCCESS);
    for _ in 0..2 {
        assert_eq!(call!(device.release(back_again)), R::SUCCESS);
        back_again = part;
    }
    assert_eq!(make(), R::ERROR_INVALID_DEVICE, "it is gone");
}
#[test]
fn a_context_comes_back_with_one_reference_more() {
    let ur = Ur::new();
    let (a, mut native) = (ur.adapter, 0);
    assert_eq!(call!(context.get_native_handle(ur.context, &mut native)), R::SUCCESS);
    let mut back = ur_context_handle_t::NULL;
    let (none, devices) = (null(), &raw const ur.device);
    let make = call!(context.create_with_native_handle(native, a, 0, none, null(), &mut back));
    assert_eq!((make, back), (R::SUCCESS, ur.context));
    let make = call!(context.create_with_native_handle(native, a, 1, devices, null(), &mut back));
    assert_eq!((make, back), (R::SUCCESS, ur.context));
    let count = ur_context_info_t::REFERENCE_COUNT;
    let count: u32 =
        ur.value(|size, to, ret| call!(context.get_info(back, count, size, to, ret))).unwrap();
    assert_eq!(count, 3);
    for wrong in garbage(native) {
        let make = call!(context.create_with_native_handle(wrong, a, 0, none, null(), &mut back));
        assert_eq!(make, R::ERROR_INVALID_CONTEXT, "{wrong:#x}");
    }
    for _ in 0..3 {
        assert_eq!(call!(context.release(ur.context)), R::SUCCESS);
    }
    let make = call!(context.create_with_native_handle(native, a, 0, none, null(), &mut back));
    assert_eq!(make, R::ERROR_INVALID_CONTEXT, "it is gone");
}
#[test]
fn queues_and_events_come_back_in_their_own_context_only() {
    let ur = Ur::new();
    let other = ur.new_context();
    let queue = ur.new_queue(ur_queue_flags_t::default());
    let (mut native, no_desc) = (0, null_mut());
    assert_eq!(call!(queue.get_native_handle(queue, no_desc, &mut native)), R::SUCCESS);
    let make = |native, context, device| {
        let mut back = ur_queue_handle_t::NULL;
        let code =
            call!(queue.create_with_native_handle(native, context, device, null(), &mut back));
        (code, back)
    };
    let none = ur_device_handle_t::NULL;
    assert_eq!(make(native, ur.context, none), (R::SUCCESS, queue));
    assert_eq!(make(native, ur.context, ur.device), (R::SUCCESS, queue));
    assert_eq!(make(native, other, none).0, R::ERROR_INVALID_CONTEXT);
    if let Some(part) = ur.a_part() {
        assert_eq!(make(native, ur.context, part).0, R::ERROR_INVALID_DEVICE);
        assert_eq!(call!(device.release(part)), R::SUCCESS);
    }
    for wrong in garbage(native).into_iter().chain([ur.context.0.addr()]) {
        assert_eq!(make(wrong, ur.context, none).0, R::ERROR_INVALID_QUEUE, "{wrong:#x}");
    }
    let mut event = ur_event_handle_t::NULL;
    assert_eq!(call!(enqueue.events_wait(queue, 0, null(), &mut event)), R::SUCCESS);
    let mut of_event = 0;
    assert_eq!(call!(event.get_native_handle(event, &mut of_event)), R::SUCCESS);
    let make = |native, context| {
        let mut back = ur_event_handle_t::NULL;
        (call!(event.create_with_native_handle(native, context, null(), &mut back)), back)
    };
    assert_eq!(make(of_event, ur.context), (R::SUCCESS, event));
    assert_eq!(make(of_event, other).0, R::ERROR_INVALID_CONTEXT);
    // 0 is no garbage here: it is an event that is complete.
    for wrong in garbage(of_event).into_iter().filter(|wrong| *wrong != 0).chain([native]) {
        assert_eq!(make(wrong, ur.context).0, R::ERROR_INVALID_EVENT, "{wrong:#x}");
    }
    for _ in 0..2 {
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
    assert_eq!(make(of_event, ur.context).0, R::ERROR_INVALID_EVENT, "it is gone");
    for _ in 0..3 {
        assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    }
}
#[test]
fn an_object_that_only_the_runtime_still_holds_is_not_handed_out() {
    let ur = Ur::new();
    let context = ur.new_context();
    let (mut native, mut queue) = (0, ur_queue_handle_t::NULL);
    assert_eq!(call!(context.get_native_handle(context, &mut native)), R::SUCCESS);
    assert_eq!(call!(queue.create(context, ur.device, null(), &mut queue)), R::SUCCESS);
    assert_eq!(call!(context.release(context)), R::SUCCESS); // the queue keeps it
    let mut back = ur_context_handle_t::NULL;
    let none = null();
    let make =
        call!(context.create_with_native_handle(native, ur.adapter, 0, none, null(), &mut back));
    assert_eq!(make, R::ERROR_INVALID_CONTEXT);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}
