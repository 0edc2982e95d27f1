//! Every entry of the adapter without a backend, with arguments that may be anything C can pass without lying about
//! its own memory: null, handles of any kind, adapter and age, numbers of any size. The answer is a code, what failed
//! wrote nothing, and no object is left over.
#![no_main]
#[path = "../../crates/ur-cpu/tests/generated/entries.rs"]
mod entries;
#[path = "../../crates/ur-cpu/tests/generated/table.rs"]
mod table;
use entries::ENTRIES;
use std::{
    ffi::{c_char, c_void},
    sync::OnceLock,
};
use table::{Entry, Role};
use ur_cpu as cpu;
use ur_null as null;
use ur_sys::*;

/// Any function of C's; the only one that is ever called is the logger.
extern "C" fn callback(_level: ur_logger_level_t, message: *const c_char, _data: *mut c_void) {
    assert!(!message.is_null());
}

/// Elements of every list.
const LIST: usize = 4;
/// Bytes of every other piece of memory.
const ROOM: usize = 4096;

/// Handles that are good, of another adapter, or released.
fn handles() -> &'static [usize] {
    static HANDLES: OnceLock<Vec<usize>> = OnceLock::new();
    HANDLES.get_or_init(|| {
        let mut all = vec![0];
        for table in [&null::TABLE, &cpu::TABLE] {
            let get = |entry: &str, words: &[usize]| {
                let mut handle = 0_usize;
                let words: Vec<usize> = words
                    .iter()
                    .map(|&word| if word == OUT { (&raw mut handle).expose_provenance() } else { word })
                    .collect();
                let entry = ENTRIES.iter().find(|e| e.name == entry).unwrap();
                assert_eq!((entry.call)(table, &words), ur_result_t::SUCCESS, "{}", entry.name);
                handle
            };
            let adapter = get("urAdapterGet", &[1, OUT, 0]);
            let platform = get("urPlatformGet", &[adapter, 1, OUT, 0]);
            let all_devices = ur_device_type_t::ALL.0 as usize;
            let device = get("urDeviceGet", &[platform, all_devices, 1, OUT, 0]);
            let devices = (&raw const device).expose_provenance();
            let context = get("urContextCreate", &[1, devices, 0, OUT]);
            let queue = get("urQueueCreate", &[context, device, 0, OUT]);
            let gone = get("urQueueCreate", &[context, device, 0, OUT]);
            get("urQueueRelease", &[gone]);
            let buffer = get("urMemBufferCreate", &[context, 1, 64, 0, OUT]);
            all.extend([adapter, platform, device, context, queue, gone, buffer]);
        }
        all
    })
}
/// Stands for where the result goes.
const OUT: usize = usize::MAX - 1;

fn is_count(entry: &Entry, at: usize) -> bool {
    entry.params.iter().any(|p| match p.role {
        Role::Handles(_, n) | Role::WaitList(n) | Role::Out(n) | Role::Pointer(n) => n == Some(at),
        Role::Record(_, _, _, n) => n == Some(at),
        Role::Answer(size, _) => size == Some(at),
        _ => false,
    })
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((which, rest)) = input.split_first_chunk::<2>() else { return };
    let entry = &ENTRIES[usize::from(u16::from_le_bytes(*which)) % ENTRIES.len()];
    let handles = handles();
    let mut choices = rest.iter().copied();
    let mut next = || usize::from(choices.next().unwrap_or(0));
    let mut memory: Vec<Box<[u64]>> = Vec::new();
    let mut outs = Vec::new();
    let mut words = Vec::new();
    for (at, param) in entry.params.iter().enumerate() {
        let mut room = vec![0_u64; ROOM / 8].into_boxed_slice();
        let absent = next() % 5 == 4;
        let word = match param.role {
            Role::Handle(_) => handles[next() % handles.len()],
            Role::Handles(..) | Role::WaitList(_) if !absent => {
                room.iter_mut().take(LIST).for_each(|h| *h = handles[next() % handles.len()] as u64);
                (&raw mut room[0]).expose_provenance()
            }
            Role::Record(_, stype, fields, _) if !absent => {
                if let Some(stype) = stype {
                    room[0] = u64::from(stype) + u64::from(next() % 4 == 3);
                }
                if let Some((offset, value)) = fields.get(next() % (fields.len() + 1)) {
                    room[offset / 8] |= u64::from(*value) << (8 * (offset % 8));
                }
                (&raw mut room[0]).expose_provenance()
            }
            Role::Value(size) => {
                room.iter_mut().take(size.div_ceil(8)).for_each(|w| *w = number(&mut next));
                (&raw mut room[0]).expose_provenance()
            }
            Role::Out(_) | Role::InOut if !absent => {
                outs.push(memory.len());
                (&raw mut room[0]).expose_provenance()
            }
            Role::Pointer(_) | Role::Answer(..) if !absent => (&raw mut room[0]).expose_provenance(),
            Role::Text if !absent => c"name".as_ptr().expose_provenance(),
            Role::Callback if !absent => callback as *const () as usize,
            Role::Enumerator(known) | Role::Flags(known) => match next() % 3 {
                0 => next(),
                1 => u32::MAX as usize,
                _ => known as usize,
            },
            Role::Size | Role::Number | Role::AnswerSize if is_count(entry, at) => next() % (LIST + 1),
            Role::Size | Role::Number | Role::AnswerSize => number(&mut next) as usize,
            _ => 0,
        };
        words.push(word);
        memory.push(room);
    }
    let before: Vec<Vec<u64>> = outs.iter().map(|&at| memory[at].to_vec()).collect();
    let code = (entry.call)(&null::TABLE, &words);
    assert!(code.name().is_some(), "{}: {code:?} is no code", entry.name);
    if code != ur_result_t::SUCCESS && code != ur_result_t::ERROR_INVALID_SIZE {
        for (&at, before) in outs.iter().zip(&before) {
            assert_eq!(&memory[at][..], &before[..], "{} {code:?}: {}", entry.name, entry.params[at].name);
        }
    }
    if code == ur_result_t::SUCCESS && entry.name.contains("Create") {
        let made = outs.last().map_or(0, |&at| memory[at][0] as usize);
        let releases = ENTRIES.iter().filter(|e| e.name.contains("Release") && e.params.len() == 1);
        let released = releases.filter(|e| (e.call)(&null::TABLE, &[made]) == ur_result_t::SUCCESS);
        assert!(made == 0 || released.count() == 1 || entry.name.contains("Graph"), "{}", entry.name);
    }
});

/// Any number, often one at an edge.
fn number(next: &mut impl FnMut() -> usize) -> u64 {
    match next() % 6 {
        0 => next() as u64,
        1 => u64::MAX - next() as u64,
        2 => 1 << (next() % 64),
        3 => i64::MAX as u64 - next() as u64,
        4 => u64::from(u32::MAX) - next() as u64,
        _ => 0,
    }
}
