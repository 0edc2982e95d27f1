//! Memory that a C program brings, exports, pitches or copies within a context, and access among
//! peers.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod common;
use common::ur::*;
use std::{
    ffi::c_void,
    fs::File,
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::fs::FileExt,
    },
    ptr::{null, null_mut},
};
use ur_result_t as R;

fn alloc_info<T: Copy + Default>(
    ur: &Ur,
    at: *const c_void,
    name: ur_usm_alloc_info_t,
) -> Outcome<T> {
    ur.value(|n, to, size| call!(usm.get_mem_alloc_info(ur.context, at, name, n, to, size)))
}
fn kind(ur: &Ur, at: *const c_void) -> ur_usm_type_t {
    ur_usm_type_t(alloc_info(ur, at, ur_usm_alloc_info_t::TYPE).unwrap())
}
fn register(ur: &Ur, at: *mut c_void, size: usize) -> R {
    call!(usm_exp.host_alloc_register_exp(ur.context, at, size, null()))
}
fn unregister(ur: &Ur, at: *mut c_void) -> R {
    call!(usm_exp.host_alloc_unregister_exp(ur.context, at))
}

#[test]
fn registered_memory_is_host_memory_until_it_is_unregistered() {
    let ur = Ur::new();
    let mut memory = vec![0_u8; 8192];
    let at: *mut c_void = memory.as_mut_ptr().cast();
    assert_eq!(kind(&ur, at), ur_usm_type_t::UNKNOWN);
    assert_eq!(register(&ur, at, 8192), R::SUCCESS);
    let inside = at.wrapping_byte_add(8191);
    for inside in [at, inside] {
        assert_eq!(kind(&ur, inside), ur_usm_type_t::HOST);
        use ur_usm_alloc_info_t as I;
        assert_eq!(alloc_info::<usize>(&ur, inside, I::BASE_PTR).unwrap(), at.addr());
        assert_eq!(alloc_info::<usize>(&ur, inside, I::SIZE).unwrap(), 8192);
        assert_eq!(alloc_info::<usize>(&ur, inside, I::DEVICE).unwrap(), ur.device.0.addr());
        assert_eq!(alloc_info::<usize>(&ur, inside, I::POOL).unwrap(), 0);
    }
    assert_eq!(kind(&ur, at.wrapping_byte_add(8192)), ur_usm_type_t::UNKNOWN);
    assert_eq!(kind(&Ur::new(), at), ur_usm_type_t::UNKNOWN, "another context's");
    assert_eq!(ur.free(at).unwrap_err().code, R::ERROR_INVALID_MEM_OBJECT);
    assert_eq!(unregister(&ur, at), R::SUCCESS);
    assert_eq!(kind(&ur, at), ur_usm_type_t::UNKNOWN);
}
#[test]
fn registrations_that_overlap_or_name_no_memory_are_refused() {
    let ur = Ur::new();
    let mut memory = vec![0_u8; 4096];
    let at: *mut c_void = memory.as_mut_ptr().cast();
    let part = at.wrapping_byte_add(1000);
    assert_eq!(register(&ur, part, 1000), R::SUCCESS);
    for (start, size) in [(0, 4096), (0, 1001), (1000, 1000), (1500, 10), (1999, 100)] {
        let at = at.wrapping_byte_add(start);
        assert_eq!(register(&ur, at, size), R::ERROR_INVALID_VALUE, "{start}, {size}");
    }
    for (start, size) in [(0, 1000), (2000, 100)] {
        let beside = at.wrapping_byte_add(start);
        assert_eq!(register(&ur, beside, size), R::SUCCESS, "beside it");
        assert_eq!(unregister(&ur, beside), R::SUCCESS);
    }
    assert_eq!(register(&ur, at, 0), R::ERROR_INVALID_VALUE);
    assert_eq!(register(&ur, at, usize::MAX), R::ERROR_INVALID_VALUE);
    assert_eq!(register(&ur, null_mut(), 64), R::ERROR_INVALID_NULL_POINTER);
    let nowhere = std::ptr::without_provenance_mut(4096);
    assert_eq!(register(&ur, nowhere, 64), R::ERROR_INVALID_VALUE);
    let usm = ur.alloc(Usm::Device, 4096).unwrap();
    assert_eq!(register(&ur, usm, 64), R::ERROR_INVALID_VALUE, "USM already");
    for wrong in [at, part.wrapping_byte_add(1), usm] {
        assert_eq!(unregister(&ur, wrong), R::ERROR_INVALID_VALUE);
    }
    assert_eq!(unregister(&Ur::new(), part), R::ERROR_INVALID_VALUE, "in another context");
    let stype = ur_structure_type_t::EXP_USM_HOST_ALLOC_REGISTER_PROPERTIES;
    let flags = ur_exp_usm_host_alloc_register_flags_t(1 << 20);
    let unknown = ur_exp_usm_host_alloc_register_properties_t { stype, pNext: null_mut(), flags };
    let code = call!(usm_exp.host_alloc_register_exp(ur.context, at, 64, &unknown));
    assert_eq!(code, R::ERROR_INVALID_ENUMERATION);
    assert_eq!(unregister(&ur, part), R::SUCCESS);
    assert_eq!(unregister(&ur, part), R::ERROR_INVALID_VALUE);
}
#[test]
fn a_registration_ends_with_its_context() {
    let ur = Ur::new();
    let mut memory = vec![0_u8; 4096];
    let at: *mut c_void = memory.as_mut_ptr().cast();
    let other = ur.new_context();
    let code = call!(usm_exp.host_alloc_register_exp(other, at, 4096, null()));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(register(&ur, at, 4096), R::ERROR_INVALID_VALUE);
    assert_eq!(call!(context.release(other)), R::SUCCESS);
    assert_eq!(register(&ur, at, 4096), R::SUCCESS);
    assert_eq!(unregister(&ur, at), R::SUCCESS);
}
#[test]
fn imported_memory_is_host_memory_until_it_is_released() {
    let ur = Ur::new();
    let mut memory = vec![0_u8; 4096];
    let at: *mut c_void = memory.as_mut_ptr().cast();
    let import = |size| call!(usm_exp.import_exp(ur.context, at, size));
    assert_eq!(import(0), R::ERROR_INVALID_SIZE);
    assert_eq!(import(usize::MAX), R::ERROR_INVALID_SIZE);
    assert_eq!((import(4096), kind(&ur, at)), (R::SUCCESS, ur_usm_type_t::HOST));
    assert_eq!(import(100), R::SUCCESS, "a hint, given again");
    assert_eq!(call!(usm_exp.release_exp(ur.context, at)), R::SUCCESS);
    assert_eq!(kind(&ur, at), ur_usm_type_t::UNKNOWN);
    assert_eq!(call!(usm_exp.release_exp(ur.context, at)), R::SUCCESS);
}
#[test]
fn pitched_memory_has_rows_that_start_where_any_type_can() {
    let ur = Ur::new();
    let none = ur_usm_pool_handle_t::NULL;
    let pitched = |width, height, element| {
        let (mut at, mut pitch) = (null_mut(), 0);
        let code = call!(usm_exp.pitched_alloc_exp(
            ur.context,
            ur.device,
            null(),
            none,
            width,
            height,
            element,
            &mut at,
            &mut pitch
        ));
        ur.check(code).map(|()| (at, pitch))
    };
    for (width, height, element) in [(1, 1, 1), (100, 7, 4), (128, 3, 16), (1000, 5, 12)] {
        let (at, pitch) = pitched(width, height, element).unwrap();
        assert!(pitch >= width && pitch.is_multiple_of(128) && pitch.is_multiple_of(element));
        assert!(at.addr().is_multiple_of(128));
        let size = alloc_info::<usize>(&ur, at, ur_usm_alloc_info_t::SIZE).unwrap();
        assert_eq!(size, pitch * height);
        ur.free(at).unwrap();
    }
    for (width, height) in [(0, 1), (1, 0), (usize::MAX, 1), (1 << 40, 1 << 40), (64, usize::MAX)] {
        let code = pitched(width, height, 4).unwrap_err().code;
        assert_eq!(code, R::ERROR_INVALID_USM_SIZE, "{width} x {height}");
    }
}
#[test]
fn a_copy_within_a_context_is_done_when_it_returns_and_checks_its_ranges() {
    let ur = Ur::new();
    let [from, to] = [Usm::Host, Usm::Device].map(|usm| ur.alloc(usm, 4096).unwrap());
    unsafe { from.cast::<u8>().write_bytes(9, 4096) };
    let copy = |to, from, size| call!(usm_exp.context_memcpy_exp(ur.context, to, from, size));
    assert_eq!(copy(to, from, 4096), R::SUCCESS);
    assert_eq!(unsafe { to.cast::<u8>().add(4095).read() }, 9);
    for wrong in [0, 4097, usize::MAX] {
        assert_eq!(copy(to, from, wrong), R::ERROR_INVALID_SIZE);
    }
    assert_eq!(copy(null_mut(), from, 8), R::ERROR_INVALID_NULL_POINTER);
    assert_eq!(copy(to, null_mut(), 8), R::ERROR_INVALID_NULL_POINTER);
}
#[test]
fn descriptors_of_memory_are_checked_and_their_hints_taken() {
    let ur = Ur::new();
    let none = ur_usm_pool_handle_t::NULL;
    let location = ur_usm_alloc_location_desc_t {
        stype: ur_structure_type_t::USM_ALLOC_LOCATION_DESC,
        pNext: null(),
        location: 3,
    };
    let device = |flags| ur_usm_device_desc_t {
        stype: ur_structure_type_t::USM_DEVICE_DESC,
        pNext: (&raw const location).cast(),
        flags,
    };
    let alloc = |device: &ur_usm_device_desc_t, hints, align| {
        let next = (&raw const *device).cast();
        let stype = ur_structure_type_t::USM_DESC;
        let desc = ur_usm_desc_t { stype, pNext: next, hints, align };
        let mut at = null_mut();
        let (c, d) = (ur.context, ur.device);
        ur.check(call!(usm.device_alloc(c, d, &desc, none, 100, &mut at))).map(|()| at)
    };
    let (good, hints) = (device(ur_usm_device_mem_flags_t::DEVICE_READ_ONLY), Default::default());
    for align in [0, 1, 64, 4096, 2 << 20] {
        let at = alloc(&good, hints, align).unwrap();
        assert!(at.addr().is_multiple_of(align.max(1) as usize));
        ur.free(at).unwrap();
    }
    for align in [3, 12, 4 << 20, u32::MAX] {
        assert_eq!(alloc(&good, hints, align).unwrap_err().code, R::ERROR_INVALID_VALUE);
    }
    let unknown = device(ur_usm_device_mem_flags_t(1 << 30));
    let code = alloc(&unknown, hints, 0).unwrap_err().code;
    assert_eq!(code, R::ERROR_INVALID_ENUMERATION);
    let hints = ur_usm_advice_flags_t(1 << 30);
    assert_eq!(alloc(&good, hints, 0).unwrap_err().code, R::ERROR_INVALID_ENUMERATION);
}
#[test]
fn exported_memory_is_a_descriptor_of_all_of_it() {
    let ur = Ur::new();
    let (c, d, fd) = (ur.context, ur.device, ur_exp_external_mem_type_t::OPAQUE_FD);
    let mut at = null_mut();
    let code = call!(memory_export_exp.alloc_exportable_memory_exp(c, d, 0, 10_000, fd, &mut at));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(kind(&ur, at), ur_usm_type_t::DEVICE);
    unsafe { at.cast::<[u8; 4]>().write(*b"here") };
    let export = |at| {
        let mut number = -1_i32;
        let to = (&raw mut number).cast();
        let code = call!(memory_export_exp.export_memory_handle_exp(c, d, fd, at, to));
        ur.check(code).map(|()| File::from(unsafe { OwnedFd::from_raw_fd(number) }))
    };
    let [one, two] = [export(at).unwrap(), export(at).unwrap()];
    let mut bytes = [0; 4];
    one.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"here");
    drop(one);
    two.write_all_at(b"back", 9_996).unwrap();
    assert_eq!(unsafe { at.cast::<[u8; 4]>().byte_add(9_996).read() }, *b"back");
    assert_eq!(two.metadata().unwrap().len(), 12_288, "whole pages, and nobody else's");

    assert_eq!(export(at.wrapping_byte_add(1)).unwrap_err().code, R::ERROR_INVALID_VALUE);
    let plain = ur.alloc(Usm::Device, 64).unwrap();
    assert_eq!(export(plain).unwrap_err().code, R::ERROR_INVALID_VALUE);
    let free = |at| call!(memory_export_exp.free_exportable_memory_exp(c, d, at));
    assert_eq!(free(plain), R::ERROR_INVALID_VALUE);
    assert_eq!(ur.free(at).unwrap_err().code, R::ERROR_INVALID_MEM_OBJECT);
    assert_eq!(free(at), R::SUCCESS);
    assert_eq!(free(at), R::ERROR_INVALID_VALUE);
    assert_eq!(export(at).unwrap_err().code, R::ERROR_INVALID_VALUE);
    two.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"here", "the descriptor outlives the allocation");
}
#[test]
fn exportable_memory_of_wrong_size_alignment_or_type_is_refused() {
    let ur = Ur::new();
    let fd = ur_exp_external_mem_type_t::OPAQUE_FD;
    let alloc = |align, size, what| {
        let (c, d, mut at) = (ur.context, ur.device, null_mut());
        let code =
            call!(memory_export_exp.alloc_exportable_memory_exp(c, d, align, size, what, &mut at));
        assert!(at.is_null());
        code
    };
    assert_eq!(alloc(0, 0, fd), R::ERROR_INVALID_USM_SIZE);
    assert_eq!(alloc(0, usize::MAX, fd), R::ERROR_UNSUPPORTED_SIZE);
    assert_eq!(alloc(3, 64, fd), R::ERROR_UNSUPPORTED_ALIGNMENT);
    assert_eq!(alloc(1 << 40, 64, fd), R::ERROR_INVALID_VALUE);
    let win32 = ur_exp_external_mem_type_t::WIN32_NT;
    assert_eq!(alloc(0, 64, win32), R::ERROR_UNSUPPORTED_ENUMERATION);
    assert_eq!(alloc(0, 64, ur_exp_external_mem_type_t(99)), R::ERROR_INVALID_ENUMERATION);
}
#[test]
fn a_device_is_its_own_peer() {
    let ur = Ur::new();
    let (d, other) = (ur.device, ur_device_handle_t(ur.context.0));
    for name in
        [ur_exp_peer_info_t::UR_PEER_ACCESS_SUPPORT, ur_exp_peer_info_t::UR_PEER_ATOMICS_SUPPORT]
    {
        let ask =
            |n, to, size| call!(usm_p2p_exp.peer_access_get_info_exp(d, d, name, n, to, size));
        assert_eq!(ur.value::<i32>(ask).unwrap(), 1);
    }
    assert_eq!(call!(usm_p2p_exp.enable_peer_access_exp(d, d)), R::SUCCESS);
    assert_eq!(call!(usm_p2p_exp.disable_peer_access_exp(d, d)), R::SUCCESS);
    assert_eq!(call!(usm_p2p_exp.enable_peer_access_exp(d, other)), R::ERROR_INVALID_DEVICE);
    let unknown = ur_exp_peer_info_t(77);
    let ask = |n, to, size| call!(usm_p2p_exp.peer_access_get_info_exp(d, d, unknown, n, to, size));
    assert_eq!(ur.value::<i32>(ask).unwrap_err().code, R::ERROR_INVALID_ENUMERATION);
}
#[test]
fn prefetches_and_advice_are_checked_and_change_nothing() {
    let ur = Ur::new();
    let queue = ur.new_queue(ur_queue_flags_t::default());
    let at = ur.alloc(Usm::Shared, 4096).unwrap();
    let prefetch = |at: *mut c_void, size: usize, flags: u32| {
        let flags = ur_usm_migration_flags_t(flags);
        call!(enqueue.usm_prefetch(queue, at, size, flags, 0, null(), null_mut()))
    };
    let advise = |at: *mut c_void, size: usize, flags: u32| {
        let flags = ur_usm_advice_flags_t(flags);
        call!(enqueue.usm_advise(queue, at, size, flags, null_mut()))
    };
    let hints: [&dyn Fn(*mut c_void, usize, u32) -> R; 2] = [&prefetch, &advise];
    for hint in hints {
        assert_eq!(hint(at, 4096, 1), R::SUCCESS);
        for wrong in [0, 4097, usize::MAX] {
            assert_eq!(hint(at, wrong, 1), R::ERROR_INVALID_SIZE);
        }
        assert_eq!(hint(null_mut(), 64, 1), R::ERROR_INVALID_NULL_POINTER);
        assert_eq!(hint(at, 64, 1 << 30), R::ERROR_INVALID_ENUMERATION);
    }
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
}
#[test]
fn the_device_says_what_it_can_do_with_memory() {
    let ur = Ur::new();
    use ur_device_info_t as I;
    for name in [
        I::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP,
        I::USM_POOL_SUPPORT,
        I::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP,
        I::USM_P2P_SUPPORT_EXP,
        I::MEMORY_EXPORT_EXPORTABLE_DEVICE_MEM_EXP,
        I::ENQUEUE_NATIVE_COMMAND_SUPPORT_EXP,
        I::USM_CONTEXT_MEMCPY_SUPPORT_EXP,
    ] {
        let ask = |n, to, size| call!(device.get_info(ur.device, name, n, to, size));
        assert_eq!(ur.value::<u8>(ask).unwrap(), 1, "{name:?}");
    }
}
#[test]
fn parts_of_a_device_are_peers_and_have_pools_of_their_own() {
    let ur = Ur::new();
    let property = ur_device_partition_property_t {
        r#type: ur_device_partition_t::EQUALLY,
        value: ur_device_partition_value_t { equally: 1 },
    };
    let properties = ur_device_partition_properties_t {
        stype: ur_structure_type_t::DEVICE_PARTITION_PROPERTIES,
        pNext: null_mut(),
        pProperties: &property,
        PropCount: 1,
    };
    let mut part = ur_device_handle_t::NULL;
    let code = call!(device.partition(ur.device, &properties, 1, &mut part, null_mut()));
    assert_eq!(code, R::SUCCESS);
    for (one, other) in [(part, part), (part, ur.device), (ur.device, part)] {
        let name = ur_exp_peer_info_t::UR_PEER_ACCESS_SUPPORT;
        let ask = |n, to, size| {
            call!(usm_p2p_exp.peer_access_get_info_exp(one, other, name, n, to, size))
        };
        assert_eq!(ur.value::<i32>(ask).unwrap(), 1);
        assert_eq!(call!(usm_p2p_exp.enable_peer_access_exp(one, other)), R::SUCCESS);
        assert_eq!(call!(usm_p2p_exp.disable_peer_access_exp(one, other)), R::SUCCESS);
    }
    let pools = [ur.device, part].map(|device| {
        let mut pool = ur_usm_pool_handle_t::NULL;
        let code = call!(usm_exp.pool_get_default_device_pool_exp(ur.context, device, &mut pool));
        assert_eq!(code, R::SUCCESS);
        pool
    });
    assert_ne!(pools[0], pools[1]);
    let stype = ur_structure_type_t::USM_POOL_DESC;
    let mut desc = ur_usm_pool_desc_t { stype, pNext: null(), flags: Default::default() };
    let mut pool = ur_usm_pool_handle_t::NULL;
    let code = call!(usm_exp.pool_create_exp(ur.context, part, &mut desc, &mut pool));
    assert_eq!(code, R::SUCCESS);
    let mut at = null_mut();
    let alloc = |device, at| call!(usm.device_alloc(ur.context, device, null(), pool, 64, at));
    assert_eq!(alloc(ur.device, &mut at), R::ERROR_INVALID_VALUE, "the pool is another device's");
    assert_eq!(alloc(part, &mut at), R::SUCCESS);
    let device = alloc_info::<usize>(&ur, at, ur_usm_alloc_info_t::DEVICE).unwrap();
    assert_eq!(device, part.0.addr());
    ur.free(at).unwrap();
}
