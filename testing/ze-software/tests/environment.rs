//! The environment variables. Each test runs this program again as a process of its own.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod driver;

use driver::World;
use std::{
    process::Command,
    ptr::{null, null_mut},
};
use ze_sys::*;

const INSIDE: &str = "CAUSEWAY_TEST_INSIDE";

/// Runs the test named `name` of this program with these variables. Returns false in that process itself.
fn outside(name: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return false;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", name]).env(INSIDE, "1").envs(variables.iter().copied());
    let out = again.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    true
}

#[test]
fn there_are_as_many_devices_and_parts_as_it_says() {
    let variables = [("ZE_SOFTWARE_DEVICES", "2"), ("ZE_SOFTWARE_SUBDEVICES", "3")];
    if outside("there_are_as_many_devices_and_parts_as_it_says", &variables) {
        return;
    }
    let world = World::new();
    let (mut count, mut parts, mut root) = (0, [null_mut(); 3], null_mut());
    ok!(world.ze, device.pfnGet(world.driver, &mut count, null_mut()));
    assert_eq!(count, 2);
    let mut count = 3;
    ok!(world.ze, device.pfnGetSubDevices(world.device, &mut count, parts.as_mut_ptr()));
    ok!(world.ze, device.pfnGetRootDevice(parts[2], &mut root));
    assert_eq!((count, root), (3, world.device));
    let told = |device| {
        let stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
        let mut told = ze_device_properties_t { stype, ..Default::default() };
        ok!(world.ze, device.pfnGetProperties(device, &mut told));
        told
    };
    let (whole, part) = (told(world.device), told(parts[1]));
    assert_eq!((part.flags & ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE, part.subdeviceId), (2, 1));
    assert_ne!(whole.uuid.id, part.uuid.id);
    assert!(part.numSubslicesPerSlice < whole.numSubslicesPerSlice);
}

#[test]
fn what_is_no_knob_or_cannot_be_read_ends_the_program() {
    let name = "what_is_no_knob_or_cannot_be_read_ends_the_program";
    if std::env::var_os(INSIDE).is_some() {
        World::new();
        return;
    }
    for (variable, text) in [("ZE_SOFTWARE_PEAR", "0"), ("ZE_SOFTWARE_POOL", "2G")] {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", name, "--nocapture"]).env(INSIDE, "1").env(variable, text);
        let out = again.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && said.contains(variable), "{variable}={text}: {said}");
    }
}

#[test]
fn the_call_that_it_names_fails_and_no_other() {
    let variables = [("ZE_SOFTWARE_FAIL", "zeMemAllocDevice:2=0x70000003,zeContextCreate:2=1")];
    if outside("the_call_that_it_names_fails_and_no_other", &variables) {
        return;
    }
    let world = World::new();
    let stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
    let desc = ze_device_mem_alloc_desc_t { stype, ..Default::default() };
    let codes = [1, 2, 3].map(|_| {
        let mut at = null_mut();
        ze!(world.ze, mem.pfnAllocDevice(world.context, &desc, 64, 0, world.device, &mut at))
    });
    assert_eq!(codes, [0, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, 0]);
}

#[test]
fn what_it_hides_is_neither_in_the_tables_nor_found_by_name() {
    let variables = [("ZE_SOFTWARE_HIDE", "zeMemFreeExt"), ("ZE_SOFTWARE_COUNTER_EVENTS", "none")];
    if outside("what_it_hides_is_neither_in_the_tables_nor_found_by_name", &variables) {
        return;
    }
    let world = World::new();
    assert!(world.ze.mem.pfnFreeExt.is_none());
    assert!(world.ze.event.pfnCounterBasedCreate.is_none());
    assert!(world.ze.mem.pfnFree.is_some());
    let mut at = null_mut();
    let name = c"zexCounterBasedEventCreate2".as_ptr();
    let found = ze!(world.ze, driver.pfnGetExtensionFunctionAddress(world.driver, name, &mut at));
    assert_eq!((found, at), (ZE_RESULT_ERROR_INVALID_ARGUMENT, null_mut()));
}

#[test]
fn a_handle_that_only_its_process_opens_shows_no_descriptor() {
    if outside(
        "a_handle_that_only_its_process_opens_shows_no_descriptor",
        &[("ZE_SOFTWARE_IPC", "opaque")],
    ) {
        return;
    }
    let world = World::new();
    let stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
    let desc = ze_device_mem_alloc_desc_t { stype, pNext: null(), ..Default::default() };
    let (mut at, mut there) = (null_mut(), null_mut());
    ok!(world.ze, mem.pfnAllocDevice(world.context, &desc, 64, 0, world.device, &mut at));
    let mut handle = ze_ipc_mem_handle_t::default();
    ok!(world.ze, mem.pfnGetIpcHandle(world.context, at, &mut handle));
    assert_eq!(handle.data[..8], [-1; 8]);
    ok!(world.ze, mem.pfnOpenIpcHandle(world.context, world.device, handle, 0, &mut there));
    ok!(world.ze, mem.pfnCloseIpcHandle(world.context, there));
}

/// Device memory that can be exported, or the memory behind the descriptor `imported`.
fn physical(world: &World, imported: Option<i32>) -> ze_physical_mem_handle_t {
    let flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF;
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC;
    let mut export = ze_external_memory_export_desc_t { stype, pNext: null(), flags };
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD;
    let fd = imported.unwrap_or(-1);
    let mut import = ze_external_memory_import_fd_t { stype, pNext: null(), flags, fd };
    let chain = match imported {
        Some(_) => (&raw mut import).cast(),
        None => (&raw mut export).cast(),
    };
    let stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC;
    let mut desc = ze_physical_mem_desc_t { stype, pNext: chain, flags: 1, size: 64 << 10 };
    let mut made = null_mut();
    ok!(world.ze, physical.pfnCreate(world.context, world.device, &mut desc, &mut made));
    made
}
#[test]
fn descriptors_of_imports_are_the_drivers_and_who_closes_one_as_well_ends() {
    for close in ["never", "before", "after"] {
        if let Ok(close) = std::env::var(INSIDE) {
            return import_and_close(&close);
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        let name = "descriptors_of_imports_are_the_drivers_and_who_closes_one_as_well_ends";
        again.args(["--exact", name, "--nocapture"]).env(INSIDE, close);
        let out = again.env("ZE_SOFTWARE_IMPORT_FD", "owned").output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.success(), close == "never", "{close}: {said}");
        assert_eq!(said.contains("the caller closed it"), close != "never", "{close}: {said}");
    }
}
fn import_and_close(close: &str) {
    let world = World::new();
    let first = physical(&world, None);
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD;
    let flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF;
    let mut wanted = ze_external_memory_export_fd_t { stype, pNext: null(), flags, fd: -1 };
    let stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES;
    let chain = (&raw mut wanted).cast();
    let mut told = ze_physical_mem_properties_t { stype, pNext: chain, ..Default::default() };
    ok!(world.ze, physical.pfnGetProperties(world.context, first, &mut told));
    let spare = unsafe { libc::dup(wanted.fd) };
    let second = physical(&world, Some(wanted.fd));
    if close == "before" {
        unsafe { libc::close(wanted.fd) };
    }
    ok!(world.ze, physical.pfnDestroy(world.context, second));
    if close == "after" {
        unsafe { libc::close(wanted.fd) };
    }
    let third = physical(&world, Some(spare));
    ok!(world.ze, physical.pfnDestroy(world.context, third));
}

#[test]
fn who_synchronizes_a_list_while_another_thread_appends_to_it_ends() {
    let name = "who_synchronizes_a_list_while_another_thread_appends_to_it_ends";
    let Ok(way) = std::env::var(INSIDE) else {
        for (check, ends) in [("0", false), ("1", true)] {
            let mut again = Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", name, "--nocapture"]).env(INSIDE, check);
            let out = again.env("ZE_SOFTWARE_CHECK_THREADS", check).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(said.contains("a command list while another one uses it"), ends, "{said}");
            assert_eq!(out.status.success(), !ends, "{said}");
        }
        return;
    };
    let world = World::new();
    let list = world.immediate(ZE_COMMAND_QUEUE_FLAG_IN_ORDER).expose_provenance();
    let list = || std::ptr::with_exposed_provenance_mut::<_ze_command_list_handle_t>(list);
    // The tables are the same for every `World`; each thread makes its own.
    let [append, synchronize] = [true, false].map(|appends| {
        let ze = World::new().ze;
        move |list: ze_command_list_handle_t| match appends {
            true => ok!(ze, list.pfnAppendBarrier(list, null_mut(), 0, null_mut())),
            false => drop(ze!(ze, list.pfnHostSynchronize(list, 0))),
        }
    });
    let rounds = if way == "1" { u32::MAX } else { 1000 };
    std::thread::scope(|scope| {
        scope.spawn(move || (0..rounds).for_each(|_| append(list())));
        scope.spawn(move || (0..rounds).for_each(|_| synchronize(list())));
    });
}

/// Memory made in the given way, to which commands wrote 8 bytes.
fn filled(world: &World, way: &str) -> *const u64 {
    let stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
    let desc = ze_device_mem_alloc_desc_t { stype, ..Default::default() };
    let stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
    let host = ze_host_mem_alloc_desc_t { stype, ..Default::default() };
    let (ze, context, device, size) = (&world.ze, world.context, world.device, 64 << 10);
    let mut at = null_mut();
    match way {
        "shared" => ok!(ze, mem.pfnAllocShared(context, &desc, &host, size, 0, device, &mut at)),
        "host" => ok!(ze, mem.pfnAllocHost(context, &host, size, 0, &mut at)),
        "mapped" | "mapped host" => {
            let flags = if way == "mapped" { 1 } else { ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST };
            let stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC;
            let mut desc = ze_physical_mem_desc_t { stype, pNext: null_mut(), flags, size };
            let (mut made, access) = (null_mut(), ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE);
            ok!(ze, physical.pfnCreate(context, device, &mut desc, &mut made));
            ok!(ze, space.pfnReserve(context, null(), size, &mut at));
            ok!(ze, space.pfnMap(context, at, size, made, 0, access));
        }
        _ => ok!(ze, mem.pfnAllocDevice(context, &desc, size, 0, device, &mut at)),
    }
    if way == "opened" {
        let mut handle = ze_ipc_mem_handle_t::default();
        ok!(ze, mem.pfnGetIpcHandle(context, at, &mut handle));
        ok!(ze, mem.pfnOpenIpcHandle(context, device, handle, 0, &mut at));
    }
    let (number, mut back) = (7_u64, 0);
    let list = world.immediate(ZE_COMMAND_QUEUE_FLAG_IN_ORDER);
    world.copy(list, (at.cast(), &number), driver::NONE, &mut []);
    world.copy(list, (&mut back, at.cast()), driver::NONE, &mut []);
    world.finish(list);
    assert_eq!(back, 7, "{way}");
    at.cast()
}
#[test]
fn a_host_that_touches_memory_of_a_device_ends() {
    use std::os::unix::process::ExitStatusExt as _;
    let name = "a_host_that_touches_memory_of_a_device_ends";
    if let Ok(way) = std::env::var(INSIDE) {
        let at = filled(&World::new(), &way);
        eprintln!("{way}: commands reach it");
        assert_eq!(unsafe { at.read_volatile() }, 7);
        return;
    }
    for (way, ends) in [
        ("device", true),
        ("opened", true),
        ("mapped", true),
        ("mapped host", false),
        ("shared", false),
        ("host", false),
    ] {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", name, "--nocapture"]).env(INSIDE, way);
        let out = again.env("ZE_SOFTWARE_HOST_FAULT", "1").output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains("commands reach it"), "{way}: {said}");
        assert_eq!(out.status.signal(), ends.then_some(libc::SIGSEGV), "{way}: {said}");
        assert_eq!(out.status.success(), !ends, "{way}: {said}");
    }
}
