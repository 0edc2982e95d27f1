//! How the generated entries treat lists, enumerations, flags and results.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod toy;
use std::ptr;
use toy::*;
use ur_adapter::object::Owned;
use ur_sys::*;

fn release(event: ur_event_handle_t) -> ur_result_t {
    unsafe { TABLE.event.release.unwrap()(event) }
}

#[test]
fn handle_lists_are_read_in_place_and_every_fault_has_its_code() {
    let wait = TABLE.event.wait.unwrap();
    let two = [event(), event()];
    unsafe {
        // Every handle is accepted; then the toy reports that it has no such entry.
        assert_eq!(wait(2, two.as_ptr()), ur_result_t::ERROR_UNSUPPORTED_FEATURE);
        assert_eq!(
            wait(2, [two[0], ur_event_handle_t::NULL].as_ptr()),
            ur_result_t::ERROR_INVALID_NULL_HANDLE
        );
        assert_eq!(wait(1, ptr::null()), ur_result_t::ERROR_INVALID_NULL_POINTER);
        assert_eq!(wait(0, two.as_ptr()), ur_result_t::ERROR_INVALID_VALUE);
    }
    for event in two {
        assert_eq!(release(event), ur_result_t::SUCCESS);
    }
}
#[test]
fn whatever_is_wrong_with_a_wait_list_is_one_code() {
    let wait = TABLE.enqueue.events_wait.unwrap();
    let (queue, none) = (queue(Queue::Working), ptr::null_mut());
    let (stale, alive) = (event(), event());
    release(stale);
    let bad = ur_result_t::ERROR_INVALID_EVENT_WAIT_LIST;
    unsafe {
        assert_eq!(wait(queue, 1, &stale, none), bad);
        assert_eq!(wait(queue, 2, [alive, ur_event_handle_t::NULL].as_ptr(), none), bad);
        assert_eq!(wait(queue, 1, &ur_event_handle_t(queue.0), none), bad);
        assert_eq!(wait(queue, 1, ptr::null(), none), bad);
        assert_eq!(wait(queue, 0, &alive, none), bad);
        assert_eq!(wait(queue, 1, &alive, none), ur_result_t::SUCCESS);
        assert_eq!(wait(queue, 0, ptr::null(), none), ur_result_t::SUCCESS);
        let no_queue = wait(ur_queue_handle_t::NULL, 0, ptr::null(), none);
        assert_eq!(no_queue, ur_result_t::ERROR_INVALID_NULL_HANDLE);
    }
    assert_eq!(release(alive), ur_result_t::SUCCESS);
}
#[test]
fn an_optional_event_is_made_only_for_those_who_ask() {
    let wait = TABLE.enqueue.events_wait.unwrap();
    let mut made = ur_event_handle_t::NULL;
    let result = unsafe { wait(queue(Queue::Working), 0, ptr::null(), &mut made) };
    assert_eq!(result, ur_result_t::SUCCESS);
    assert_eq!(release(made), ur_result_t::SUCCESS);
    assert_eq!(release(made), ur_result_t::ERROR_INVALID_EVENT, "C got one reference");
}
#[test]
fn failures_leave_out_parameters_alone() {
    let wait = TABLE.enqueue.events_wait.unwrap();
    for kind in [Queue::Failing, Queue::Panicking] {
        let canary = ur_event_handle_t(ptr::without_provenance_mut(0xdead_0008));
        let mut out = canary;
        let result = unsafe { wait(queue(kind), 0, ptr::null(), &mut out) };
        assert_ne!(result, ur_result_t::SUCCESS);
        assert_eq!(out, canary);
    }
}
#[test]
fn enumerations_publish_only_what_they_hand_out() {
    let get = TABLE.platform.get.unwrap();
    let adapter = adapter();
    let refs = || platforms().iter().map(|p| p.api_refs()).collect::<Vec<_>>();
    let (mut list, mut total) = ([ur_platform_handle_t::NULL; 4], 0);
    unsafe {
        assert_eq!(get(adapter, 0, ptr::null_mut(), &mut total), ur_result_t::SUCCESS);
        assert_eq!((total, refs()), (3, vec![0, 0, 0]));
        assert_eq!(get(adapter, 2, list.as_mut_ptr(), ptr::null_mut()), ur_result_t::SUCCESS);
        assert_eq!(refs(), [1, 1, 0]);
        assert_eq!(list[2], ur_platform_handle_t::NULL, "beyond what there was room for");
        assert_eq!(get(adapter, 4, list.as_mut_ptr(), &mut total), ur_result_t::SUCCESS);
        assert_eq!((total, refs()), (3, vec![2, 2, 1]));
        assert_eq!(list[3], ur_platform_handle_t::NULL, "there is no fourth");
        assert_eq!(list[0].0.cast(), platforms()[0].as_handle());
        let nowhere = get(adapter, 0, list.as_mut_ptr(), &mut total);
        assert_eq!(nowhere, ur_result_t::ERROR_INVALID_SIZE);
        let for_nothing = get(adapter, 0, ptr::null_mut(), ptr::null_mut());
        assert_eq!(for_nothing, ur_result_t::ERROR_INVALID_VALUE);
    }
}
#[test]
fn unknown_property_names_never_reach_the_adapter() {
    let info = TABLE.context.get_info.unwrap();
    let (context, mut size) = (context(), 0);
    let mut ask = |name| unsafe { info(context, name, 0, ptr::null_mut(), &mut size) };
    assert_eq!(ask(ur_context_info_t(0x7777)), ur_result_t::ERROR_INVALID_ENUMERATION);
    assert_eq!(ask(ur_context_info_t::DEVICES), ur_result_t::ERROR_UNSUPPORTED_ENUMERATION);
    assert_eq!(ask(ur_context_info_t::NUM_DEVICES), ur_result_t::SUCCESS);
    assert_eq!(size, 4);
}
/// What `urContextGetInfo` does with a `u32` when the caller passes `size`: its code, and the values of the `u32` and
/// the size afterwards (0 and 99 if untouched).
fn ask(size: usize, buffer: bool, wants_size: bool) -> (ur_result_t, u32, usize) {
    let info = TABLE.context.get_info.unwrap();
    let (mut value, mut told) = (0_u32, 99);
    let to = if buffer { (&raw mut value).cast() } else { ptr::null_mut() };
    let tell = if wants_size { &raw mut told } else { ptr::null_mut() };
    let code = unsafe { info(context(), ur_context_info_t::NUM_DEVICES, size, to, tell) };
    (code, value, told)
}
#[test]
fn info_sizes_follow_one_rule() {
    assert_eq!(ask(4, true, true), (ur_result_t::SUCCESS, 7, 4));
    assert_eq!(ask(8, true, true), (ur_result_t::SUCCESS, 7, 4), "more room than it takes");
    assert_eq!(ask(4, true, false), (ur_result_t::SUCCESS, 7, 99));
    assert_eq!(ask(0, false, true), (ur_result_t::SUCCESS, 0, 4));
    let too_small = (ur_result_t::ERROR_INVALID_SIZE, 0, 4);
    assert_eq!(ask(3, true, true), too_small, "untouched, and told what it takes");
    assert_eq!(ask(0, true, true), (ur_result_t::ERROR_INVALID_SIZE, 0, 99));
    let nowhere = (ur_result_t::ERROR_INVALID_NULL_POINTER, 0, 99);
    assert_eq!(ask(4, false, true), nowhere);
    assert_eq!(ask(0, false, false), nowhere);
}
#[test]
fn flags_inside_structs_are_checked() {
    let create = TABLE.context.create.unwrap();
    let device = ur_device_handle_t(Owned::new(Device).publish().cast());
    let stype = ur_structure_type_t::CONTEXT_PROPERTIES;
    let mut made = ur_context_handle_t::NULL;
    let mut with = |flags| {
        let properties = ur_context_properties_t { stype, pNext: ptr::null_mut(), flags };
        unsafe { create(1, &device, &properties, &mut made) }
    };
    let unknown = ur_context_flags_t(!ur_context_flags_t::VALID.bits());
    assert_eq!(with(unknown), ur_result_t::ERROR_INVALID_ENUMERATION);
    assert_eq!(with(ur_context_flags_t::TBD), ur_result_t::SUCCESS);
    unsafe {
        assert_eq!(TABLE.context.release.unwrap()(made), ur_result_t::SUCCESS);
        let nowhere = create(1, &device, ptr::null(), ptr::null_mut());
        assert_eq!(nowhere, ur_result_t::ERROR_INVALID_NULL_POINTER);
    }
}
#[test]
fn the_extended_barrier_makes_an_event_or_signals_the_one_it_is_given() {
    let barrier = TABLE.enqueue.events_wait_with_barrier_ext.unwrap();
    let queue = queue(Queue::Working);
    let call = |event| unsafe { barrier(queue, ptr::null(), 0, ptr::null(), event) };
    assert_eq!(call(ptr::null_mut()), ur_result_t::SUCCESS);

    let mut made = ur_event_handle_t::NULL;
    assert_eq!(call(&mut made), ur_result_t::SUCCESS);
    assert_ne!(made, ur_event_handle_t::NULL);

    let mut again = made;
    assert_eq!(call(&mut again), ur_result_t::SUCCESS);
    assert_eq!(again, made, "the event given is the event signalled");
    assert_eq!(release(made), ur_result_t::SUCCESS);

    assert_eq!(call(&mut again), ur_result_t::ERROR_INVALID_EVENT, "released");
    assert_eq!(call(&mut ur_event_handle_t(queue.0)), ur_result_t::ERROR_INVALID_EVENT);
}
#[test]
fn entries_nobody_wrote_say_so_by_name() {
    let flush = TABLE.queue.flush.unwrap();
    let result = unsafe { flush(queue(Queue::Working)) };
    assert_eq!(result, ur_result_t::ERROR_UNSUPPORTED_FEATURE);
    let sentence = ur_adapter::error::last_error().unwrap();
    assert!(sentence.contains("urQueueFlush"), "{sentence}");
}
#[test]
fn conditions_on_a_struct_that_may_be_absent_hold_either_way() {
    use ur_mem_flags_t as F;
    let create = TABLE.mem.buffer_create.unwrap();
    let mut made = ur_mem_handle_t::NULL;
    let mut with = |flags, properties: Option<*mut std::ffi::c_void>| {
        let stype = ur_structure_type_t::BUFFER_PROPERTIES;
        let host = |host| ur_buffer_properties_t { stype, pNext: ptr::null_mut(), pHost: host };
        let properties = properties.map(host);
        let properties = properties.as_ref().map_or(ptr::null(), ptr::from_ref);
        unsafe { create(context(), flags, 8, properties, &mut made) }
    };
    let here = ptr::without_provenance_mut(8);
    let (refused, passed) =
        (ur_result_t::ERROR_INVALID_HOST_PTR, ur_result_t::ERROR_UNSUPPORTED_FEATURE);
    for (flags, properties, code) in [
        (F::READ_WRITE, None, passed),
        (F::READ_WRITE, Some(ptr::null_mut()), passed),
        (F::READ_WRITE, Some(here), refused),
        (F::USE_HOST_POINTER, None, refused),
        (F::USE_HOST_POINTER, Some(ptr::null_mut()), refused),
        (F::ALLOC_COPY_HOST_POINTER, Some(ptr::null_mut()), refused),
        (F::ALLOC_COPY_HOST_POINTER, Some(here), passed),
    ] {
        assert_eq!(with(flags, properties), code, "{flags:?}, {properties:?}");
    }
}
