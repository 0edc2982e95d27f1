//! Drivers that are missing, are no drivers, or lie: the adapter is there all the same, and lists no platform of theirs. Drivers of
//! OpenCL 1.2, and what they lack.
#![allow(unsafe_code, reason = "plays the C caller")]
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    ptr::{null, null_mut},
};
use ur_sys::*;

/// Run below, in a process of its own, since drivers are looked for once.
#[test]
#[ignore = "needs a folder of drivers, which the other tests give it"]
fn no_platform_is_listed() {
    platforms(0);
}
/// Run below, as the one above: the platform of the driver that does not lie is listed, and its device can be used as far as it goes.
#[test]
#[ignore = "needs a folder of drivers, which the other tests give it"]
fn one_platform_is_listed() {
    let adapter = platforms(1);
    let (mut platform, mut device) = (ur_platform_handle_t::NULL, ur_device_handle_t::NULL);
    let get = ur_opencl::TABLE.platform.get.unwrap();
    let good = ur_result_t::SUCCESS;
    // SAFETY: a live handle, and room for one.
    assert_eq!(unsafe { get(adapter, 1, &raw mut platform, null_mut()) }, good);
    let get = ur_opencl::TABLE.device.get.unwrap();
    let all = ur_device_type_t::ALL;
    // SAFETY: as above.
    assert_eq!(unsafe { get(platform, all, 1, &raw mut device, null_mut()) }, good);
    let (ask, mut text) = (ur_opencl::TABLE.device.get_info.unwrap(), [0_u64; 512]);
    for name in 0..512 {
        let (name, room) = (ur_device_info_t(name), size_of_val(&text));
        // SAFETY: a live handle, and as much room as is told. Which of these it can tell is its own.
        let _ = unsafe { ask(device, name, room, text.as_mut_ptr().cast(), null_mut()) };
    }
    let (mut host, mut own) = (0, 0);
    let clocks = ur_opencl::TABLE.device.get_global_timestamps.unwrap();
    // SAFETY: a live handle, and two writable words. The device may have no clock.
    let _ = unsafe { clocks(device, &raw mut own, &raw mut host) };
    let (mut context, mut queue) = (ur_context_handle_t::NULL, ur_queue_handle_t::NULL);
    let create = ur_opencl::TABLE.context.create.unwrap();
    // SAFETY: one live handle, and room for one.
    assert_eq!(unsafe { create(1, &raw const device, null(), &raw mut context) }, good);
    let create = ur_opencl::TABLE.queue.create.unwrap();
    // SAFETY: live handles, and room for one.
    assert_eq!(unsafe { create(context, device, null(), &raw mut queue) }, good);
    let (alloc, mut at) = (ur_opencl::TABLE.usm.device_alloc.unwrap(), null_mut());
    // SAFETY: live handles, no pool, and a writable place.
    let code =
        unsafe { alloc(context, device, null(), ur_usm_pool_handle_t::NULL, 64, &raw mut at) };
    assert_eq!(code, ur_result_t::ERROR_UNSUPPORTED_FEATURE);
}
/// The adapter, which has so many platforms.
fn platforms(wanted: u32) -> ur_adapter_handle_t {
    let (mut adapter, mut adapters, mut platforms) = (ur_adapter_handle_t::NULL, 0, 7);
    let get = ur_opencl::TABLE.adapter.get.unwrap();
    // SAFETY: room for one handle, and a writable count.
    let code = unsafe { get(1, &raw mut adapter, &raw mut adapters) };
    assert_eq!((code, adapters), (ur_result_t::SUCCESS, 1));
    let get = ur_opencl::TABLE.platform.get.unwrap();
    // SAFETY: a live handle; no room is promised; the count is writable.
    let code = unsafe { get(adapter, 0, null_mut(), &raw mut platforms) };
    assert_eq!((code, platforms), (ur_result_t::SUCCESS, wanted));
    adapter
}
/// What an ICD loader is told to load, by what it finds in a folder: nothing of it is a driver.
fn lists_nothing_of(name: &str, vendors: &[(&str, &str)]) {
    finds(name, "no_platform_is_listed", |folder| {
        for (file, text) in vendors {
            let text = text.replace("HERE", &folder.display().to_string());
            fs::write(folder.join(file), text).unwrap();
        }
    });
}
/// What is found with the drivers in a folder, by one of the tests above.
fn finds(name: &str, test: &str, fill: impl FnOnce(&Path)) {
    let folder = std::env::temp_dir().join(format!("causeway-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fill(&folder);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--ignored"]);
    child.env("OCL_ICD_VENDORS", &folder).env_remove("OCL_ICD_FILENAMES");
    let out = child.output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let [said, why] = [&out.stdout, &out.stderr].map(|text| String::from_utf8_lossy(text));
    let is_good = out.status.success() && said.contains("1 passed");
    assert!(is_good, "{}: {said}{why}", out.status);
}
#[test]
fn a_folder_without_drivers() {
    lists_nothing_of("none", &[]);
}
#[test]
fn a_driver_that_is_not_there() {
    lists_nothing_of("missing", &[("missing.icd", "HERE/libmissing.so\n")]);
}
#[test]
fn a_driver_that_is_no_library() {
    lists_nothing_of("text", &[("text.icd", "HERE/libtext.so\n"), ("libtext.so", "not ELF\n")]);
}
#[test]
fn a_library_that_is_no_driver() {
    lists_nothing_of("other", &[("other.icd", "libc.so.6\n")]);
}
/// What is found with a driver that lies so, and one that does not. Missing an ICD loader, this is skipped.
fn spares_the_other(lie: &str) {
    // SAFETY: the ICD loader's initialisers; the adapter loads it, too.
    if unsafe { libloading::Library::new("libOpenCL.so.1") }.is_err() {
        println!("skipped: there is no libOpenCL.so.1");
        return;
    }
    finds(lie, "one_platform_is_listed", |folder| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lying_driver.c");
        for (name, lie) in [("a-liar", lie), ("other", "HONEST")] {
            let library: PathBuf = folder.join(format!("lib{name}.so"));
            let mut cc = Command::new("cc");
            cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
            assert!(cc.arg(format!("-D{lie}=1")).status().unwrap().success());
            fs::write(folder.join(format!("{name}.icd")), library.display().to_string()).unwrap();
        }
    });
}
#[test]
fn a_platform_of_opencl_1_1() {
    spares_the_other("OLD");
}
#[test]
fn more_devices_than_there_are() {
    spares_the_other("DEVICES");
}
#[test]
fn an_answer_longer_than_any_memory() {
    spares_the_other("LENGTH");
}
