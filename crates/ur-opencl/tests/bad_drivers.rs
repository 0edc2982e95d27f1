//! Drivers that are missing, or no drivers: the adapter is there all the same, and lists no platform of theirs.
#![allow(unsafe_code, reason = "plays the C caller")]
use std::{fs, path::PathBuf, process::Command, ptr::null_mut};
use ur_sys::*;

/// Run below, in a process of its own, since drivers are looked for once.
#[test]
#[ignore = "needs a folder of drivers, which the other tests give it"]
fn no_platform_is_listed() {
    let (mut adapter, mut adapters, mut platforms) = (ur_adapter_handle_t::NULL, 0, 7);
    let get = ur_opencl::TABLE.adapter.get.unwrap();
    // SAFETY: room for one handle, and a writable count.
    let code = unsafe { get(1, &raw mut adapter, &raw mut adapters) };
    assert_eq!((code, adapters), (ur_result_t::SUCCESS, 1));
    let get = ur_opencl::TABLE.platform.get.unwrap();
    // SAFETY: a live handle; no room is promised; the count is writable.
    let code = unsafe { get(adapter, 0, null_mut(), &raw mut platforms) };
    assert_eq!((code, platforms), (ur_result_t::SUCCESS, 0));
}
/// What an ICD loader is told to load, by what it finds in a folder: nothing of it is a driver.
fn lists_nothing_of(name: &str, vendors: &[(&str, &str)]) {
    let folder = std::env::temp_dir().join(format!("causeway-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let at = |file: &str| -> PathBuf { folder.join(file) };
    for (file, text) in vendors {
        fs::write(at(file), text.replace("HERE", &folder.display().to_string())).unwrap();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "no_platform_is_listed", "--ignored"]);
    child.env("OCL_ICD_VENDORS", &folder).env_remove("OCL_ICD_FILENAMES");
    let out = child.output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.contains("1 passed"), "{}: {said}", out.status);
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
