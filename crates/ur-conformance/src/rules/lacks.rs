//! Errors of devices that lack a feature, with conditions that only one entry has: the query that tells
//! whether the device has the feature, and the arguments that request it. On a device that has the feature
//! the case is skipped. Also handles that may be null if the implementation does not need them.
use super::{arguments::Arguments, code};
use crate::{
    bench::{Bench, word},
    case::{Case, Stop, Verdict},
    raw::Word,
    spec::{Entry, When},
};
use ur_sys::{ur_device_info_t as Info, ur_result_t as R};

/// A parameter, a member behind it, and the value to set.
type Spoil = (&'static str, &'static str, u64);
/// The entry, the words of the condition, the queries of which at least one reports the feature, and the
/// arguments that request it.
type Lacked = (&'static str, &'static str, &'static [Info], &'static [Spoil]);
const SHARED: &[Info] = &[Info::USM_SINGLE_SHARED_SUPPORT, Info::USM_CROSS_SHARED_SUPPORT];
const UPDATES: &[Info] = &[Info::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP];
const LACKED: [Lacked; 10] = [
    (
        "urEventCreateExp",
        "profiling is requested but the platform cannot profile single events",
        &[Info::PER_EVENT_PROFILING_SUPPORT_EXP],
        &[("event_desc", "flags", ur_sys::ur_exp_event_flags_t::ENABLE_PROFILING.0 as u64)],
    ),
    (
        "urKernelSuggestMaxCooperativeGroupCount",
        "the device does not offer cooperative kernel launches",
        &[Info::KERNEL_LAUNCH_CAPABILITIES],
        &[],
    ),
    (
        "urEnqueueKernelLaunchWithArgsExp",
        "the device does not support one of the launch properties",
        &[Info::KERNEL_LAUNCH_CAPABILITIES],
        &[("launch_prop_list", "flags", ur_sys::ur_kernel_launch_flags_t::COOPERATIVE.0 as u64)],
    ),
    (
        "urUSMHostAlloc",
        "the device reports no support for host USM allocations",
        &[Info::USM_HOST_SUPPORT],
        &[],
    ),
    // The words are the same, although this entry allocates device memory.
    (
        "urUSMDeviceAlloc",
        "the device reports no support for host USM allocations",
        &[Info::USM_HOST_SUPPORT, Info::USM_DEVICE_SUPPORT],
        &[],
    ),
    (
        "urUSMSharedAlloc",
        "the device supports neither single-device nor cross-device shared USM",
        SHARED,
        &[],
    ),
    (
        "urUSMPitchedAllocExp",
        "the device supports neither single-device nor cross-device shared USM",
        SHARED,
        &[],
    ),
    (
        "urCommandBufferCreateExp",
        "an updatable buffer is asked of a device reporting no update capabilities",
        UPDATES,
        &[("command_buffer_desc", "isUpdatable", 1)],
    ),
    (
        "urCommandBufferUpdateSignalEventExp",
        "the command's device cannot update events in a command buffer",
        UPDATES,
        &[],
    ),
    (
        "urCommandBufferUpdateWaitEventsExp",
        "the command's device cannot update events in a command buffer",
        UPDATES,
        &[],
    ),
];
/// Returns the flag of a query that is relevant for an entry; for other queries any bit counts.
fn meant(query: Info, entry: &str) -> u32 {
    match query {
        Info::KERNEL_LAUNCH_CAPABILITIES => {
            ur_sys::ur_kernel_launch_properties_flags_t::COOPERATIVE.0
        }
        Info::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP if entry.contains("Update") => {
            ur_sys::ur_device_command_buffer_update_capability_flags_t::EVENTS.0
        }
        _ => u32::MAX,
    }
}
/// An entry, its optional handle, and the documented condition.
const SPARED: [(&str, &str, &str); 2] = [
    ("urMemGetNativeHandle", "device", "no device is given although the implementation needs one"),
    (
        "urKernelCreateWithNativeHandle",
        "program",
        "no program is given although the implementation needs one",
    ),
];

pub fn cases(family: &'static str, entry: &'static Entry) -> Vec<Case> {
    let mut all = Vec::new();
    for fault in &entry.errors {
        let When::Words(words) = &fault.when else { continue };
        let (c, number) = code(&fault.code);
        let (short, rule) = (c.trim_start_matches("UR_RESULT_ERROR_"), format!("{c}: {words}"));
        let is_it = |of: &str, said: &str| of == entry.name && said == words;
        if let Some(lacked) = LACKED.iter().find(|(of, said, ..)| is_it(of, said)) {
            let name = format!("{short} where {words}, and nothing is written");
            let judge = move |b: &Bench| judge(b, entry, lacked, number);
            all.push(Case::new(family, &entry.name, rule, name, judge));
        } else if let Some((_, handle, _)) = SPARED.iter().find(|(of, _, said)| is_it(of, said)) {
            let name = format!("without a {handle} it succeeds, or is {short} and writes nothing");
            let judge = move |b: &Bench| spared(b, entry, handle);
            all.push(Case::new(family, &entry.name, rule, name, judge));
        }
    }
    all
}
fn judge(b: &Bench, entry: &'static Entry, lacked: &Lacked, number: u32) -> Verdict {
    let (_, _, queries, spoils) = lacked;
    let device = b.device()?;
    for query in *queries {
        let (mut has, mut size) = (0_u32, 0);
        let to = (&raw mut has).cast();
        let code = crate::ask!(b, device.get_info(device, *query, 4, to, &mut size));
        if code == R::SUCCESS && has & meant(*query, &entry.name) != 0 {
            return Err(Stop::skipped(format!("the device has it: {query:?}")));
        }
    }
    let mut arguments = Arguments::valid(b, entry)?;
    for (name, member, value) in *spoils {
        let missing = || Stop::failed(format!("{name} cannot be set"));
        let index = arguments.index(name).ok_or_else(missing)?;
        arguments.set(index, None, 1).ok_or_else(missing)?;
        arguments.set(index, Some(member), *value).ok_or_else(missing)?;
    }
    b.promise(); // UNSUPPORTED_FEATURE is right only where the condition documents it
    arguments.refused(&[number])
}
fn spared(b: &Bench, entry: &'static Entry, handle: &str) -> Verdict {
    let mut arguments = Arguments::valid(b, entry)?;
    let missing = || Stop::failed(format!("there is no {handle}"));
    let index = arguments.index(handle).ok_or_else(missing)?;
    if let Some(native) = arguments.index("native_kernel") {
        let (get, to) = ("urKernelGetNativeHandle", super::arguments::Area::new(0));
        let kernel = word(b.object("Kernel")?);
        let code = b.adapter.call(get, &[kernel, Word::One(to.address())]);
        b.succeeded(get, code.ok_or_else(|| Stop::skipped(format!("{get} is null")))?)?;
        arguments.words[native] = Word::One(to.number(0, 8));
    }
    arguments.words[index] = Word::One(0);
    match arguments.call()? {
        R::SUCCESS => arguments.written(),
        R::ERROR_INVALID_NULL_HANDLE => arguments.refused(&[R::ERROR_INVALID_NULL_HANDLE.0]),
        code => b.succeeded(&entry.name, code),
    }
}
