//! Every property of every object that the specification names, read from the specification itself: a property that is
//! added there without an answer here, or with one of another type, fails.
mod common;
use common::ur::*;
use std::{
    collections::BTreeMap,
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_result_t as R;

#[test]
fn role() {
    common::role();
}

/// What the specification says of a property's answer.
#[derive(Clone, Debug)]
struct Fact {
    name: String,
    answer: String,
    is_optional: bool,
}
/// The properties of `enumeration`, by number.
fn facts(spec: &str, enumeration: &str) -> BTreeMap<u32, Fact> {
    let start = spec.find(&format!("enum {enumeration} {{")).expect("the enumeration is there");
    let body = &spec[start..];
    let body = &body[body.find('\n').unwrap()..body.find("\n}").unwrap()];
    let (mut facts, mut is_optional) = (BTreeMap::new(), false);
    for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            is_optional |= line == "#[optional]";
            continue;
        }
        let (name, rest) = line.split_once('(').unwrap_or_else(|| panic!("{line}"));
        let (answer, value) = rest.split_once(") = ").unwrap();
        let value = value.trim_end_matches(',');
        let number = match value.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => value.parse(),
        };
        let fact = Fact { name: name.into(), answer: answer.into(), is_optional };
        facts.insert(number.unwrap(), fact);
        is_optional = false;
    }
    facts
}
/// How many bytes an answer of this type has: exactly, or a multiple of.
enum Size {
    Exactly(usize),
    Many(usize),
}
fn size_of_answer(answer: &str) -> Size {
    if let Some(inner) = answer.strip_prefix('[').and_then(|a| a.strip_suffix(']')) {
        return match inner.split_once("; ") {
            Some((of, count)) => Size::Exactly(scalar(of) * count.parse::<usize>().unwrap()),
            None => Size::Many(scalar(inner)),
        };
    }
    Size::Exactly(scalar(answer))
}
fn scalar(name: &str) -> usize {
    match name {
        "Bool" | "c_char" | "u8" => 1,
        "u32" | "i32" => 4,
        "u64" | "usize" => 8,
        "Adapter" | "Platform" | "Device" | "Context" | "Queue" => size_of::<*const c_void>(),
        "DevicePartitionProperty" => size_of::<ur_device_partition_property_t>(),
        name if name.ends_with("Flags") => 4,
        "Backend" | "DeviceType" | "DeviceMemCacheType" | "DeviceLocalMemType"
        | "DevicePartition" | "Command" | "EventStatus" => 4,
        _ => panic!("the size of {name} is not known to this test"),
    }
}

type Query<'a> = &'a dyn Fn(u32, usize, *mut c_void, *mut usize) -> R;
const GUARD: u8 = 0xa5;

/// Asks everything in every way. Properties in `refused` get that code whatever the buffer.
fn ask_all(facts: &BTreeMap<u32, Fact>, refused: &[(&str, R)], query: Query<'_>) {
    for (&number, fact) in facts {
        let mut needed = usize::MAX;
        let code = query(number, 0, null_mut(), &mut needed);
        if let Some((_, expected)) = refused.iter().find(|(name, _)| *name == fact.name) {
            assert_eq!((code, needed), (*expected, usize::MAX), "{fact:?}");
            continue;
        }
        assert_eq!(code, R::SUCCESS, "{fact:?} (optional: {})", fact.is_optional);
        match size_of_answer(&fact.answer) {
            Size::Exactly(bytes) => assert_eq!(needed, bytes, "{fact:?}"),
            Size::Many(each) => assert_eq!(needed % each, 0, "{fact:?}: {needed}"),
        }
        ask_one(number, needed, fact, query);
    }
    for unknown in (0..0xa000).chain([u32::MAX, 0x7fff_ffff]).filter(|n| !facts.contains_key(n)) {
        let mut needed = usize::MAX;
        let code = query(unknown, 0, null_mut(), &mut needed);
        assert_eq!((code, needed), (R::ERROR_INVALID_ENUMERATION, usize::MAX), "{unknown:#x}");
    }
}
fn ask_one(number: u32, needed: usize, fact: &Fact, query: Query<'_>) {
    let mut buffer = vec![GUARD; needed + 16];
    let at = buffer.as_mut_ptr().cast::<c_void>();
    let mut told = 0;
    // Too small, none at all, and nowhere.
    assert_eq!(query(number, 0, at, &mut told), R::ERROR_INVALID_SIZE, "{fact:?}");
    if needed > 1 {
        assert_eq!(query(number, needed - 1, at, null_mut()), R::ERROR_INVALID_SIZE, "{fact:?}");
        assert_eq!(query(number, needed - 1, at, &mut told), R::ERROR_INVALID_SIZE, "{fact:?}");
        assert_eq!(told, needed, "the size needed is told with the refusal: {fact:?}");
    }
    let nowhere = R::ERROR_INVALID_NULL_POINTER;
    assert_eq!(query(number, needed.max(1), null_mut(), &mut told), nowhere, "{fact:?}");
    assert_eq!(query(number, 0, null_mut(), null_mut()), nowhere, "{fact:?}");
    assert!(buffer.iter().all(|byte| *byte == GUARD), "a refusal writes nothing: {fact:?}");
    // Exact and larger, with and without the size; a size of 0 cannot be given with a buffer.
    let at = buffer.as_mut_ptr().cast::<c_void>();
    for (size, size_ret) in [(needed.max(1), &raw mut told), (needed + 8, null_mut())] {
        told = needed;
        assert_eq!(query(number, size, at, size_ret), R::SUCCESS, "{fact:?}");
        assert_eq!(told, needed, "{fact:?}");
    }
    let (answer, rest) = buffer.split_at(needed);
    assert!(rest.iter().all(|byte| *byte == GUARD), "written past the answer: {fact:?}");
    match &*fact.answer {
        "[c_char]" => {
            let nul = answer.iter().position(|byte| *byte == 0);
            assert_eq!(nul, Some(needed - 1), "one NUL, at the end: {fact:?}");
            assert!(std::str::from_utf8(answer).is_ok(), "{fact:?}");
        }
        "Bool" => assert!(answer[0] <= 1, "{fact:?}: {}", answer[0]),
        _ => {}
    }
}

/// Nothing that this machine's kernel tells every program, or nothing that a processor has.
const UNANSWERED: [&str; 24] = [
    "DeviceId",
    "MemoryClockRate",
    "IlVersion",
    "PciAddress",
    "GpuEuCount",
    "GpuEuSimdWidth",
    "GpuEuSlices",
    "GpuEuCountPerSubslice",
    "GpuSubslicesPerSlice",
    "GpuHwThreadsPerEu",
    "MaxMemoryBandwidth",
    "MemoryBusWidth",
    "MaxRegistersPerWorkGroup",
    "IpVersion",
    "CurrentClockThrottleReasons",
    "FanSpeed",
    "MinPowerLimit",
    "MaxPowerLimit",
    "Luid",
    "NodeMask",
    "XeStackCount",
    "XeRegionsPerStack",
    "XeClustersPerRegion",
    "XeCoresPerCluster",
];
const UNANSWERED_TOO: [&str; 2] = ["EusPerXeCore", "MaxLanesPerHwThread"];

#[test]
fn a_device_and_a_part_of_it_answer_every_property() {
    let ur = Ur::new();
    let facts = facts(include_str!("../../../spec/device.rs"), "DeviceInfo");
    assert_eq!(facts.len(), ur_device_info_t::VALUES.len());
    let unanswered: Vec<_> = UNANSWERED
        .into_iter()
        .chain(UNANSWERED_TOO)
        .map(|name| (name, R::ERROR_UNSUPPORTED_ENUMERATION))
        .collect();
    for (name, _) in &unanswered {
        let fact = facts.values().find(|fact| fact.name == *name).expect("a property");
        assert!(fact.is_optional, "{name} has to be answered");
    }
    let ask = |device| {
        ask_all(&facts, &unanswered, &|n, size, to, ret| {
            call!(device.get_info(device, ur_device_info_t(n), size, to, ret))
        });
    };
    ask(ur.device);
    if let Some(part) = ur.a_part() {
        ask(part);
        assert_eq!(call!(device.release(part)), R::SUCCESS);
    }
}
#[test]
fn adapter_platform_and_context_answer_every_property() {
    let ur = Ur::new();
    let spec = facts(include_str!("../../../spec/adapter.rs"), "AdapterInfo");
    ask_all(&spec, &[], &|n, size, to, ret| {
        call!(adapter.get_info(ur.adapter, ur_adapter_info_t(n), size, to, ret))
    });
    let spec = facts(include_str!("../../../spec/platform.rs"), "PlatformInfo");
    ask_all(&spec, &[], &|n, size, to, ret| {
        call!(platform.get_info(ur.platform, ur_platform_info_t(n), size, to, ret))
    });
    let spec = facts(include_str!("../../../spec/context.rs"), "ContextInfo");
    ask_all(&spec, &[], &|n, size, to, ret| {
        call!(context.get_info(ur.context, ur_context_info_t(n), size, to, ret))
    });
}
#[test]
fn queues_and_events_answer_every_property() {
    let ur = Ur::new();
    let queue_spec = facts(include_str!("../../../spec/queue.rs"), "QueueInfo");
    let event_spec = facts(include_str!("../../../spec/event.rs"), "EventInfo");
    let profiling_spec = facts(include_str!("../../../spec/event.rs"), "ProfilingInfo");
    // Both are properties of queues on the device, of which a CPU has none.
    let on_device =
        [("DeviceDefault", R::ERROR_UNSUPPORTED_ENUMERATION), ("Size", R::ERROR_INVALID_QUEUE)];
    use ur_queue_flags_t as F;
    for order in [F::default(), F::OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let queue = ur.new_queue(order | F::PROFILING_ENABLE);
        ask_all(&queue_spec, &on_device, &|n, size, to, ret| {
            call!(queue.get_info(queue, ur_queue_info_t(n), size, to, ret))
        });
        let mut event = ur_event_handle_t::NULL;
        assert_eq!(call!(enqueue.events_wait(queue, 0, null(), &mut event)), R::SUCCESS);
        assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
        ask_all(&event_spec, &[], &|n, size, to, ret| {
            call!(event.get_info(event, ur_event_info_t(n), size, to, ret))
        });
        ask_all(&profiling_spec, &[], &|n, size, to, ret| {
            let code =
                call!(event.get_profiling_info(event, ur_profiling_info_t(n), size, to, ret));
            if size == 0 && !to.is_null() && code != R::ERROR_INVALID_ENUMERATION {
                // What all other queries call INVALID_SIZE.
                assert_eq!(code, R::ERROR_INVALID_VALUE);
                return R::ERROR_INVALID_SIZE;
            }
            code
        });
        assert_eq!(call!(event.release(event)), R::SUCCESS);
        assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    }
}
#[test]
fn properties_that_name_other_objects_name_the_right_ones() {
    let ur = Ur::new();
    let device = |info| {
        ur.value::<usize>(|size, to, ret| call!(device.get_info(ur.device, info, size, to, ret)))
    };
    assert_eq!(device(ur_device_info_t::PLATFORM).unwrap(), ur.platform.0.addr());
    assert_eq!(device(ur_device_info_t::PARENT_DEVICE).unwrap(), 0, "the root has no parent");
    let info = ur_platform_info_t::ADAPTER;
    let adapter = ur
        .value::<usize>(|size, to, ret| call!(platform.get_info(ur.platform, info, size, to, ret)));
    assert_eq!(adapter.unwrap(), ur.adapter.0.addr());
    let queue = ur.new_queue(ur_queue_flags_t::default());
    let of_queue = |info| {
        ur.value::<usize>(|size, to, ret| call!(queue.get_info(queue, info, size, to, ret)))
            .unwrap()
    };
    assert_eq!(of_queue(ur_queue_info_t::CONTEXT), ur.context.0.addr());
    assert_eq!(of_queue(ur_queue_info_t::DEVICE), ur.device.0.addr());
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}
