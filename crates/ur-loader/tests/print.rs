//! The text of every printer equals the reference's: both print the same values, thousands of them.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_transmute_annotations,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
#[path = "print/sample.rs"]
mod sample;

use sample::Maker;
use std::{
    collections::BTreeMap,
    ffi::{c_char, c_void},
    path::{Path, PathBuf},
};
use ur_loader::print::{calls, kind::Record, records, urPrintFunctionParams, values};
use ur_sys::*;

/// A function, the type that it prints, and the address of this crate's function.
type Row = (&'static str, &'static str, usize);

macro_rules! rows {
    ($($name:ident($value:ident: $ty:ty, $($more:tt)*);)*) => {
        fn rows() -> Vec<Row> {
            #[allow(unused_imports)]
            use {calls::*, records::*, values::*};
            vec![$((stringify!($name), stringify!($ty), $name as *const () as usize)),*]
        }
    };
}
ur_loader::print_symbols!(rows);

/// A function that takes a struct of `N` words and a buffer.
#[repr(C)]
#[derive(Clone, Copy)]
struct Words<const N: usize>([u64; N]);
type ByValue<const N: usize> =
    unsafe extern "C" fn(Words<N>, *mut c_char, usize, *mut usize) -> ur_result_t;
type ByNumber = unsafe extern "C" fn(u32, *mut c_char, usize, *mut usize) -> ur_result_t;
type ByPointer = unsafe extern "C" fn(*const c_void, *mut c_char, usize, *mut usize) -> ur_result_t;
type ByFunction =
    unsafe extern "C" fn(u32, *const c_void, *mut c_char, usize, *mut usize) -> ur_result_t;

const ROOM: usize = 1 << 16;
fn text(call: impl FnOnce(*mut c_char, usize, *mut usize) -> ur_result_t) -> (u32, String) {
    let mut buffer = vec![0u8; ROOM];
    let mut size = usize::MAX;
    let result = call(buffer.as_mut_ptr().cast(), ROOM, &mut size);
    let shown = &buffer[..size.saturating_sub(1).min(ROOM)];
    (result.0, String::from_utf8_lossy(shown).into_owned())
}
fn by_value(f: usize, record: &Record, at: *const u8) -> (u32, String) {
    macro_rules! of {
        ($($n:literal)*) => {
            match record.size.div_ceil(8) {
                $($n => text(|b, s, o| unsafe {
                    let f: ByValue<$n> = std::mem::transmute(f);
                    f(at.cast::<Words<$n>>().read(), b, s, o)
                }),)*
                more => panic!("{}: {more} words", record.name),
            }
        };
    }
    of!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20)
}

/// The reference's loader, if it is installed.
fn reference() -> Option<libloading::Library> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = match std::env::var_os("CAUSEWAY_REFERENCE_LOADER") {
        Some(file) => PathBuf::from(file),
        None => root.join("target/sycl/venv/lib/libur_loader.so.0"),
    };
    match file.exists() {
        true => Some(unsafe { libloading::Library::new(&file) }.unwrap()),
        false => {
            let file = file.display();
            eprintln!(
                "skipped: the reference's loader is not there ({file}); set CAUSEWAY_REFERENCE_LOADER to it"
            );
            None
        }
    }
}
fn theirs(library: &libloading::Library, name: &str) -> usize {
    let symbol = unsafe { library.get::<*const ()>(name.as_bytes()) };
    *symbol.unwrap_or_else(|e| panic!("{name}: {e}")) as usize
}

/// Enumerators that the reference does not name, although its own headers do.
const UNNAMED: &[&str] = &["UR_DEVICE_INFO_BFLOAT16", "UR_RESULT_ERROR_INVALID_KERNEL_ARGS"];

/// The differences by function: their number, and the pair with the shortest text.
#[derive(Default)]
struct Differences(BTreeMap<String, (usize, String, String)>);
impl Differences {
    fn compare(&mut self, name: &str, ours: (u32, String), theirs: (u32, String)) {
        if ours != theirs && !UNNAMED.iter().any(|name| ours.1.contains(name)) {
            let entry = self.0.entry(name.into()).or_default();
            entry.0 += 1;
            if entry.0 == 1 || ours.1.len() < entry.1.len() {
                *entry = (entry.0, ours.1, theirs.1);
            }
        }
    }
    fn none(self) {
        let mut all = String::new();
        for (name, (times, ours, theirs)) in &self.0 {
            let same = ours.bytes().zip(theirs.bytes()).take_while(|(o, t)| o == t).count();
            let from =
                |s: &str| s.chars().skip(same.saturating_sub(60)).take(140).collect::<String>();
            all += &format!("{name}, {times} times:\n  {}\n  {}\n", from(ours), from(theirs));
        }
        assert!(self.0.is_empty(), "{} functions differ\n{all}", self.0.len());
    }
}

#[test]
fn every_enumerator_and_flag_prints_as_the_reference_prints_it() {
    let Some(library) = reference() else { return };
    let mut differences = Differences::default();
    for (name, ty, ours) in rows() {
        let is_record = records::RECORDS.iter().any(|r| r.name == ty);
        if is_record || ty.contains('*') || name == "urPrintFunctionParams" {
            continue;
        }
        let (ours, theirs): (ByNumber, ByNumber) =
            unsafe { (std::mem::transmute(ours), std::mem::transmute(theirs(&library, name))) };
        let numbers = (0..700).chain((0..32).map(|b| 1 << b)).chain([0x3000, 0x3001, u32::MAX]);
        for number in numbers.chain(0x0fff_ffe0..0x1000_0020).chain(0x1000..0x4000) {
            let one = text(|b, s, o| unsafe { ours(number, b, s, o) });
            differences.compare(name, one, text(|b, s, o| unsafe { theirs(number, b, s, o) }));
        }
    }
    differences.none();
}

#[test]
fn every_struct_prints_as_the_reference_prints_it() {
    let Some(library) = reference() else { return };
    let mut differences = Differences::default();
    for (name, ty, ours) in rows() {
        let Some(record) = records::RECORDS.iter().find(|r| r.name == ty) else { continue };
        let theirs = theirs(&library, name);
        for seed in 0..200 {
            let mut maker = Maker::new(seed);
            let at = maker.record(record, 0);
            differences.compare(name, by_value(ours, record, at), by_value(theirs, record, at));
        }
    }
    differences.none();
}

#[test]
fn the_parameters_of_every_call_print_as_the_reference_prints_them() {
    let Some(library) = reference() else { return };
    let mut differences = Differences::default();
    let any: ByFunction = unsafe { std::mem::transmute(theirs(&library, "urPrintFunctionParams")) };
    let rows = rows();
    let params: Vec<_> = rows.iter().filter(|(_, ty, _)| ty.contains('*')).collect();
    assert_eq!(params.len(), calls::CALLS.len());
    for ((name, _, ours), call) in params.into_iter().zip(calls::CALLS) {
        let (ours, theirs): (ByPointer, ByPointer) =
            unsafe { (std::mem::transmute(*ours), std::mem::transmute(theirs(&library, name))) };
        for seed in 0..300 {
            let mut maker = Maker::new(seed);
            let at = maker.call(call) as *const c_void;
            let one = text(|b, s, o| unsafe { ours(at, b, s, o) });
            differences.compare(name, one, text(|b, s, o| unsafe { theirs(at, b, s, o) }));
            let one = text(|b, s, o| unsafe {
                urPrintFunctionParams(ur_function_t(call.function), at, b, s, o)
            });
            let other = text(|b, s, o| unsafe { any(call.function, at, b, s, o) });
            differences.compare(&format!("urPrintFunctionParams of {}", call.name), one, other);
        }
    }
    differences.none();
}

#[test]
fn parameters_of_no_call_are_refused_as_the_reference_refuses_them() {
    let Some(library) = reference() else { return };
    let theirs: ByFunction =
        unsafe { std::mem::transmute(theirs(&library, "urPrintFunctionParams")) };
    let ours: ByFunction = unsafe { std::mem::transmute(urPrintFunctionParams as *const ()) };
    let some = (&raw const ours).cast::<c_void>();
    for (function, params) in [(0x7777, some), (0x7777, std::ptr::null()), (1, std::ptr::null())] {
        let code = |f: ByFunction| {
            let mut buffer = [0u8; 64];
            unsafe { f(function, params, buffer.as_mut_ptr().cast(), 64, std::ptr::null_mut()) }
        };
        assert_eq!(code(ours), code(theirs), "{function:#x}, {params:p}");
    }
}

#[test]
fn sizes_and_codes_are_the_references_for_every_buffer() {
    let Some(library) = reference() else { return };
    let (_, _, ours) = rows().into_iter().find(|(n, ..)| *n == "urPrintResult").unwrap();
    let (ours, theirs): (ByNumber, ByNumber) = unsafe {
        (std::mem::transmute(ours), std::mem::transmute(theirs(&library, "urPrintResult")))
    };
    for size in 0..24 {
        for (has_buffer, has_size) in [(true, true), (true, false), (false, true), (false, false)] {
            let ask = |f: ByNumber| {
                let (mut buffer, mut written) = ([0x55_u8; 24], usize::MAX);
                let to = if has_buffer { buffer.as_mut_ptr().cast() } else { std::ptr::null_mut() };
                let out = if has_size { &raw mut written } else { std::ptr::null_mut() };
                let code = unsafe { f(0, to, size, out) };
                // The contents of a buffer that was refused are unspecified.
                (code, written, (code == ur_result_t::SUCCESS).then_some(buffer))
            };
            assert_eq!(ask(ours), ask(theirs), "{size} {has_buffer} {has_size}");
        }
    }
}
