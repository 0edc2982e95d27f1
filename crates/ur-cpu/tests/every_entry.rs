//! What C programs get wrong, at every entry of the table: each argument in turn is something that
//! it must not be, while all others are good. The code is the documented one, nothing is written,
//! and nobody's reference count changes.
mod common;
mod generated {
    pub mod entries;
    pub mod table;
}
mod wrong {
    pub mod objects;
    pub mod words;
}
use common::ur::TABLE;
use generated::{
    entries::ENTRIES,
    table::{Entry, Role},
};
use ur_sys::{ur_device_info_t, ur_result_t as R};
use wrong::{
    objects::{Objects, SIZE_OF_MEMORY, invalid},
    words::Words,
};

/// What a call with something wrong must come to.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Expected {
    Code(R),
    /// Which code depends on what is found first.
    AnyFailure,
}
/// One thing that is wrong.
struct Wrong {
    what: String,
    words: Words,
    expected: Expected,
}

/// Sizes that may be anything: what they are for says so.
const ANY_SIZE: &[(&str, &str)] = &[
    // A hint of how large allocations will be.
    ("urVirtualMemGranularityGetInfo", "allocation_size"),
    // As much stays as there is.
    ("urUSMPoolTrimToExp", "min_bytes_to_keep"),
];

/// Kinds without an object: a processor imports nothing.
const MISSING: &[&str] = &["ExpExternalMem", "ExpExternalSemaphore"];

/// Entries that say whether something is supported, which what nobody knows is not.
const SAY_NO: &[&str] = &[
    "urBindlessImagesGetImageMemoryHandleTypeSupportExp",
    "urBindlessImagesGetImageUnsampledHandleSupportExp",
    "urBindlessImagesGetImageSampledHandleSupportExp",
];

/// Everything that can be wrong about one parameter.
fn wrongs(objects: &Objects, entry: &Entry, at: usize) -> Vec<Wrong> {
    let param = &entry.params[at];
    let mut all = Vec::new();
    let mut add = |what: &str, expected: Expected, change: &dyn Fn(&mut Words)| {
        let mut words = Words::good(objects, entry);
        change(&mut words);
        all.push(Wrong { what: format!("{}: {what}", param.name), words, expected });
    };
    let code = Expected::Code;
    let null_pointer = code(R::ERROR_INVALID_NULL_POINTER);
    match param.role {
        Role::Handle(kind) => {
            if !param.optional {
                add("null", code(R::ERROR_INVALID_NULL_HANDLE), &|w| w.set(at, 0));
            }
            for (what, handle) in objects.none_of(kind) {
                add(what, code(invalid(kind)), &|w| w.set(at, handle));
            }
        }
        Role::Handles(kind, Some(count)) => {
            let no_list = match param.name {
                "kernel_alternatives" => code(R::ERROR_INVALID_VALUE), // documented so
                _ => null_pointer,
            };
            add("no list", no_list, &|w| w.set_both(at, 0, count, 1));
            add("an empty list", Expected::AnyFailure, &|w| w.list(at, count, &[], 0));
            let null = code(R::ERROR_INVALID_NULL_HANDLE);
            add("a list of null", null, &|w| w.list(at, count, &[0], 1));
            for (what, handle) in objects.none_of(kind) {
                let good = objects.live(kind).unwrap_or(0);
                let expected = match good {
                    0 => Expected::AnyFailure,
                    _ => code(invalid(kind)),
                };
                add(what, expected, &|w| w.list(at, count, &[good, handle], 2));
            }
        }
        Role::WaitList(Some(count)) => {
            let bad = code(R::ERROR_INVALID_EVENT_WAIT_LIST);
            add("no list", bad, &|w| w.set_both(at, 0, count, 1));
            let event = objects.live("Event").expect("events can be made");
            add("a list of none", bad, &|w| w.list(at, count, &[event], 0));
            add("a list of null", bad, &|w| w.list(at, count, &[event, 0], 2));
            for (what, handle) in objects.none_of("Event") {
                add(what, bad, &|w| w.list(at, count, &[event, handle], 2));
            }
        }
        Role::Out(None)
        | Role::OutNull
        | Role::InOut
        | Role::Pointer(None)
        | Role::Text
        | Role::Callback
            if !param.optional =>
        {
            add("null", null_pointer, &|w| w.set(at, 0));
        }
        Role::Out(Some(count)) | Role::Pointer(Some(count)) if !param.optional => {
            add("null", null_pointer, &|w| w.set_both(at, 0, count, 1));
        }
        Role::Record(size, _, checked, _) => {
            if !param.optional {
                add("null", null_pointer, &|w| w.set(at, 0));
            }
            let checked = if SAY_NO.contains(&entry.name) { &[] } else { checked };
            for &(offset, wrong) in checked.iter().filter(|(_, wrong)| *wrong != 0) {
                let what = format!("an unknown value at {offset}");
                // Of images the ABI has codes of their own for it.
                let expected = match param.optional || param.name.contains("image") {
                    false => code(R::ERROR_INVALID_ENUMERATION),
                    true => Expected::AnyFailure,
                };
                add(&what, expected, &|w| {
                    w.record(at, param, size);
                    w.poke(at, offset, wrong);
                });
            }
        }
        Role::Enumerator(_) => {
            let unknown = code(R::ERROR_INVALID_ENUMERATION);
            add("unknown", unknown, &|w| w.set(at, 0x7fff_fffe));
        }
        Role::Flags(valid) if valid != u32::MAX => {
            let unknown = code(R::ERROR_INVALID_ENUMERATION);
            add("unknown", unknown, &|w| w.set(at, !valid as usize));
        }
        Role::Size if !ANY_SIZE.contains(&(entry.name, param.name)) => {
            for size in [usize::MAX, usize::MAX - 4095, 1 << 63] {
                add("too large", Expected::AnyFailure, &|w| w.set(at, size));
            }
        }
        Role::Answer(Some(size), told) => {
            if let Some(told) = told {
                add("nowhere", null_pointer, &|w| {
                    w.set_both(at, 0, size, 0);
                    w.set(told, 0);
                });
            }
            let no_room = match entry.name {
                "urEventGetProfilingInfo" => R::ERROR_INVALID_VALUE, // documented so here alone
                _ => R::ERROR_INVALID_SIZE,
            };
            add("no room", code(no_room), &|w| w.room(at, size, 0));
            add("room nowhere", null_pointer, &|w| w.set_both(at, 0, size, 8));
        }
        _ => {}
    }
    all
}

/// What goes wrong when one entry is given `wrong`; nothing if it is as it should be.
fn complaint(objects: &Objects, entry: &Entry, mut wrong: Wrong) -> Option<String> {
    let is_exact = objects.has_all(entry);
    let got = (entry.call)(&TABLE, wrong.words.words());
    let as_expected = match wrong.expected {
        Expected::Code(code) if is_exact => got == code,
        _ => got != R::SUCCESS,
    };
    let what = format!("{}: {}", entry.name, wrong.what);
    if !as_expected {
        return Some(format!("{what}: {got:?} instead of {:?}", wrong.expected));
    }
    wrong.words.written().map(|name| format!("{what}: {got:?}, but {name} was written"))
}

#[test]
fn the_table_has_every_entry() {
    assert_eq!(ENTRIES.len(), 241);
}
#[test]
fn there_is_an_object_of_every_kind_that_can_be_made() {
    let objects = Objects::new();
    for kind in objects.missing() {
        let says_so = match kind {
            "ExpCommandBuffer" | "ExpCommandBufferCommand" => {
                Some(ur_device_info_t::COMMAND_BUFFER_SUPPORT_EXP)
            }
            "ExpGraph" | "ExpExecutableGraph" => {
                Some(ur_device_info_t::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP)
            }
            _ => None,
        };
        let is_there = says_so.is_some_and(|support| objects.device_has(support));
        assert!(MISSING.contains(&kind) || (says_so.is_some() && !is_there), "{kind}");
    }
}
#[test]
fn every_entry_refuses_what_is_wrong_and_leaves_everything_as_it_was() {
    common::alone(|| {
        let objects = Objects::new();
        let mut complaints = Vec::new();
        let mut calls = 0;
        for entry in ENTRIES {
            let before = objects.state();
            for at in 0..entry.params.len() {
                for wrong in wrongs(&objects, entry, at) {
                    calls += 1;
                    complaints.extend(complaint(&objects, entry, wrong));
                }
            }
            let after = objects.state();
            if before != after {
                complaints.push(format!("{}: {before:?} became {after:?}", entry.name));
            }
        }
        assert!(calls > 2000, "only {calls} calls");
        let list = complaints.join("\n");
        assert!(complaints.is_empty(), "{} of {calls} calls:\n{list}", complaints.len());
    });
}

#[test]
fn an_event_without_times_says_so_whatever_the_pointers_are() {
    let objects = Objects::new();
    let name = "urEventGetProfilingInfo";
    let entry = ENTRIES.iter().find(|entry| entry.name == name).expect("it is in the table");
    let event = objects.live("Event").expect("events can be made");
    let is_answer = |at: &usize| matches!(entry.params[*at].role, Role::Answer(Some(_), _));
    let at = (0..entry.params.len()).find(is_answer).expect("it answers");
    let wrongs = wrongs(&objects, entry, at);
    assert_eq!(wrongs.len(), 3, "nowhere, no room, room nowhere");
    for mut wrong in wrongs {
        wrong.words.set(0, event);
        wrong.expected = Expected::Code(R::ERROR_PROFILING_INFO_NOT_AVAILABLE);
        assert_eq!(complaint(&objects, entry, wrong), None);
    }
}

#[test]
fn host_pipes_are_refused_once_their_arguments_are_good() {
    let objects = Objects::new();
    for entry in ENTRIES.iter().filter(|entry| entry.name.ends_with("HostPipe")) {
        assert!(objects.has_all(entry), "{}", entry.name);
        let got = (entry.call)(&TABLE, Words::good(&objects, entry).words());
        assert_eq!(got, R::ERROR_UNSUPPORTED_FEATURE, "{}", entry.name);
    }
    assert!(!objects.device_has(ur_device_info_t::HOST_PIPE_READ_WRITE_SUPPORT));
}

/// Whether a command works on a range of USM or of a buffer.
fn works_on_ranges(entry: &Entry) -> bool {
    let of = |start: &str| entry.name.strip_prefix(start);
    let rest = of("urEnqueue").or(of("urCommandBufferAppend")).unwrap_or_default();
    (rest.starts_with("USM")
        || rest.starts_with("MemBuffer")
        || entry.name == "urUSMContextMemcpyExp")
        && !["Alloc", "Free", "Rect", "2D", "Map"].iter().any(|word| rest.contains(word))
}
#[test]
fn ranges_end_where_their_memory_does() {
    common::alone(|| {
        let objects = Objects::new();
        let (mut complaints, mut good) = (Vec::new(), 0);
        for entry in ENTRIES.iter().filter(|entry| works_on_ranges(entry)) {
            if !objects.has_all(entry) {
                continue;
            }
            let call = |words: Words| (entry.call)(&TABLE, words.words());
            good += 1;
            let got = call(Words::good(&objects, entry));
            if got != R::SUCCESS {
                complaints.push(format!("{}: {got:?} for what is good", entry.name));
            }
            for (at, param) in entry.params.iter().enumerate() {
                let beyond = match param.name {
                    name if name.contains("offset") => SIZE_OF_MEMORY,
                    "size" => SIZE_OF_MEMORY + 4,
                    _ => continue,
                };
                let mut words = Words::good(&objects, entry);
                words.set(at, beyond);
                let got = call(words);
                if got != R::ERROR_INVALID_SIZE {
                    complaints.push(format!("{}: {}: {got:?}", entry.name, param.name));
                }
            }
        }
        assert!(good >= 5, "only {good} entries");
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    });
}
