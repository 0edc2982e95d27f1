//! Documented errors with conditions in words that are the same for many entries: ranges that exceed their
//! object, features that the device lacks, native handles that are unavailable, events in error.
use super::{arguments::Arguments, code};
use crate::{
    bench::{Bench, word},
    case::{Case, Stop, Verdict},
    ensure, info, same,
    spec::{Entry, Type, When},
};
use std::ffi::c_void;
use ur_sys::{ur_device_info_t as Info, ur_event_handle_t, ur_event_status_t, ur_result_t as R};

/// More than the size of any allocation of the bench, and a multiple of every pattern's size.
const FAR: u64 = 1 << 40;
/// A parameter, a member of it, and the value to set.
type Spoil = (&'static str, Option<&'static str>, u64);
/// The words of the condition, and values that make it true; parameters that an entry does not have are
/// ignored.
const SPOILT: &[(&str, &[Spoil])] = &[
    ("the offset plus size runs past the buffer's end", &[("offset", None, FAR)]),
    ("the source offset plus size runs past the source's end", &[("src_offset", None, FAR)]),
    (
        "the destination offset plus size runs past the destination's end",
        &[("dst_offset", None, FAR)],
    ),
    ("the byte count exceeds", &[("size", None, FAR)]),
    ("more bytes are asked for than the memory block holds", &[("size", None, FAR)]),
    (
        "the alignment exceeds",
        &[("usm_desc", Some("align"), 1 << 30), ("alignment", None, 1 << 40)],
    ),
    (
        "the alignment is larger than the device's biggest data type",
        &[("alignment", None, 1 << 40)],
    ),
    ("the size exceeds", &[("size", None, 1 << 60), ("width_in_bytes", None, 1 << 60)]),
    ("pitch times height exceeds", &[("height", None, FAR)]),
    (
        "origin, region and pitches together reach outside the buffer",
        &[("buffer_origin", Some("x"), FAR), ("buffer_offset", Some("x"), FAR)],
    ),
    (
        "origin, region and pitches together reach outside the source",
        &[("src_origin", Some("y"), FAR)],
    ),
    (
        "origin, region and pitches together reach outside the destination",
        &[("dst_origin", Some("y"), FAR)],
    ),
    ("the size is not a whole number of minimum virtual-memory granules", &[("size", None, 1)]),
];
/// Words for a feature that the device lacks, and the query for the feature.
const LACKED: &[(&str, Info, Option<&str>)] = &[
    ("some device in the context reports no USM pool support", Info::USM_POOL_SUPPORT, None),
    ("the device reports no image support", Info::IMAGE_SUPPORT, None),
    (
        "the device reports that kernels cannot take specialization constants",
        Info::KERNEL_SET_SPECIALIZATION_CONSTANTS,
        None,
    ),
    (
        "the device reports that programs cannot take specialization constants",
        Info::PROGRAM_SET_SPECIALIZATION_CONSTANTS,
        None,
    ),
    (
        "some device in the context reports no support for sharing events between processes",
        Info::IPC_EVENT_SUPPORT_EXP,
        None,
    ),
    (
        "the event's device reports no support for sharing events between processes",
        Info::IPC_EVENT_SUPPORT_EXP,
        None,
    ),
    (
        "events are passed but the buffer's device lacks command-buffer event support",
        Info::COMMAND_BUFFER_EVENT_SUPPORT_EXP,
        Some("event_wait_list"),
    ),
];

pub fn cases(family: &'static str, entry: &'static Entry) -> Vec<Case> {
    let mut all = Vec::new();
    for fault in &entry.errors {
        let When::Words(words) = &fault.when else { continue };
        let rule = format!("{}: {words}", code(&fault.code).0);
        let short = code(&fault.code).0.trim_start_matches("UR_RESULT_ERROR_").to_owned();
        let number = code(&fault.code).1;
        let mut add = |name: String, judge: Box<dyn Fn(&Bench) -> Verdict + Send + Sync>| {
            all.push(Case::new(family, &entry.name, rule.clone(), name, judge));
        };
        if let Some((_, spoils)) = SPOILT.iter().find(|(start, _)| words.contains(start)) {
            let name = format!("{short} where {words}, and nothing is written");
            add(name, Box::new(move |b| spoilt(b, entry, spoils, number)));
        }
        if let Some((_, query, list)) = LACKED.iter().find(|(said, ..)| words == said) {
            let name = format!("{short} where {words}");
            add(name, Box::new(move |b| lacked(b, entry, *query, *list)));
        }
        let may_lack = [
            "the adapter has no native handle corresponding to this object",
            "the adapter has no way of doing this",
            "the driver lacks Level Zero's call for appending host functions",
        ];
        if may_lack.contains(&words.as_str()) {
            let name = "it is had, or it is UNSUPPORTED_FEATURE and nothing is written";
            add(name.into(), Box::new(move |b| native(b, entry)));
        }
        if words == "an event being waited on is in the error state" && entry.name != "urEventWait"
        {
            let name = "what waits for an event in error is refused, or ends in error itself";
            add(name.into(), Box::new(move |b| in_error(b, entry)));
        }
    }
    all
}
fn spoilt(b: &Bench, entry: &'static Entry, spoils: &[Spoil], number: u32) -> Verdict {
    let mut arguments = Arguments::valid(b, entry)?;
    let mut done = false;
    for (name, member, value) in spoils {
        let Some(index) = arguments.index(name) else { continue };
        done = true;
        if member.is_some() {
            arguments.set(index, None, 1); // optional parameters are given
        }
        let set = arguments.set(index, *member, *value);
        set.ok_or_else(|| Stop::failed(format!("{name} cannot be set")))?;
    }
    ensure!(done, "{} has no parameter to spoil", entry.name);
    arguments.refused(&[number])
}
fn lacked(b: &Bench, entry: &'static Entry, query: Info, list: Option<&str>) -> Verdict {
    let device = b.device()?;
    if info!(b, device.get_info(device, query), u8) != 0 {
        return Err(Stop::skipped(format!("the device has it: {query:?}")));
    }
    let mut arguments = Arguments::valid(b, entry)?;
    if let Some(index) = list.and_then(|list| arguments.index(list)) {
        with_event(&mut arguments, index, b.object("Event")?)?;
    }
    same!(arguments.call()?, R::ERROR_UNSUPPORTED_FEATURE, "where the device lacks {query:?}");
    Ok(())
}
/// Puts one event into the wait list.
pub fn with_event(arguments: &mut Arguments<'_>, index: usize, event: *mut c_void) -> Verdict {
    let missing = || Stop::failed("the list cannot be set");
    let count = arguments.entry.params[index].wait_list.clone();
    let count = count.and_then(|count| arguments.index(&count)).ok_or_else(missing)?;
    arguments.set(index, None, 1).ok_or_else(missing)?;
    arguments.set(count, None, 1).ok_or_else(missing)?;
    let event = event.expose_provenance() as u64;
    arguments.areas[&index].poke(0, &event.to_ne_bytes());
    Ok(())
}
fn native(b: &Bench, entry: &'static Entry) -> Verdict {
    if entry.name.contains("CreateWith") {
        // Only where the adapter provides no such native handles; elsewhere an invalid value may do anything.
        let get = entry.name.replace("CreateWithNativeHandle", "GetNativeHandle");
        let get = get.replace("MemBufferGet", "MemGet").replace("MemImageGet", "MemGet");
        let found = crate::spec::Spec::get().entry(&get);
        let (_, _, get) = found.ok_or_else(|| Stop::failed(format!("there is no {get}")))?;
        if Arguments::valid(b, get)?.call()? != R::ERROR_UNSUPPORTED_FEATURE {
            return Err(Stop::skipped("the adapter has native handles of these objects"));
        }
        return Arguments::valid(b, entry)?.refused(&[R::ERROR_UNSUPPORTED_FEATURE.0]);
    }
    let arguments = Arguments::valid(b, entry)?;
    if arguments.call()? == R::SUCCESS {
        return arguments.written();
    }
    arguments.refused(&[R::ERROR_UNSUPPORTED_FEATURE.0])
}
fn in_error(b: &Bench, entry: &'static Entry) -> Verdict {
    let list = entry.params.iter().position(|param| param.wait_list.is_some());
    let list = list.ok_or_else(|| Stop::failed("the entry takes no wait list"))?;
    let event = b.object("EventInError")?;
    let mut arguments = Arguments::valid(b, entry)?;
    with_event(&mut arguments, list, event)?;
    if let Some(blocking) = entry.params.iter().position(|p| p.name.starts_with("blocking")) {
        arguments.words[blocking] = crate::raw::Word::One(0);
    }
    let code = arguments.call()?;
    match code {
        R::ERROR_IN_EVENT_LIST_EXEC_STATUS => {
            return arguments.refused(&[code.0]);
        }
        R::SUCCESS => {}
        R::ERROR_INVALID_VALUE if entry.name.contains("DeviceGlobalVariable") => {
            return Err(Stop::skipped("the suite has no program with a variable"));
        }
        code => return b.succeeded(&entry.name, code),
    }
    let is_event = |param: &crate::spec::Param| {
        param.ty == Type::Pointer(Box::new(Type::Name("Event".into())))
            && (param.out || param.inout)
    };
    let out = entry.params.iter().position(is_event);
    let Some(out) = out.and_then(|out| arguments.areas.get(&out)) else { return Ok(()) };
    let made = out.number(0, 8) as usize;
    let made = std::ptr::with_exposed_provenance_mut::<c_void>(made);
    let waited = b.wait_code(&[made])?;
    same!(waited, R::ERROR_IN_EVENT_LIST_EXEC_STATUS, "a wait for what waited for the error");
    same!(b.status(made)?, ur_event_status_t::ERROR, "the status of what waited for the error");
    b.adapter.call("urEventRelease", &[word(ur_event_handle_t(made).0)]);
    Ok(())
}
