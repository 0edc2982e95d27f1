//! Events that are signalled again and again, shared between processes or not.
use super::*;

const PLAIN: ur_exp_event_flags_t = ur_exp_event_flags_t(0);
const IPC: ur_exp_event_flags_t = ur_exp_event_flags_t::IPC_EXP;
const PROFILED: ur_exp_event_flags_t = ur_exp_event_flags_t::ENABLE_PROFILING;

fn try_event(flags: ur_exp_event_flags_t) -> Result<ur_event_handle_t, ur_result_t> {
    let stype = ur_structure_type_t::EXP_EVENT_DESC;
    let desc = ur_exp_event_desc_t { stype, pNext: null(), flags };
    let mut event = ur_event_handle_t::NULL;
    let create = TABLE.event_exp.create_exp.unwrap();
    match unsafe { create(context(), device(), &desc, &mut event) } {
        OK => Ok(event),
        code => Err(code),
    }
}
fn event(flags: ur_exp_event_flags_t) -> ur_event_handle_t {
    try_event(flags).unwrap()
}
fn share(event: ur_event_handle_t) -> Result<(*mut c_void, usize), ur_result_t> {
    let (mut data, mut size) = (null_mut(), 0);
    let get = TABLE.ipc_exp.get_event_handle_exp.unwrap();
    match unsafe { get(event, &mut data, &mut size) } {
        OK => Ok((data, size)),
        code => Err(code),
    }
}
fn open(data: *const c_void, size: usize) -> Result<ur_event_handle_t, ur_result_t> {
    let mut event = ur_event_handle_t::NULL;
    let open = TABLE.ipc_exp.open_event_handle_exp.unwrap();
    match unsafe { open(context(), data, size, &mut event) } {
        OK => Ok(event),
        code => Err(code),
    }
}

#[test]
fn an_event_is_shared_or_has_times_but_not_both() {
    assert_eq!(try_event(IPC | PROFILED), Err(ur_result_t::ERROR_INVALID_VALUE));
    let unknown = ur_exp_event_flags_t(1 << 9);
    assert_eq!(try_event(unknown), Err(ur_result_t::ERROR_INVALID_ENUMERATION));
}

#[test]
fn a_fresh_event_counts_as_complete() {
    for flags in [PLAIN, IPC, PROFILED] {
        let fresh = event(flags);
        assert_eq!(status(fresh), ur_event_status_t::COMPLETE);
        assert_eq!(wait(&[fresh]), OK);
        let missing = Err(ur_result_t::ERROR_PROFILING_INFO_NOT_AVAILABLE);
        assert_eq!(time(fresh, ur_profiling_info_t::COMMAND_END), missing);
        let mut queue = 1usize;
        let get = TABLE.event.get_info.unwrap();
        let name = ur_event_info_t::COMMAND_QUEUE;
        let code = unsafe { get(fresh, name, 8, (&raw mut queue).cast(), null_mut()) };
        assert_eq!((code, queue), (OK, 0));
        release(fresh);
    }
}

#[test]
fn a_signal_is_submitted_at_once_and_complete_after_all_earlier_commands() {
    for (kind, flags) in
        [(PLAIN, IN_ORDER), (PLAIN, OUT_OF_ORDER), (IPC, IN_ORDER), (IPC, OUT_OF_ORDER)]
    {
        let (queue, other) = (queue(flags), queue(IN_ORDER));
        let (event, first, second) = (event(kind), Door::shut(), Door::shut());
        release(first.hold(queue));
        assert_eq!(signal(queue, &[], event), OK);
        assert_eq!(status(event), ur_event_status_t::SUBMITTED);
        let for_first = barrier(other, &[event]);
        release(second.hold(queue));
        assert_eq!(signal(queue, &[], event), OK); // nobody waited in between
        first.open();
        assert_eq!(wait(&[for_first]), OK, "a later signal neither delays nor replaces");
        assert_eq!(status(event), ur_event_status_t::SUBMITTED);
        second.open();
        assert_eq!(wait(&[event]), OK);
        assert_eq!((status(event), finish(queue)), (ur_event_status_t::COMPLETE, OK));
        release(for_first);
        release(event);
    }
}

#[test]
fn a_barrier_signals_reusable_events_only_and_never_one_it_waits_for() {
    let queue = queue(IN_ORDER);
    let single = barrier(queue, &[]);
    assert_eq!(signal(queue, &[], single), ur_result_t::ERROR_INVALID_EVENT);
    let stale = event(PLAIN);
    release(stale);
    assert_eq!(signal(queue, &[], stale), ur_result_t::ERROR_INVALID_EVENT);
    for flags in [PLAIN, IPC] {
        let event = event(flags);
        let itself = signal(queue, &[single, event], event);
        assert_eq!(itself, ur_result_t::ERROR_INVALID_EVENT_WAIT_LIST);
        assert_eq!(status(event), ur_event_status_t::COMPLETE, "nothing was enqueued");
        release(event);
    }
    let mut made = ur_event_handle_t::NULL;
    let enqueue = TABLE.enqueue.events_wait_with_barrier_ext.unwrap();
    assert_eq!(unsafe { enqueue(queue, null(), 0, null(), &mut made) }, OK);
    assert_eq!(unsafe { enqueue(queue, null(), 0, null(), null_mut()) }, OK);
    assert_eq!(wait(&[made]), OK);
    release(made);
    release(single);
}

#[test]
fn a_profiled_signal_has_one_time_which_the_next_one_replaces() {
    use ur_profiling_info_t as P;
    let (queue, event) = (queue(IN_ORDER), event(PROFILED));
    let mut last = 0;
    for _ in 0..3 {
        assert_eq!((signal(queue, &[], event), wait(&[event])), (OK, OK));
        let [submit, start, end] =
            [P::COMMAND_SUBMIT, P::COMMAND_START, P::COMMAND_END].map(|n| time(event, n).unwrap());
        assert_eq!((submit, start), (end, end));
        assert!(end >= last && end > 0);
        last = end;
    }
    release(event);
}

#[test]
fn opens_in_the_same_process_are_other_handles_to_the_same_state() {
    let (queue, made, door) = (queue(IN_ORDER), event(IPC), Door::shut());
    let (data, size) = share(made).unwrap();
    let opened = [open(data, size).unwrap(), open(data, size).unwrap()];
    assert!(opened[0] != opened[1] && opened.iter().all(|one| *one != made));
    for one in opened {
        assert_eq!(share(one), Err(ur_result_t::ERROR_INVALID_EVENT), "no re-export");
        assert_eq!(status(one), ur_event_status_t::COMPLETE);
    }
    release(door.hold(queue));
    assert_eq!(signal(queue, &[], opened[0]), OK);
    for one in [made, opened[0], opened[1]] {
        assert_eq!(status(one), ur_event_status_t::SUBMITTED);
    }
    let put = TABLE.ipc_exp.put_event_handle_exp.unwrap();
    assert_eq!(unsafe { put(context(), data) }, OK);
    release(opened[0]);
    door.open();
    assert_eq!(wait(&[opened[1], made]), OK);
    assert_eq!(status(opened[1]), ur_event_status_t::COMPLETE);
    release(made);
    assert_eq!(signal(queue, &[], opened[1]), OK, "an opened event outlives what it came from");
    assert_eq!(wait(&[opened[1]]), OK);
    release(opened[1]);
}

#[test]
fn what_cannot_be_shared_says_why_and_what_was_withdrawn_does_not_open() {
    assert_eq!(share(event(PLAIN)), Err(ur_result_t::ERROR_INVALID_EVENT));
    assert_eq!(share(event(PROFILED)), Err(ur_result_t::ERROR_UNSUPPORTED_FEATURE));
    let single = barrier(queue(IN_ORDER), &[]);
    assert_eq!(share(single), Err(ur_result_t::ERROR_INVALID_EVENT));
    let made = event(IPC);
    let (data, size) = share(made).unwrap();
    let kept = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) }.to_vec();
    assert_eq!(open(data, size - 1), Err(ur_result_t::ERROR_INVALID_VALUE));
    release(made);
    assert_eq!(open(kept.as_ptr().cast(), size), Err(ur_result_t::ERROR_INVALID_VALUE), "released");
    let again = event(IPC);
    let (data, size) = share(again).unwrap();
    let kept = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) }.to_vec();
    assert_eq!(unsafe { TABLE.ipc_exp.put_event_handle_exp.unwrap()(context(), data) }, OK);
    assert_eq!(open(kept.as_ptr().cast(), size), Err(ur_result_t::ERROR_INVALID_VALUE), "put");
    release(again);
    release(single);
}

static CALLED: AtomicU32 = AtomicU32::new(0);
unsafe extern "C" fn called(_: ur_event_handle_t, _: ur_execution_info_t, _: *mut c_void) {
    CALLED.fetch_add(1, SeqCst);
}

#[test]
fn callbacks_of_reusable_events_are_for_the_latest_signal() {
    let set = TABLE.event.set_callback.unwrap();
    let mut expected = 0;
    for flags in [PLAIN, IPC] {
        let (queue, event, door) = (queue(IN_ORDER), event(flags), Door::shut());
        let complete =
            || unsafe { set(event, ur_execution_info_t::COMPLETE, Some(called), null_mut()) };
        assert_eq!(complete(), OK);
        expected += 1;
        assert_eq!(CALLED.load(SeqCst), expected, "a fresh event is complete");
        release(door.hold(queue));
        assert_eq!((signal(queue, &[], event), complete()), (OK, OK));
        assert_eq!(CALLED.load(SeqCst), expected);
        door.open();
        expected += 1;
        eventually("it is called", || CALLED.load(SeqCst) == expected);
        release(event);
    }
}
