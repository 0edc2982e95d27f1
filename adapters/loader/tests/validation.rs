//! What parameter validation answers, entry by entry and case by case: ours and that of the loader that
//! oneAPI ships are given the same calls, many thousands, over the same adapter, which looks at nothing.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod common;
#[path = "../../../crates/ur-loader/tests/print/sample.rs"]
mod sample;

use common::{Dist, shipped};
use sample::Maker;
use std::{
    collections::BTreeMap,
    ffi::{c_char, c_void},
    path::Path,
    process::Command,
};
use ur_loader::print::{calls, kind::Call};
use ur_sys::*;

/// How many calls of each entry are compared.
const SAMPLES: u64 = 4000;

type Invoke = unsafe fn(&libloading::Library, *const *mut u8) -> ur_result_t;

macro_rules! invokes {
    ($($group:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident(
            $($p:ident: $t:ty),* $(,)?
        ) by $($how:ident)+;)*
    })*) => {
        /// Every entry by its name, and what calls it with parameters that each of so many pointers points at.
        const ENTRIES: &[(&str, Invoke)] = &[$($((stringify!($c), {
            unsafe fn invoke(library: &libloading::Library, params: *const *mut u8) -> ur_result_t {
                unsafe {
                    type Entry = unsafe extern "C" fn($($t),*) -> ur_result_t;
                    let entry = library.get::<Entry>(stringify!($c).as_bytes()).unwrap();
                    let mut next = params;
                    $(
                        let $p = next.read().cast::<$t>().read();
                        next = next.add(1);
                    )*
                    let _all_are_read = next;
                    entry($($p),*)
                }
            }
            invoke as Invoke
        }),)*)*];
    };
}
ur_sys::entry_points!(invokes);

/// An adapter whose entries look at nothing: what is answered otherwise is the loader's own.
const ADAPTER: &str = "#include <stddef.h>\n#include <unified-runtime/ur_ddi.h>\n\
    static ur_result_t nothing(void) { return UR_RESULT_ERROR_ADAPTER_SPECIFIC; }\n\
    static ur_result_t get(uint32_t room, ur_adapter_handle_t *to, uint32_t *count) {\n\
    static int object; if (room && to) *to = (ur_adapter_handle_t)&object; if (count) *count = 1;\n\
    return UR_RESULT_SUCCESS; }\n\
    static void fill(void *table, size_t size) {\n\
    void (**slots)(void) = table;\n\
    for (size_t i = 0; i < size / sizeof *slots; i++) slots[i] = (void (*)(void))nothing; }\n";

fn adapter() -> String {
    let mut source = ADAPTER.to_string();
    macro_rules! getters {
        ($($group:ident $getter:ident $table:ident { $($rest:tt)* })*) => {
            [$((stringify!($getter), stringify!($table)),)*]
        };
    }
    for (getter, table) in ur_sys::entry_points!(getters) {
        let own = if getter == "urGetAdapterProcAddrTable" { " table->pfnGet = get;" } else { "" };
        source += &format!(
            "ur_result_t {getter}(ur_api_version_t v, struct {table} *table) {{ (void)v; fill(table, sizeof *table);{own} return UR_RESULT_SUCCESS; }}\n"
        );
    }
    source
}

/// What an entry answers to one call after another, made of numbers that are the same in each process.
fn codes(library: &libloading::Library, call: &'static Call, invoke: Invoke) -> Vec<u32> {
    let sample = |seed| {
        let mut maker = Maker::new(seed);
        let params = maker.call(call);
        unsafe { invoke(library, params.cast()) }.0
    };
    (0..SAMPLES).map(sample).collect()
}
/// Not a test: the program that calls every entry of one loader, and writes what it answers.
#[test]
#[ignore = "is started by the other test"]
fn program() {
    let file = |name| std::env::var_os(name).unwrap();
    let library = unsafe { libloading::Library::new(file("LOADER")) }.unwrap();
    unsafe {
        let init =
            library.get::<unsafe extern "C" fn(u32, *mut c_void) -> ur_result_t>(b"urLoaderInit");
        assert_eq!(init.unwrap()(0, std::ptr::null_mut()), ur_result_t::SUCCESS);
    }
    let mut said = String::new();
    for call in calls::CALLS {
        let Some((_, invoke)) = ENTRIES.iter().find(|(name, _)| *name == call.name) else {
            continue;
        };
        let codes: Vec<_> = codes(&library, call, *invoke).iter().map(u32::to_string).collect();
        said += &format!("{} {}\n", call.name, codes.join(" "));
        std::fs::write(file("ANSWERS"), &said).unwrap();
    }
}
fn answers(dist: &Dist, loader: &Path) -> BTreeMap<String, Vec<u32>> {
    let (file, adapter) = (dist.0.join("answers"), dist.object("nothing", &adapter()));
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "program", "--ignored"]);
    program.env("LOADER", loader.join("libur_loader.so.0")).env("LD_LIBRARY_PATH", loader);
    program.env("UR_ADAPTERS_FORCE_LOAD", adapter).env("ANSWERS", &file);
    program.env("UR_ENABLE_LAYERS", "UR_LAYER_PARAMETER_VALIDATION");
    program.env("UR_LOG_VALIDATION", "level:quiet").env_remove("ONEAPI_DEVICE_SELECTOR");
    let ran = program.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}: {}\n{said}", loader.display(), ran.status);
    let line = |line: &str| {
        let (name, codes) = line.split_once(' ').unwrap();
        (name.to_string(), codes.split(' ').map(|code| code.parse().unwrap()).collect())
    };
    std::fs::read_to_string(&file).unwrap().lines().map(line).collect()
}

/// What differs for a reason: the beginning of the entries' names, what ours answers and what theirs does
/// (nothing stands for anything), and why.
const EXPLAINED: &[(&str, Option<Code>, Option<Code>, &str)] = &[
    (
        "ur",
        Some(Code::ERROR_INVALID_ENUMERATION),
        None,
        "theirs asks whether a number is above the highest enumerator, and not in every entry and member; ours \
         refuses each that is no enumerator",
    ),
    (
        "urCommandBufferUpdateKernelLaunchExp",
        Some(Code::ERROR_INVALID_SIZE),
        Some(Code::ERROR_INVALID_NULL_HANDLE),
        "theirs reads the first element of a list that is said to be empty",
    ),
    (
        "urIPCGetMemHandleExp",
        Some(Code::ERROR_INVALID_NULL_POINTER),
        None,
        "its headers say that both results must not be null, and it does not look",
    ),
    (
        "ur",
        Some(Code::ERROR_INVALID_WORK_DIMENSION),
        None,
        "its headers say from 1 to 3, and it does not look",
    ),
    (
        "ur",
        Some(Code::ERROR_INVALID_IMAGE_FORMAT_DESCRIPTOR),
        None,
        "its headers name the last type of image that an entry takes, and it takes those behind that too",
    ),
];
type Code = ur_result_t;

#[test]
fn the_same_calls_are_refused_with_the_same_codes() {
    let Some(shipped) = shipped() else { return };
    let dist = Dist::build("validation", &[]);
    let (ours, theirs) = (answers(&dist, &dist.loader()), answers(&dist, &shipped));
    assert!(ours.len() > 230 && ours.keys().eq(theirs.keys()));
    let (mut compared, mut explained, mut differ) = (0, 0, BTreeMap::new());
    for (name, ours) in &ours {
        for (seed, pair) in ours.iter().zip(&theirs[name]).enumerate() {
            let [ours, theirs] = [pair.0, pair.1].map(|code| ur_result_t(*code));
            let fits = |(of, one, other, _): &(&str, Option<Code>, Option<Code>, &str)| {
                let is = |wanted: &Option<Code>, code| wanted.is_none_or(|wanted| wanted == code);
                name.starts_with(of) && is(one, ours) && is(other, theirs)
            };
            compared += 1;
            if ours == theirs {
            } else if EXPLAINED.iter().any(fits) {
                explained += 1;
            } else {
                let told = format!("{name}: ours {ours:?}, theirs {theirs:?}");
                differ.entry(told).or_insert((0, seed)).0 += 1;
            }
        }
    }
    println!("{compared} calls compared, {explained} differ for a reason that is known");
    assert!(differ.is_empty(), "how often, and the first seed: {differ:#?}");
}
