//! Queues, and events of a single command.
use super::*;

#[test]
fn queues_with_contradictory_flags_are_refused() {
    use ur_queue_flags_t as F;
    for flags in [
        F::PRIORITY_LOW | F::PRIORITY_HIGH,
        F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE,
        F::ON_DEVICE,
        F::ON_DEVICE | F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::ON_DEVICE_DEFAULT,
    ] {
        assert_eq!(try_queue(flags), Err(ur_result_t::ERROR_INVALID_QUEUE_PROPERTIES), "{flags:?}");
    }
    let unknown = ur_queue_flags_t(1 << 20);
    assert_eq!(try_queue(unknown), Err(ur_result_t::ERROR_INVALID_ENUMERATION));
    for flags in [
        F::PRIORITY_LOW | F::PROFILING_ENABLE | F::SUBMISSION_BATCHED,
        F::PRIORITY_HIGH | F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::DISCARD_EVENTS,
        F::USE_DEFAULT_STREAM | F::SYNC_WITH_DEFAULT_STREAM | F::LOW_POWER_EVENTS_SUPPORT_EXP,
    ] {
        assert_eq!(finish(queue(flags)), OK);
    }
}

#[test]
fn a_queue_tells_what_it_is() {
    let (context, device) = (context(), device());
    let mut queue = ur_queue_handle_t::NULL;
    let create = TABLE.queue.create.unwrap();
    assert_eq!(unsafe { create(context, device, null(), &mut queue) }, OK);
    let ask = |name| {
        let (mut value, mut size) = (0u64, 0);
        let get = TABLE.queue.get_info.unwrap();
        let code = unsafe { get(queue, name, 8, (&raw mut value).cast(), &mut size) };
        (code, value, size)
    };
    assert_eq!(ask(ur_queue_info_t::CONTEXT), (OK, context.0.addr() as u64, 8));
    assert_eq!(ask(ur_queue_info_t::DEVICE), (OK, device.0.addr() as u64, 8));
    assert_eq!(ask(ur_queue_info_t::FLAGS), (OK, 0, 4));
    assert_eq!(ask(ur_queue_info_t::REFERENCE_COUNT), (OK, 1, 4));
    assert_eq!(ask(ur_queue_info_t::EMPTY), (OK, 1, 1));
    assert_eq!(ask(ur_queue_info_t::SIZE).0, ur_result_t::ERROR_INVALID_QUEUE);
    let no_answer = ur_result_t::ERROR_UNSUPPORTED_ENUMERATION;
    assert_eq!(ask(ur_queue_info_t::DEVICE_DEFAULT).0, no_answer);
    let door = Door::shut();
    let held = door.hold(queue);
    assert_eq!(ask(ur_queue_info_t::EMPTY), (OK, 0, 1));
    assert_eq!(unsafe { TABLE.queue.flush.unwrap()(queue) }, OK);
    door.open();
    assert_eq!((finish(queue), ask(ur_queue_info_t::EMPTY).1), (OK, 1));
    release(held);
}

#[test]
fn an_event_tells_what_it_is_and_how_far() {
    for flags in [IN_ORDER, OUT_OF_ORDER] {
        let (queue, door) = (queue(flags), Door::shut());
        let held = door.hold(queue);
        let behind = barrier(queue, &[]);
        let ask = |name| {
            let (mut value, mut size) = (0u64, 0);
            let get = TABLE.event.get_info.unwrap();
            let code = unsafe { get(behind, name, 8, (&raw mut value).cast(), &mut size) };
            assert_eq!(code, OK);
            (value, size)
        };
        assert_eq!(ask(ur_event_info_t::COMMAND_QUEUE), (queue.0.addr() as u64, 8));
        assert_ne!(ask(ur_event_info_t::CONTEXT), (0, 8));
        let kind = u64::from(ur_command_t::EVENTS_WAIT_WITH_BARRIER.0);
        assert_eq!(ask(ur_event_info_t::COMMAND_TYPE), (kind, 4));
        assert_eq!(ask(ur_event_info_t::REFERENCE_COUNT), (1, 4));
        eventually("the task runs", || status(held) == ur_event_status_t::RUNNING);
        assert_eq!(status(behind), ur_event_status_t::SUBMITTED);
        door.open();
        assert_eq!(wait(&[behind, held]), OK);
        assert_eq!(status(behind), ur_event_status_t::COMPLETE);
        release(held);
        release(behind);
    }
}

#[test]
fn a_wait_without_a_list_is_for_all_that_came_before() {
    for flags in [IN_ORDER, OUT_OF_ORDER] {
        let (queue, door) = (queue(flags), Door::shut());
        let held = door.hold(queue);
        let enqueue = TABLE.enqueue.events_wait.unwrap();
        let mut all = ur_event_handle_t::NULL;
        assert_eq!(unsafe { enqueue(queue, 0, null(), &mut all) }, OK);
        assert_eq!(status(all), ur_event_status_t::SUBMITTED);
        door.open();
        assert_eq!(wait(&[all]), OK);
        assert_eq!(status(held), ur_event_status_t::COMPLETE);
        assert_eq!(unsafe { enqueue(queue, 1, &held, null_mut()) }, OK);
        let faults = [(1, null()), (0, &raw const held)];
        for (count, events) in faults {
            let code = unsafe { enqueue(queue, count, events, null_mut()) };
            assert_eq!(code, ur_result_t::ERROR_INVALID_EVENT_WAIT_LIST);
        }
        release(held);
        let code = unsafe { enqueue(queue, 1, &held, null_mut()) };
        assert_eq!(code, ur_result_t::ERROR_INVALID_EVENT_WAIT_LIST, "a released event");
        release(all);
    }
}

#[test]
fn times_are_told_of_commands_of_profiling_queues_only_and_but_for_submission_when_they_ended() {
    use ur_profiling_info_t as P;
    let missing = Err(ur_result_t::ERROR_PROFILING_INFO_NOT_AVAILABLE);
    let unprofiled = barrier(queue(IN_ORDER), &[]);
    assert_eq!(time(unprofiled, P::COMMAND_END), missing);
    for flags in [IN_ORDER, OUT_OF_ORDER] {
        let (queue, door) = (queue(flags | ur_queue_flags_t::PROFILING_ENABLE), Door::shut());
        let held = door.hold(queue);
        let submitted = time(held, P::COMMAND_SUBMIT);
        assert_eq!(time(held, P::COMMAND_QUEUED), submitted);
        assert_eq!(time(held, P::COMMAND_START), missing);
        assert_eq!(time(held, P::COMMAND_END), missing);
        door.open();
        assert_eq!(wait(&[held]), OK);
        assert_eq!(time(held, P::COMMAND_SUBMIT), submitted);
        let names = [
            P::COMMAND_QUEUED,
            P::COMMAND_SUBMIT,
            P::COMMAND_START,
            P::COMMAND_END,
            P::COMMAND_COMPLETE,
        ];
        let times = names.map(|name| time(held, name).unwrap());
        assert!(times.is_sorted() && times[0] > 0, "{times:?}");
        release(held);
    }
    release(unprofiled);
}

#[test]
fn a_recorded_timestamp_has_times_on_any_queue() {
    use ur_profiling_info_t as P;
    for flags in [IN_ORDER, OUT_OF_ORDER] {
        let (queue, door) = (queue(flags), Door::shut());
        let held = door.hold(queue);
        let record = TABLE.enqueue_exp.timestamp_recording_exp.unwrap();
        let mut recorded = ur_event_handle_t::NULL;
        assert_eq!(unsafe { record(queue, false, 1, &held, &mut recorded) }, OK);
        let no_event = unsafe { record(queue, false, 0, null(), null_mut()) };
        assert_eq!(no_event, ur_result_t::ERROR_INVALID_NULL_POINTER);
        door.open();
        assert_eq!(wait(&[recorded]), OK);
        let [queued, start, end] = [P::COMMAND_QUEUED, P::COMMAND_START, P::COMMAND_END]
            .map(|n| time(recorded, n).unwrap());
        assert!(0 < queued && queued <= start && start == end);
        release(recorded);
        assert_eq!(unsafe { record(queue, true, 0, null(), &mut recorded) }, OK);
        assert_eq!(status(recorded), ur_event_status_t::COMPLETE);
        assert!(time(recorded, P::COMMAND_START).unwrap() >= end);
        release(recorded);
        release(held);
    }
}

static CALLS: AtomicU32 = AtomicU32::new(0);
unsafe extern "C" fn count(
    event: ur_event_handle_t,
    status_reached: ur_execution_info_t,
    data: *mut c_void,
) {
    assert!(!event.is_null() && data.addr() == 7);
    assert!(status(event).0 <= status_reached.0, "it is there, or past it");
    // A callback may release the event that it gets.
    release(event);
    CALLS.fetch_add(1, SeqCst);
}

#[test]
fn callbacks_are_made_on_the_way_and_at_once_for_what_is_past() {
    let set = TABLE.event.set_callback.unwrap();
    let data = std::ptr::without_provenance_mut(7);
    let (queue, door) = (queue(IN_ORDER), Door::shut());
    let held = door.hold(queue);
    let behind = barrier(queue, &[]);
    let queued = unsafe { set(behind, ur_execution_info_t::QUEUED, Some(count), data) };
    assert_eq!(queued, ur_result_t::ERROR_UNSUPPORTED_ENUMERATION);
    let no_function = unsafe { set(behind, ur_execution_info_t::COMPLETE, None, data) };
    assert_eq!(no_function, ur_result_t::ERROR_INVALID_NULL_POINTER);
    for at in [
        ur_execution_info_t::SUBMITTED,
        ur_execution_info_t::RUNNING,
        ur_execution_info_t::COMPLETE,
    ] {
        assert_eq!(unsafe { TABLE.event.retain.unwrap()(behind) }, OK); // for the callback
        assert_eq!(unsafe { set(behind, at, Some(count), data) }, OK);
    }
    assert_eq!(CALLS.load(SeqCst), 1, "it is submitted already");
    release(behind); // the application does not need it any more; the callbacks keep it alive
    door.open();
    eventually("all are made", || CALLS.load(SeqCst) == 3);
    assert_eq!((finish(queue), wait(&[held])), (OK, OK));
    release(held);
}

#[test]
fn a_queue_released_with_commands_pending_does_them() {
    for flags in [IN_ORDER, OUT_OF_ORDER] {
        let (queue, door) = (queue(flags), Door::shut());
        release(door.hold(queue));
        let last = barrier(queue, &[]);
        assert_eq!(unsafe { TABLE.queue.release.unwrap()(queue) }, OK);
        assert_eq!(status(last), ur_event_status_t::SUBMITTED);
        door.open();
        assert_eq!(wait(&[last]), OK);
        release(last);
    }
}

#[test]
fn waiting_for_nothing_and_for_nobodys_event_is_refused() {
    let wait = TABLE.event.wait.unwrap();
    let event = barrier(queue(IN_ORDER), &[]);
    assert_eq!(unsafe { wait(0, &event) }, ur_result_t::ERROR_INVALID_VALUE);
    assert_eq!(unsafe { wait(1, null()) }, ur_result_t::ERROR_INVALID_NULL_POINTER);
    release(event);
    assert_eq!(unsafe { wait(1, &event) }, ur_result_t::ERROR_INVALID_EVENT);
}
