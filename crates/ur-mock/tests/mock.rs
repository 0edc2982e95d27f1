//! The mock adapter: the behaviour of its entries, and hooks on every one of them.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
#[path = "../../ur-cpu/tests/generated/entries.rs"]
mod entries;
#[path = "../../ur-cpu/tests/generated/table.rs"]
#[allow(dead_code, reason = "the parameters of an entry are not looked at here")]
mod table;
use entries::ENTRIES;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};
use ur_lock::locked;
use ur_mock::{self as mock, MOCK_TABLE};
use ur_sys::{ur_result_t as R, *};

/// Hooks apply to the whole process, so only one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = locked(&ALONE);
    mock::reset(None).unwrap();
    guard
}

/// Large enough for every struct that is passed by value and for the target of every pointer.
static ZEROES: [u64; 64] = [0; 64];
/// Calls an entry with arguments that are all the address of zeroes.
fn call(entry: &table::Entry) -> R {
    (entry.call)(&MOCK_TABLE, &[ZEROES.as_ptr().addr(); 24])
}

#[test]
fn every_entry_can_be_replaced_ended_before_and_changed_after() {
    let _alone = alone();
    assert_eq!(ENTRIES.len(), 241);
    for entry in ENTRIES {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let arguments = entry.params.len();
        let instead = mock::replace(entry.name, move |call| {
            counted.fetch_add(1, SeqCst);
            assert_eq!(call.count(), arguments);
            R::ERROR_DEVICE_LOST
        });
        let instead = instead.unwrap();
        assert_eq!(call(entry), R::ERROR_DEVICE_LOST, "{}", entry.name);
        assert_eq!(calls.load(SeqCst), 1, "{}", entry.name);
        let after = mock::after(entry.name, |call| match call.result() {
            R::ERROR_DEVICE_LOST => R::ERROR_ADAPTER_SPECIFIC,
            other => other,
        });
        let after = after.unwrap();
        assert_eq!(call(entry), R::ERROR_ADAPTER_SPECIFIC, "{}", entry.name);
        let name = entry.name;
        let before = mock::before(entry.name, move |call| {
            assert_eq!(call.entry(), name);
            R::ERROR_UNINITIALIZED
        });
        assert_eq!(call(entry), R::ERROR_UNINITIALIZED, "{}", entry.name);
        assert_eq!(calls.load(SeqCst), 2, "{}: the replacement ran after an end", entry.name);
        drop((before, after, instead));
    }
}

/// Returns the only platform and device, and a context of that device.
fn scene() -> (ur_platform_handle_t, ur_device_handle_t, ur_context_handle_t) {
    let t = &MOCK_TABLE;
    let mut adapter = ur_adapter_handle_t(null_mut());
    let mut platform = ur_platform_handle_t(null_mut());
    let mut device = ur_device_handle_t(null_mut());
    let mut context = ur_context_handle_t(null_mut());
    unsafe {
        assert_eq!(t.adapter.get.unwrap()(1, &mut adapter, null_mut()), R::SUCCESS);
        assert_eq!(t.platform.get.unwrap()(adapter, 1, &mut platform, null_mut()), R::SUCCESS);
        let all = ur_device_type_t::ALL;
        assert_eq!(t.device.get.unwrap()(platform, all, 1, &mut device, null_mut()), R::SUCCESS);
        assert_eq!(t.context.create.unwrap()(1, &device, null(), &mut context), R::SUCCESS);
    }
    (platform, device, context)
}
fn queue(device: ur_device_handle_t, context: ur_context_handle_t) -> ur_queue_handle_t {
    let mut queue = ur_queue_handle_t(null_mut());
    let code = unsafe { MOCK_TABLE.queue.create.unwrap()(context, device, null(), &mut queue) };
    assert_eq!(code, R::SUCCESS);
    queue
}
/// Queries a word-sized property of a queue.
fn told(queue: ur_queue_handle_t, name: ur_queue_info_t) -> usize {
    let mut value = 0_usize;
    let (mut size, to) = (0, (&raw mut value).cast());
    let get = MOCK_TABLE.queue.get_info.unwrap();
    assert_eq!(unsafe { get(queue, name, 0, null_mut(), &mut size) }, R::SUCCESS);
    assert_eq!(unsafe { get(queue, name, size, to, null_mut()) }, R::SUCCESS);
    value
}

#[test]
fn objects_say_of_what_they_were_made_and_how_many_references_there_are() {
    let _alone = alone();
    let (_, device, context) = scene();
    let queue = queue(device, context);
    assert_eq!(told(queue, ur_queue_info_t::CONTEXT), context.0.addr());
    assert_eq!(told(queue, ur_queue_info_t::DEVICE), device.0.addr());
    assert_eq!(told(queue, ur_queue_info_t::REFERENCE_COUNT), 1);
    let t = &MOCK_TABLE.queue;
    unsafe {
        assert_eq!(t.retain.unwrap()(queue), R::SUCCESS);
        assert_eq!(told(queue, ur_queue_info_t::REFERENCE_COUNT), 2);
        // The queue keeps its context alive.
        assert_eq!(MOCK_TABLE.context.release.unwrap()(context), R::SUCCESS);
        assert_eq!(told(queue, ur_queue_info_t::CONTEXT), context.0.addr());
        assert_eq!(t.release.unwrap()(queue), R::SUCCESS);
        assert_eq!(t.release.unwrap()(queue), R::SUCCESS);
        assert_eq!(t.release.unwrap()(queue), R::ERROR_INVALID_QUEUE);
    }
}

#[test]
fn commands_give_complete_events_of_their_kind_and_memory_is_there() {
    let _alone = alone();
    let (_, device, context) = scene();
    let queue = queue(device, context);
    let (mut memory, mut event) = (null_mut::<c_void>(), ur_event_handle_t(null_mut()));
    let (t, one) = (&MOCK_TABLE, 1_u8);
    unsafe {
        let alloc = t.usm.shared_alloc.unwrap();
        assert_eq!(alloc(context, device, null(), null_mut_pool(), 64, &mut memory), R::SUCCESS);
        memory.cast::<u8>().write_bytes(7, 64);
        let fill = t.enqueue.usm_fill.unwrap();
        let pattern = (&raw const one).cast();
        assert_eq!(fill(queue, memory, 1, pattern, 64, 0, null(), &mut event), R::SUCCESS);
        let mut said = [u32::MAX; 2];
        for (name, to) in [ur_event_info_t::COMMAND_TYPE, ur_event_info_t::COMMAND_EXECUTION_STATUS]
            .into_iter()
            .zip(&mut said)
        {
            let to = (to as *mut u32).cast();
            assert_eq!(t.event.get_info.unwrap()(event, name, 4, to, null_mut()), R::SUCCESS);
        }
        assert_eq!(said, [ur_command_t::USM_FILL.0, ur_event_status_t::COMPLETE.0]);
        assert_eq!(t.event.wait.unwrap()(1, &event), R::SUCCESS);
        assert_eq!(t.usm.free.unwrap()(context, memory), R::SUCCESS);
        assert_eq!(t.usm.free.unwrap()(context, memory), R::ERROR_INVALID_MEM_OBJECT);
    }
}
fn null_mut_pool() -> ur_usm_pool_handle_t {
    ur_usm_pool_handle_t(null_mut())
}

#[test]
fn a_hook_reads_and_changes_arguments_and_may_call_what_it_replaces() {
    let _alone = alone();
    let (_, device, context) = scene();
    let mut memory = null_mut::<c_void>();
    let alloc = MOCK_TABLE.usm.device_alloc.unwrap();
    let before = mock::before("urUSMDeviceAlloc", |call| {
        assert_eq!(call.argument::<usize>(4), 10);
        call.set_argument(4, 20_usize);
        R::SUCCESS
    });
    let address = device.0.addr();
    let instead = mock::replace("urUSMDeviceAlloc", move |call| {
        assert_eq!(call.argument::<ur_device_handle_t>(1).0.addr(), address);
        assert_eq!(call.argument::<usize>(4), 20);
        call.original()
    });
    let code = unsafe { alloc(context, device, null(), null_mut_pool(), 10, &mut memory) };
    assert_eq!(code, R::SUCCESS);
    let (mut size, name) = (0_usize, ur_usm_alloc_info_t::SIZE);
    let get = MOCK_TABLE.usm.get_mem_alloc_info.unwrap();
    let code = unsafe { get(context, memory, name, 8, (&raw mut size).cast(), null_mut()) };
    assert_eq!((code, size), (R::SUCCESS, 20));
    drop((before, instead));
    assert_eq!(unsafe { MOCK_TABLE.usm.free.unwrap()(context, memory) }, R::SUCCESS);
}

#[test]
fn a_hook_goes_when_it_is_dropped_or_reset_and_not_with_one_that_it_replaced() {
    let _alone = alone();
    let (_, device, context) = scene();
    let queue = queue(device, context);
    let finish = || unsafe { MOCK_TABLE.queue.finish.unwrap()(queue) };
    let first = mock::replace("urQueueFinish", |_| R::ERROR_DEVICE_LOST).unwrap();
    assert_eq!(finish(), R::ERROR_DEVICE_LOST);
    let second = mock::replace("urQueueFinish", |_| R::ERROR_UNKNOWN).unwrap();
    drop(first);
    assert_eq!(finish(), R::ERROR_UNKNOWN);
    drop(second);
    assert_eq!(finish(), R::SUCCESS);
    mock::replace("urQueueFinish", |_| R::ERROR_UNKNOWN).unwrap().keep();
    assert_eq!(finish(), R::ERROR_UNKNOWN);
    mock::reset(Some("urQueueFinish")).unwrap();
    assert_eq!(finish(), R::SUCCESS);
}

#[test]
fn what_is_no_entry_is_refused_by_name() {
    let refused = mock::replace("urQueueFinnish", |_| R::SUCCESS).unwrap_err();
    assert!(refused.to_string().contains("urQueueFinnish"), "{refused}");
    assert!(mock::reset(Some("")).is_err());
}

#[test]
fn a_panic_in_a_hook_is_a_code_and_not_the_end_and_a_wrong_type_is_a_panic() {
    let _alone = alone();
    let (_, device, context) = scene();
    let queue = queue(device, context);
    let flush = || unsafe { MOCK_TABLE.queue.flush.unwrap()(queue) };
    for wrong in [
        |call: &mock::Call<'_>| call.argument::<u32>(0),
        |call: &mock::Call<'_>| call.argument::<usize>(1) as u32,
    ] {
        let hook = mock::before("urQueueFlush", move |call| R(wrong(call) as _)).unwrap();
        assert_eq!(flush(), R::ERROR_UNKNOWN);
        drop(hook);
    }
    assert_eq!(flush(), R::SUCCESS);
}

#[test]
fn handles_dispatch_through_the_table_that_has_the_hooks() {
    let _alone = alone();
    let (platform, device, context) = scene();
    for handle in [platform.0, device.0, context.0] {
        let table = unsafe { handle.cast::<*const ur_dditable_t>().read() };
        assert!(std::ptr::eq(table, &MOCK_TABLE));
    }
}
