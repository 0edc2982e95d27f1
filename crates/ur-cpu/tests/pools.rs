//! Pools of USM, as a C program has them: limits, what is told of them, the pools of a device.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod common;
use common::ur::*;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_result_t as R;
use ur_usm_pool_info_t as I;

const NONE: ur_usm_pool_handle_t = ur_usm_pool_handle_t::NULL;
const MIB: usize = 1 << 20;

fn desc(
    flags: ur_usm_pool_flags_t,
    limits: Option<&ur_usm_pool_limits_desc_t>,
) -> ur_usm_pool_desc_t {
    let next = limits.map_or(null(), |limits| (&raw const *limits).cast());
    ur_usm_pool_desc_t { stype: ur_structure_type_t::USM_POOL_DESC, pNext: next, flags }
}
fn pool(
    ur: &Ur,
    flags: ur_usm_pool_flags_t,
    limits: Option<(usize, usize)>,
) -> ur_usm_pool_handle_t {
    let limits = limits.map(|(poolable, least)| ur_usm_pool_limits_desc_t {
        stype: ur_structure_type_t::USM_POOL_LIMITS_DESC,
        pNext: null(),
        maxPoolableSize: poolable,
        minDriverAllocSize: least,
    });
    let (mut pool, mut desc) = (NONE, desc(flags, limits.as_ref()));
    assert_eq!(call!(usm.pool_create(ur.context, &mut desc, &mut pool)), R::SUCCESS);
    pool
}
fn plain(ur: &Ur) -> ur_usm_pool_handle_t {
    pool(ur, ur_usm_pool_flags_t::default(), None)
}
fn alloc(ur: &Ur, pool: ur_usm_pool_handle_t, size: usize) -> Outcome<*mut c_void> {
    let mut at = null_mut();
    ur.check(call!(usm.device_alloc(ur.context, ur.device, null(), pool, size, &mut at)))?;
    Ok(at)
}
fn host_alloc(ur: &Ur, pool: ur_usm_pool_handle_t, size: usize) -> Outcome<*mut c_void> {
    let mut at = null_mut();
    ur.check(call!(usm.host_alloc(ur.context, null(), pool, size, &mut at)))?;
    Ok(at)
}
fn size(ur: &Ur, pool: ur_usm_pool_handle_t, name: I) -> usize {
    let (mut other, mut written) = (0_usize, 0_usize);
    let to = (&raw mut other).cast();
    assert_eq!(call!(usm_exp.pool_get_info_exp(pool, name, to, &mut written)), R::SUCCESS);
    let one = ur.value(|n, to, size| call!(usm.pool_get_info(pool, name, n, to, size))).unwrap();
    assert_eq!((one, written), (other, 8), "both entries say the same");
    one
}
fn set(pool: ur_usm_pool_handle_t, name: I, value: usize) -> R {
    call!(usm_exp.pool_set_info_exp(pool, name, (&raw const value).cast_mut().cast(), 8))
}

#[test]
fn sizes_and_high_marks_are_those_of_all_kinds_together() {
    let ur = Ur::new();
    let pool = plain(&ur);
    let sizes = |ur: &Ur| {
        [I::USED_CURRENT_EXP, I::USED_HIGH_EXP, I::RESERVED_CURRENT_EXP, I::RESERVED_HIGH_EXP]
            .map(|name| size(ur, pool, name))
    };
    assert_eq!(sizes(&ur), [0; 4]);
    let device = alloc(&ur, pool, 3 * MIB).unwrap();
    assert_eq!(sizes(&ur), [3 * MIB; 4]);
    ur.free(device).unwrap();
    assert_eq!(sizes(&ur), [0, 3 * MIB, 0, 3 * MIB], "large blocks go back at once");
    // The peaks were never there at the same time.
    let host = host_alloc(&ur, pool, 2 * MIB).unwrap();
    assert_eq!(sizes(&ur), [2 * MIB, 3 * MIB, 2 * MIB, 3 * MIB]);
    let small = alloc(&ur, pool, 100).unwrap();
    assert_eq!(size(&ur, pool, I::USED_CURRENT_EXP), 2 * MIB + 128);
    assert_eq!(size(&ur, pool, I::RESERVED_CURRENT_EXP), 4 * MIB);
    [host, small].into_iter().for_each(|at| ur.free(at).unwrap());
    assert_eq!(sizes(&ur), [0, 3 * MIB, 2 * MIB, 4 * MIB]);

    assert_eq!(set(pool, I::USED_HIGH_EXP, 0), R::SUCCESS);
    assert_eq!(set(pool, I::RESERVED_HIGH_EXP, 0), R::SUCCESS);
    assert_eq!(sizes(&ur), [0, 0, 2 * MIB, 2 * MIB]);
    assert_eq!(set(pool, I::USED_HIGH_EXP, 7), R::ERROR_INVALID_VALUE);
}
#[test]
fn the_answer_without_a_size_needs_a_place_and_has_the_type_of_the_property() {
    let ur = Ur::new();
    let pool = plain(&ur);
    let (mut count, mut written) = (7_u32, 0_usize);
    let to = (&raw mut count).cast();
    let get = |name, to, size| call!(usm_exp.pool_get_info_exp(pool, name, to, size));
    assert_eq!(get(I::REFERENCE_COUNT, to, &mut written), R::SUCCESS);
    assert_eq!((count, written), (1, 4));
    let mut context = 0_usize;
    assert_eq!(get(I::CONTEXT, (&raw mut context).cast(), &mut written), R::SUCCESS);
    assert_eq!((context, written), (ur.context.0.addr(), 8));
    let nowhere = get(I::CONTEXT, null_mut(), null_mut());
    assert_eq!(nowhere, R::ERROR_INVALID_NULL_POINTER);
}
#[test]
fn a_trim_and_a_threshold_give_unused_memory_back() {
    let ur = Ur::new();
    let pool = plain(&ur);
    let trim = |keep| call!(usm_exp.pool_trim_to_exp(ur.context, ur.device, pool, keep));
    let reserved = || size(&ur, pool, I::RESERVED_CURRENT_EXP);
    let both = [alloc(&ur, pool, 64).unwrap(), host_alloc(&ur, pool, 64).unwrap()];
    assert_eq!(reserved(), 4 * MIB);
    assert_eq!(trim(0), R::SUCCESS);
    assert_eq!(reserved(), 4 * MIB, "what is used stays");
    both.into_iter().for_each(|at| ur.free(at).unwrap());
    assert_eq!(trim(4 * MIB), R::SUCCESS);
    assert_eq!(reserved(), 4 * MIB);
    assert_eq!(trim(2 * MIB), R::SUCCESS);
    assert_eq!(reserved(), 2 * MIB);
    assert_eq!(set(pool, I::RELEASE_THRESHOLD_EXP, 0), R::SUCCESS);
    assert_eq!((reserved(), size(&ur, pool, I::RELEASE_THRESHOLD_EXP)), (0, 0));
}
#[test]
fn limits_decide_what_is_pooled_and_how_much_is_asked_for() {
    let ur = Ur::new();
    let pool = pool(&ur, ur_usm_pool_flags_t::default(), Some((1000, 64 << 10)));
    let small = alloc(&ur, pool, 1000).unwrap();
    assert_eq!(size(&ur, pool, I::RESERVED_CURRENT_EXP), 64 << 10);
    let large = alloc(&ur, pool, 8192).unwrap();
    assert_eq!(size(&ur, pool, I::RESERVED_CURRENT_EXP), (64 << 10) + 8192);
    ur.free(large).unwrap();
    assert_eq!(size(&ur, pool, I::RESERVED_CURRENT_EXP), 64 << 10);
    ur.free(small).unwrap();
}
#[test]
fn a_maximum_holds_for_all_kinds_together_and_unused_memory_makes_room() {
    let ur = Ur::new();
    let pool = plain(&ur);
    assert_eq!(set(pool, I::MAXIMUM_SIZE_EXP, 4 * MIB), R::SUCCESS);
    assert_eq!(size(&ur, pool, I::MAXIMUM_SIZE_EXP), 4 * MIB);
    let first = alloc(&ur, pool, 64).unwrap();
    let second = host_alloc(&ur, pool, 64).unwrap();
    assert_eq!(alloc(&ur, pool, 2 * MIB).unwrap_err().code, R::ERROR_OUT_OF_RESOURCES);
    ur.free(second).unwrap();
    let large = alloc(&ur, pool, 2 * MIB).unwrap();
    [first, large].into_iter().for_each(|at| ur.free(at).unwrap());
    assert_eq!(set(pool, I::MAXIMUM_SIZE_EXP, 0), R::SUCCESS);
    assert!(size(&ur, pool, I::MAXIMUM_SIZE_EXP) > 1 << 30, "0 is no maximum");
}
#[test]
fn blocks_of_a_zeroing_pool_are_zero_however_often_they_were_used() {
    let ur = Ur::new();
    let pool = pool(&ur, ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK, None);
    for size in [1, 100, 5000, 3 * MIB] {
        for _ in 0..3 {
            for take in [alloc, host_alloc] {
                let at = take(&ur, pool, size).unwrap();
                let bytes = unsafe { std::slice::from_raw_parts_mut(at.cast::<u8>(), size) };
                assert!(bytes.iter().all(|&byte| byte == 0), "{size}");
                bytes.fill(0xff);
                ur.free(at).unwrap();
            }
        }
    }
}
#[test]
fn a_device_has_a_default_pool_and_uses_the_one_that_is_set() {
    let ur = Ur::new();
    let (c, d) = (ur.context, ur.device);
    let get = |which: fn(&Ur, *mut ur_usm_pool_handle_t) -> R| {
        let mut pool = NONE;
        assert_eq!(which(&ur, &mut pool), R::SUCCESS);
        pool
    };
    let default =
        || get(|ur, to| call!(usm_exp.pool_get_default_device_pool_exp(ur.context, ur.device, to)));
    let current =
        || get(|ur, to| call!(usm_exp.pool_get_device_pool_exp(ur.context, ur.device, to)));
    let first = default();
    assert_eq!((default(), current()), (first, first));
    let own = plain(&ur);
    assert_eq!(call!(usm_exp.pool_set_device_pool_exp(c, d, own)), R::SUCCESS);
    assert_eq!((default(), current()), (first, own));
    // Each `current` gave one reference more: it goes when all are back.
    assert_eq!(call!(usm.pool_release(own)), R::SUCCESS);
    assert_eq!(current(), own);
    assert_eq!(call!(usm.pool_release(own)), R::SUCCESS);
    assert_eq!(call!(usm_exp.pool_destroy_exp(c, d, own)), R::SUCCESS);
    assert_eq!(current(), first, "the pool that was set is gone");
    assert_eq!(call!(usm_exp.pool_destroy_exp(c, d, first)), R::ERROR_INVALID_VALUE);
    let context: usize =
        ur.value(|n, to, size| call!(usm.pool_get_info(first, I::CONTEXT, n, to, size))).unwrap();
    assert_eq!(context, c.0.addr());
    let at = alloc(&ur, first, 64).unwrap();
    ur.free(at).unwrap();
}
#[test]
fn a_device_pool_goes_with_its_context() {
    let ur = Ur::new();
    let context = ur.new_context();
    let mut pool = NONE;
    let code = call!(usm_exp.pool_get_default_device_pool_exp(context, ur.device, &mut pool));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(call!(usm.pool_release(pool)), R::SUCCESS);
    assert_eq!(call!(context.release(context)), R::SUCCESS);
    assert_eq!(call!(usm.pool_retain(pool)), R::ERROR_INVALID_VALUE);
}
#[test]
fn a_pool_is_refused_where_it_does_not_belong() {
    let (ur, other) = (Ur::new(), Ur::new());
    let (mine, theirs) = (plain(&ur), plain(&other));
    let (c, d) = (ur.context, ur.device);
    assert_eq!(alloc(&ur, theirs, 64).unwrap_err().code, R::ERROR_INVALID_VALUE);
    assert_eq!(call!(usm_exp.pool_trim_to_exp(c, d, theirs, 0)), R::ERROR_INVALID_VALUE);
    assert_eq!(call!(usm_exp.pool_set_device_pool_exp(c, d, theirs)), R::ERROR_INVALID_VALUE);
    assert_eq!(call!(usm_exp.pool_destroy_exp(c, d, theirs)), R::ERROR_INVALID_VALUE);
    for read_only in [I::RESERVED_CURRENT_EXP, I::USED_CURRENT_EXP, I::CONTEXT, I::REFERENCE_COUNT]
    {
        assert_eq!(set(mine, read_only, 0), R::ERROR_UNSUPPORTED_ENUMERATION);
    }
    let number = 0_usize;
    let value = (&raw const number).cast_mut().cast();
    let code = call!(usm_exp.pool_set_info_exp(mine, I::RELEASE_THRESHOLD_EXP, value, 4));
    assert_eq!(code, R::ERROR_INVALID_SIZE);
    let mut unknown = desc(ur_usm_pool_flags_t::default(), None);
    unknown.flags = ur_usm_pool_flags_t(1 << 30);
    let mut pool = NONE;
    let code = call!(usm.pool_create(c, &mut unknown, &mut pool));
    assert_eq!((code, pool), (R::ERROR_INVALID_ENUMERATION, NONE));
}
#[test]
fn a_destroyed_pool_keeps_its_blocks_until_they_are_freed() {
    let ur = Ur::new();
    let (mut pool, mut desc) = (NONE, desc(ur_usm_pool_flags_t::default(), None));
    let code = call!(usm_exp.pool_create_exp(ur.context, ur.device, &mut desc, &mut pool));
    assert_eq!(code, R::SUCCESS);
    let at = alloc(&ur, pool, 1 << 16).unwrap();
    assert_eq!(call!(usm_exp.pool_destroy_exp(ur.context, ur.device, pool)), R::SUCCESS);
    unsafe { at.cast::<u8>().write_bytes(1, 1 << 16) };
    ur.free(at).unwrap();
}
#[test]
fn threads_that_share_a_pool_never_exceed_its_maximum_nor_confuse_its_sizes() {
    struct Shared(Ur, ur_usm_pool_handle_t);
    unsafe impl Sync for Shared {} // handles are for any thread
    let shared = {
        let ur = Ur::new();
        let pool = plain(&ur);
        Shared(ur, pool)
    };
    let Shared(ur, pool) = &shared;
    assert_eq!(set(*pool, I::MAXIMUM_SIZE_EXP, 16 * MIB), R::SUCCESS);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let shared = &shared;
            scope.spawn(move || {
                let Shared(ur, pool) = shared;
                for round in 0..200_usize {
                    let size = 1 << ((round * 7 + thread) % 23);
                    let take = if round % 2 == 0 { alloc } else { host_alloc };
                    match take(ur, *pool, size) {
                        Ok(at) => ur.free(at).unwrap(),
                        Err(refused) => assert_eq!(refused.code, R::ERROR_OUT_OF_RESOURCES),
                    }
                }
            });
        }
    });
    assert_eq!(size(ur, *pool, I::USED_CURRENT_EXP), 0);
    assert!(size(ur, *pool, I::RESERVED_HIGH_EXP) <= 16 * MIB);
    let trim = call!(usm_exp.pool_trim_to_exp(ur.context, ur.device, *pool, 0));
    assert_eq!((trim, size(ur, *pool, I::RESERVED_CURRENT_EXP)), (R::SUCCESS, 0));
}
