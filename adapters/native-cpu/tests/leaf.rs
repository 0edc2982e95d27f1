//! The shared object, as a loader sees it.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod common;
use common::Dist;
use std::{path::Path, process::Command, ptr::null_mut};
use ur_sys::*;

const SYMBOLS: &str = "LIBUR_ADAPTER_NATIVE_CPU_0.0";

fn said(program: &str, arguments: &[&str], object: &Path) -> String {
    let out = Command::new(program).args(arguments).arg(object).output().unwrap();
    assert!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

type Getter<T> = unsafe extern "C" fn(ur_api_version_t, *mut T) -> ur_result_t;

/// Asks a getter as a loader does: wrongly twice, then rightly. `slots` says which slots are filled.
fn ask<T: Copy>(
    library: &libloading::Library,
    table: &str,
    empty: T,
    slots: impl Fn(&T) -> String,
) {
    let name = format!("urGet{table}ProcAddrTable\0");
    unsafe {
        let get = library.get::<Getter<T>>(name.as_bytes()).unwrap();
        let mut filled = empty;
        let null = get(ur_api_version_t::CURRENT, null_mut());
        assert_eq!(null, ur_result_t::ERROR_INVALID_NULL_POINTER, "{table}");
        let other = get(ur_api_version_t(0x0b), &mut filled);
        assert_eq!(other, ur_result_t::ERROR_UNSUPPORTED_VERSION, "{table}");
        assert!(!slots(&filled).contains("Some"), "{table} was filled for another version");
        assert_eq!(get(ur_api_version_t::CURRENT, &mut filled), ur_result_t::SUCCESS, "{table}");
        assert!(!slots(&filled).contains("None"), "{table} has an empty slot: {}", slots(&filled));
    }
}
macro_rules! ask_all {
    ($library:expr, $($name:literal $table:ident,)*) => {
        let names = [$($name),*];
        $(ask(&$library, $name, $table::EMPTY, |t| format!("{t:?}"));)*
        names
    };
}

fn ask_every_getter(library: &libloading::Library) -> [&'static str; 26] {
    ask_all! { library,
        "Adapter" ur_adapter_dditable_t,
        "BindlessImagesExp" ur_bindless_images_exp_dditable_t,
        "CommandBufferExp" ur_command_buffer_exp_dditable_t,
        "Context" ur_context_dditable_t,
        "DeviceExp" ur_device_exp_dditable_t,
        "Device" ur_device_dditable_t,
        "EnqueueExp" ur_enqueue_exp_dditable_t,
        "Enqueue" ur_enqueue_dditable_t,
        "EventExp" ur_event_exp_dditable_t,
        "Event" ur_event_dditable_t,
        "GraphExp" ur_graph_exp_dditable_t,
        "IPCExp" ur_ipc_exp_dditable_t,
        "Kernel" ur_kernel_dditable_t,
        "Mem" ur_mem_dditable_t,
        "MemoryExportExp" ur_memory_export_exp_dditable_t,
        "PhysicalMem" ur_physical_mem_dditable_t,
        "Platform" ur_platform_dditable_t,
        "ProgramExp" ur_program_exp_dditable_t,
        "Program" ur_program_dditable_t,
        "QueueExp" ur_queue_exp_dditable_t,
        "Queue" ur_queue_dditable_t,
        "Sampler" ur_sampler_dditable_t,
        "USMExp" ur_usm_exp_dditable_t,
        "USM" ur_usm_dditable_t,
        "UsmP2PExp" ur_usm_p2p_exp_dditable_t,
        "VirtualMem" ur_virtual_mem_dditable_t,
    }
}

#[test]
fn the_shared_object_exports_its_getters_and_nothing_else_and_every_one_fills_its_table() {
    let dist = Dist::build("leaf");
    let library = unsafe { libloading::Library::new(dist.object()) }.unwrap();
    let mut expected: Vec<_> = ask_every_getter(&library)
        .iter()
        .map(|table| format!("urGet{table}ProcAddrTable@@{SYMBOLS}"))
        .chain([SYMBOLS.to_string()])
        .collect();
    expected.sort();

    let listed = said("nm", &["-D", "--defined-only", "--with-symbol-versions"], &dist.object());
    let mut names: Vec<_> =
        listed.lines().filter_map(|l| l.split_whitespace().last()).map(String::from).collect();
    names.sort();
    assert_eq!(names, expected);

    let dynamic = said("readelf", &["-d"], &dist.object());
    assert!(dynamic.contains("[libur_adapter_native_cpu.so.0]"), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    for needed in dynamic.lines().filter(|l| l.contains("(NEEDED)")) {
        let known = ["libc.so", "libm.so", "libgcc_s.so", "libdl.so", "libpthread.so", "ld-linux"];
        assert!(
            known.iter().any(|k| needed.contains(k)),
            "needs more than the C library: {needed}"
        );
    }
    let headers = dist.0.join("include/unified-runtime");
    assert!(["ur_api.h", "ur_ddi.h", "ur_print.h"].iter().all(|h| headers.join(h).is_file()));
}
