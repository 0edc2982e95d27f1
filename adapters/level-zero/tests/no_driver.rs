//! A machine without Level Zero, with something else under its name, and with a driver that has no devices: the
//! adapter is there and has no platform.
mod c;
mod common;
use common::World;
use std::{
    path::Path,
    process::Command,
    ptr::{null, null_mut},
};
use ur_sys::{ur_result_t as R, *};

/// This very program once more, with the drivers of one folder only.
fn again(folder: &Path, environment: &[(&str, &str)]) {
    let mut again = Command::new(std::env::current_exe().expect("this test"));
    again.args(["--ignored", "--exact", "the_adapter_has_no_platform", "--nocapture"]);
    again.env("LD_LIBRARY_PATH", folder).envs(environment.iter().copied());
    let out = again.output().expect("it starts");
    let said = [out.stdout, out.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(out.status.success() && said.contains("1 passed"), "{said}");
}
/// Loaded alone under the first name, where a variable gives the devices to the second.
#[test]
fn who_lists_no_adapter_says_which_variable_decides() {
    let mut again = Command::new(std::env::current_exe().expect("this test"));
    again.args(["--ignored", "--exact", "the_first_name_has_no_adapter", "--nocapture"]);
    again.env("UR_LOADER_USE_LEVEL_ZERO_V2", "1").env("UR_LOG_LEVEL_ZERO", "level:info");
    let out = again.env_remove("UR_ADAPTERS_FORCE_LOAD").output().expect("it starts");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    assert_eq!(said.matches("Set UR_LOADER_USE_LEVEL_ZERO_V2=0").count(), 1, "{said}");
}
#[test]
#[ignore = "a process of its own, started by the test above"]
fn the_first_name_has_no_adapter() {
    for _ in 0..2 {
        let (mut count, get) = (7, ur_level_zero::TABLE_V1.adapter.get.unwrap());
        assert_eq!(c::one::Call::call(get, (0, null_mut(), &mut count)), R::SUCCESS);
        assert_eq!(count, 0);
    }
}
/// What each of the processes of the tests below does.
#[test]
#[ignore = "a process of its own, started by the others"]
fn the_adapter_has_no_platform() {
    let (mut adapter, mut count) = (ur_adapter_handle_t::NULL, 7);
    assert_eq!(call!(adapter.get(0, null_mut(), &mut count)), R::SUCCESS);
    assert_eq!(count, 1);
    assert_eq!(call!(adapter.get(1, &mut adapter, null_mut())), R::SUCCESS);
    let mut platforms = 7;
    assert_eq!(call!(platform.get(adapter, 0, null_mut(), &mut platforms)), R::SUCCESS);
    assert_eq!(platforms, 0);
    let (mut backend, size) = (ur_backend_t::UNKNOWN, size_of::<ur_backend_t>());
    let (name, to) = (ur_adapter_info_t::BACKEND, (&raw mut backend).cast());
    assert_eq!(call!(adapter.get_info(adapter, name, size, to, null_mut())), R::SUCCESS);
    assert_eq!(backend, ur_backend_t::LEVEL_ZERO);
    let (mut message, mut code) = (null(), 0);
    let _nothing_to_tell = call!(adapter.get_last_error(adapter, &mut message, &mut code));
    assert_eq!(call!(adapter.release(adapter)), R::SUCCESS);
}
#[test]
fn something_else_under_the_drivers_name_is_no_driver() {
    let folder =
        std::env::temp_dir().join(format!("causeway-ze-no-library-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    // Nothing at all is found only where the machine has none: a file that is no library always is.
    std::fs::write(folder.join("libze_loader.so.1"), "no library").expect("a file");
    again(&folder, &[]);
    std::fs::remove_dir_all(&folder).expect("it is there");
}
#[test]
fn a_driver_that_does_not_start_or_has_no_devices_is_no_platform() {
    if common::is_real() {
        return; // the machine's driver has devices
    }
    let Some(world) = World::new("none", &[]) else { return };
    let folder = world.drivers();
    again(&folder, &[("ZE_SOFTWARE_DEVICES", "0")]);
    // 0x78000001: uninitialized, as a driver says whose hardware is not there.
    again(&folder, &[("ZE_SOFTWARE_FAIL", "zeInit=0x78000001,zeInitDrivers=0x78000001")]);
    // 0x70000001: the device is lost.
    again(&folder, &[("ZE_SOFTWARE_FAIL", "zeDeviceGet=0x70000001")]);
}
