//! Memory as a C program has it, on whatever driver of Level Zero there is; without a device the tests say so and are
//! skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "../../cuda/tests/c/memory.rs"]
mod memory_of_any;
#[path = "../../cuda/tests/c/usm.rs"]
mod usm;

use c::*;
use memory_of_any::alloc;
use std::{
    os::fd::{FromRawFd, OwnedFd},
    ptr::{null, null_mut},
};
use ur_sys::{
    ur_bool_t, ur_device_affinity_domain_flags_t, ur_device_handle_t, ur_device_info_t,
    ur_device_partition_properties_t, ur_device_partition_property_t, ur_device_partition_t,
    ur_device_partition_value_t, ur_exp_external_mem_type_t, ur_physical_mem_flags_t,
    ur_physical_mem_handle_t, ur_physical_mem_properties_t, ur_result_t as R, ur_structure_type_t,
    ur_usm_alloc_info_t as Info, ur_virtual_mem_access_flags_t as Access,
};
use usm::*;

#[test]
fn a_part_of_physical_memory_is_mapped_on_its_own() {
    let Some(zero) = Zero::new() else { return };
    let granule = granule(&zero);
    let memory = physical(&zero, 2 * granule);
    let whole = map(&zero, memory, 2 * granule, Access::READ_WRITE);
    zero.write(whole.at.wrapping_byte_add(granule), &numbers(21));
    let (mut at, context, access) = (null_mut(), zero.context, Access::READ_ONLY);
    assert_eq!(call!(virtual_mem.reserve(context, null(), granule, &mut at)), R::SUCCESS);
    let past = call!(virtual_mem.map(context, at, granule, memory, 2 * granule, access));
    assert_eq!(past, R::ERROR_INVALID_VALUE);
    let code = call!(virtual_mem.map(context, at, granule, memory, granule, access));
    assert_eq!(code, R::SUCCESS);
    let twice = call!(virtual_mem.map(context, at, granule, memory, 0, access));
    assert_eq!(twice, R::ERROR_INVALID_VALUE, "something is mapped there");
    assert_eq!(zero.read::<u32, 1024>(at), numbers(21));
    unmap(&zero, Virtual { at, bytes: granule });
    unmap(&zero, whole);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
}

#[test]
fn a_driver_that_maps_physical_memory_from_its_beginning_only_is_not_asked_for_an_offset() {
    if !is_inside(
        "a_driver_that_maps_physical_memory_from_its_beginning_only_is_not_asked_for_an_offset",
        &[("ZE_SOFTWARE_VM", "neo-old")],
    ) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let (granule, context) = (granule(&zero), zero.context);
    let (mut memory, mut at) = (ur_physical_mem_handle_t::NULL, null_mut());
    let create = |flags, to: &mut ur_physical_mem_handle_t| {
        let stype = ur_structure_type_t::PHYSICAL_MEM_PROPERTIES;
        let properties = ur_physical_mem_properties_t { stype, pNext: null_mut(), flags };
        call!(physical_mem.create(context, zero.device, 2 * granule, &properties, to))
    };
    assert_eq!(create(Default::default(), &mut memory), R::SUCCESS);
    let whole = map(&zero, memory, 2 * granule, Access::READ_WRITE);
    zero.write(whole.at.wrapping_byte_add(granule), &numbers(21));
    unmap(&zero, whole);
    assert_eq!(call!(virtual_mem.reserve(context, null(), granule, &mut at)), R::SUCCESS);
    let code = call!(virtual_mem.map(context, at, granule, memory, granule, Access::READ_ONLY));
    assert_eq!(code, R::ERROR_UNSUPPORTED_FEATURE, "and not other bytes than were asked for");
    assert_eq!(call!(virtual_mem.free(context, at, granule)), R::SUCCESS);
    // Nor does it export physical memory, though it has the function.
    let name = ur_device_info_t::IPC_PHYSICAL_MEMORY_SUPPORT_EXP;
    let mut can: ur_bool_t = 1;
    let to = (&raw mut can).cast();
    let asked = call!(device.get_info(zero.device, name, size_of::<ur_bool_t>(), to, null_mut()));
    assert_eq!((asked, can), (R::SUCCESS, 0));
    let mut second = ur_physical_mem_handle_t::NULL;
    let code = create(ur_physical_mem_flags_t::ENABLE_IPC, &mut second);
    assert_eq!(code, R::ERROR_UNSUPPORTED_FEATURE);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
}

#[test]
fn a_driver_with_one_mapping_of_a_physical_memory_shows_what_is_mapped_whatever_its_access_becomes()
{
    let name = "a_driver_with_one_mapping_of_a_physical_memory_shows_what_is_mapped_whatever_its_access_becomes";
    if !is_inside(name, &[("ZE_SOFTWARE_VM", "neo-new")]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let (granule, context) = (granule(&zero), zero.context);
    let memory = physical(&zero, 2 * granule);
    let whole = map(&zero, memory, 2 * granule, Access::READ_WRITE);
    zero.write(whole.at, &numbers(20));
    zero.write(whole.at.wrapping_byte_add(granule), &numbers(21));
    let mut at = null_mut();
    assert_eq!(call!(virtual_mem.reserve(context, null(), granule, &mut at)), R::SUCCESS);
    let second =
        || call!(virtual_mem.map(context, at, granule, memory, granule, Access::READ_WRITE));
    assert_eq!(second(), R::ERROR_UNSUPPORTED_FEATURE, "and it is said why");
    let of_a_part = call!(virtual_mem.set_access(context, whole.at, granule, Access::READ_ONLY));
    assert_eq!(of_a_part, R::ERROR_UNSUPPORTED_FEATURE);
    assert_eq!(zero.read::<u32, 1024>(whole.at), numbers(20));
    unmap(&zero, whole);
    assert_eq!(second(), R::SUCCESS, "the first is no more");
    for access in [Access::READ_ONLY, Access::READ_WRITE] {
        assert_eq!(call!(virtual_mem.set_access(context, at, granule, access)), R::SUCCESS);
        assert_eq!(zero.read::<u32, 1024>(at), numbers(21), "the part that was mapped");
    }
    zero.write(at, &numbers(22));
    assert_eq!(zero.read::<u32, 1024>(at), numbers(22));
    unmap(&zero, Virtual { at, bytes: granule });
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
}

#[test]
fn copies_and_fills_where_nothing_is_mapped_are_refused() {
    let Some(zero) = Zero::new() else { return };
    let hollow = Hollow::new(&zero);
    hollow.refuses_commands();
    hollow.end();
}

#[test]
fn exportable_memory_is_freed_as_such_alone() {
    let Some(zero) = Zero::new() else { return };
    let (context, device, kind) = (zero.context, zero.device, ur_exp_external_mem_type_t::DMA_BUF);
    let (mut at, mut fd) = (null_mut(), -1_i32);
    let to = (&raw mut fd).cast();
    match call!(
        memory_export_exp.alloc_exportable_memory_exp(context, device, 0, 4096, kind, &mut at)
    ) {
        R::ERROR_UNSUPPORTED_ENUMERATION => {
            return println!("skipped: the device exports no memory");
        }
        code => assert_eq!(code, R::SUCCESS),
    }
    let export =
        || call!(memory_export_exp.export_memory_handle_exp(context, device, kind, at, to));
    assert_eq!(export(), R::SUCCESS);
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    assert_eq!(call!(usm.free(context, at)), R::ERROR_INVALID_MEM_OBJECT);
    let free = |at| call!(memory_export_exp.free_exportable_memory_exp(context, device, at));
    let plain = alloc(&zero, 64).unwrap();
    assert_eq!(free(plain), R::ERROR_INVALID_VALUE);
    assert_eq!(call!(usm.free(context, plain)), R::SUCCESS);
    assert_eq!(free(at), R::SUCCESS);
    assert_eq!(free(at), R::ERROR_INVALID_VALUE);
    assert_eq!(export(), R::ERROR_INVALID_VALUE);
}

/// The parts that the driver has of the device; none on most.
fn parts(zero: &Zero) -> Vec<ur_device_handle_t> {
    let property = ur_device_partition_property_t {
        r#type: ur_device_partition_t::BY_AFFINITY_DOMAIN,
        value: ur_device_partition_value_t {
            affinity_domain: ur_device_affinity_domain_flags_t::NEXT_PARTITIONABLE,
        },
    };
    let properties = ur_device_partition_properties_t {
        stype: ur_structure_type_t::DEVICE_PARTITION_PROPERTIES,
        pNext: null_mut(),
        pProperties: &property,
        PropCount: 1,
    };
    let (mut parts, mut count) = ([ur_device_handle_t::NULL; 8], 0);
    let to = parts.as_mut_ptr();
    match call!(device.partition(zero.device, &properties, 8, to, &mut count)) {
        R::SUCCESS => parts[..count as usize].to_vec(),
        _ => vec![],
    }
}
#[test]
fn memory_of_a_part_of_a_device_is_the_parts_and_is_had_in_the_whole_devices_context() {
    let Some(zero) = Zero::new() else { return };
    let parts = parts(&zero);
    if parts.is_empty() {
        println!("skipped: the device has no parts");
        return;
    }
    let mut all = vec![];
    for &part in &parts {
        let mut at = null_mut();
        let code = call!(usm.device_alloc(zero.context, part, null(), NONE, 8192, &mut at));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(info::<usize>(&zero, at, Info::DEVICE), Ok(part.0.addr()));
        zero.write(at, &numbers(all.len() as u32));
        all.push(at);
    }
    // C does not have to keep the parts.
    for part in parts {
        assert_eq!(call!(device.release(part)), R::SUCCESS);
    }
    for (n, at) in all.into_iter().enumerate() {
        assert_eq!(zero.read::<u32, 1024>(at), numbers(n as u32));
        let (mut ticket, mut size, mut opened) = (null_mut(), 0, null_mut());
        let (context, device) = (zero.context, zero.device);
        let got = call!(ipc_exp.get_mem_handle_exp(context, at, &mut ticket, &mut size));
        assert_eq!(got, R::SUCCESS);
        let code = call!(ipc_exp.open_mem_handle_exp(context, device, ticket, size, &mut opened));
        assert_eq!((code, opened), (R::SUCCESS, at));
        assert_eq!(call!(ipc_exp.close_mem_handle_exp(context, opened)), R::SUCCESS);
        assert_eq!(call!(ipc_exp.put_mem_handle_exp(context, ticket)), R::SUCCESS);
        zero.free(at);
    }
}

/// Runs a test of this file again in a process of its own, where the software driver fails as is said. Where there is
/// another driver nothing fails by wish, and the test is skipped.
fn failing(test: &str, wish: &str) -> bool {
    if std::env::var("ZE_SOFTWARE_FAIL").is_ok_and(|set| set == wish) {
        return true;
    }
    if std::env::var("CAUSEWAY_LEVEL_ZERO").is_ok_and(|driver| driver == "real") {
        println!("skipped: a real driver does not fail when it is told to");
        return false;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture"]).env("ZE_SOFTWARE_FAIL", wish);
    let out = again.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    false
}
const NO_MEMORY: &str = "0x70000003";

#[test]
fn what_the_driver_has_no_memory_for_is_asked_for_once_more_when_unused_memory_went_back() {
    let wish = format!("zeMemAllocDevice:2={NO_MEMORY}");
    let test =
        "what_the_driver_has_no_memory_for_is_asked_for_once_more_when_unused_memory_went_back";
    if !failing(test, &wish) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let first = alloc(&zero, 24 << 20).unwrap();
    let second = alloc(&zero, 24 << 20).expect("the third call of the driver's succeeds");
    zero.free(first);
    zero.free(second);
}
#[test]
fn without_memory_an_allocation_fails_and_nothing_is_left_of_it() {
    let wish = format!("zeMemAllocDevice={NO_MEMORY},zeMemAllocHost={NO_MEMORY}");
    if !failing("without_memory_an_allocation_fails_and_nothing_is_left_of_it", &wish) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    for _ in 0..3 {
        assert_eq!(alloc(&zero, 4096), Err(R::ERROR_OUT_OF_DEVICE_MEMORY));
        let mut at = null_mut();
        let host = call!(usm.host_alloc(zero.context, null(), NONE, 4096, &mut at));
        assert_eq!((host, at), (R::ERROR_OUT_OF_HOST_MEMORY, null_mut()));
    }
    let (flags, mut buffer) = (ur_sys::ur_mem_flags_t::READ_WRITE, ur_sys::ur_mem_handle_t::NULL);
    let made = call!(mem.buffer_create(zero.context, flags, 4096, null(), &mut buffer));
    assert_eq!(made, R::ERROR_OUT_OF_RESOURCES);
    let mut at = null_mut();
    let shared = call!(usm.shared_alloc(zero.context, zero.device, null(), NONE, 4096, &mut at));
    assert_eq!(shared, R::SUCCESS, "which is of another kind");
    zero.free(at);
}
#[test]
fn a_mapping_that_the_driver_refuses_can_be_tried_again() {
    let wish = "zeVirtualMemMap:1=0x78000004,zeVirtualMemUnmap:1=0x70000001";
    if !failing("a_mapping_that_the_driver_refuses_can_be_tried_again", wish) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let (bytes, mut at) = (granule(&zero), null_mut());
    let (memory, access) = (physical(&zero, bytes), Access::READ_WRITE);
    assert_eq!(call!(virtual_mem.reserve(zero.context, null(), bytes, &mut at)), R::SUCCESS);
    let map = || call!(virtual_mem.map(zero.context, at, bytes, memory, 0, access));
    assert_ne!(map(), R::SUCCESS);
    assert_eq!(map(), R::SUCCESS);
    zero.write(at, &numbers(5));
    let lost = call!(virtual_mem.unmap(zero.context, at, bytes));
    assert_eq!(lost, R::ERROR_DEVICE_LOST);
    unmap(&zero, Virtual { at, bytes });
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
}
#[test]
fn memory_that_the_driver_does_not_share_stays_what_it_was() {
    let wish = "zeMemGetIpcHandle:1=0x78000003,zePhysicalMemGetProperties:2=0x78000003";
    if !failing("memory_that_the_driver_does_not_share_stays_what_it_was", wish) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    // The first export of physical memory is a trial, by which the driver is asked whether it has any.
    let at = zero.device_memory(4096);
    zero.write(at, &numbers(9));
    let (mut ticket, mut size) = (null_mut(), 0);
    let mut share = || call!(ipc_exp.get_mem_handle_exp(zero.context, at, &mut ticket, &mut size));
    assert_eq!(share(), R::ERROR_UNSUPPORTED_FEATURE);
    assert_eq!(zero.read::<u32, 1024>(at), numbers(9));
    assert_eq!(share(), R::SUCCESS);
    assert_eq!(call!(ipc_exp.put_mem_handle_exp(zero.context, ticket)), R::SUCCESS);
    zero.free(at);
    let memory = physical(&zero, granule(&zero));
    let mut share =
        || call!(ipc_exp.get_phys_mem_handle_exp(zero.context, memory, &mut ticket, &mut size));
    assert_eq!(share(), R::ERROR_UNSUPPORTED_FEATURE);
    assert_eq!(share(), R::SUCCESS);
    assert_eq!(call!(ipc_exp.put_phys_mem_handle_exp(zero.context, ticket)), R::SUCCESS);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
}
