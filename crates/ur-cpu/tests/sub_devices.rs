//! Partitioning the device: what the parts are, who owns them, and where they can be used.
mod common;
use common::ur::*;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_device_affinity_domain_flags_t as Domain;
use ur_device_info_t as I;
use ur_device_partition_t as P;
use ur_result_t as R;

#[test]
fn role() {
    common::role();
}

type Rule = (P, u32);
/// The parts that `rules` make of `device`; the code, if it is refused.
fn partition(device: ur_device_handle_t, rules: &[Rule]) -> Result<Vec<ur_device_handle_t>, R> {
    let of = |count| ur_device_partition_value_t { count };
    let rules: Vec<_> = rules
        .iter()
        .map(|&(r#type, n)| ur_device_partition_property_t { r#type, value: of(n) })
        .collect();
    let properties = ur_device_partition_properties_t {
        stype: ur_structure_type_t::DEVICE_PARTITION_PROPERTIES,
        pNext: null_mut(),
        pProperties: rules.as_ptr(),
        PropCount: rules.len(),
    };
    let mut count = 0;
    match call!(device.partition(device, &properties, 0, null_mut(), &mut count)) {
        R::SUCCESS => {}
        code => return Err(code),
    }
    let mut parts = vec![ur_device_handle_t::NULL; count as usize];
    let code = call!(device.partition(device, &properties, count, parts.as_mut_ptr(), null_mut()));
    assert_eq!(code, R::SUCCESS);
    Ok(parts)
}
fn info<T: Copy + Default>(ur: &Ur, device: ur_device_handle_t, name: I) -> T {
    ur.value(|size, to, ret| call!(device.get_info(device, name, size, to, ret))).unwrap()
}
fn list(device: ur_device_handle_t, name: I) -> Vec<u32> {
    let mut bytes = 0;
    assert_eq!(call!(device.get_info(device, name, 0, null_mut(), &mut bytes)), R::SUCCESS);
    let mut words = vec![0_u32; bytes / 4];
    let to = words.as_mut_ptr().cast::<c_void>();
    assert_eq!(call!(device.get_info(device, name, bytes.max(1), to, null_mut())), R::SUCCESS);
    words
}
fn units(ur: &Ur, device: ur_device_handle_t) -> u32 {
    info(ur, device, I::MAX_COMPUTE_UNITS)
}
fn release(devices: impl IntoIterator<Item = ur_device_handle_t>) {
    devices.into_iter().for_each(|d| assert_eq!(call!(device.release(d)), R::SUCCESS));
}

#[test]
fn equal_parts_describe_themselves() {
    let ur = Ur::new();
    let all = units(&ur, ur.device);
    for each in 1..=all {
        let parts = partition(ur.device, &[(P::EQUALLY, each)]).unwrap();
        assert_eq!(parts.len() as u32, all / each);
        let mut uuids = vec![info::<[u8; 16]>(&ur, ur.device, I::UUID)];
        for &part in &parts {
            assert_eq!(units(&ur, part), each);
            assert_eq!(info::<u32>(&ur, part, I::NUM_COMPUTE_UNITS), each);
            assert_eq!(info::<usize>(&ur, part, I::PARENT_DEVICE), ur.device.0.addr());
            assert_eq!(info::<u32>(&ur, part, I::REFERENCE_COUNT), 1);
            assert_eq!(list(part, I::PARTITION_TYPE), [P::EQUALLY.0, each]);
            let most: u32 = info(&ur, part, I::PARTITION_MAX_SUB_DEVICES);
            assert_eq!(most, if each == 1 { 0 } else { each });
            assert_eq!(list(part, I::SUPPORTED_PARTITIONS).is_empty(), each == 1);
            uuids.push(info(&ur, part, I::UUID));
        }
        uuids.sort_unstable();
        uuids.dedup();
        // A single part of everything is a device of its own, too.
        assert_eq!(uuids.len(), parts.len() + 1, "each has an identity of its own");
        release(parts);
    }
    assert!(list(ur.device, I::PARTITION_TYPE).is_empty(), "the root is no part");
}
#[test]
fn counts_make_parts_of_different_sizes_and_a_zero_makes_none() {
    let ur = Ur::new();
    let all = units(&ur, ur.device);
    if all < 2 {
        return;
    }
    let rules = [(P::BY_COUNTS, all - 1), (P::BY_COUNTS, 0), (P::BY_COUNTS, 1)];
    let parts = partition(ur.device, &rules).unwrap();
    assert_eq!(parts.iter().map(|p| units(&ur, *p)).collect::<Vec<_>>(), [all - 1, 1]);
    let noted: Vec<_> = rules.iter().flat_map(|(rule, n)| [rule.0, *n]).collect();
    assert_eq!(list(parts[0], I::PARTITION_TYPE), noted);
    release(parts);
}
#[test]
fn domains_that_are_offered_split_all_processors_and_others_are_refused() {
    let ur = Ur::new();
    let offered = Domain(info::<u32>(&ur, ur.device, I::PARTITION_AFFINITY_DOMAIN));
    let by_domain = list(ur.device, I::SUPPORTED_PARTITIONS).contains(&P::BY_AFFINITY_DOMAIN.0);
    assert_eq!(by_domain, offered.bits() != 0);
    let each = [Domain::NUMA, Domain::L4_CACHE, Domain::L3_CACHE, Domain::L2_CACHE];
    for domain in each.into_iter().chain([Domain::L1_CACHE, Domain::NEXT_PARTITIONABLE]) {
        let outcome = partition(ur.device, &[(P::BY_AFFINITY_DOMAIN, domain.bits())]);
        if !offered.contains(domain) {
            assert_eq!(outcome.unwrap_err(), R::ERROR_DEVICE_PARTITION_FAILED, "{domain:?}");
            continue;
        }
        let parts = outcome.unwrap();
        assert!(parts.len() > 1, "{domain:?}");
        let sum: u32 = parts.iter().map(|part| units(&ur, *part)).sum();
        assert_eq!(sum, units(&ur, ur.device), "{domain:?}");
        let noted = list(parts[0], I::PARTITION_TYPE);
        assert_eq!(noted[0], P::BY_AFFINITY_DOMAIN.0);
        assert_ne!(noted[1], Domain::NEXT_PARTITIONABLE.bits(), "the domain that it was");
        release(parts);
    }
}
#[test]
fn what_cannot_be_split_so_is_refused_with_the_documented_code() {
    let ur = Ur::new();
    let all = units(&ur, ur.device);
    for (rules, code) in [
        (vec![(P::EQUALLY, all + 1)], R::ERROR_DEVICE_PARTITION_FAILED),
        (vec![(P::EQUALLY, u32::MAX)], R::ERROR_DEVICE_PARTITION_FAILED),
        (vec![(P::EQUALLY, 0)], R::ERROR_INVALID_VALUE),
        (vec![(P::BY_COUNTS, all + 1)], R::ERROR_INVALID_DEVICE_PARTITION_COUNT),
        (vec![(P::BY_COUNTS, 1); all as usize + 1], R::ERROR_INVALID_DEVICE_PARTITION_COUNT),
        (vec![(P::BY_COUNTS, u32::MAX); 3], R::ERROR_INVALID_DEVICE_PARTITION_COUNT),
        (vec![(P::BY_COUNTS, 0)], R::ERROR_DEVICE_PARTITION_FAILED),
        (vec![(P::BY_CSLICE, 1)], R::ERROR_INVALID_VALUE),
        (vec![(P::BY_AFFINITY_DOMAIN, 3)], R::ERROR_INVALID_VALUE),
        (vec![(P::BY_AFFINITY_DOMAIN, 1 << 9)], R::ERROR_INVALID_ENUMERATION),
        (vec![(P(1), 1)], R::ERROR_INVALID_ENUMERATION),
        (vec![(P::EQUALLY, 1), (P::BY_COUNTS, 1)], R::ERROR_INVALID_VALUE),
    ] {
        assert_eq!(partition(ur.device, &rules).unwrap_err(), code, "{rules:?}");
        assert!(ur.last_error().0.len() > 10, "{rules:?}");
    }
    let mut part = ur_device_handle_t::NULL;
    let none = call!(device.partition(ur.device, null(), 1, &mut part, null_mut()));
    assert_eq!(none, R::ERROR_INVALID_NULL_POINTER);
    let nowhere = ur_device_partition_properties_t {
        stype: ur_structure_type_t::DEVICE_PARTITION_PROPERTIES,
        pNext: null_mut(),
        pProperties: null(),
        PropCount: 1,
    };
    let none = call!(device.partition(ur.device, &nowhere, 1, &mut part, null_mut()));
    assert_eq!((none, part), (R::ERROR_INVALID_NULL_POINTER, ur_device_handle_t::NULL));
    let null_device = ur_device_handle_t::NULL;
    let none = call!(device.partition(null_device, &nowhere, 1, &mut part, null_mut()));
    assert_eq!(none, R::ERROR_INVALID_NULL_HANDLE);
}
#[test]
fn fewer_parts_are_given_than_there_are_if_there_is_no_room() {
    let ur = Ur::new();
    let value = ur_device_partition_value_t { equally: 1 };
    let rule = ur_device_partition_property_t { r#type: P::EQUALLY, value };
    let properties = ur_device_partition_properties_t {
        stype: ur_structure_type_t::DEVICE_PARTITION_PROPERTIES,
        pNext: null_mut(),
        pProperties: &rule,
        PropCount: 1,
    };
    let mut parts = [ur_device_handle_t::NULL; 2];
    let to = parts.as_mut_ptr();
    let mut count = 0;
    assert_eq!(call!(device.partition(ur.device, &properties, 1, to, &mut count)), R::SUCCESS);
    assert_eq!(count, units(&ur, ur.device));
    assert_eq!(parts[1], ur_device_handle_t::NULL);
    release([parts[0]]);
}
#[test]
fn parts_are_counted_and_the_root_is_not() {
    let ur = Ur::new();
    for _ in 0..3 {
        assert_eq!(call!(device.release(ur.device)), R::SUCCESS);
        assert_eq!(info::<u32>(&ur, ur.device, I::REFERENCE_COUNT), 1);
    }
    assert_eq!(call!(device.retain(ur.device)), R::SUCCESS);
    assert_eq!(info::<u32>(&ur, ur.device, I::REFERENCE_COUNT), 1);
    let Some(part) = ur.a_part() else { return };
    assert_eq!(call!(device.retain(part)), R::SUCCESS);
    assert_eq!(info::<u32>(&ur, part, I::REFERENCE_COUNT), 2);
    release([part, part]);
    assert_eq!(call!(device.release(part)), R::ERROR_INVALID_DEVICE);
    assert_eq!(call!(device.retain(part)), R::ERROR_INVALID_DEVICE);
}
#[test]
fn a_part_can_be_split_again_and_knows_its_parent() {
    let ur = Ur::new();
    if units(&ur, ur.device) < 2 {
        return;
    }
    let [whole] = partition(ur.device, &[(P::BY_COUNTS, 2)]).unwrap()[..] else { panic!("one") };
    let parts = partition(whole, &[(P::EQUALLY, 1)]).unwrap();
    assert_eq!(parts.len(), 2);
    release([whole]); // its parts keep it
    assert_eq!(info::<usize>(&ur, parts[0], I::PARENT_DEVICE), whole.0.addr());
    let alone = partition(parts[0], &[(P::EQUALLY, 2)]);
    assert_eq!(alone.unwrap_err(), R::ERROR_DEVICE_PARTITION_FAILED);
    release(parts);
}
#[test]
fn contexts_take_parts_and_queues_run_on_them() {
    let ur = Ur::new();
    let Some(part) = ur.a_part() else { return };
    let mut of_part = ur_context_handle_t::NULL;
    assert_eq!(call!(context.create(1, &part, null(), &mut of_part)), R::SUCCESS);
    let mut queue = ur_queue_handle_t::NULL;
    // The whole is not in a context that was made for a part, but a part is wherever the whole is.
    let refused = call!(queue.create(of_part, ur.device, null(), &mut queue));
    assert_eq!((refused, queue), (R::ERROR_INVALID_DEVICE, ur_queue_handle_t::NULL));
    for context in [of_part, ur.context] {
        assert_eq!(call!(queue.create(context, part, null(), &mut queue)), R::SUCCESS);
        let info = ur_queue_info_t::DEVICE;
        let device: usize =
            ur.value(|size, to, ret| call!(queue.get_info(queue, info, size, to, ret))).unwrap();
        assert_eq!(device, part.0.addr());
        let (none, mut at) = (ur_usm_pool_handle_t::NULL, null_mut());
        let code = call!(usm.device_alloc(context, part, null(), none, 64, &mut at));
        assert_eq!(code, R::SUCCESS);
        let (from, mut back) = ([7_u8; 64], [0_u8; 64]);
        let (from, to) = (from.as_ptr().cast(), back.as_mut_ptr().cast());
        let (no_events, no_event) = (null(), null_mut());
        let code = call!(enqueue.usm_memcpy(queue, false, at, from, 64, 0, no_events, no_event));
        assert_eq!(code, R::SUCCESS);
        let code = call!(enqueue.usm_memcpy(queue, true, to, at, 64, 0, no_events, no_event));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(back, [7; 64]);
        assert_eq!(call!(usm.free(context, at)), R::SUCCESS);
        assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    }
    release([part]);
    // The context keeps what it was made for.
    let info = ur_context_info_t::DEVICES;
    let device: usize =
        ur.value(|size, to, ret| call!(context.get_info(of_part, info, size, to, ret))).unwrap();
    assert_eq!(device, part.0.addr());
    assert_eq!(call!(context.release(of_part)), R::SUCCESS);
    assert_eq!(call!(device.release(part)), R::ERROR_INVALID_DEVICE);
}
#[test]
fn programs_for_different_parts_are_not_linked_for_either() {
    let ur = Ur::new();
    if units(&ur, ur.device) < 2 {
        println!("skipped: the device has one processor, and no two parts");
        return;
    }
    let each = units(&ur, ur.device) / 2;
    let parts = partition(ur.device, &[(P::EQUALLY, each)]).unwrap();
    let mut context = ur_context_handle_t::NULL;
    assert_eq!(call!(context.create(2, parts.as_ptr(), null(), &mut context)), R::SUCCESS);
    let (table, length) = ([0_usize; 2], 16); // a table of no functions
    let programs = [0, 1].map(|n| {
        let (mut device, mut length, mut made) = (parts[n], length, ur_program_handle_t::NULL);
        let mut at = table.as_ptr().cast::<u8>();
        let (device, length, at) = (&raw mut device, &raw mut length, &raw mut at);
        let code =
            call!(program.create_with_binary(context, 1, device, length, at, null(), &mut made));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(call!(program.compile(context, made, null())), R::SUCCESS);
        made
    });
    let (both, mut linked) = (programs.as_ptr(), ur_program_handle_t::NULL);
    let code = call!(program.link(context, 2, both, null(), &mut linked));
    assert_eq!((code, linked), (R::ERROR_PROGRAM_LINK_FAILURE, ur_program_handle_t::NULL));
    let (mut part, none) = (parts[1], ur_exp_program_flags_t::default());
    let code =
        call!(program_exp.link_exp(context, 1, &mut part, none, 1, both, null(), &mut linked));
    assert_eq!((code, linked), (R::ERROR_INVALID_DEVICE, ur_program_handle_t::NULL));
    assert_eq!(call!(program.link(context, 1, both, null(), &mut linked)), R::SUCCESS);
    let told: u32 = ur
        .value(|size, to, ret| {
            call!(program.get_info(linked, ur_program_info_t::NUM_DEVICES, size, to, ret))
        })
        .unwrap();
    assert_eq!(told, 1, "for the part that it has code for");
    for one in programs.into_iter().chain([linked]) {
        assert_eq!(call!(program.release(one)), R::SUCCESS);
    }
    assert_eq!(call!(context.release(context)), R::SUCCESS);
    release(parts);
}
