//! Devices and their parts as a C program has them, on whatever driver of Level Zero there is; without a device, or
//! without parts, the tests say so and are skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "c/spirv.rs"]
mod spirv;

use c::*;
use std::ptr::{null, null_mut};
use ur_sys::{
    ur_device_affinity_domain_flags_t as Domain, ur_device_info_t as Info,
    ur_device_partition_t as Rule, ur_result_t as R, *,
};

fn split(device: ur_device_handle_t, rule: Rule, domain: Domain) -> Result<Vec<usize>, R> {
    let value = ur_device_partition_value_t { affinity_domain: domain };
    let one = ur_device_partition_property_t { r#type: rule, value };
    let stype = ur_structure_type_t::DEVICE_PARTITION_PROPERTIES;
    let rules = ur_device_partition_properties_t {
        stype,
        pNext: null_mut(),
        pProperties: &one,
        PropCount: 1,
    };
    let (mut parts, mut n) = ([ur_device_handle_t::NULL; 16], 0);
    match call!(device.partition(device, &rules, 16, parts.as_mut_ptr(), &mut n)) {
        R::SUCCESS => Ok(parts[..n as usize].iter().map(|one| one.0.expose_provenance()).collect()),
        code => Err(code),
    }
}
fn handle(address: usize) -> ur_device_handle_t {
    ur_device_handle_t(std::ptr::with_exposed_provenance_mut(address))
}
fn info<T: Copy + Default>(device: ur_device_handle_t, name: Info) -> T {
    let mut value = T::default();
    let to = (&raw mut value).cast();
    assert_eq!(call!(device.get_info(device, name, size_of::<T>(), to, null_mut())), R::SUCCESS);
    value
}
/// Runs `set` on a device, in a queue and a program of the context, and looks at what it wrote.
fn runs(context: ur_context_handle_t, program: ur_program_handle_t, device: ur_device_handle_t) {
    let (mut queue, mut kernel) = (ur_queue_handle_t::NULL, ur_kernel_handle_t::NULL);
    assert_eq!(call!(queue.create(context, device, null(), &mut queue)), R::SUCCESS);
    assert_eq!(call!(kernel.create(program, c"set".as_ptr(), &mut kernel)), R::SUCCESS);
    let (mut array, pool, value) = (null_mut(), ur_usm_pool_handle_t::NULL, 7_u32);
    assert_eq!(call!(usm.host_alloc(context, null(), pool, 64, &mut array)), R::SUCCESS);
    let argument = |index, r#type, size, value| ur_exp_kernel_arg_properties_t {
        stype: ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES,
        pNext: null_mut(),
        r#type,
        index,
        size,
        value,
    };
    let value = ur_exp_kernel_arg_value_t { value: (&raw const value).cast() };
    let pointer = ur_exp_kernel_arg_value_t { pointer: array };
    let given = [
        argument(0, ur_exp_kernel_arg_type_t::POINTER, 8, pointer),
        argument(1, ur_exp_kernel_arg_type_t::VALUE, 4, value),
    ];
    let (global, none, at) = ([16_usize], null(), given.as_ptr());
    let global = global.as_ptr();
    let code = call!(enqueue_exp.kernel_launch_with_args_exp(
        queue,
        kernel,
        1,
        none,
        global,
        none,
        2,
        at,
        null(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert_eq!(unsafe { array.cast::<[u32; 16]>().read() }, [7; 16]);
    assert_eq!(call!(usm.free(context, array)), R::SUCCESS);
    assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}
fn program(context: ur_context_handle_t) -> ur_program_handle_t {
    let (words, mut made) = (spirv::set(), ur_program_handle_t::NULL);
    let (at, bytes) = (words.as_ptr().cast(), size_of_val(words.as_slice()));
    assert_eq!(call!(program.create_with_il(context, at, bytes, null(), &mut made)), R::SUCCESS);
    assert_eq!(call!(program.build(context, made, null())), R::SUCCESS);
    made
}

#[test]
fn tiles_and_their_engines_are_devices_that_run_what_was_built_for_the_whole() {
    let Some(zero) = Zero::new() else { return };
    let tiles = match split(zero.device, Rule::BY_AFFINITY_DOMAIN, Domain::NEXT_PARTITIONABLE) {
        Err(code) => {
            assert_eq!(code, R::ERROR_DEVICE_PARTITION_FAILED);
            assert_eq!(info::<u32>(zero.device, Info::PARTITION_MAX_SUB_DEVICES), 0);
            return println!("skipped: this device has no tiles");
        }
        Ok(tiles) => tiles,
    };
    assert_eq!(info::<u32>(zero.device, Info::PARTITION_MAX_SUB_DEVICES), tiles.len() as u32);
    // The same part is always the same object.
    assert_eq!(split(zero.device, Rule::BY_AFFINITY_DOMAIN, Domain::NUMA), Ok(tiles.clone()));
    let program = program(zero.context);
    for tile in tiles {
        let tile = handle(tile);
        assert_eq!(info::<usize>(tile, Info::PARENT_DEVICE), zero.device.0.addr());
        assert_ne!(info::<[u8; 16]>(tile, Info::UUID), info::<[u8; 16]>(zero.device, Info::UUID));
        assert_eq!(info::<u32>(tile, Info::REFERENCE_COUNT), 2, "it was given twice");
        runs(zero.context, program, tile);
        let engines = split(tile, Rule::BY_CSLICE, Domain::default()).unwrap_or_default();
        assert_eq!(info::<u32>(tile, Info::PARTITION_MAX_SUB_DEVICES), engines.len() as u32);
        for engine in engines {
            let engine = handle(engine);
            assert_eq!(info::<usize>(engine, Info::PARENT_DEVICE), tile.0.addr());
            assert_eq!(info::<u32>(engine, Info::MAX_COMPUTE_QUEUE_INDICES), 1);
            runs(zero.context, program, engine);
            assert_eq!(call!(device.release(engine)), R::SUCCESS);
        }
        for _ in 0..2 {
            assert_eq!(call!(device.release(tile)), R::SUCCESS);
        }
    }
    assert_eq!(call!(program.release(program)), R::SUCCESS);
}
#[test]
fn a_program_of_a_context_of_two_devices_is_built_for_both() {
    let (Some(one), Some(two)) = (Zero::new(), Zero::of(1)) else {
        return println!("skipped: it takes 2 devices");
    };
    let (devices, mut context) = ([one.device, two.device], ur_context_handle_t::NULL);
    let code = call!(context.create(2, devices.as_ptr(), null(), &mut context));
    assert_eq!(code, R::SUCCESS);
    let program = program(context);
    let (mut sizes, name) = ([0_usize; 2], ur_program_info_t::BINARY_SIZES);
    let code = call!(program.get_info(program, name, 16, sizes.as_mut_ptr().cast(), null_mut()));
    assert_eq!(code, R::SUCCESS);
    assert!(sizes.iter().all(|bytes| *bytes > 0), "{sizes:?}");
    devices.into_iter().for_each(|device| runs(context, program, device));
    // What was not made in the context is refused.
    let (mut queue, mut kernel) = (one.queue, ur_kernel_handle_t::NULL);
    assert_eq!(call!(kernel.create(program, c"set".as_ptr(), &mut kernel)), R::SUCCESS);
    let (global, none) = ([1_usize], null());
    let global = global.as_ptr();
    let code = call!(enqueue_exp.kernel_launch_with_args_exp(
        queue,
        kernel,
        1,
        none,
        global,
        none,
        0,
        null(),
        null(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!(code, R::ERROR_INVALID_CONTEXT);
    queue = two.queue;
    let code = call!(enqueue.events_wait(queue, 0, null(), null_mut()));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
    assert_eq!(call!(program.release(program)), R::SUCCESS);
    assert_eq!(call!(context.release(context)), R::SUCCESS);
}
#[test]
fn a_devices_native_handle_names_it_and_its_clock_runs() {
    let Some(zero) = Zero::new() else { return };
    let (mut again, adapter) = (ur_device_handle_t::NULL, ur_adapter_handle_t::NULL);
    let mut one = adapter;
    assert_eq!(call!(adapter.get(1, &mut one, null_mut())), R::SUCCESS);
    let native = zero.native_device();
    let code = call!(device.create_with_native_handle(native, one, null(), &mut again));
    assert_eq!((code, again), (R::SUCCESS, zero.device));
    let mut times = [[0_u64; 2]; 2];
    for [device, host] in &mut times {
        let code = call!(device.get_global_timestamps(zero.device, device, host));
        assert_eq!(code, R::SUCCESS);
    }
    assert!(times[1][0] >= times[0][0] && times[1][1] >= times[0][1], "{times:?}");
}

/// A queue of a device waits for what a queue of another one does, in one context, whether they reach each other or not.
#[test]
fn a_command_waits_for_one_on_another_device() {
    let (Some(first), second) = (Zero::new(), Zero::of(1)) else { return };
    let Some(second) = second else {
        println!("skipped: it takes 2 devices");
        return;
    };
    let (devices, mut context) = ([first.device, second.device], ur_context_handle_t::NULL);
    assert_eq!(call!(context.create(2, devices.as_ptr(), null(), &mut context)), R::SUCCESS);
    for batched in [false, true] {
        let stype = ur_structure_type_t::QUEUE_PROPERTIES;
        let flags = match batched {
            true => ur_queue_flags_t::SUBMISSION_BATCHED,
            false => ur_queue_flags_t::SUBMISSION_IMMEDIATE,
        };
        let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
        let [one, other] = devices.map(|device| {
            let mut made = ur_queue_handle_t::NULL;
            assert_eq!(call!(queue.create(context, device, &properties, &mut made)), R::SUCCESS);
            made
        });
        let (mut array, pool) = (null_mut(), ur_usm_pool_handle_t::NULL);
        assert_eq!(call!(usm.host_alloc(context, null(), pool, 1 << 20, &mut array)), R::SUCCESS);
        let fill = |queue, value: u8, waits: &[ur_event_handle_t]| {
            let (mut event, pattern) = (ur_event_handle_t(null_mut()), (&raw const value).cast());
            let (count, list) = (waits.len() as u32, waits.as_ptr());
            let list = if count == 0 { null() } else { list };
            let code =
                call!(enqueue.usm_fill(queue, array, 1, pattern, 1 << 20, count, list, &mut event));
            assert_eq!(code, R::SUCCESS);
            event
        };
        for value in 0..32 {
            let filled = fill(one, value, &[]);
            let again = fill(other, value + 100, &[filled]);
            assert_eq!(call!(event.wait(1, &again)), R::SUCCESS);
            assert_eq!(
                unsafe { array.cast::<u8>().wrapping_add((1 << 20) - 1).read() },
                value + 100
            );
            for event in [filled, again] {
                assert_eq!(call!(event.release(event)), R::SUCCESS);
            }
        }
        assert_eq!(call!(usm.free(context, array)), R::SUCCESS);
        for queue in [one, other] {
            assert_eq!(call!(queue.release(queue)), R::SUCCESS);
        }
    }
    assert_eq!(call!(context.release(context)), R::SUCCESS);
}

/// The devices that a query of one of them names.
fn related(of: ur_device_handle_t, name: ur_device_info_t) -> Vec<ur_device_handle_t> {
    let (mut found, mut bytes) = ([ur_device_handle_t::NULL; 8], 0);
    let size = size_of_val(&found);
    let to = found.as_mut_ptr().cast();
    assert_eq!(call!(device.get_info(of, name, size, to, &mut bytes)), R::SUCCESS);
    found[..bytes / size_of::<ur_device_handle_t>()].to_vec()
}
/// Devices of two parts each, seen by `ZE_FLAT_DEVICE_HIERARCHY`: those that there are, each with its whole.
fn wholes() -> Vec<(Zero, ur_device_handle_t)> {
    let whole = |zero: Zero| {
        let whole = related(zero.device, ur_device_info_t::COMPOSITE_DEVICE)[0];
        (zero, whole)
    };
    (0..).map_while(Zero::of).map(whole).collect()
}
#[test]
fn a_flat_hierarchy_has_the_parts_as_devices_and_no_wholes() {
    let name = "a_flat_hierarchy_has_the_parts_as_devices_and_no_wholes";
    let flat = ("ZE_FLAT_DEVICE_HIERARCHY", "FLAT");
    if !is_inside(name, &[flat, ("ZE_SOFTWARE_SUBDEVICES", "2"), ("ZE_SOFTWARE_DEVICES", "2")]) {
        return;
    }
    let all = wholes();
    assert_eq!(all.len(), 4);
    for (zero, whole) in &all {
        assert!(
            whole.0.is_null()
                && related(zero.device, ur_device_info_t::COMPONENT_DEVICES).is_empty()
        );
        let at = zero.device_memory(4096);
        zero.write(at, &[7u8; 4096]);
        assert_eq!(zero.read::<u8, 4096>(at), [7; 4096]);
        zero.free(at);
    }
}
#[test]
fn a_combined_hierarchy_has_the_parts_as_devices_that_name_their_wholes() {
    let name = "a_combined_hierarchy_has_the_parts_as_devices_that_name_their_wholes";
    let combined = ("ZE_FLAT_DEVICE_HIERARCHY", "COMBINED");
    if !is_inside(name, &[combined, ("ZE_SOFTWARE_SUBDEVICES", "2"), ("ZE_SOFTWARE_DEVICES", "2")])
    {
        return;
    }
    let all = wholes();
    assert_eq!(all.len(), 4);
    for (pair, two) in all.chunks(2).enumerate() {
        let [(one, whole), (other, same)] = two else { panic!("pairs") };
        assert!(!whole.0.is_null() && whole == same, "pair {pair}");
        let parts = related(*whole, ur_device_info_t::COMPONENT_DEVICES);
        assert_eq!(parts, [one.device, other.device]);
        assert!(related(one.device, ur_device_info_t::COMPONENT_DEVICES).is_empty());
    }
    assert_ne!(all[0].1, all[2].1);
}
#[test]
fn a_composite_hierarchy_has_the_wholes_as_devices() {
    let name = "a_composite_hierarchy_has_the_wholes_as_devices";
    let composite = ("ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE");
    if !is_inside(name, &[composite, ("ZE_SOFTWARE_SUBDEVICES", "2"), ("ZE_SOFTWARE_DEVICES", "2")])
    {
        return;
    }
    let all = wholes();
    assert_eq!(all.len(), 2);
    for (zero, whole) in &all {
        assert!(
            whole.0.is_null()
                && related(zero.device, ur_device_info_t::COMPONENT_DEVICES).is_empty()
        );
    }
}

/// What a device answers of its free memory, and of its clock.
fn state(device: ur_device_handle_t) -> [Result<u64, R>; 2] {
    [(Info::GLOBAL_MEM_FREE, 8), (Info::CURRENT_CLOCK_THROTTLE_REASONS, 4)].map(|(name, size)| {
        let mut value = 0_u64;
        match call!(device.get_info(device, name, size, (&raw mut value).cast(), null_mut())) {
            R::SUCCESS => Ok(value),
            code => Err(code),
        }
    })
}
const NO_FREE_MEMORY: &str = "ZE_extension_device_usablemem_size_properties";
#[test]
fn free_memory_and_throttling_are_had_of_sysman() {
    let name = "free_memory_and_throttling_are_had_of_sysman";
    let hidden = ("ZE_SOFTWARE_HIDE", NO_FREE_MEMORY);
    // The last part gets too hot, and has too little current; a flag of a later specification is another reason.
    let slow = ("ZE_SOFTWARE_THROTTLE", "268");
    if !is_inside(name, &[hidden, slow, ("ZE_SOFTWARE_SUBDEVICES", "2")]) {
        return;
    }
    let zero = Zero::new().expect("the software driver's device");
    let [free, reasons] = state(zero.device);
    assert_eq!(reasons, Ok(1 << 1 | 1 << 2 | 1 << 6));
    let at = zero.device_memory(256 << 20);
    let [less, _] = state(zero.device);
    assert!(free.unwrap() >= less.unwrap() + (256 << 20), "{free:?} {less:?}");
    zero.free(at);
    let parts = split(zero.device, Rule::BY_AFFINITY_DOMAIN, Domain::NUMA).unwrap();
    let reasons = parts.iter().map(|part| state(handle(*part))[1]).collect::<Vec<_>>();
    assert_eq!(reasons, [Ok(0), Ok(1 << 1 | 1 << 2 | 1 << 6)]);
}
#[test]
fn without_sysman_nothing_is_made_up() {
    let name = "without_sysman_nothing_is_made_up";
    let hidden = format!("{NO_FREE_MEMORY},zesInit");
    if !is_inside(name, &[("ZE_SOFTWARE_HIDE", hidden.as_str())]) {
        return;
    }
    let zero = Zero::new().expect("the software driver's device");
    assert_eq!(state(zero.device), [Err(R::ERROR_UNSUPPORTED_ENUMERATION); 2]);
}
#[test]
fn a_failure_of_the_driver_is_the_answer_of_one_query_and_of_no_later_one() {
    let name = "a_failure_of_the_driver_is_the_answer_of_one_query_and_of_no_later_one";
    if !is_inside(name, &[("ZE_SOFTWARE_FAIL", "zeDeviceGetImageProperties:1=0x70000003")]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let ask = || {
        let mut size = 0;
        (call!(device.get_info(zero.device, Info::EXTENSIONS, 0, null_mut(), &mut size)), size)
    };
    let (failed, _) = ask();
    assert_eq!(failed, R::ERROR_OUT_OF_DEVICE_MEMORY);
    let (code, first) = ask();
    assert_eq!((code, ask()), (R::SUCCESS, (R::SUCCESS, first)));
}
