//! The Rust names that correspond to entries and flags of the C ABI. Adapters' messages are written for C callers; here
//! the names in them are replaced by those that a Rust program uses.

/// Names of the ABI and of this crate, in the order in which they are replaced: no name is a prefix of a later one.
const NAMES: &[(&str, &str)] = &[
    ("UR_EXP_EVENT_FLAG_IPC_EXP", "Context::create_shared_event"),
    ("UR_PHYSICAL_MEM_FLAG_ENABLE_IPC", "PhysicalMemory::shareable"),
    ("UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP", "Device::shares_memory"),
    ("UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP", "Device::shares_physical_memory"),
    ("UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP", "Device::shares_events"),
    ("urAdapterGet", "Platform::all"),
    ("urContextCreate", "Context::new"),
    ("urDeviceGetInfo", "Device::info"),
    ("urDeviceGet", "Device::all"),
    ("urEnqueueEventsWaitWithBarrierExt", "Queue::signal"),
    ("urEnqueueEventsWaitWithBarrier", "Queue::wait_for"),
    ("urEnqueueEventsWait", "Event::wait"),
    ("urEnqueueHostTaskExp", "Queue::host_task"),
    ("urEnqueueUSMFill", "Queue::fill"),
    ("urEnqueueUSMMemcpy", "Queue::copy"),
    ("urEventCreateExp", "Context::create_event"),
    ("urEventGetInfo", "Event::status"),
    ("urEventWait", "Event::wait"),
    ("urEventSetCallback", "Event::wait"),
    ("urIPCGetMemHandleExp", "Buffer::share"),
    ("urIPCGetPhysMemHandleExp", "PhysicalMemory::share"),
    ("urIPCGetEventHandleExp", "Event::share"),
    ("urIPCOpenMemHandleExp", "Context::open"),
    ("urIPCOpenPhysMemHandleExp", "Context::open"),
    ("urIPCOpenEventHandleExp", "Context::open"),
    ("urLoaderInit", "Platform::all"),
    ("urPhysicalMemCreate", "PhysicalMemory::new"),
    ("urPhysicalMemGetInfo", "PhysicalMemory::size"),
    ("urPlatformGetInfo", "Platform::properties"),
    ("urPlatformGet", "Platform::all"),
    ("urQueueCreateWithNativeHandle", "Queue::over_native"),
    ("urQueueCreate", "Queue::new"),
    ("urQueueFlush", "Queue::flush"),
    ("urUSMDeviceAlloc", "Buffer::new"),
    ("urUSMGetMemAllocInfo", "Context::open"),
    ("urVirtualMemGranularityGetInfo", "Context::granularity"),
    ("urVirtualMemMap", "PhysicalMemory::map"),
    ("urVirtualMemReserve", "PhysicalMemory::map"),
];

/// The sentence with the ABI's names replaced by this crate's.
pub(crate) fn in_rust(sentence: &str) -> String {
    NAMES.iter().fold(sentence.to_owned(), |sentence, (c, rust)| match sentence.contains(c) {
        true => sentence.replace(c, rust),
        false => sentence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_for_c_names_what_a_rust_program_calls() {
        let c = "the event was not made to be shared: create it with UR_EXP_EVENT_FLAG_IPC_EXP";
        assert!(in_rust(c).ends_with("create it with Context::create_shared_event"));
        assert_eq!(in_rust("urDeviceGetInfo failed"), "Device::info failed");
    }
    #[test]
    fn no_name_hides_a_longer_one() {
        for (at, (name, _)) in NAMES.iter().enumerate() {
            let hidden = NAMES[at + 1..].iter().find(|(later, _)| later.starts_with(name));
            assert_eq!(hidden, None, "{name} comes first");
        }
    }
}
